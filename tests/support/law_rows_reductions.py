"""Rows for the primitives that combine the elements along axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np

from pscdsl._src.primitives.reductions import (
    Accumulation,
    ArgReduce,
    Cumulative,
    ExponentialSum,
    Extreme,
    Largest,
    LinearRecurrence,
    Reduce,
    Reduction,
    reducible,
)
from pscdsl._src.primitives.shaping import without
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import ALL, DType
from tests.support.law_rows import (
    Domain,
    NDArray,
    Row,
    anything,
    array_types,
    between,
    finfo,
    finite,
    whole,
)
from tests.support.law_rows_structure import facts

SHAPES: tuple[tuple[str, tuple[int, ...], dict[str, int]], ...] = (
    ("[n]", (0,), {"n": 37}),
    ("[n]", (), {"n": 3}),
    ("[m n]", (1,), {"m": 5, "n": 17}),
    ("[m n]", (0,), {"m": 17, "n": 5}),
    ("[m n 2]", (0, 1, 2), {"m": 3, "n": 4}),
    ("[m n k]", (2, 0), {"m": 3, "n": 4, "k": 5}),
    ("[n m]", (0,), {"n": 0, "m": 3}),
    ("[n m]", (0,), {"n": 2, "m": 0}),
    ("", (), {}),
)


MANY_SHAPES = (dtypes.BOOL, dtypes.I32, dtypes.BF16, dtypes.F32)


def _some_special(inner: Domain) -> Domain:
    """Numbers among which few are infinite or NaN, so that most results are not."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        values = inner(rng, kind, shape)
        if not kind.is_float:
            return values
        special = rng.choice([np.nan, np.inf, -np.inf, 0.0], shape).astype(values.dtype)
        return np.where(rng.random(shape) < 0.02, special, values)

    return draw


def _row(primitive: Reduce | Cumulative, dtype: DType, shape: str, sizes: dict[str, int]) -> Row:
    domain: Domain = anything
    tolerance = absolute = 0.0
    if dtype.is_inexact and primitive.kind in ("sum", "product"):
        domain = _some_special(between(-2, 2))
        tolerance = 2 if dtype.bits == 16 else 64
        absolute = 64 * float(finfo(dtypes.F32 if dtype.bits == 16 else dtype).eps)
    return Row(
        primitive,
        array_types(f"{dtype}{shape}"),
        sizes,
        domain,
        tolerance,
        absolute,
        signed_zeros=False,
        facts=facts("n >= 0", "m >= 0"),
    )


def _reductions() -> Iterator[Row]:
    for dtype in ALL:
        for shape, axes, sizes in SHAPES if dtype in MANY_SHAPES else SHAPES[2:4]:
            kinds: tuple[Reduction, ...] = get_args(Reduction)
            for kind in kinds:
                if reducible(kind, dtype):
                    yield _row(Reduce(kind, axes), dtype, shape, sizes)
            if len(axes) != 1:
                continue
            accumulations: tuple[Accumulation, ...] = get_args(Accumulation)
            for accumulation in accumulations:
                if reducible(accumulation, dtype):
                    both = dtype in MANY_SHAPES  # other dtypes: along one axis each way
                    for reverse in (False, True) if both else (axes[0] == 0,):
                        primitive = Cumulative(accumulation, axes[0], reverse)
                        yield _row(primitive, dtype, shape, sizes)
            extremes: tuple[Extreme, ...] = get_args(Extreme)
            for extreme in extremes:
                if reducible(extreme, dtype):
                    index = dtypes.I64 if len(shape) > 3 else dtypes.I32
                    yield Row(
                        ArgReduce(extreme, axes[0], index),
                        array_types(f"{dtype}{shape}"),
                        sizes,
                        _some_special(between(-3, 3)) if dtype.is_float else anything,
                        facts=facts("n >= 0", "m >= 0"),
                    )


def _long() -> Iterator[Row]:
    yield _row(Reduce("sum", (0,)), dtypes.F32, "[n]", {"n": 100_000})
    yield _row(Cumulative("sum", 0), dtypes.F32, "[n]", {"n": 1_000})
    yield _row(Cumulative("maximum", 0, True), dtypes.F32, "[n]", {"n": 1_000})
    yield _row(Cumulative("sum", 1), dtypes.I32, "[m n]", {"m": 3, "n": 1_000})


def _recurrences() -> Iterator[Row]:
    for dtype in ALL:
        if not dtype.is_number:
            continue
        many = dtype in MANY_SHAPES
        for shape, axes, sizes in SHAPES if many else SHAPES[2:3]:
            for axis in axes[:1]:
                for reverse in (False, True)[: 1 + many]:
                    row = _row(Reduce("sum", (axis,)), dtype, shape, sizes)
                    primitive = LinearRecurrence(axis, reverse)
                    domain = between(-2, 2) if dtype.is_inexact else anything
                    yield replace(
                        row, primitive=primitive, operands=row.operands * 2, domain=domain
                    )
    for count in (1, 2, 3, 8, 100):
        row = _row(Reduce("sum", (0,)), dtypes.F32, "[n]", {"n": count})
        infinite = replace(row, primitive=LinearRecurrence(0), operands=row.operands * 2)
        yield replace(infinite, domain=(_first_infinite, between(-2, 2)))


def _first_infinite(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Factors of which the first, which is not used, is infinite."""
    values = between(-2, 2)(rng, kind, shape)
    values[:1] = np.inf
    return values


def _with_zeros(count: int) -> Domain:
    """Numbers with some zeros among the last of them."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        values = between(0.2, 0.9)(rng, kind, shape)
        values[..., -count:] = 0
        return values

    return draw


def _derivatives() -> Iterator[Row]:
    """Where derivatives need care: products with zeros, and extremes far from ties."""
    for dtype in (dtypes.F64, dtypes.C128):
        for zeros in (1, 2, 3):
            smooth = _with_zeros(zeros)
            for primitive, operands in (
                (Reduce("product", (0,)), "[n]"),
                (Reduce("product", (1,)), "[m n]"),
                (Reduce("product", (2, 0)), "[m n k]"),
                (Cumulative("product", 0), "[n]"),
                (Cumulative("product", 1, True), "[m n]"),
                (LinearRecurrence(1), "[m n]"),
            ):
                row = _row(Reduce("sum", ()), dtype, operands, {"m": 2, "n": 5, "k": 3})
                count = 2 if isinstance(primitive, LinearRecurrence) else 1
                given = row.operands * count
                yield replace(row, primitive=primitive, operands=given, smooth=smooth)


def _exponentials() -> Iterator[Row]:
    """Sums of exponentials, of few elements and of many, and what they are shifted by."""
    for dtype in (dtypes.F32, dtypes.F64):
        for shape, axes, sizes in SHAPES:
            known = facts("n >= 0", "m >= 0")
            (operand,) = array_types(f"{dtype}{shape}")
            primitive = ExponentialSum(axes, beside_shift=len(axes) == 1)
            shift = operand.with_shape(without(operand.shape, axes))
            close = 64 * float(finfo(dtype).eps)
            row = Row(primitive, (operand, shift), sizes, between(-2, 2), 64, close, facts=known)
            yield replace(row, signed_zeros=False)
    for dtype in (dtypes.F16, dtypes.BF16, dtypes.F32, dtypes.F64):
        for shape, axes, sizes in SHAPES:
            operands = array_types(f"{dtype}{shape}")
            known = facts("n >= 0", "m >= 0")
            yield Row(Largest(axes), operands, sizes, finite, signed_zeros=False, facts=known)
    many = {"m": 64, "n": 256}
    for domain in (between(-2, 0), between(-90, -10)):  # far above 1, and near
        operands = array_types("f32[m n], f32[m]")
        for beside_shift in (False, True):
            primitive = ExponentialSum((1,), beside_shift)
            yield Row(primitive, operands, many, (domain, whole(0, 0)), 128)
    operands = array_types("f32[m n], f32[n]")
    yield Row(ExponentialSum((0,)), operands, {"m": 8, "n": 1 << 14}, between(-2, 2), 64, 1e-5)


ROWS = (
    *_reductions(),
    *_long(),
    *_recurrences(),
    *_derivatives(),
    *_exponentials(),
)
