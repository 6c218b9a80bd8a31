"""Specifications: what one annotation says of an array, a tuple, a record, any tree.

A specification may leave things open: sizes (names), the dtype (a class such as `Float`), the
rank (`*batch`), the length of a tuple, a static value, and with a type variable the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from pscdsl.typing.dims import Dim, Size, name
from pscdsl.typing.dtypes import DEFAULT, F32, F64, DType
from pscdsl.typing.notation import DimSpec, Variadic
from pscdsl.typing.spans import NOWHERE, Span
from pscdsl.typing.static_forms import StaticForm
from pscdsl.typing.trees import RecordName


@dataclass(frozen=True, slots=True)
class DTypeClass:
    """A class of dtypes; within a signature one class name stands for one dtype."""

    name: str
    members: tuple[DType, ...]

    def description(self) -> str:
        """How messages speak of it."""
        return f"the dtype class `psc.{self.name}`"

    def usual_first(self) -> tuple[DType, ...]:
        """The members, those that people use most in front: messages are about the first."""
        usual = DEFAULT.values()
        return tuple(sorted(self.members, key=lambda d: (d not in usual, d.bits < 32)))


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """`f32["n d"]`, `Float["*batch n"]`."""

    dtype: DType | DTypeClass
    dims: tuple[DimSpec, ...]
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        dims = " ".join(map(str, self.dims))
        head = self.dtype.name
        return f"{head}[{dims}]" if self.dims else head


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """`tuple[A, B]`."""

    items: tuple[Spec, ...]

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class RepeatedSpec:
    """`tuple[A, ...]`, `PVector[A]`: any number of the same."""

    item: Spec
    vector: bool = False

    def __str__(self) -> str:
        return f"PVector[{self.item}]" if self.vector else f"tuple[{self.item}, ...]"


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """A record class, its sizes renamed if it was applied to some, or applied to types."""

    record: RecordName
    fields: tuple[tuple[str, Spec], ...]
    arguments: str = ""
    types: tuple[Spec, ...] = field(default=(), compare=False)
    """What its type variables stand for, as the fields have it."""
    spelled: bool = field(default=False, compare=False)
    """Whether the fields are not those that the class declares, and are shown."""

    def __str__(self) -> str:
        if self.spelled:
            return f"{self.record.name}({', '.join(f'{n}: {each}' for n, each in self.fields)})"
        arguments = self.arguments or ", ".join(map(str, self.types))
        return f"{self.record.name}[{arguments}]" if arguments else self.record.name


@dataclass(frozen=True, slots=True)
class MapSpec:
    """`PMap[str, A]`: the keys come from the argument, every value fits A."""

    item: Spec

    def __str__(self) -> str:
        return f"PMap[str, {self.item}]"


@dataclass(frozen=True, slots=True)
class StaticSpec:
    """`psc.Static[int]`: a value known while checking; `samples` are tried when checking alone."""

    kind: str
    samples: tuple[object, ...] | None
    form: StaticForm = field(default=None, compare=False)
    """Which values may be given."""

    def __str__(self) -> str:
        return f"Static[{self.kind}]"


@dataclass(frozen=True, slots=True)
class OptionalSpec:
    """`A | None`."""

    item: Spec

    def __str__(self) -> str:
        return f"{self.item} | None"


@dataclass(frozen=True, slots=True)
class NoneSpec:
    """`None`."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A type variable: any tree of inexact arrays, the same one wherever the variable stands.

    `psc.Tree` in place of one is a variable of its own, which gets the name of its parameter.
    """

    name: str
    dtype: DType | DTypeClass | None = None
    """The dtype of all arrays; None if each has its own."""
    batch: tuple[Dim, ...] = ()
    """The sizes in front of those of each array."""
    shown: str = field(default="", compare=False)
    """What stands in the code in place of the name."""
    bounded: bool = field(default=False, compare=False)
    """Whether it is said that the variable stands for trees of arrays."""
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        shown = self.shown or self.name
        return f"{shown}[{' '.join(map(str, self.batch))}]" if self.batch else shown

    def samples(self) -> tuple[Spec, ...]:
        """The trees that are tried when a signature is checked alone: an array, and two."""
        several = ArraySpec(self.dtype or F32, (self.size(0), self.size(1)))
        return (
            ArraySpec(self.dtype or F32, (self.size(0),)),
            TupleSpec((several, ArraySpec(self.dtype or F64, ()))),
        )

    def size(self, index: int) -> Dim:
        """The name of a size, counted through all arrays of the tree."""
        return name(f"{self.name}_{index}")


Spec: TypeAlias = (
    ArraySpec
    | TupleSpec
    | RepeatedSpec
    | RecordSpec
    | MapSpec
    | StaticSpec
    | OptionalSpec
    | NoneSpec
    | TreeSpec
)


def walk_paths(spec: Spec, where: str) -> Iterator[tuple[str, Spec]]:
    """A specification and everything in it, each with the text that selects it."""
    yield where, spec
    if isinstance(spec, TupleSpec):
        for index, item in enumerate(spec.items):
            yield from walk_paths(item, f"{where}[{index}]")
    elif isinstance(spec, RepeatedSpec | MapSpec):
        yield from walk_paths(spec.item, f"{where}[…]")
    elif isinstance(spec, OptionalSpec):
        yield from walk_paths(spec.item, where)
    elif isinstance(spec, RecordSpec):
        for name_, item in spec.fields:
            yield from walk_paths(item, f"{where}.{name_}")


def extent(spec: Spec, known: dict[int, int] | None = None) -> int:
    """How many parts a specification has, those that are shared counted wherever they stand."""
    found: dict[int, int] = {} if known is None else known
    if id(spec) not in found:
        parts: list[Spec] = []
        if isinstance(spec, TupleSpec):
            parts = list(spec.items)
        elif isinstance(spec, RecordSpec):
            parts = [part for _, part in spec.fields]
        elif isinstance(spec, RepeatedSpec | MapSpec | OptionalSpec):
            parts = [spec.item]
        found[id(spec)] = 1 + sum(extent(part, found) for part in parts)
    return found[id(spec)]


def arrays_of(spec: Spec) -> Iterator[ArraySpec]:
    """The arrays in a specification."""
    return (part for _, part in walk_paths(spec, "") if isinstance(part, ArraySpec))


def trees_of(spec: Spec) -> Iterator[TreeSpec]:
    """The type variables in a specification."""
    return (part for _, part in walk_paths(spec, "") if isinstance(part, TreeSpec))


def declared_dims(part: Spec) -> tuple[DimSpec, ...]:
    """The dimensions that an array or a batch of trees is declared with; none for others."""
    if isinstance(part, TreeSpec):
        return part.batch
    return part.dims if isinstance(part, ArraySpec) else ()


def group_name(dim: Variadic) -> str:
    """The name of a group of dimensions; `...` is one group per signature."""
    return dim.name if dim.name is not None else "..."


def group_dims(group: str, rank: int) -> tuple[Size, ...]:
    """The sizes that a group of dimensions stands for."""
    stem = "rest" if group == "..." else group
    return tuple(name(f"{stem}_{index}") for index in range(rank))
