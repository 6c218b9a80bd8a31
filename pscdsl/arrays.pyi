"""What type checkers know of arrays: dtype and shape are for people and for `pscdsl check`.

To a checker `f32["n d"]` is `f32`: an `ndarray` where it is used, and a protocol that any number or
array fits where a value is given for it, because NumPy's stubs seldom know the dtype of what a
function returns.  What this catches: an argument that is no number or array (a string, a list,
None, a record), an attribute that arrays do not have, a wrong number of arguments.

* pyright and Pylance need nothing.  They take `f32(0)` for the call of a protocol, and report it:
  write `np.float32(0)`, or the weak `0.0`.  In strict mode they lose the dtype of `np.concatenate`
  where an array type is expected, `return np.concatenate([x, y])`: give the result a name first.
* mypy needs the plug-in `pscdsl.mypy_plugin`.
* ty takes an array for Any, and needs nothing: see `_any_to_ty`.
* Pyrefly and zuban read the shape as the name of a type, and need settings: docs/how-to/.
* `Float32[psc.Array, "n d"]`, jaxtyping's spelling, is `psc.Array` to all of them.
* ruff needs F722 and F821 off where shapes are written (`"n d"` is not a forward reference).
"""

# A protocol with a class among its bases is what makes this work: both directions are quiet.
# pyright: reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false, reportMissingImports=false
# pyright: reportUnknownVariableType=false, reportUntypedClassDecorator=false
# mypy: disable-error-code="misc, override, operator, overload-overlap, import-not-found"

from collections.abc import Iterator, Sequence
from typing import (
    Annotated,
    Any,
    Protocol,
    Self,
    TypeAlias,
    overload,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from ty_extensions import Intersection
from typing_extensions import TypeVar

from pscdsl._src.xla.mesh import Shard
from pscdsl.typing.placements import Placement

_S = TypeVar("_S", bound=np.generic, covariant=True)
_E = TypeVar("_E", bound=Surface[Any])
_T = TypeVar("_T")
_D = TypeVar("_D", covariant=True, default=Any)
_Axes: TypeAlias = int | tuple[int, ...] | None
_Stored: TypeAlias = Numeric | list[Any] | tuple[Any, ...]

Static: TypeAlias = Annotated[_T, "static"]
"""A parameter whose value is known while checking: to other checkers simply that type.

Examples:
    >>> @psc.kernel
    ... def power(x: f64["n"], exponent: psc.Static[int]) -> f64["n"]:
    ...     return x**exponent
    >>> power(np.array([1.0, 2.0]), 3)
    pscdsl.Array([1., 8.], dtype=float64)
"""

class Tree(Protocol[_D]):
    """Any tree of arrays: to other checkers, anything.

    Examples:
        >>> @psc.kernel
        ... def size(tree: psc.Tree) -> f64:
        ...     return psc.tree.norm(tree)
        >>> size({"w": np.array([3.0]), "b": np.array(4.0)})
        pscdsl.Array(5., dtype=float64)
    """

class Subscripted(type):
    """What makes `f32["n d"]` a value; to mypy alone, whose plug-in puts it to use."""

    def __getitem__(cls: type[_T], shape: str) -> type[_T]: ...

class Numeric(Protocol):
    """Any number or array, and only those."""

    def conjugate(self) -> Any: ...

class Surface(np.ndarray[tuple[int, ...], np.dtype[_S]]):
    """NumPy's array, where dtypes never promote each other.

    Most results have the type of `self`.  NumPy's own stubs answer Any for a part of an array and
    for most reductions, and a strict checker dislikes what is made of those.  Every operator and
    method stands here: NumPy's ask what `self` is, and to some no protocol is an `ndarray`.
    """

    def to_numpy(self) -> np.ndarray[tuple[int, ...], np.dtype[_S]]:
        """The contents, once computed, as a NumPy array."""

    def block_until_ready(self) -> Self:
        """Wait until the contents are computed."""

    @property
    def placement(self) -> Placement:
        """Along which axes of a mesh the axes of the array are cut; of results and `mesh.put`."""

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The pieces on the devices of this process, in the order of the mesh."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[_S]: ...
    @property
    def T(self) -> Self: ...
    @property
    def mT(self) -> Self: ...
    @property
    def real(self) -> Any: ...
    @real.setter
    def real(self, value: Any, /) -> None: ...
    @property
    def imag(self) -> Any: ...
    @imag.setter
    def imag(self, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, item: Any, /) -> bool: ...
    def __getitem__(self, index: Any, /) -> Self: ...
    def __setitem__(self, index: Any, value: _Stored, /) -> None: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __abs__(self) -> Self: ...
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
    def __lshift__(self, other: Numeric, /) -> Self: ...
    def __rlshift__(self, other: Numeric, /) -> Self: ...
    def __rshift__(self, other: Numeric, /) -> Self: ...
    def __rrshift__(self, other: Numeric, /) -> Self: ...
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
    def __iadd__(self, other: Numeric, /) -> Self: ...
    def __isub__(self, other: Numeric, /) -> Self: ...
    def __imul__(self, other: Numeric, /) -> Self: ...
    def __ifloordiv__(self, other: Numeric, /) -> Self: ...
    def __imod__(self, other: Numeric, /) -> Self: ...
    def __ipow__(self, other: Numeric, /) -> Self: ...
    def __imatmul__(self, other: Numeric, /) -> Self: ...
    def __ilshift__(self, other: Numeric, /) -> Self: ...
    def __irshift__(self, other: Numeric, /) -> Self: ...
    def __iand__(self, other: Numeric, /) -> Self: ...
    def __ior__(self, other: Numeric, /) -> Self: ...
    def __ixor__(self, other: Numeric, /) -> Self: ...
    @overload
    def __itruediv__(self: Surface[np.integer[Any]], other: Numeric, /) -> Float: ...
    @overload
    def __itruediv__(self, other: Numeric, /) -> Self: ...
    def __divmod__(self, other: Numeric, /) -> tuple[Self, Self]: ...
    def __rdivmod__(self, other: Numeric, /) -> tuple[Self, Self]: ...
    def __lt__(self, other: Numeric, /) -> Bool: ...
    def __le__(self, other: Numeric, /) -> Bool: ...
    def __gt__(self, other: Numeric, /) -> Bool: ...
    def __ge__(self, other: Numeric, /) -> Bool: ...
    def __eq__(self, other: object, /) -> Bool: ...
    def __ne__(self, other: object, /) -> Bool: ...
    @overload
    def astype(self, dtype: type[_E], *, copy: bool = True) -> _E: ...
    @overload
    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Any: ...
    def reshape(self, *shape: int | Sequence[int]) -> Self: ...
    def transpose(self, *axes: int | Sequence[int] | None) -> Self: ...
    def ravel(self, order: str = "C") -> Self: ...
    def flatten(self, order: str = "C") -> Self: ...
    def squeeze(self, axis: _Axes = None) -> Self: ...
    def swapaxes(self, axis1: int, axis2: int) -> Self: ...
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self: ...
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self: ...
    def repeat(self, repeats: Any, axis: int | None = None) -> Self: ...
    def take(self, indices: Any, axis: int | None = None, **more: Any) -> Self: ...
    def compress(self, condition: Any, axis: int | None = None) -> Self: ...
    def choose(self, choices: Any, **more: Any) -> Any: ...
    def copy(self, order: str = "C") -> Self: ...
    def view(self, dtype: DTypeLike = ...) -> Any: ...
    def dot(self, b: Numeric) -> Self: ...
    def clip(self, min: Any = None, max: Any = None) -> Self: ...  # noqa: A002
    def round(self, decimals: int = 0) -> Self: ...
    def conj(self) -> Self: ...
    def conjugate(self) -> Self: ...
    def cumsum(self, axis: int | None = None, **more: Any) -> Self: ...
    def cumprod(self, axis: int | None = None, **more: Any) -> Self: ...
    def sum(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def prod(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def mean(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def std(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def var(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def min(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def max(self, axis: _Axes = None, *, keepdims: bool = False, **more: Any) -> Self: ...
    def all(self, axis: _Axes = None, *, keepdims: bool = False) -> Bool: ...
    def any(self, axis: _Axes = None, *, keepdims: bool = False) -> Bool: ...
    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Int: ...
    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Int: ...
    def argsort(self, axis: int | None = -1, **more: Any) -> Int: ...
    def argpartition(self, kth: Any, axis: int | None = -1, **more: Any) -> Int: ...
    def searchsorted(self, v: ArrayLike, side: str = "left", sorter: Any = None) -> Int: ...
    def nonzero(self) -> tuple[Int, ...]: ...
    def item(self, *args: Any) -> Any: ...
    def tolist(self) -> Any: ...
    def __round__(self, digits: int = 0, /) -> Self: ...

class Element(Numeric, Protocol):
    """A type of arrays: alone a scalar, with a shape in brackets an array."""

    def __class_getitem__(cls, shape: Any) -> type[Self]: ...

def _any_to_ty(kind: Any) -> Intersection[Any]:
    """The class as it is, but to ty Any: to ty no protocol is an `ndarray`, whatever its bases.

    Only ty has the module that the result's type comes from, and the others leave a class alone
    whose decorator returns something unknown.
    """

@_any_to_ty
@runtime_checkable
class Array(Numeric, Surface[Any], Protocol):
    """An array on the device: the result of a kernel.

    Examples:
        >>> @psc.kernel
        ... def doubled(x: f32["n"]) -> f32["n"]:
        ...     return 2 * x
        >>> y = doubled(np.array([1, 2], np.float32))
        >>> isinstance(y, psc.Array), np.asarray(y) + 1
        (True, array([3., 5.], dtype=float32))
    """

    @property
    def ndim(self) -> int: ...

@_any_to_ty
class bool_(Element, Surface[np.bool], Protocol):
    """A bool, `bool_["n d"]` an array of them.

    Examples:
        >>> np.array([0, 1, 2], bool_)
        array([False,  True,  True])
    """

@_any_to_ty
class i8(Element, Surface[np.int8], Protocol):
    """An 8-bit integer, `i8["n d"]` an array of them.

    Examples:
        >>> np.array([-128, 127], i8)
        array([-128,  127], dtype=int8)
    """

@_any_to_ty
class i16(Element, Surface[np.int16], Protocol):
    """A 16-bit integer, `i16["n d"]` an array of them.

    Examples:
        >>> np.array([-32768, 32767], i16)
        array([-32768,  32767], dtype=int16)
    """

@_any_to_ty
class i32(Element, Surface[np.int32], Protocol):
    """A 32-bit integer, `i32["n d"]` an array of them.

    Examples:
        >>> np.arange(3, dtype=i32)
        array([0, 1, 2], dtype=int32)
    """

@_any_to_ty
class i64(Element, Surface[np.int64], Protocol):
    """A 64-bit integer, `i64["n d"]` an array of them.

    Examples:
        >>> np.arange(3, dtype=i64)
        array([0, 1, 2])
    """

@_any_to_ty
class u8(Element, Surface[np.uint8], Protocol):
    """An 8-bit unsigned integer, `u8["n d"]` an array of them.

    Examples:
        >>> np.array([0, 255], u8)
        array([  0, 255], dtype=uint8)
    """

@_any_to_ty
class u16(Element, Surface[np.uint16], Protocol):
    """A 16-bit unsigned integer, `u16["n d"]` an array of them.

    Examples:
        >>> np.array([0, 65535], u16)
        array([    0, 65535], dtype=uint16)
    """

@_any_to_ty
class u32(Element, Surface[np.uint32], Protocol):
    """A 32-bit unsigned integer, `u32["n d"]` an array of them.

    Examples:
        >>> np.array([0, 4294967295], u32)
        array([         0, 4294967295], dtype=uint32)
    """

@_any_to_ty
class u64(Element, Surface[np.uint64], Protocol):
    """A 64-bit unsigned integer, `u64["n d"]` an array of them.

    Examples:
        >>> np.array([0, 18446744073709551615], u64)
        array([                   0, 18446744073709551615], dtype=uint64)
    """

@_any_to_ty
class bf16(Element, Surface[np.floating[Any]], Protocol):
    """A number with the range of f32 in 16 bits (bfloat16), `bf16["n d"]` an array of them.

    Examples:
        >>> np.array([0.1, 70000.0], bf16)
        array([0.100098, 70144], dtype=bfloat16)
    """

@_any_to_ty
class f16(Element, Surface[np.float16], Protocol):
    """A 16-bit floating-point number, `f16["n d"]` an array of them.

    Examples:
        >>> np.array([0.1, 65504], f16)
        array([1.00e-01, 6.55e+04], dtype=float16)
    """

@_any_to_ty
class f32(Element, Surface[np.float32], Protocol):
    """A 32-bit floating-point number, `f32["n d"]` an array of them.

    Examples:
        >>> np.array([0.1, 3000], f32)
        array([1.e-01, 3.e+03], dtype=float32)
    """

@_any_to_ty
class f64(Element, Surface[np.float64], Protocol):
    """A 64-bit floating-point number, `f64["n d"]` an array of them.

    Examples:
        >>> np.array([0.1, 3000], f64)
        array([1.e-01, 3.e+03])
    """

@_any_to_ty
class c64(Element, Surface[np.complex64], Protocol):
    """A complex number of two f32, `c64["n d"]` an array of them.

    Examples:
        >>> np.array([1, 1j], c64)
        array([1.+0.j, 0.+1.j], dtype=complex64)
    """

@_any_to_ty
class c128(Element, Surface[np.complex128], Protocol):
    """A complex number of two f64, `c128["n d"]` an array of them.

    Examples:
        >>> np.array([1, 1j], c128)
        array([1.+0.j, 0.+1.j])
    """

@_any_to_ty
class Key(Element, Surface[np.uint32], Protocol):
    """A random key, `Key["n"]` an array of them.

    Examples:
        >>> @psc.kernel
        ... def noise(key: Key) -> f32["3"]:
        ...     return psc.random.normal(key, (3,), np.float32)
        >>> noise(psc.random.key(0))
        pscdsl.Array([ 1.6226,  2.0253, -0.4336], dtype=float32)
    """

@_any_to_ty
class Bool(Element, Surface[np.bool], Protocol):
    """Bools of any one dtype: `Bool["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def neither(x: Bool["n"], y: Bool["n"]) -> Bool["n"]:
        ...     return ~(x | y)
        >>> neither(np.array([True, False]), np.array([False, False]))
        pscdsl.Array([False,  True], dtype=bool)
    """

@_any_to_ty
class Int(Element, Surface[np.signedinteger[Any]], Protocol):
    """Signed integers of any one dtype: `Int["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def negated(x: Int["n"]) -> Int["n"]:
        ...     return -x
        >>> negated(np.array([1, 2], np.int8))
        pscdsl.Array([-1, -2], dtype=int8)
    """

@_any_to_ty
class UInt(Element, Surface[np.unsignedinteger[Any]], Protocol):
    """Unsigned integers of any one dtype: `UInt["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def low_bits(x: UInt["n"]) -> UInt["n"]:
        ...     return x & 15
        >>> low_bits(np.array([255, 16], np.uint8))
        pscdsl.Array([15,  0], dtype=uint8)
    """

@_any_to_ty
class Integer(Element, Surface[np.integer[Any]], Protocol):
    """Integers, signed or not of any one dtype: `Integer["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def last_digit(x: Integer["n"]) -> Integer["n"]:
        ...     return x % 10
        >>> last_digit(np.array([123, 45], np.uint16))
        pscdsl.Array([3, 5], dtype=uint16)
    """

@_any_to_ty
class Float(Element, Surface[np.floating[Any]], Protocol):
    """Floating-point numbers of any one dtype: `Float["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def halved(x: Float["n"]) -> Float["n"]:
        ...     return x / 2
        >>> halved(np.ones(2, np.float32)).dtype, halved(np.ones(2)).dtype
        (dtype('float32'), dtype('float64'))
    """

@_any_to_ty
class Complex(Element, Surface[np.complexfloating[Any, Any]], Protocol):
    """Complex numbers of any one dtype: `Complex["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def turned(z: Complex["n"]) -> Complex["n"]:
        ...     return 1j * z
        >>> turned(np.array([1, 1j]))
        pscdsl.Array([ 0.+1.j, -1.+0.j], dtype=complex128)
    """

@_any_to_ty
class Inexact(Element, Surface[np.inexact[Any]], Protocol):
    """Floating-point or complex numbers of any one dtype: `Inexact["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def mean(x: Inexact["n"]) -> Inexact:
        ...     return np.mean(x)
        >>> mean(np.array([1.0, 2.0])), mean(np.array([1, 1j]))
        (pscdsl.Array(1.5, dtype=float64), pscdsl.Array(0.5+0.5j, dtype=complex128))
    """

@_any_to_ty
class Num(Element, Surface[np.number[Any]], Protocol):
    """Numbers of any one dtype: `Num["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def doubled(x: Num["n"]) -> Num["n"]:
        ...     return x + x
        >>> doubled(np.array([1, 2])), doubled(np.array([1.5]))
        (pscdsl.Array([2, 4], dtype=int64), pscdsl.Array([3.], dtype=float64))
    """

@_any_to_ty
class Shaped(Element, Surface[Any], Protocol):
    """Elements of any one dtype: `Shaped["n d"]`.

    Examples:
        >>> @psc.kernel
        ... def reversed_rows(x: Shaped["n *s"]) -> Shaped["n *s"]:
        ...     return x[::-1]
        >>> reversed_rows(np.array([True, False, False]))
        pscdsl.Array([False, False,  True], dtype=bool)
    """
