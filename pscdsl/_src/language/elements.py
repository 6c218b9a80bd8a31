"""The types of arrays at run time.

They are classes, so that they can be used wherever types can: `tuple[f32["n"], ...]`,
`f32["n"] | None`, fields of any record class, `get_type_hints`. A shape is read when it is needed:
one that cannot be read is reported by `pscdsl check`, and does not stop the import of its module.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl.typing.dims import DimSyntaxError, parse
from pscdsl.typing.dtypes import KEY, U32, DType, Kind, accepts_weak

if TYPE_CHECKING:
    from pscdsl.typing.python_containers import NDArray
    from pscdsl.typing.signatures import DimSpec


# Arrays in memory that nothing can write.


def frozen(array: NDArray) -> NDArray:
    """Return a copy in the memory of a `bytes` object, so that no flag makes it writeable again."""
    return np.ndarray(array.shape, array.dtype, array.tobytes())


def locked(array: NDArray) -> NDArray:
    """Make an array, and the arrays that it is a view of, read-only; return it.

    If the memory is not NumPy's, other objects could still write it: then return a copy.
    """
    base: Any = array
    while type(base) is np.ndarray:
        base.flags.writeable = False
        if base.base is None:
            return array
        base = base.base
    return array if type(base) is bytes else frozen(array)


def is_frozen(array: NDArray) -> bool:
    """Return whether the memory of an array is a `bytes` object; subclasses do not count."""
    base: Any = array
    while type(base) is np.ndarray and not base.flags.writeable:
        base = base.base
    return type(base) is bytes


class Array(ABC):  # noqa: B024
    """An array on the device: the result of a kernel.

    The class that the runtime uses registers itself here when the first kernel is compiled;
    `isinstance(x, psc.Array)` holds for its instances.
    """


class ElementType(type):
    """The class of `f32`, of `Float` and of `f32["n d"]`."""

    members: tuple[DType, ...]
    element: ElementType
    """The type without its shape."""
    text: str | None
    """The text in the brackets."""
    _shaped: dict[str, ElementType]
    _dims: tuple[DimSpec, ...] | None

    def __init__(
        self,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        *,
        members: tuple[DType, ...],
        text: str | None = None,
    ) -> None:
        super().__init__(name, bases, body)
        self.element = self if text is None else self.__mro__[1]  # type: ignore[assignment]
        self.members, self.text, self._shaped, self._dims = members, text, {}, None

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        *,
        members: tuple[DType, ...],
        text: str | None = None,
    ) -> ElementType:
        """Create the type; `members` are the dtypes, `text` is the shape if there is one."""
        return super().__new__(cls, name, bases, {"__module__": "pscdsl", **body})

    @property
    def dims(self) -> tuple[DimSpec, ...]:
        """The shape; a ShapeSyntaxError if the text is not one."""
        if self._dims is None:
            from pscdsl.typing.signatures import parse_shape  # decorating parses none

            self._dims = parse_shape(self.text or "")
        return self._dims

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that NumPy takes this type for: `np.zeros(n, dtype=f32)`."""
        if len(self.members) != 1 or self.members[0] is KEY:
            raise TypeError(f"{self.__name__} is not one NumPy dtype")
        return to_numpy(self.members[0])

    def __getitem__(self, shape: str | int | tuple[object, ...]) -> ElementType:
        text = str(shape[-1] if isinstance(shape, tuple) and shape else shape)
        found = self.element._shaped.get(text)
        if found is None:
            name = f'{self.element.__name__}["{text}"]'
            made = ElementType(name, (self.element,), {}, members=self.members, text=text)
            found = self.element._shaped.setdefault(text, made)
        return found

    def __call__(self, value: Any = 0) -> Any:
        """Return NumPy's scalar, or array, of this dtype."""
        return self.dtype.type(value)

    def __instancecheck__(self, value: object) -> bool:
        """Return whether the dtype fits; the shape may differ: stacked records are records too."""
        return fits(value, self.members)

    def __repr__(self) -> str:
        return self.__name__


def element(name: str, *members: DType) -> ElementType:
    """Return a type of arrays with one of these dtypes."""
    doc = f"Arrays of {', '.join(member.name for member in members)}."
    return ElementType(name, (), {"__doc__": doc}, members=members)


def element_type(value: object) -> tuple[DType, tuple[int, ...]]:
    """Return the dtype and the shape of an array; a TypeError if kernels do not accept it."""
    if not isinstance(value, np.ndarray | np.generic | Array):
        raise TypeError("no array")
    array = cast("Any", value)
    try:
        return from_numpy(np.dtype(array.dtype)), tuple(array.shape)
    except TypeError:
        raise TypeError(f"an array of dtype {array.dtype}") from None


def fits(value: object, members: tuple[DType, ...]) -> bool:
    """Return whether a value is an array of one of these dtypes, or a number accepted as one."""
    kind = weak_kind(value)
    if kind is not None:
        return any(accepts_weak(member, kind) for member in members)
    try:
        found, shape = element_type(value)
    except TypeError:
        return False
    return found in members or (KEY in members and found is U32 and shape[-1:] == (2,))


def weak_kind(value: object) -> Kind | None:
    """Return the kind of a Python number, None for anything else."""
    return _KINDS.get(type(value))


_KINDS: dict[type, Kind] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    complex: Kind.COMPLEX,
}


# A placeholder for an array where only its type counts: `f32["128 64"]`.


def stand_in(value: Any) -> Any:
    """Return an array of zeros of the type `f32["128 64"]` that occupies no memory.

    It is an example argument for `compile_all` and `export`. Other values are returned unchanged.

    Examples:
        >>> psc.stand_in(f32["100000 100000"]).shape
        (100000, 100000)
    """
    if not isinstance(value, ElementType):
        return value
    try:
        shape = tuple([parse(word) for word in (value.text or "").split()])
    except DimSyntaxError as problem:
        raise TypeError(f"{value}: {problem}") from None
    if len(value.members) != 1 or not all(isinstance(size, int) for size in shape):
        raise TypeError(f"{value} is not one type of arrays: its dtype and sizes must be known")
    (dtype,) = value.members
    full: Any = (*shape, 2) if dtype is KEY else shape
    return np.broadcast_to(np.zeros((), to_numpy(dtype)), full)
