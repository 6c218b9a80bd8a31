"""The types of values: arrays of a dtype and symbolic sizes, and trees of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar, cast

from pscdsl.typing.dims import Dim, Size, names, substitute
from pscdsl.typing.dtypes import DType
from pscdsl.typing.static_values import exact

T = TypeVar("T")

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


class ContainerType:
    """The type of a value with parts."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Type, ...]:
        """The types of the parts, in the order of their leaves."""
        raise NotImplementedError

    @property
    def steps(self) -> tuple[str, ...]:
        """The text that selects each part: `.w`, `[0]`, `['key']`."""
        raise NotImplementedError

    @property
    def noun(self) -> str:
        """Its kind in words."""
        raise NotImplementedError

    def with_parts(self, parts: Iterable[Type]) -> Type:
        """Return the type of a container of the same kind, with the same keys, of other parts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class RecordType(ContainerType):
    """A record: NamedTuple, frozen dataclass, `psc.Record` or PRecord."""

    record: RecordName
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        inner = ", ".join(f"{name}: {each}" for name, each in self.fields)
        return f"{self.record.name}({inner})"

    @property
    def parts(self) -> tuple[Type, ...]:
        return tuple([part for _, part in self.fields])

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple([f".{name}" for name, _ in self.fields])

    @property
    def noun(self) -> str:
        return f"a `{self.record.name}`"

    def with_parts(self, parts: Iterable[Type]) -> RecordType:
        named = zip(self.fields, parts, strict=True)
        return RecordType(self.record, tuple([(name, part) for (name, _), part in named]))


class StandardContainerType(ContainerType):
    """The base of the kinds of containers that no class of the user declares.

    Each is declared by its class, in `CONTAINER_KINDS`: the rest of the package asks it.
    """

    __slots__ = ()

    form: ClassVar[str]
    """Its name in words and in files."""
    names: ClassVar[tuple[str, ...]]
    """The qualified names of the class in annotations."""
    annotation: ClassVar[str]
    """The annotation for any number of items of one type."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys with which `made` makes a value of this type."""
        return ()

    @classmethod
    def python(cls) -> type[Any]:
        """Return the class of its values outside of kernels."""
        raise NotImplementedError

    @classmethod
    def holds(cls, value: object) -> bool:
        """Return whether an object is such a container."""
        return type(value) is cls.python()

    @classmethod
    def apart(cls, value: Any) -> tuple[Sequence[Any], tuple[Any, ...]]:
        """Return the parts of an object in the order of leaves, and the keys for `made`."""
        raise NotImplementedError

    @classmethod
    def made(cls, keys: tuple[Any, ...], parts: Iterable[Any]) -> Any:
        """Return an object of these parts."""
        raise NotImplementedError

    @classmethod
    def of(cls, keys: tuple[str, ...], parts: Iterable[Type]) -> StandardContainerType:
        """Return the type of an object of these parts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SequenceType(StandardContainerType):
    """The base of the types of sequences of known length."""

    items: tuple[Type, ...]

    @property
    def parts(self) -> tuple[Type, ...]:
        return self.items

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple([f"[{index}]" for index in range(len(self.items))])

    @property
    def noun(self) -> str:
        return f"a {self.form} of {len(self.items)}"

    def with_parts(self, parts: Iterable[Type]) -> Self:
        return type(self)(tuple(parts))

    @classmethod
    def apart(cls, value: Any) -> tuple[Sequence[Any], tuple[Any, ...]]:
        return value, ()

    @classmethod
    def made(cls, keys: tuple[Any, ...], parts: Iterable[Any]) -> Any:
        return cls.python()(parts)

    @classmethod
    def of(cls, keys: tuple[str, ...], parts: Iterable[Type]) -> Self:
        return cls(tuple(parts))


@dataclass(frozen=True, slots=True)
class TupleType(SequenceType):
    """A tuple of known length."""

    form = "tuple"
    names = ("builtins.tuple", "typing.Tuple")
    annotation = "tuple[{}, ...]"

    @classmethod
    def python(cls) -> type[Any]:
        return tuple

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


@dataclass(frozen=True, slots=True)
class ListType(TupleType):
    """A list of known length."""

    form = "list"
    names = ("builtins.list", "typing.List")
    annotation = "list[{}]"

    @classmethod
    def python(cls) -> type[Any]:
        return list

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class VectorType(SequenceType):
    """A pyrsistent vector."""

    form = "vector"
    names = ("pyrsistent.PVector", "pyrsistent.typing.PVector")
    annotation = "PVector[{}]"

    @classmethod
    def python(cls) -> type[Any]:
        import pyrsistent  # few programs use it

        return cast("Any", pyrsistent.pvector()).__class__  # type: ignore[no-any-return]

    __str__ = ListType.__str__

    @classmethod
    def holds(cls, value: object) -> bool:
        pyrsistent: Any = sys.modules.get("pyrsistent")  # unloaded, it has no objects
        return pyrsistent is not None and isinstance(value, pyrsistent.PVector)

    @classmethod
    def made(cls, keys: tuple[Any, ...], parts: Iterable[Any]) -> Any:
        import pyrsistent

        return pyrsistent.pvector(parts)


@dataclass(frozen=True, slots=True)
class MapType(StandardContainerType):
    """A pyrsistent map with string keys, in the order of the keys."""

    items: tuple[tuple[str, Type], ...]

    form = "map"
    names = ("pyrsistent.PMap", "pyrsistent.typing.PMap")
    annotation = "PMap[str, {}]"

    @classmethod
    def python(cls) -> type[Any]:
        import pyrsistent  # few programs use it

        return cast("Any", pyrsistent.pmap()).__class__  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}: {each}" for key, each in self.items) + "}"

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple([key for key, _ in self.items])

    @property
    def parts(self) -> tuple[Type, ...]:
        return tuple([part for _, part in self.items])

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple([self.step(key) for key, _ in self.items])

    @property
    def noun(self) -> str:
        return f"a {self.form}"

    def with_parts(self, parts: Iterable[Type]) -> Self:
        keyed = zip(self.items, parts, strict=True)
        return replace(self, items=tuple([(key, part) for (key, _), part in keyed]))

    @staticmethod
    def step(key: str) -> str:
        """Return the text that selects an item."""
        return f"[{key!r}]"

    @classmethod
    def holds(cls, value: object) -> bool:
        pyrsistent: Any = sys.modules.get("pyrsistent")  # unloaded, it has no objects
        if pyrsistent is None or not isinstance(value, pyrsistent.PMap):
            return False
        return not isinstance(value, pyrsistent.PRecord)

    @classmethod
    def apart(cls, value: Any) -> tuple[Sequence[Any], tuple[Any, ...]]:
        keys = tuple(sorted(value))
        return [value[key] for key in keys], keys

    @classmethod
    def made(cls, keys: tuple[Any, ...], parts: Iterable[Any]) -> Any:
        import pyrsistent

        return pyrsistent.pmap(dict(zip(keys, parts, strict=True)))

    @classmethod
    def of(cls, keys: tuple[str, ...], parts: Iterable[Type]) -> MapType:
        return cls(tuple(zip(map(str, keys), parts, strict=True)))


@dataclass(frozen=True, slots=True)
class DictType(MapType):
    """A dict with string keys, whose items are in the order of the keys, as in jax."""

    order: tuple[str, ...] = ()
    """The keys in the order that the dict itself has; none where that is of no matter."""

    form = "dict"
    names = ("builtins.dict", "typing.Dict")
    annotation = "dict[str, {}]"

    @classmethod
    def python(cls) -> type[Any]:
        return dict

    def __str__(self) -> str:
        items = dict(self.items)
        return "{" + ", ".join(f"{key!r}: {items[key]}" for key in self.keys) + "}"

    @property
    def keys(self) -> tuple[str, ...]:
        return self.order or tuple([key for key, _ in self.items])

    @staticmethod
    def step(key: str) -> str:
        return f"[{json.dumps(key, ensure_ascii=False)}]"

    @classmethod
    def holds(cls, value: object) -> bool:
        return type(value) is dict

    @classmethod
    def apart(cls, value: Any) -> tuple[Sequence[Any], tuple[Any, ...]]:
        return [value[key] for key in _sorted(value)], tuple(value)

    @classmethod
    def made(cls, keys: tuple[Any, ...], parts: Iterable[Any]) -> Any:
        found = dict(zip(_sorted(keys), parts, strict=True))
        return {key: found[key] for key in keys}

    @classmethod
    def of(cls, keys: tuple[str, ...], parts: Iterable[Type]) -> DictType:
        return cls(tuple(zip(sorted(keys), parts, strict=True)), keys)


def _sorted(keys: Iterable[Any]) -> Iterable[Any]:
    try:
        return sorted(keys)
    except TypeError:  # jaxlib's own way stops here; who takes no such dicts, says so
        return keys


ContainerKind: TypeAlias = type[SequenceType] | type[MapType]
CONTAINER_KINDS: Final[tuple[ContainerKind, ...]] = (
    TupleType,
    ListType,
    DictType,
    MapType,
    VectorType,
)


def container_kind(value: object) -> ContainerKind | None:
    """Return the kind of a container; None for anything else."""
    return next((kind for kind in CONTAINER_KINDS if kind.holds(value)), None)


def container_kind_named(name: str) -> ContainerKind | None:
    """Return the kind of container that a name means in an annotation; None if it means none."""
    return next((kind for kind in CONTAINER_KINDS if name in kind.names), None)


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

Type: TypeAlias = ArrayType | SequenceType | RecordType | MapType | NoneType | StaticType

NONE: Final = NoneType()


def type_parts(tree: Type) -> tuple[Type, ...]:
    """Return the trees that a tree consists of."""
    return tree.parts if isinstance(tree, ContainerType) else ()


def with_type_parts(tree: Type, parts: Iterable[Type]) -> Type:
    """Return a tree of the same kind, with the same keys, of other parts."""
    return tree.with_parts(parts) if isinstance(tree, ContainerType) else tree


def built(
    tree: Type,
    leaves: Iterator[T],
    made: Callable[[ContainerType, list[Any]], Any],
    static: Callable[[object], Any] = lambda value: value,
) -> Any:
    """Return a value of a type with these leaves; `made` makes containers of their parts."""
    if isinstance(tree, ContainerType):
        return made(tree, [built(part, leaves, made, static) for part in tree.parts])
    if isinstance(tree, ArrayType):
        return next(leaves)
    return static(tree.value) if isinstance(tree, StaticType) else None


def children(tree: Type) -> tuple[tuple[str, Type], ...]:
    """Return the parts of a tree, each with the text that selects it."""
    return (
        tuple(zip(tree.steps, tree.parts, strict=True)) if isinstance(tree, ContainerType) else ()
    )


def in_order_of(tree: Type, like: Type) -> Type:
    """Return a tree whose dicts have the order of those of another tree of its structure."""
    if len(type_parts(tree)) != len(type_parts(like)):
        return tree
    pairs = zip(type_parts(tree), type_parts(like), strict=True)
    made = with_type_parts(tree, [in_order_of(mine, theirs) for mine, theirs in pairs])
    if isinstance(made, DictType) and isinstance(like, DictType):
        return DictType(made.items, like.order)
    return made


def without_order(tree: Type) -> Type:
    """Return a tree with dicts in the order of the keys, and tuples in the place of lists."""
    made = with_type_parts(tree, map(without_order, type_parts(tree)))
    if isinstance(made, DictType):
        return DictType(made.items)
    return TupleType(made.items) if isinstance(made, ListType) else made


def nodes(tree: Type) -> Iterator[Type]:
    """Yield a tree and everything in it."""
    yield tree
    for part in type_parts(tree):
        yield from nodes(part)


def leaves(tree: Type) -> Iterator[ArrayType]:
    """Yield the arrays of a tree in order."""
    if isinstance(tree, ArrayType):
        yield tree
    else:
        for part in type_parts(tree):
            yield from leaves(part)


def paths(tree: Type, prefix: str = "") -> Iterator[tuple[str, ArrayType]]:
    """Yield the arrays of a tree, each with the text that selects it."""
    if isinstance(tree, ArrayType):
        yield prefix, tree
    else:
        for step, each in children(tree):
            yield from paths(each, prefix + step)


def map_leaves(tree: Type, change: Callable[[ArrayType], ArrayType]) -> Type:
    """Return a tree of the same structure with other arrays."""
    if isinstance(tree, ArrayType):
        return change(tree)
    return with_type_parts(tree, [map_leaves(part, change) for part in type_parts(tree)])


def map_records(tree: Type, change: Callable[[RecordName], RecordName]) -> Type:
    """Return a tree of the same structure with other names of records."""
    made = with_type_parts(tree, [map_records(part, change) for part in type_parts(tree)])
    return RecordType(change(made.record), made.fields) if isinstance(made, RecordType) else made


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
