"""The public face of arrays: results of kernels, and the types that annotations are made of.

What type checkers see of this module stands in `arrays.pyi`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pscdsl._src.language.elements import Array, ElementType, element
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import CLASSES, DType

T = TypeVar("T")


class Static(Generic[T]):
    """A parameter whose value is known at check time: `psc.Static[int]`."""


class Tree(Generic[T]):
    """The type of any tree of arrays, also as a bound: `TypeVar("T", bound=psc.Tree)`.

    `psc.Tree[f32]` has arrays of one dtype, `psc.Tree[Float]` of one dtype of a class.
    """


def _named(dtype: DType) -> ElementType:
    return element(dtype.name, dtype)


bool_ = element("bool_", dtypes.BOOL)
i8, i16, i32, i64 = map(_named, (dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64))
u8, u16, u32, u64 = map(_named, (dtypes.U8, dtypes.U16, dtypes.U32, dtypes.U64))
bf16, f16, f32, f64 = map(_named, (dtypes.BF16, dtypes.F16, dtypes.F32, dtypes.F64))
c64, c128 = map(_named, (dtypes.C64, dtypes.C128))
Key = element("Key", dtypes.KEY)

Bool, Int, UInt, Integer, Float, Complex, Inexact, Num, Shaped = (
    element(name, *members) for name, members in CLASSES.items()
)

__all__ = ["Array", "Static", "Tree"]
