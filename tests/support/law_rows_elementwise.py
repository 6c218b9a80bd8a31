"""Rows for the elementwise primitives, made from their table: each at every dtype it accepts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pscdsl._src.primitives.elementwise import (
    ACCEPTS,
    TABLE,
    Bitcast,
    Clamp,
    Convert,
    Elementwise,
    Select,
)
from pscdsl._src.primitives.special import SPECIAL
from pscdsl.typing import dims, dtypes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import ALL, BOOL, DType
from tests.support.law_rows import Domain, NDArray, Row, anything, between, finfo

N = dims.name("n")
MANY = {"n": 1000}

EXACT = frozenset(
    "add subtract multiply divide floor_divide remainder fmod maximum minimum nextafter copysign "
    "negative absolute sign sqrt floor ceil round_even truncate real imag conjugate "
    "make_complex".split()
)
"""What is rounded correctly, or not at all, for real numbers."""

ULPS_F64 = {"erf_inv": 16}

REAL = (dtypes.I32.kind, dtypes.F32.kind)

UNSIGNED_ZEROS = frozenset({"maximum", "minimum", "nextafter"})
"""What may answer 0.0 or -0.0 when asked for one of the two, in NumPy as in XLA."""


def _plane(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Complex numbers, many of them on an axis and so on the branch cuts.

    Not where NumPy and XLA compute infinities and NaN by different formulas.
    """
    parts = [
        np.where(
            rng.random(shape) < 0.2,
            rng.choice([0.0, -0.0, 1.0, -1.0], shape),
            rng.uniform(-8, 8, shape),
        )
        for _ in range(2)
    ]
    result = np.empty(shape, np.complex128)
    result.real, result.imag = parts
    return result.astype(anything(rng, kind, ()).dtype)


def _either_sign(low: float, high: float) -> Domain:
    """Numbers, or parts of numbers, of either sign in a range of sizes."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        if kind.is_complex:
            result = np.empty(shape, anything(rng, kind, ()).dtype)
            result.real, result.imag = (draw(rng, kind.real, shape) for _ in range(2))
            return result
        return np.asarray(between(low, high)(rng, kind, shape) * rng.choice([-1.0, 1.0], shape))

    return draw


def _right(low: float, high: float) -> Domain:
    """Positive numbers of a range, or complex ones off the real axis, where the branch cuts are."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        domain = _either_sign(low, high) if kind.is_complex else between(low, high)
        return domain(rng, kind, shape)

    return draw


SMOOTH: dict[str, tuple[Domain, ...]] = {
    "acosh": (_right(1.2, 3),),
    "fmod": (_either_sign(2.5, 2.6), _either_sign(1, 1.1)),
    "log": (_right(0.2, 0.9),),
    "power": (_right(0.2, 0.9), _either_sign(0.2, 0.9)),
    "remainder": (_either_sign(2.5, 2.6), _either_sign(1, 1.1)),
    "rsqrt": (_right(0.2, 0.9),),
    "sqrt": (_right(0.2, 0.9),),
}
"""Where functions are smooth that are not so for all operands between 0.2 and 0.9 in size."""


def _smooth(primitive: Elementwise) -> tuple[Domain, ...]:
    around = _either_sign(0.2, 0.9)
    return SMOOTH.get(primitive.name, (around,) * primitive.arity)


def _without_zero(domain: Domain) -> Domain:
    """The same numbers, with one in place of zero."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        values = domain(rng, kind, shape)
        return np.where(values == 0, np.asarray(1, values.dtype), values)

    return draw


def _row(primitive: Elementwise, operands: tuple[ArrayType, ...]) -> Row:
    name, dtype = primitive.name, operands[0].dtype
    if dtype.is_complex and name not in (
        "add",
        "subtract",
        "negative",
        "conjugate",
        "make_complex",
    ):
        # A quotient by zero has no common definition, nor has a power of zero.
        domain = (
            _without_zero(_plane) if name in ("divide", "power", "reciprocal", "rsqrt") else _plane
        )
        return Row(
            primitive,
            operands,
            MANY,
            (domain, between(-3, 3)) if name == "power" else domain,
            tolerance=4 if name in EXACT else 128,
            absolute=4 * float(finfo(dtype).eps),
            signed_zeros=False,
            smooth=_smooth(primitive),
        )
    tolerance = 0
    if name == "divide" and operands[0].shape != operands[1].shape:
        tolerance = 1  # by a scalar XLA multiplies with its inverse
    if dtype.is_inexact and name not in EXACT:
        known = ULPS_F64 if dtype is dtypes.F64 else {}
        tolerance = known.get(name, 4) if dtype.bits > 16 else 2
    return Row(
        primitive,
        operands,
        MANY,
        tolerance=tolerance,
        signed_zeros=name not in UNSIGNED_ZEROS,
        smooth=_smooth(primitive),
    )


def _table() -> Iterator[Row]:
    for primitive in TABLE.values():
        if primitive in SPECIAL:  # with rows of their own
            continue
        for dtype in filter(ACCEPTS[primitive.accepts], ALL):
            vector, scalar = ArrayType(dtype, (N,)), ArrayType(dtype)
            yield _row(primitive, (vector,) * primitive.arity)
            if primitive.arity == 2:
                yield _row(primitive, (vector, scalar))
                yield _row(primitive, (scalar, vector))
        dtype = next(filter(ACCEPTS[primitive.accepts], reversed(ALL)))
        for shape in ((), (0,), (N, 1, dims.name("m")), (2, 0)):
            yield _row(primitive, (ArrayType(dtype, shape),) * primitive.arity)


def _conversions() -> Iterator[Row]:
    for given in ALL:
        for wanted in ALL:
            yield Row(Convert(wanted), (ArrayType(given, (N,)),), MANY)
            if given.bits == wanted.bits and all(d.kind in REAL for d in (given, wanted)):
                yield Row(Bitcast(wanted), (ArrayType(given, (N,)),), MANY)


def _choices() -> Iterator[Row]:
    for dtype in ALL:
        vector, scalar = ArrayType(dtype, (N,)), ArrayType(dtype)
        for predicate in (ArrayType(BOOL, (N,)), ArrayType(BOOL)):
            for x, y in ((vector, vector), (vector, scalar), (scalar, vector), (scalar, scalar)):
                yield Row(Select(), (predicate, x, y))
        if dtype.is_integer or dtype.is_float:
            for low, high in ((scalar, scalar), (vector, vector), (vector, scalar)):
                for x in (vector, scalar):
                    yield Row(Clamp(), (low, x, high), MANY, signed_zeros=False)


ROWS = (*_table(), *_conversions(), *_choices())
