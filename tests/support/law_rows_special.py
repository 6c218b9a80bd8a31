"""Rows for special functions: hard operands, and those around which they are interesting.

Meaning and translation are one formula, so they differ by what NumPy's and XLA's exponentials and
logarithms do, magnified by exponents; against SciPy they are compared in test_special.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.primitives.special import SPECIAL
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BF16, F16, F32, F64, DType
from tests.support.law_rows import Domain, NDArray, Row, anything, between, finfo

N = dims.name("n")
MANY = {"n": 300}


def _hard(low: float, high: float) -> Domain:
    """Numbers of a range, many near its lower end, among them some of the hardest there are."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        inside = low + (high - low) * rng.random(shape) ** rng.choice([1, 4], shape)
        hard = anything(rng, kind, shape)
        return np.where(rng.random(shape) < 0.2, hard, inside.astype(hard.dtype))

    return draw


def _whole(low: int, high: int) -> Domain:
    """Integers of a range."""

    def draw(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        hard = anything(rng, kind, shape)
        return rng.integers(low, high, shape).astype(hard.dtype)

    return draw


POSITIVE, AROUND, UNIT = _hard(0.0, 40.0), _hard(-30.0, 30.0), _hard(0.0, 1.0)
DOMAINS: dict[str, tuple[Domain, ...]] = {
    "erfinv": (_hard(-1, 1),),
    "erfcinv": (_hard(0, 2),),
    "ndtri": (UNIT,),
    "logit": (UNIT,),
    "entr": (UNIT,),
    "zeta": (_hard(1, 9), AROUND),
    "betaln": (POSITIVE, POSITIVE),
    "gammainc": (POSITIVE, POSITIVE),
    "gammaincc": (POSITIVE, POSITIVE),
    "betainc": (POSITIVE, POSITIVE, UNIT),
    "betaincc": (POSITIVE, POSITIVE, UNIT),
    "jv": (_whole(-9, 9), AROUND),
    "iv": (_whole(-9, 9), AROUND),
    "kv": (_hard(-9.0, 9.0), POSITIVE),
}
SMOOTH: dict[str, tuple[Domain, ...]] = {
    "zeta": (between(2.2, 2.9), between(0.5, 1.5)),
    "jv": (_whole(0, 5), between(1, 3)),
    "iv": (_whole(0, 5), between(1, 3)),
    "kv": (_whole(0, 5), between(1, 3)),
    "rel_entr": (between(0.2, 0.9), between(1.2, 2)),
    "betaln": (between(1.2, 1.9), between(1.2, 1.9)),
}
HELD = {
    **dict.fromkeys(("zeta", "gammainc", "gammaincc", "jv", "iv", "kv"), (0,)),
    **dict.fromkeys(("betainc", "betaincc"), (0, 1)),
}
ULPS = {
    **dict.fromkeys(("betainc", "betaincc"), 1000),
    **dict.fromkeys(("gammainc", "gammaincc", "jv", "iv", "kv"), 300),
    "zeta": 64,
}
"""What exponents of some hundred magnify; others differ by a few units in the last place."""
LARGE = frozenset(("betainc", "betaincc", "gammainc", "gammaincc"))
SUBTRACTING = frozenset(
    "betainc betaincc betaln digamma gammainc gammaincc gammaln jv kl_div rel_entr zeta".split()
)
"""Functions with roots that the formula does not know, or computed as what 1 is above another;
there they are right absolutely."""


def _row(primitive: Elementwise, operands: tuple[ArrayType, ...]) -> Row:
    name, dtype = primitive.name, operands[0].dtype
    half = dtype.bits == 16
    return Row(
        primitive,
        operands,
        MANY,
        DOMAINS.get(name, (AROUND,) * primitive.arity),
        tolerance=2 if half else ULPS.get(name, 16),
        absolute=32 * float(finfo(dtype).eps) if name in SUBTRACTING else 0,
        signed_zeros=False,
        smooth=SMOOTH.get(name),
        held=HELD.get(name, ()),
    )


def _rows() -> Iterator[Row]:
    for primitive in SPECIAL:
        for dtype in (BF16, F16, F32, F64):
            vector, scalar = ArrayType(dtype, (N,)), ArrayType(dtype)
            yield _row(primitive, (vector,) * primitive.arity)
            if primitive.arity == 2 and dtype is F32:
                yield _row(primitive, (vector, scalar))
                yield _row(primitive, (scalar, vector))
        # Shapes mean the same to all of them; some take XLA a second for each program.
        for shape in () if primitive.name in LARGE else ((), (0,), (N, 1, dims.name("m"))):
            yield _row(primitive, (ArrayType(F32, shape),) * primitive.arity)


ROWS = tuple(_rows())
