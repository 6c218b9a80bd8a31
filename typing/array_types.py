"""The types of values: arrays of a dtype and symbolic sizes, and trees of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias, cast

from pscdsl.typing.dims import Dim, Size, names, substitute
from pscdsl.typing.dtypes import DType
from pscdsl.typing.static_values import exact

# The type of one array: a dtype and a shape of symbolic sizes.


Shape: TypeAlias = tuple[Size, ...]


class ArrayType:
    """The type of an array; immutable, hashable, and equal to types with the same normal form."""

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, dtype: DType, shape: Shape = ()) -> None:
        self.dtype: Final = dtype
        self.shape: Final = shape
        self._hash = hash((dtype.name, shape))

    @property
    def rank(self) -> int:
        """Return the number of axes."""
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
        """Return the type with another dtype."""
        return ArrayType(dtype, self.shape)

    def with_shape(self, shape: Shape) -> ArrayType:
        """Return the type with another shape."""
        return ArrayType(self.dtype, shape)

    def substitute(self, env: Mapping[str, Size]) -> ArrayType:
        """This type with sizes in place of names."""
        shape = substitute_shape(self.shape, env)
        return self if shape is self.shape else ArrayType(self.dtype, shape)

    def names(self) -> frozenset[str]:
        """Return the size names that occur."""
        none: frozenset[str] = frozenset()
        return none.union(*(names(size) for size in self.shape))


def substitute_shape(shape: Shape, env: Mapping[str, Size]) -> Shape:
    """Return a shape with sizes in place of names."""
    for size in shape:
        if isinstance(size, Dim):
            return tuple([substitute(s, env) if isinstance(s, Dim) else s for s in shape])
    return shape


def show_shape(shape: Shape) -> str:
    """Return a shape as it is written between the brackets of an annotation."""
    return " ".join(str(size) for size in shape)


def show_type(dtype: DType, shape: Shape) -> str:
    """Return a type as it is written in an annotation, without quotes."""
    return f"{dtype.name}[{show_shape(shape)}]" if shape else dtype.name


def size_of(shape: Shape) -> Size:
    """Return the number of elements."""
    total: Size = 1
    for size in shape:
        total = total * size
    return total


# The type of a value that is a tree of arrays: tuples, records, maps, vectors, None.


@dataclass(frozen=True, slots=True)
class RecordName:
    """The class of a record; `definition` is the front end's description of it."""

    name: str
    module: str
    definition: object = field(default=None, compare=False, repr=False)
    number: int = field(default=0, repr=False)
    """The index among the classes of this name that a process has loaded."""


@dataclass(frozen=True, slots=True)
class TupleType:
    """A tuple of known length."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class ListType(TupleType):
    """A list of known length."""

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record: NamedTuple, frozen dataclass, `psc.Record` or PRecord."""

    record: RecordName
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        inner = ", ".join(f"{name}: {each}" for name, each in self.fields)
        return f"{self.record.name}({inner})"


@dataclass(frozen=True, slots=True)
class MapType:
    """A pyrsistent map with string keys, in the order of the keys."""

    items: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}: {each}" for key, each in self.items) + "}"


@dataclass(frozen=True, slots=True)
class DictType(MapType):
    """A dict with string keys, whose items are in the order of the keys, as in jax."""

    order: tuple[str, ...] = ()
    """The keys in the order that the dict itself has; none where that is of no matter."""

    def __str__(self) -> str:
        items = dict(self.items)
        keys = self.order or tuple(items)
        return "{" + ", ".join(f"{key!r}: {items[key]}" for key in keys) + "}"


@dataclass(frozen=True, slots=True)
class VectorType:
    """A pyrsistent vector."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class NoneType:
    """The tree without leaves."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True, slots=True)
class StaticType:
    """A value known while checking, carried along in a tree."""

    value: object

    def __str__(self) -> str:
        return f"Static[{static_text(self.value)}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticType) and exact(self.value) == exact(other.value)

    def __hash__(self) -> int:
        return hash(exact(self.value))


def static_text(value: object) -> str:
    """Return a static value's text in messages: in Python's form, or by its name in the code."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value.__class__ is tuple:
        items = [static_text(each) for each in cast("tuple[object, ...]", value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    description = getattr(value, "description", None)
    if callable(description) and not isinstance(value, type):
        return str(description()).replace("`", "")
    if isinstance(value, Dim):
        return str(value)
    applied = getattr(value, "name", "") if hasattr(value, "apply") else ""
    name = applied or getattr(value, "__qualname__", "").rpartition(".")[2]
    text = str(name) or repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST: Final = 200

Type: TypeAlias = ArrayType | TupleType | RecordType | MapType | VectorType | NoneType | StaticType

NONE: Final = NoneType()


def children(tree: Type) -> tuple[tuple[str, Type], ...]:
    """Return the parts of a tree, each with the text that selects it: `.w`, `[0]`, `['key']`."""
    if isinstance(tree, TupleType | VectorType):
        return tuple((f"[{index}]", item) for index, item in enumerate(tree.items))
    if isinstance(tree, RecordType):
        return tuple((f".{name}", each) for name, each in tree.fields)
    if isinstance(tree, DictType):
        return tuple((key_step(key), each) for key, each in tree.items)
    if isinstance(tree, MapType):
        return tuple((f"[{key!r}]", each) for key, each in tree.items)
    return ()


def key_step(key: str) -> str:
    """Return the text that selects an item of a dict: `["w"]`."""
    return f"[{json.dumps(key, ensure_ascii=False)}]"


def in_order_of(tree: Type, like: Type) -> Type:
    """Return a tree with the dicts in the order of another tree of this structure."""
    if isinstance(tree, DictType) and isinstance(like, DictType):
        theirs = dict(like.items)
        items = tuple([(key, in_order_of(each, theirs[key])) for key, each in tree.items])
        return replace(tree, items=items, order=like.order)
    if isinstance(tree, RecordType) and isinstance(like, RecordType):
        pairs = zip(tree.fields, like.fields, strict=True)
        return replace(tree, fields=tuple([(n, in_order_of(x, y)) for (n, x), (_, y) in pairs]))
    if isinstance(tree, MapType) and isinstance(like, MapType):
        pairs = zip(tree.items, like.items, strict=True)
        return replace(tree, items=tuple([(k, in_order_of(x, y)) for (k, x), (_, y) in pairs]))
    if isinstance(tree, TupleType | VectorType) and isinstance(like, TupleType | VectorType):
        return replace(tree, items=tuple(map(in_order_of, tree.items, like.items)))
    return tree


def without_order(tree: Type) -> Type:
    """Return a tree with dicts in the order of the keys, and tuples in the place of lists."""
    if isinstance(tree, TupleType):
        return TupleType(tuple(map(without_order, tree.items)))
    if isinstance(tree, VectorType):
        return VectorType(tuple(map(without_order, tree.items)))
    if isinstance(tree, RecordType):
        return replace(tree, fields=tuple([(n, without_order(each)) for n, each in tree.fields]))
    if isinstance(tree, MapType):
        items = tuple([(key, without_order(each)) for key, each in tree.items])
        return DictType(items) if isinstance(tree, DictType) else MapType(items)
    return tree


def nodes(tree: Type) -> Iterator[Type]:
    """Yield a tree and everything in it."""
    yield tree
    for _, each in children(tree):
        yield from nodes(each)


def leaves(tree: Type) -> Iterator[ArrayType]:
    """Yield the arrays of a tree in order."""
    if isinstance(tree, ArrayType):
        yield tree
    else:
        for _, each in children(tree):
            yield from leaves(each)


def paths(tree: Type, prefix: str = "") -> Iterator[tuple[str, ArrayType]]:
    """Yield the arrays of a tree, each with the text that selects it."""
    if isinstance(tree, ArrayType):
        yield prefix, tree
    else:
        for step, each in children(tree):
            yield from paths(each, prefix + step)


def map_leaves(tree: Type, change: Callable[[ArrayType], ArrayType]) -> Type:
    """Return the tree with other arrays."""
    if isinstance(tree, ArrayType):
        return change(tree)
    if isinstance(tree, TupleType):
        return type(tree)(tuple(map_leaves(item, change) for item in tree.items))
    if isinstance(tree, VectorType):
        return VectorType(tuple(map_leaves(item, change) for item in tree.items))
    if isinstance(tree, RecordType):
        fields = tuple((name, map_leaves(each, change)) for name, each in tree.fields)
        return RecordType(tree.record, fields)
    if isinstance(tree, MapType):
        items = tuple((key, map_leaves(each, change)) for key, each in tree.items)
        return replace(tree, items=items)
    return tree


def map_records(tree: Type, change: Callable[[RecordName], RecordName]) -> Type:
    """Return the tree with other names of records."""
    if isinstance(tree, TupleType):
        return type(tree)(tuple(map_records(item, change) for item in tree.items))
    if isinstance(tree, VectorType):
        return VectorType(tuple(map_records(item, change) for item in tree.items))
    if isinstance(tree, RecordType):
        fields = tuple((name, map_records(each, change)) for name, each in tree.fields)
        return RecordType(change(tree.record), fields)
    if isinstance(tree, MapType):
        items = tuple((key, map_records(each, change)) for key, each in tree.items)
        return replace(tree, items=items)
    return tree


def substitute_tree(tree: Type, env: Mapping[str, Size]) -> Type:
    """Return the tree with sizes substituted for names."""
    return map_leaves(tree, lambda leaf: leaf.substitute(env))


def same_structure(left: Type, right: Type) -> bool:
    """Return whether two trees differ only in their arrays."""
    if isinstance(left, ArrayType) or isinstance(right, ArrayType):
        return isinstance(left, ArrayType) and isinstance(right, ArrayType)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        pass  # a list is a tuple, where only the arrays are of matter
    elif isinstance(left, StaticType | NoneType) or type(left) is not type(right):
        return left == right
    if isinstance(left, RecordType) and isinstance(right, RecordType):
        if left.record != right.record:
            return False
    ours, theirs = children(left), children(right)
    return len(ours) == len(theirs) and all(
        a == b and same_structure(x, y) for (a, x), (b, y) in zip(ours, theirs, strict=True)
    )
