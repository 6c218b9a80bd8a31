"""The public face of arrays: results of kernels, and the types that annotations are made of.

What type checkers see of this module stands in `arrays.pyi`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pscdsl.elements import Array, ElementType
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import CLASSES, DType

T = TypeVar("T")


class Static(Generic[T]):
    """`psc.Static[int]`: a parameter whose value is known while checking."""


def _element(dtype: DType, name: str = "") -> ElementType:
    return ElementType(name or dtype.name, (dtype,))


bool_ = _element(dtypes.BOOL, "bool_")
i8, i16, i32, i64 = map(_element, (dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64))
u8, u16, u32, u64 = map(_element, (dtypes.U8, dtypes.U16, dtypes.U32, dtypes.U64))
bf16, f16, f32, f64 = map(_element, (dtypes.BF16, dtypes.F16, dtypes.F32, dtypes.F64))
c64, c128 = map(_element, (dtypes.C64, dtypes.C128))
Key = _element(dtypes.KEY, "Key")

Bool, Int, UInt, Integer, Float, Complex, Inexact, Num, Shaped = (
    ElementType(name, members) for name, members in CLASSES.items()
)

__all__ = ["Array", "Static"]
