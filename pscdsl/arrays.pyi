"""What type checkers know of arrays: dtype and shape are for people and for `pscdsl check`.

To a checker `f32["n d"]` is `f32`: an `ndarray` where it is used, and a protocol that any number or
array fits where a value is given for it, because NumPy's stubs seldom know the dtype of what a
function returns.  What this catches: an argument that is no number or array (a string, a list,
None, a record), an attribute that arrays do not have, a wrong number of arguments.

* pyright and Pylance need nothing.  They take `f32(0)` for the call of a protocol, and report it:
  write `np.float32(0)`, or the weak `0.0`.  In strict mode they lose the dtype of `np.concatenate`
  where an array type is expected, `return np.concatenate([x, y])`: give the result a name first.
* mypy needs the plug-in `pscdsl.mypy_plugin`.
* ruff needs F722 and F821 off where shapes are written (`"n d"` is not a forward reference).
"""

# A protocol with a class among its bases is what makes this work: both directions are quiet.
# pyright: reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
# mypy: disable-error-code="misc, override, operator, overload-overlap"

from collections.abc import Iterator, Sequence
from typing import (
    Annotated,
    Any,
    Never,
    Protocol,
    Self,
    TypeAlias,
    overload,
    runtime_checkable,
)

import numpy as np
from numpy.typing import DTypeLike
from typing_extensions import TypeVar

_S = TypeVar("_S", bound=np.generic, covariant=True)
_E = TypeVar("_E", bound=Surface[Any])
_T = TypeVar("_T")
_D = TypeVar("_D", covariant=True, default=Any)
_Axes: TypeAlias = int | tuple[int, ...] | None

Static: TypeAlias = Annotated[_T, "static"]
"""A parameter whose value is known while checking: to other checkers simply that type."""

class Tree(Protocol[_D]):
    """Any tree of arrays: to other checkers, anything."""

class Subscripted(type):
    """What makes `f32["n d"]` a value; to mypy alone, whose plug-in puts it to use."""

    def __getitem__(cls: type[_T], shape: str) -> type[_T]: ...

class Numeric(Protocol):
    """Any number or array, and only those."""

    def conjugate(self) -> Any: ...

class Surface(np.ndarray[tuple[int, ...], np.dtype[_S]]):
    """NumPy's array, where dtypes never promote each other and nothing is written in place.

    Most results have the type of `self`.  NumPy's own stubs answer Any for a part of an array and
    for most reductions, and a strict checker dislikes what is made of those.
    """

    def to_numpy(self) -> np.ndarray[tuple[int, ...], np.dtype[_S]]:
        """The contents, once computed, as a NumPy array."""

    def block_until_ready(self) -> Self:
        """Wait until the contents are computed."""

    def __getitem__(self, index: Any, /) -> Self: ...
    def __setitem__(self, index: Never, value: Never, /) -> None:
        """Refused: `psc.update(x, index, value)` is a changed copy."""

    def __iter__(self) -> Iterator[Self]: ...
    def __add__(self, other: Numeric, /) -> Self: ...
    def __radd__(self, other: Numeric, /) -> Self: ...
    def __sub__(self, other: Numeric, /) -> Self: ...
    def __rsub__(self, other: Numeric, /) -> Self: ...
    def __mul__(self, other: Numeric, /) -> Self: ...
    def __rmul__(self, other: Numeric, /) -> Self: ...
    def __floordiv__(self, other: Numeric, /) -> Self: ...
    def __rfloordiv__(self, other: Numeric, /) -> Self: ...
    def __mod__(self, other: Numeric, /) -> Self: ...
    def __rmod__(self, other: Numeric, /) -> Self: ...
    def __pow__(self, other: Numeric, /) -> Self: ...
    def __rpow__(self, other: Numeric, /) -> Self: ...
    def __matmul__(self, other: Numeric, /) -> Self: ...
    def __rmatmul__(self, other: Numeric, /) -> Self: ...
    def __and__(self, other: Numeric, /) -> Self: ...
    def __rand__(self, other: Numeric, /) -> Self: ...
    def __or__(self, other: Numeric, /) -> Self: ...
    def __ror__(self, other: Numeric, /) -> Self: ...
    def __xor__(self, other: Numeric, /) -> Self: ...
    def __rxor__(self, other: Numeric, /) -> Self: ...
    @overload
    def __truediv__(self: Surface[np.integer[Any]], other: Numeric, /) -> Float: ...
    @overload
    def __truediv__(self, other: Numeric, /) -> Self: ...
    @overload
    def __rtruediv__(self: Surface[np.integer[Any]], other: Numeric, /) -> Float: ...
    @overload
    def __rtruediv__(self, other: Numeric, /) -> Self: ...
    @overload
    def astype(self, dtype: type[_E], *, copy: bool = True) -> _E: ...
    @overload
    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Any: ...
    def reshape(self, *shape: int | Sequence[int]) -> Self: ...
    def sum(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def prod(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def mean(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def std(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def var(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def min(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def max(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...

class Element(Numeric, Protocol):
    """A type of arrays: alone a scalar, with a shape in brackets an array."""

    def __class_getitem__(cls, shape: str) -> type[Self]: ...

@runtime_checkable
class Array(Numeric, Surface[Any], Protocol):
    """An array on the device: the result of a kernel."""

    @property
    def ndim(self) -> int: ...

class bool_(Element, Surface[np.bool], Protocol):
    """A bool, `bool_["n d"]` an array of them."""

class i8(Element, Surface[np.int8], Protocol):
    """An 8-bit integer, `i8["n d"]` an array of them."""

class i16(Element, Surface[np.int16], Protocol):
    """A 16-bit integer, `i16["n d"]` an array of them."""

class i32(Element, Surface[np.int32], Protocol):
    """A 32-bit integer, `i32["n d"]` an array of them."""

class i64(Element, Surface[np.int64], Protocol):
    """A 64-bit integer, `i64["n d"]` an array of them."""

class u8(Element, Surface[np.uint8], Protocol):
    """An 8-bit unsigned integer, `u8["n d"]` an array of them."""

class u16(Element, Surface[np.uint16], Protocol):
    """A 16-bit unsigned integer, `u16["n d"]` an array of them."""

class u32(Element, Surface[np.uint32], Protocol):
    """A 32-bit unsigned integer, `u32["n d"]` an array of them."""

class u64(Element, Surface[np.uint64], Protocol):
    """A 64-bit unsigned integer, `u64["n d"]` an array of them."""

class bf16(Element, Surface[np.floating[Any]], Protocol):
    """A number with the range of f32 in 16 bits (bfloat16), `bf16["n d"]` an array of them."""

class f16(Element, Surface[np.float16], Protocol):
    """A 16-bit floating-point number, `f16["n d"]` an array of them."""

class f32(Element, Surface[np.float32], Protocol):
    """A 32-bit floating-point number, `f32["n d"]` an array of them."""

class f64(Element, Surface[np.float64], Protocol):
    """A 64-bit floating-point number, `f64["n d"]` an array of them."""

class c64(Element, Surface[np.complex64], Protocol):
    """A complex number of two f32, `c64["n d"]` an array of them."""

class c128(Element, Surface[np.complex128], Protocol):
    """A complex number of two f64, `c128["n d"]` an array of them."""

class Key(Element, Surface[np.uint32], Protocol):
    """A random key, `Key["n"]` an array of them."""

class Bool(Element, Surface[np.bool], Protocol):
    """Bools of any one dtype: `Bool["n d"]`."""

class Int(Element, Surface[np.signedinteger[Any]], Protocol):
    """Signed integers of any one dtype: `Int["n d"]`."""

class UInt(Element, Surface[np.unsignedinteger[Any]], Protocol):
    """Unsigned integers of any one dtype: `UInt["n d"]`."""

class Integer(Element, Surface[np.integer[Any]], Protocol):
    """Integers, signed or not of any one dtype: `Integer["n d"]`."""

class Float(Element, Surface[np.floating[Any]], Protocol):
    """Floating-point numbers of any one dtype: `Float["n d"]`."""

class Complex(Element, Surface[np.complexfloating[Any, Any]], Protocol):
    """Complex numbers of any one dtype: `Complex["n d"]`."""

class Inexact(Element, Surface[np.inexact[Any]], Protocol):
    """Floating-point or complex numbers of any one dtype: `Inexact["n d"]`."""

class Num(Element, Surface[np.number[Any]], Protocol):
    """Numbers of any one dtype: `Num["n d"]`."""

class Shaped(Element, Surface[Any], Protocol):
    """Elements of any one dtype: `Shaped["n d"]`."""
