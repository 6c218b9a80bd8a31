"""The public face of arrays: results of kernels, and the types that annotations are made of."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from pscdsl.numpy_dtypes import to_numpy
from pscdsl.typing import dtypes
from pscdsl.typing.dtypes import CLASSES, DType
from pscdsl.typing.notation import DimSpec, parse_shape

T = TypeVar("T")


class Array(ABC):
    """An array on the device: the result of a kernel.

    The class that the runtime uses registers itself here when the first kernel is compiled;
    `isinstance(x, psc.Array)` holds for its instances.
    """


class ArrayAnnotation:
    """What `f32["n d"]` is at run time: dtypes and a shape."""

    def __init__(self, name: str, members: tuple[DType, ...], shape: str) -> None:
        self.name = name
        self.members = members
        self.text = shape
        self.dims: tuple[DimSpec, ...] = parse_shape(shape)

    def __repr__(self) -> str:
        return f'{self.name}["{self.text}"]'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Only so that `typing` takes it for a type."""
        raise TypeError(f"{self} is an annotation")


class Element(Array):
    """Base of the element types: `f32` is a scalar, `f32["n d"]` an array."""

    members: ClassVar[tuple[DType, ...]] = ()

    def __class_getitem__(cls, shape: str) -> Any:
        return ArrayAnnotation(cls.__name__, cls.members, shape)


def _element(ours: DType, name: str = "") -> Any:
    body: dict[str, Any] = {"members": (ours,), "__doc__": f"Element type {ours.name}."}
    if ours is not dtypes.KEY:
        numpy_dtype = to_numpy(ours)
        body["dtype"] = numpy_dtype  # np.dtype(f32) is NumPy's float32
        body["__new__"] = lambda cls, value=0: numpy_dtype.type(value)
    return type(name or ours.name, (Element,), {**body, "__module__": "pscdsl"})


def _class(name: str) -> Any:
    body = {"members": CLASSES[name], "__doc__": f"Any dtype of the class {name}."}
    return type(name, (Element,), {**body, "__module__": "pscdsl"})


bool_ = _element(dtypes.BOOL, "bool_")
i8, i16, i32, i64 = (_element(each) for each in (dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64))
u8, u16, u32, u64 = (_element(each) for each in (dtypes.U8, dtypes.U16, dtypes.U32, dtypes.U64))
bf16, f16, f32, f64 = (
    _element(each) for each in (dtypes.BF16, dtypes.F16, dtypes.F32, dtypes.F64)
)
c64, c128 = _element(dtypes.C64), _element(dtypes.C128)
Key = _element(dtypes.KEY, "Key")

Bool, Int, UInt, Integer, Float, Complex, Inexact, Num, Shaped = map(_class, CLASSES)


class Static(Generic[T]):
    """`psc.Static[int]`: a parameter whose value is known while checking."""


__all__ = ["Array", "ArrayAnnotation", "Element", "Static", "np"]
