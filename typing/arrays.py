"""The type of one array: a dtype and a shape of symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from pscdsl.typing.dims import Dim, Size, names, substitute
from pscdsl.typing.dtypes import DType

Shape: TypeAlias = tuple[Size, ...]


class ArrayType:
    """The type of an array; immutable and hashable, equal when written the same in normal form."""

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, dtype: DType, shape: Shape = ()) -> None:
        self.dtype: Final = dtype
        self.shape: Final = shape
        self._hash = hash((dtype.name, shape))

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ArrayType) and self.dtype is other.dtype and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, tuple[DType, Shape]]:
        return ArrayType, (self.dtype, self.shape)

    def __repr__(self) -> str:
        return show_type(self.dtype, self.shape)

    def with_dtype(self, dtype: DType) -> ArrayType:
        """The same shape with another dtype."""
        return ArrayType(dtype, self.shape)

    def with_shape(self, shape: Shape) -> ArrayType:
        """The same dtype with another shape."""
        return ArrayType(self.dtype, shape)

    def substitute(self, env: Mapping[str, Size]) -> ArrayType:
        """This type with sizes in place of names."""
        shape = substitute_shape(self.shape, env)
        return self if shape is self.shape else ArrayType(self.dtype, shape)

    def names(self) -> frozenset[str]:
        """The size names that occur."""
        none: frozenset[str] = frozenset()
        return none.union(*(names(size) for size in self.shape))


def substitute_shape(shape: Shape, env: Mapping[str, Size]) -> Shape:
    """A shape with sizes in place of names."""
    for size in shape:
        if isinstance(size, Dim):
            return tuple([substitute(s, env) if isinstance(s, Dim) else s for s in shape])
    return shape


def show_shape(shape: Shape) -> str:
    """A shape as it is written between the brackets of an annotation."""
    return " ".join(str(size) for size in shape)


def show_type(dtype: DType, shape: Shape) -> str:
    """A type as it is written in an annotation, without quotes."""
    return f"{dtype.name}[{show_shape(shape)}]" if shape else dtype.name


def size_of(shape: Shape) -> Size:
    """The number of elements."""
    total: Size = 1
    for size in shape:
        total = total * size
    return total
