"""Python's numbers as scalars of a dtype."""

from __future__ import annotations

from math import inf

from pscdsl._src.ir.program import Scalar
from pscdsl.typing import dtypes
from pscdsl.typing.codes.element_types import ScalarDoesNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType, Kind, accepts_weak


def kind_of(scalar: Scalar) -> Kind:
    """The kind of a Python scalar."""
    if isinstance(scalar, bool):
        return Kind.BOOL
    if isinstance(scalar, int):
        return Kind.INT
    return Kind.FLOAT if isinstance(scalar, float) else Kind.COMPLEX


_LARGEST = {
    dtypes.F16: 65519.9,
    dtypes.BF16: 3.3961e38,
    dtypes.F32: 3.4028235677e38,
    dtypes.C64: 3.4028235677e38,
}
"""What is larger would be rounded to infinity."""


def fit(value: Scalar, dtype: DType) -> Scalar:
    """A Python scalar as one of a dtype; a Failure if that cannot hold it."""
    if not isinstance(value, Scalar):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Failure(ScalarDoesNotFit(scalar=f"a {type(value).__name__}", dtype=dtype))
    if not accepts_weak(dtype, kind_of(value)):
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    if dtype.kind is Kind.BOOL:
        return bool(value)
    if dtype.kind is Kind.FLOAT:
        return _bounded(_real(value, dtype), value, dtype)
    if dtype.kind is Kind.COMPLEX:
        whole = value if isinstance(value, complex) else _real(value, dtype)
        real, imag = (_bounded(part, value, dtype) for part in (whole.real, whole.imag))
        return complex(real, imag)
    low, high = dtype.range
    if not low <= int(value) <= high:  # type: ignore[arg-type]
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    return int(value)  # type: ignore[arg-type]


def _bounded(part: float, value: Scalar, dtype: DType) -> float:
    if abs(part) > _LARGEST.get(dtype, inf) and part not in (inf, -inf):
        raise Failure(ScalarDoesNotFit(scalar=repr(value), dtype=dtype))
    return part


def _real(value: Scalar, dtype: DType) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise Failure(ScalarDoesNotFit(scalar="an integer this large", dtype=dtype)) from None
