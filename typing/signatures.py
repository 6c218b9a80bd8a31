"""The meaning of annotations: the notation of shapes, specifications of types, signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count, product
from math import prod
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    DictType,
    ListType,
    MapType,
    RecordName,
    RecordType,
    SequenceType,
    Shape,
    StaticType,
    TupleType,
    Type,
    children,
    leaves,
    map_leaves,
    static_text,
)
from pscdsl.typing.diagnostics import NOWHERE, Span
from pscdsl.typing.dims import Dim, DimSyntaxError, Size, name, names, parse, substitute, variable
from pscdsl.typing.dtypes import DEFAULT, F32, F64, DType
from pscdsl.typing.facts import Fact
from pscdsl.typing.placements import (
    MeshAxes,
    Placement,
    ShapeSyntaxError,
    placed_word,
    read_mesh_axes,
    shape_words,
)
from pscdsl.typing.static_values import Instance, OneOf, StaticForm

# The notation of shapes: the text inside `f32["n d+1 *batch _ ..."]`.


ALLOWED = (
    "a dimension is a name, an integer, an expression such as `n+1`, `2*n` or `n//2`, "
    "`_`, `*batch` or `...`"
)


@dataclass(frozen=True, slots=True)
class Anonymous:
    """`_`: any size, another one at each occurrence."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Variadic:
    """Any number of dimensions: `*batch` is one group wherever it occurs, `...` has no name."""

    name: str | None

    def __str__(self) -> str:
        return "..." if self.name is None else f"*{self.name}"


DimSpec: TypeAlias = Size | Anonymous | Variadic
"""One word of a shape."""


@lru_cache(maxsize=4096)
def parse_shape(text: str) -> tuple[DimSpec, ...]:
    """Read a shape: dimensions separated by whitespace, spaces only inside parentheses."""
    return tuple(_parse_word(word.partition("@")[0], offset) for word, offset in shape_words(text))


def parse_mesh_axes(text: str) -> MeshAxes:
    """Read the axes of a mesh in a shape, `n@data d`; empty if there are none."""
    return read_mesh_axes(text) if "@" in text else ()


def _parse_word(word: str, offset: int) -> DimSpec:
    if not word:
        raise ShapeSyntaxError(f"expected a size before `@`: {ALLOWED}", offset)
    if word == "_":
        return Anonymous()
    if word == "...":
        return Variadic(None)
    if word[0] == "*":
        return _parse_group(word, offset)
    if word[0] in "#?":
        meaning = "broadcastable sizes" if word[0] == "#" else "sizes that differ per leaf"
        raise ShapeSyntaxError(f"`{word[0]}` ({meaning}) is not supported: {ALLOWED}", offset)
    if word.endswith(","):
        raise ShapeSyntaxError(
            "dimensions are separated by spaces, without commas", offset + len(word) - 1
        )
    label, equals, size = word.partition("=")
    if equals:
        if not label.isidentifier():
            raise ShapeSyntaxError(f"expected a name before `=`: {ALLOWED}", offset)
        return _parse_size(size, offset + len(label) + 1)
    return _parse_size(word, offset)


def _parse_group(word: str, offset: int) -> Variadic:
    group = word[1:]
    if group == "_":
        return Variadic(None)
    if not group.isidentifier():
        raise ShapeSyntaxError(f"expected a name after `*`: {ALLOWED}", offset + 1)
    return Variadic(group)


def _parse_size(text: str, offset: int) -> Size:
    try:
        size = parse(text)
    except DimSyntaxError as error:
        raise ShapeSyntaxError(f"{error.message}: {ALLOWED}", offset + error.offset) from None
    if isinstance(size, int) and size < 0:
        raise ShapeSyntaxError(f"a size is never negative, found {size}", offset)
    return size


# Sizes given to a record: `Layer["d 2*h"]`, and `Window["o i 3 3"]` where `*window` takes two.


Renaming: TypeAlias = Mapping[str, tuple[DimSpec, ...]]
"""The replacement of each name: one size, or any number for a group, `*window`."""


def given(names: Sequence[str], arguments: Sequence[DimSpec]) -> Renaming | None:
    """Return the arguments of each name; None if they do not fit the names."""
    one_each: list[tuple[DimSpec, ...]] = [(argument,) for argument in arguments]
    groups = [place for place, name in enumerate(names) if name.startswith("*")]
    if not groups:
        if len(arguments) != len(names):
            return None
        pieces = one_each
    else:
        start = groups[0]
        after = len(names) - start - 1
        end = len(arguments) - after
        if len(groups) > 1 or end < start:
            return None
        pieces = [*one_each[:start], tuple(arguments[start:end]), *one_each[end:]]
    found = dict(zip(names, pieces, strict=True))
    for one, piece in found.items():
        open_parts = sum(isinstance(each, Variadic) for each in piece)
        if open_parts > int(one.startswith("*")):
            return None
    return found


def applied(dims: Iterable[DimSpec], renaming: Renaming) -> tuple[DimSpec, ...]:
    """Substitute for the names in a shape; a name given as `_` stays."""
    sizes: dict[str, Size] = {}
    for each, piece in renaming.items():
        if len(piece) == 1 and isinstance(piece[0], int | Dim) and not each.startswith("*"):
            sizes[each] = piece[0]

    def one(dim: DimSpec) -> tuple[DimSpec, ...]:
        if isinstance(dim, Dim):
            return (substitute(dim, sizes),)
        if isinstance(dim, Variadic):
            return renaming.get(str(dim), (dim,))
        return (dim,)

    return tuple(chain.from_iterable(map(one, dims)))


# Specifications of types, and signatures made of them, as annotations express them.
#
# A specification may leave things open: sizes (names), the dtype (a class such as `Float`), the
# rank (`*batch`), the length of a tuple, a static value.  A `Choice` fixes everything but the
# sizes; with one, a specification is exactly one type.  `pscdsl.typing.unify` finds the choice and
# the sizes that fit given arguments.


# Specifications: one annotation of an array, a tuple, a record, any tree.
#
# A specification may leave things open: sizes (names), the dtype (a class such as `Float`), the
# rank (`*batch`), the length of a tuple, a static value, and with a type variable the whole tree.


@dataclass(frozen=True, slots=True)
class DTypeClass:
    """A class of dtypes; within a signature one class name always means one dtype."""

    name: str
    members: tuple[DType, ...]

    def description(self) -> str:
        """Return its description for messages."""
        return f"the dtype class `psc.{self.name}`"

    def usual_first(self) -> tuple[DType, ...]:
        """Return the members, the most used ones first: messages are about the first."""
        usual = DEFAULT.values()
        return tuple(sorted(self.members, key=lambda d: (d not in usual, d.bits < 32)))


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """`f32["n d"]`, `Float["*batch n"]`, and `float`."""

    dtype: DType | DTypeClass
    dims: tuple[DimSpec, ...]
    span: Span = field(default=NOWHERE, compare=False)
    python: str = ""
    """The Python number that each element is, `float`; empty for elements of an array."""
    mesh_axes: MeshAxes = ()
    """The axes of a mesh along which each word is cut; empty if none is."""

    def words(self) -> tuple[str, ...]:
        """Return the words of the shape: `n@data`."""
        axes = self.mesh_axes or ((),) * len(self.dims)
        pairs = zip(self.dims, axes, strict=True)
        return tuple([placed_word(dim, along) for dim, along in pairs])

    def with_dims(self, dims: Sequence[DimSpec], axes: MeshAxes = ()) -> ArraySpec:
        """Return the specification with other words, each cut along the axes given for it."""
        return replace(self, dims=tuple(dims), mesh_axes=axes if any(axes) else ())

    def __str__(self) -> str:
        dims = " ".join(self.words())
        head = self.python or self.dtype.name
        return f"{head}[{dims}]" if self.dims else head


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """`tuple[A, B]`, and the items of a list of known length."""

    items: tuple[Spec, ...]
    kind: type[TupleType] = TupleType

    def __str__(self) -> str:
        items = ", ".join(map(str, self.items))
        return f"[{items}]" if self.kind is ListType else f"tuple[{items}]"


@dataclass(frozen=True, slots=True)
class RepeatedSpec:
    """`tuple[A, ...]`, `list[A]`, `PVector[A]`: any number of items of one type."""

    item: Spec
    kind: type[SequenceType] = TupleType

    def __str__(self) -> str:
        return self.kind.annotation.format(self.item)


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """A record class, its sizes renamed if it was applied to some, or applied to types."""

    record: RecordName
    fields: tuple[tuple[str, Spec], ...]
    arguments: str = ""
    types: tuple[Spec, ...] = field(default=(), compare=False)
    """The specifications of its type variables, as in the fields."""
    spelled: bool = field(default=False, compare=False)
    """Whether the fields differ from those that the class declares, and are shown."""

    def __str__(self) -> str:
        if self.spelled:
            return f"{self.record.name}({', '.join(f'{n}: {tree}' for n, tree in self.fields)})"
        arguments = self.arguments or ", ".join(map(str, self.types))
        return f"{self.record.name}[{arguments}]" if arguments else self.record.name


@dataclass(frozen=True, slots=True)
class MapSpec:
    """`PMap[str, A]`, `dict[str, A]`: the keys come from the argument, every value fits A."""

    item: Spec
    kind: type[MapType] = MapType

    def __str__(self) -> str:
        return self.kind.annotation.format(self.item)


@dataclass(frozen=True, slots=True)
class DictSpec:
    """A TypedDict: a dict that has exactly these keys, in any order."""

    name: str
    items: tuple[tuple[str, Spec], ...]
    """The items in the order of the class's declarations."""
    types: tuple[Spec, ...] = field(default=(), compare=False)
    """The specifications of its type variables, as in the items."""
    spelled: bool = field(default=False, compare=False)
    """Whether the items differ from those that the class declares, and are shown."""

    kind: ClassVar = DictType

    def __str__(self) -> str:
        if self.spelled or not self.name:
            return "{" + ", ".join(f"{key!r}: {each}" for key, each in self.items) + "}"
        return f"{self.name}[{', '.join(map(str, self.types))}]" if self.types else self.name

    def keys(self) -> tuple[str, ...]:
        """Return the keys in the order of their declaration."""
        return tuple([key for key, _ in self.items])


@dataclass(frozen=True, slots=True)
class StaticSpec:
    """`psc.Static[int]`: a value known while checking; `samples` are tried without a call."""

    kind: str
    samples: tuple[object, ...] | None
    form: StaticForm = field(default=None, compare=False)
    """The values that may be given."""

    def __str__(self) -> str:
        return f"Static[{self.kind}]"


@dataclass(frozen=True, slots=True)
class OptionalSpec:
    """`A | None`."""

    item: Spec

    def __str__(self) -> str:
        return f"{self.item} | None"


@dataclass(frozen=True, slots=True)
class UnionSpec:
    """`A | B` of a JAX program, which is checked once for each alternative."""

    items: tuple[Spec, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.items))


@dataclass(frozen=True, slots=True)
class OpenSpec:
    """`Array`, `Callable`, `Any` of a JAX program, which leave the type open.

    A parameter is tried with types that we choose, and a result may be anything: an instance is one
    of a class whose constructor decides what its fields are.
    """

    text: str
    kind: Literal["array", "function", "instance", "object"]
    default: tuple[object, ...] = ()
    """The value that is tried in place of types, if there is one; the class of an instance."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NoneSpec:
    """`None`."""

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A type variable: any tree of inexact arrays, the same one wherever the variable occurs.

    `psc.Tree` in its place is a variable named after its parameter.
    """

    name: str
    dtype: DType | DTypeClass | None = None
    """The dtype of all arrays; None if each has its own."""
    batch: tuple[Dim, ...] = ()
    """The sizes in front of those of each array."""
    shown: str = field(default="", compare=False)
    """The text in the code in place of the name."""
    bounded: bool = field(default=False, compare=False)
    """Whether the code declares that the variable is bounded by trees of arrays."""
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        shown = self.shown or self.name
        return f"{shown}[{' '.join(map(str, self.batch))}]" if self.batch else shown

    def samples(self) -> tuple[Spec, ...]:
        """Return the trees that are tried without a call: an array, and two."""
        several = ArraySpec(self.dtype or F32, (self.size(0), self.size(1)))
        return (
            ArraySpec(self.dtype or F32, (self.size(0),)),
            TupleSpec((several, ArraySpec(self.dtype or F64, ()))),
        )

    def size(self, index: int) -> Dim:
        """Return the name of a size, counted through all arrays of the tree."""
        return name(f"{self.name}_{index}")


Spec: TypeAlias = (
    ArraySpec
    | TupleSpec
    | RepeatedSpec
    | RecordSpec
    | MapSpec
    | DictSpec
    | StaticSpec
    | OptionalSpec
    | UnionSpec
    | OpenSpec
    | NoneSpec
    | TreeSpec
)


def spec_parts(spec: Spec) -> tuple[Spec, ...]:
    """Return the specifications that one consists of."""
    if isinstance(spec, TupleSpec | UnionSpec):
        return spec.items
    if isinstance(spec, RepeatedSpec | MapSpec | OptionalSpec):
        return (spec.item,)
    if isinstance(spec, RecordSpec):
        return tuple([part for _, part in spec.fields])
    return tuple([part for _, part in spec.items]) if isinstance(spec, DictSpec) else ()


def with_spec_parts(spec: Spec, parts: Sequence[Spec]) -> Spec:
    """Return a specification of the same kind, with the same keys, of other parts."""
    if isinstance(spec, TupleSpec | UnionSpec):
        return replace(spec, items=tuple(parts))
    if isinstance(spec, RepeatedSpec | MapSpec | OptionalSpec):
        return replace(spec, item=parts[0])
    if isinstance(spec, RecordSpec):
        names = [name for name, _ in spec.fields]
        return replace(spec, fields=tuple(zip(names, parts, strict=True)))
    if isinstance(spec, DictSpec):
        return replace(spec, items=tuple(zip(spec.keys(), parts, strict=True)))
    return spec


def alternatives(spec: Spec) -> Sequence[Spec]:
    """Return the specifications without unions that one stands for."""
    if isinstance(spec, UnionSpec):
        return [each for item in spec.items for each in alternatives(item)]
    parts = spec_parts(spec)
    if not parts:
        return (spec,)
    return [with_spec_parts(spec, chosen) for chosen in product(*map(alternatives, parts))]


def alternative_count(spec: Spec) -> int:
    """Return the number of specifications without unions that one stands for."""
    counts = map(alternative_count, spec_parts(spec))
    return sum(counts) if isinstance(spec, UnionSpec) else prod(counts)


def spec_steps(spec: Spec) -> Sequence[str]:
    """Return the text that selects each part."""
    if isinstance(spec, TupleSpec):
        return [f"[{index}]" for index in range(len(spec.items))]
    if isinstance(spec, RecordSpec):
        return [f".{name}" for name, _ in spec.fields]
    if isinstance(spec, DictSpec):
        return [DictType.step(key) for key in spec.keys()]
    if isinstance(spec, UnionSpec):
        return [""] * len(spec.items)
    return ("",) if isinstance(spec, OptionalSpec) else ("[…]",)


def part_at(spec: Spec | None, step: str) -> Spec | None:
    """Return the specification of the part that a text selects; None where there is none."""
    if isinstance(spec, RepeatedSpec | MapSpec):
        return spec.item
    if isinstance(spec, TupleSpec | RecordSpec | DictSpec):
        return dict(zip(spec_steps(spec), spec_parts(spec), strict=True)).get(step)
    return spec if isinstance(spec, TreeSpec) else None


def walk_paths(spec: Spec, where: str) -> Iterator[tuple[str, Spec]]:
    """Yield a specification and everything in it, each with the text that selects it."""
    yield where, spec
    for step, part in zip(spec_steps(spec), spec_parts(spec), strict=False):
        yield from walk_paths(part, where + step)


def extent(spec: Spec, known: dict[int, int] | None = None) -> int:
    """Return how many parts a specification has, shared ones counted wherever they stand."""
    extents: dict[int, int] = {} if known is None else known
    if id(spec) not in extents:
        extents[id(spec)] = 1 + sum(extent(part, extents) for part in spec_parts(spec))
    return extents[id(spec)]


def arrays_of(spec: Spec) -> Iterator[ArraySpec]:
    """Yield the arrays in a specification."""
    return (part for _, part in walk_paths(spec, "") if isinstance(part, ArraySpec))


def trees_of(spec: Spec) -> Iterator[TreeSpec]:
    """Yield the type variables in a specification."""
    return (part for _, part in walk_paths(spec, "") if isinstance(part, TreeSpec))


def declared_dims(part: Spec) -> tuple[DimSpec, ...]:
    """Return the declared dimensions of an array or a batch of trees; none for others."""
    if isinstance(part, TreeSpec):
        return part.batch
    return part.dims if isinstance(part, ArraySpec) else ()


def group_name(dim: Variadic) -> str:
    """Return the name of a group of dimensions; `...` is one group per signature."""
    return dim.name if dim.name is not None else "..."


def group_dims(group: str, rank: int) -> tuple[Size, ...]:
    """Return the sizes of a group of dimensions."""
    stem = "rest" if group == "..." else group
    return tuple(name(f"{stem}_{index}") for index in range(rank))


T = TypeVar("T")
U = TypeVar("U")
MAX_RANK = 3
MAX_LENGTH = 3
MAX_INSTANCES = 256


@dataclass(frozen=True)
class Choice:
    """The choices for a signature besides sizes.

    They are dtypes of classes, ranks of groups and trees of type variables, by their names; and by
    the path of the part (`xs`, `p.layers[0]`) lengths, map keys, static values, and whether an
    optional part is given. If a choice is for every item of a tuple, its path has `[…]`.
    """

    dtypes: tuple[tuple[str, DType], ...] = ()
    ranks: tuple[tuple[str, int], ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    statics: tuple[tuple[str, StaticType], ...] = ()
    given: tuple[tuple[str, bool], ...] = ()
    trees: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in (*self.dtypes, *self.ranks)]
        parts += [f"{name}={tree}" for name, tree in self.trees]
        parts += [f"len({path})={value}" for path, value in self.lengths]
        parts += [f"{path} with the keys {', '.join(map(repr, keys))}" for path, keys in self.keys]
        known = ((path, static.value) for path, static in self.statics)
        parts += [
            f"{path}={static_text(value)}" for path, value in known if not isinstance(value, Dim)
        ]
        parts += [f"{path} is {'not None' if given else 'None'}" for path, given in self.given]
        return ", ".join(parts)

    def with_statics(self, values: Mapping[str, int]) -> Choice:
        """This choice with other static integers."""
        statics = [
            (name, StaticType(values[name]) if name in values else static)
            for name, static in self.statics
        ]
        return replace(self, statics=tuple(statics))

    def at(self, sizes: Mapping[str, int]) -> str:
        """Return the text of the choice with that of sizes."""
        parts = [str(self)] if str(self) else []
        return ", ".join([*parts, *[f"{name}={size}" for name, size in sizes.items()]])


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    spec: Spec
    keyword_only: bool = False
    has_default: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters and the declared result, in one scope of size names."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Spec | None
    writes: tuple[str, ...] = ()
    """The parameters that are written: their final contents are the last parts of the result."""

    def __repr__(self) -> str:
        return str(self)  # for prompts and notebooks

    def __str__(self) -> str:
        return self.name + self.types()

    def types(self) -> str:
        """Parameters and result without the name."""
        inner = ", ".join(f"{p.name}: {p.spec}" for p in self.parameters)
        if not self.writes:
            return f"({inner})" + (f" -> {self.result}" if self.result else "")
        found, count = self.result, len(self.writes)
        own = "" if found is None else "None"
        if isinstance(found, TupleSpec) and len(found.items) > count:
            own = str(found.items[0])
        return f"({inner})" + (f" -> {own}" if own else "") + f" writes {', '.join(self.writes)}"

    def specs(self) -> Iterator[tuple[str, Spec]]:
        """Yield every specification with the name under which messages mention it."""
        for parameter in self.parameters:
            yield parameter.name, parameter.spec
        if self.result is not None:
            yield "return", self.result

    def size_names(self) -> tuple[str, ...]:
        """Return the names of sizes in the parameters, in order of appearance."""
        found: dict[str, None] = {}
        for parameter in self.parameters:
            for _, part in walk_paths(parameter.spec, ""):
                for dim in declared_dims(part):
                    if isinstance(dim, Dim):
                        found.update(dict.fromkeys(sorted(names(dim))))
        return tuple(found)

    def axis_names(self) -> frozenset[str]:
        """Return the names of sizes in the parameters and in the result."""
        return frozenset(
            name
            for _, spec in self.specs()
            for _, part in walk_paths(spec, "")
            for dim in declared_dims(part)
            if isinstance(dim, Dim)
            for name in names(dim)
        )

    def mesh_axes(self) -> tuple[str, ...]:
        """Return the axes of a mesh in parameters and result, in order of appearance."""
        return tuple(
            dict.fromkeys(
                axis
                for _, spec in self.specs()
                for part in arrays_of(spec)
                for along in part.mesh_axes
                for axis in along
            )
        )

    def placements(self, choice: Choice) -> tuple[Placement, ...]:
        """Return the placement of each array of the parameters under a choice."""
        types = _Placing(choice)
        return tuple(
            [
                leaf.placement if isinstance(leaf, _PlacedType) else Placement.whole(leaf.rank)
                for parameter in self.parameters
                for leaf in leaves(types.type_of(parameter.spec, parameter.name))
            ]
        )

    def result_placements(self, choice: Choice, like: Type) -> tuple[Placement | None, ...]:
        """Return the placement of each array of the result, None for those without a declaration.

        `like` is the type of the result.
        """
        count = len(tuple(leaves(like)))
        if self.result is None:
            return (None,) * count
        found = leaves(_Placing(choice).type_of(self.result, "return", like))
        own = tuple([x.placement if isinstance(x, _PlacedType) else None for x in found])
        return own if len(own) == count else (None,) * count

    def unbound(self) -> tuple[str, ...]:
        """Return the type variables that the result has, and no parameter."""
        given = {tree.name for p in self.parameters for tree in trees_of(p.spec)}
        result = () if self.result is None else trees_of(self.result)
        return tuple(dict.fromkeys(tree.name for tree in result if tree.name not in given))

    def choices(self) -> list[Choice] | None:
        """Return the choices that are tried when the signature is checked without a call.

        These are all choices, or MAX_INSTANCES spread evenly if there are more (see
        `combinations`). Return None if a parameter can only be checked at its call sites.
        """
        columns = self._columns()
        if columns is None:
            return None
        total = prod(len(values) for _, _, values in columns)
        tried = min(total, MAX_INSTANCES)
        return [_choice(columns, index * total // tried) for index in range(tried)]

    def combinations(self) -> int:
        """Return the number of choices to try."""
        return prod(len(values) for _, _, values in self._columns() or ())

    def _columns(self) -> list[Column] | None:
        """Return the open parts with the values to try; None if they cannot be enumerated."""
        columns: dict[str, Column] = {}
        for parameter in self.parameters:
            for where, part in walk_paths(parameter.spec, parameter.name):
                if isinstance(part, ArraySpec):
                    if isinstance(part.dtype, DTypeClass):
                        name_ = part.dtype.name
                        columns[name_] = ("dtypes", name_, part.dtype.usual_first())
                    for dim in part.dims:
                        if isinstance(dim, Variadic):
                            group = group_name(dim)
                            columns[group] = ("ranks", group, tuple(range(MAX_RANK + 1)))
                elif isinstance(part, TreeSpec):
                    if isinstance(part.dtype, DTypeClass):
                        class_ = part.dtype
                        columns[class_.name] = ("dtypes", class_.name, class_.usual_first())
                    columns[f"tree {part.name}"] = ("trees", part.name, part.samples())
                elif isinstance(part, RepeatedSpec):
                    columns[f"len({where})"] = ("lengths", where, tuple(range(MAX_LENGTH + 1)))
                elif isinstance(part, OptionalSpec):
                    columns[f"{where} is None"] = ("given", where, (True, False))
                elif isinstance(part, MapSpec) or (
                    isinstance(part, StaticSpec) and part.samples is None
                ):
                    return None
                elif isinstance(part, StaticSpec):
                    columns[where] = ("statics", where, part.samples or ())
        return list(columns.values())

    def result_type(self, choice: Choice, like: Type | None = None) -> Type:
        """Return the declared result under a choice; `like` as in `Instantiation.type_of`."""
        types = Instantiation(choice)
        for parameter in self.parameters:  # their anonymous sizes come first
            types.type_of(parameter.spec, parameter.name)
        return types.type_of(self.result if self.result is not None else NoneSpec(), "return", like)

    def with_sizes(self, sizes: frozenset[str] = frozenset()) -> Signature | None:
        """Return the signature with sampled static integers as sizes; None if there are none.

        One that is neither an axis of a parameter or of the result, nor one of `sizes`, is tried as
        0, too.
        """
        axes = self.axis_names() | sizes
        changed = [
            replace(
                parameter,
                spec=replace(
                    parameter.spec, samples=_as_sizes(parameter.name, parameter.name in axes)
                ),
            )
            if isinstance(parameter.spec, StaticSpec)
            and parameter.spec.form == Instance(int)
            and parameter.name.isidentifier()
            else parameter
            for parameter in self.parameters
        ]
        if changed == [*self.parameters]:
            return None
        return replace(self, parameters=tuple(changed))

    def open_parts(self) -> dict[str, str]:
        """Return the open parts of parameters besides sizes: the name and kind of each."""
        kinds: dict[str, str] = {}
        for parameter in self.parameters:
            for where, part in walk_paths(parameter.spec, parameter.name):
                if isinstance(part, ArraySpec):
                    if isinstance(part.dtype, DTypeClass):
                        kinds[part.dtype.name] = "dtype"
                    groups = (group_name(dim) for dim in part.dims if isinstance(dim, Variadic))
                    kinds.update((group, "rank") for group in groups)
                elif isinstance(part, TreeSpec):
                    if isinstance(part.dtype, DTypeClass):
                        kinds[part.dtype.name] = "dtype"
                elif isinstance(part, RepeatedSpec):
                    kinds[f"len({where})"] = "length"
                elif isinstance(part, StaticSpec):
                    kinds[where] = "static"
                elif isinstance(part, OptionalSpec):
                    kinds[f"{where} is None"] = "absence"
        return kinds

    def enumerated(self) -> tuple[str, ...]:
        """Return the enumerated parts in words."""
        return tuple(dict.fromkeys(text for _, text, _ in self._enumerate()))

    def examples(self) -> tuple[str, ...]:
        """Return the parts that were only tried by examples, in words: there are other values."""
        enumerated = self._enumerate()
        return tuple(dict.fromkeys(text for _, text, complete in enumerated if not complete))

    def unrolled_examples(self) -> tuple[str, ...]:
        """Static values that a program may have as many operations of as the value says."""
        return tuple(
            dict.fromkeys(
                text
                for part, text, complete in self._enumerate()
                if isinstance(part, RepeatedSpec | StaticSpec | TreeSpec) and not complete
            )
        )

    def rank_examples(self) -> tuple[str, ...]:
        """Return the groups of axes whose number was tried by examples, in words."""
        enumerated = self._enumerate()
        return tuple(
            dict.fromkeys(
                text
                for part, text, complete in enumerated
                if isinstance(part, ArraySpec) and not complete
            )
        )

    def _enumerate(self) -> Iterator[tuple[Spec, str, bool]]:
        """Yield the parts that were tried, in words, and whether their values are complete."""
        for parameter in self.parameters:
            for where, part in walk_paths(parameter.spec, parameter.name):
                if isinstance(part, ArraySpec | TreeSpec) and isinstance(part.dtype, DTypeClass):
                    yield part, f"{part.dtype.name} over its dtypes", True
                if isinstance(part, ArraySpec):
                    for dim in part.dims:
                        if isinstance(dim, Variadic):
                            yield part, f"{dim} of rank 0 to {MAX_RANK}", False
                elif isinstance(part, TreeSpec):
                    yield part, f"{part.name} over an array and a tuple of two", False
                elif isinstance(part, RepeatedSpec):
                    yield part, f"{part} of length 0 to {MAX_LENGTH}", False
                elif isinstance(part, OptionalSpec):
                    yield part, f"{where} given or None", True
                elif isinstance(part, StaticSpec) and part.samples is not None:
                    samples = ", ".join(map(repr, part.samples))
                    if isinstance(part.samples[0], Dim):
                        yield part, f"every {where} >= {2 - len(part.samples)}", True
                    else:
                        complete = isinstance(part.form, OneOf) or part.form == Instance(bool)
                        yield part, f"{where} over {samples}", complete


def _as_sizes(name: str, axis: bool) -> tuple[object, ...]:
    return (variable(name),) if axis else (variable(name), 0)


Column: TypeAlias = tuple[str, str, tuple[Any, ...]]
"""A field of `Choice`, the name of something open, and the values that are tried for it."""


def _choice(columns: Sequence[Column], index: int) -> Choice:
    """Return the choice with a number; the last column changes fastest."""
    fields: dict[str, list[Any]] = {kind: [] for kind, _, _ in columns}
    for kind, key, values in reversed(columns):
        index, position = divmod(index, len(values))
        value = values[position]
        fields[kind].insert(0, (key, StaticType(value) if kind == "statics" else value))
    dtypes = Instantiation(Choice(tuple(fields.get("dtypes", ()))))
    if "trees" in fields:
        fields["trees"] = [(key, dtypes.type_of(spec, key)) for key, spec in fields["trees"]]
    return Choice(**{kind: tuple(pairs) for kind, pairs in fields.items()})


def chosen(choices: Mapping[str, T], path: str, otherwise: U) -> T | U:
    """Return the choice for a part: by its own path, or for every item of its tuple."""
    if path in choices or "[" not in path:
        return choices.get(path, otherwise)
    of_items = _ITEM.sub(lambda step: step[0] if step[0].startswith('["') else "[…]", path)
    if of_items in choices:
        return choices[of_items]
    return choices.get(re.sub(r"\[[^]]*\]", "[…]", path), otherwise)


_ITEM = re.compile(r'\["(?:[^"\\]|\\.)*"\]|\[[^]]*\]')
"""An index in a path: the key of a dict's item, or the index of an item like others."""


def static_sizes(statics: Mapping[str, StaticType]) -> dict[str, Size]:
    """Static integers can be used as sizes, under the names of their parameters."""
    return {
        name: each.value
        for name, each in statics.items()
        if isinstance(each.value, int) and not isinstance(each.value, bool)
    }


class Instantiation:
    """Turns specifications into types under one choice; each `_` gets a new name."""

    def __init__(self, choice: Choice) -> None:
        self.dtypes: Mapping[str, DType] = dict(choice.dtypes)
        self.ranks: Mapping[str, int] = dict(choice.ranks)
        self.lengths: Mapping[str, int] = dict(choice.lengths)
        self.keys: Mapping[str, tuple[str, ...]] = dict(choice.keys)
        self.statics: Mapping[str, StaticType] = dict(choice.statics)
        self.given: Mapping[str, bool] = dict(choice.given)
        self.trees: Mapping[str, Type] = dict(choice.trees)
        self.static_sizes = static_sizes(self.statics)
        self._anonymous = count(1)

    def type_of(self, spec: Spec, where: str, like: Type | None = None) -> Type:
        """Return the exact type of the specification at `where` (a parameter's name, a path).

        Parts that the choice does not decide (in a result) are taken from `like`, the type found
        there; the caller then has to compare the two.
        """
        parts = tuple(tree for _, tree in children(like)) if like is not None else ()

        def inside(inner: Spec, step: str, index: int) -> Type:
            part = parts[index] if index < len(parts) else None
            return self.type_of(inner, where + step, part)

        if isinstance(spec, ArraySpec):
            return self.array(spec, like if isinstance(like, ArrayType) else None)
        if isinstance(spec, TupleSpec):
            return spec.kind(tuple(inside(e, f"[{i}]", i) for i, e in enumerate(spec.items)))
        if isinstance(spec, RepeatedSpec):
            length = chosen(self.lengths, where, len(parts))
            return spec.kind(tuple(inside(spec.item, f"[{i}]", i) for i in range(length)))
        if isinstance(spec, RecordSpec):
            fields = enumerate(spec.fields)
            return RecordType(
                spec.record, tuple((n, inside(each, f".{n}", i)) for i, (n, each) in fields)
            )
        if isinstance(spec, MapSpec | DictSpec):
            return self._map(spec, where, like)
        if isinstance(spec, StaticSpec):
            known = chosen(self.statics, where, like)
            return known if isinstance(known, StaticType) else StaticType(None)
        if isinstance(spec, OptionalSpec):
            is_given = chosen(self.given, where, like is not None and like != NONE)
            return self.type_of(spec.item, where, like) if is_given else NONE
        if isinstance(spec, UnionSpec | OpenSpec) and like is not None:
            return like
        if isinstance(spec, TreeSpec) and spec.name in self.trees:
            batch = spec.batch
            tree = self.trees[spec.name]
            return map_leaves(tree, lambda leaf: ArrayType(leaf.dtype, (*batch, *leaf.shape)))
        return NONE

    def _map(self, spec: DictSpec | MapSpec, where: str, like: Type | None) -> MapType:
        """Return the exact type of a map, with the keys, or their order, of the argument."""
        there = dict(like.items) if isinstance(like, spec.kind) else {}
        found = like.keys if isinstance(like, spec.kind) else ()
        if isinstance(spec, DictSpec):
            declared = dict(spec.items)
            order = self.keys.get(where, found if {*found} == declared.keys() else spec.keys())
        else:
            order = self.keys.get(where, found)
            declared = dict.fromkeys(sorted(order), spec.item)
        types = {
            key: self.type_of(each, where + spec.kind.step(key), there.get(key))
            for key, each in declared.items()
        }
        return spec.kind.of(order, [types[key] for key in sorted(types)])

    def array(self, spec: ArraySpec, like: ArrayType | None = None) -> ArrayType:
        """Return the exact type of an array."""
        if isinstance(spec.dtype, DType):
            dtype = spec.dtype
        elif spec.dtype.name in self.dtypes:
            dtype = self.dtypes[spec.dtype.name]
        else:
            taken = like is not None and like.dtype in spec.dtype.members
            dtype = like.dtype if like is not None and taken else spec.dtype.members[0]
        shape: list[Size] = []
        for dim in spec.dims:
            if isinstance(dim, Variadic):
                group = group_name(dim)
                if group in self.ranks:
                    shape.extend(group_dims(group, self.ranks[group]))
                elif like is not None:  # a group only of the result: any axes
                    surplus = max(like.rank - len(spec.dims) + 1, 0)
                    shape.extend(self._fresh() for _ in range(surplus))
            elif isinstance(dim, Anonymous):
                shape.append(self._fresh())
            else:
                shape.append(substitute(dim, self.static_sizes))
        return ArrayType(dtype, tuple(shape))

    def _fresh(self) -> Size:
        return name(f"_{next(self._anonymous)}")


class _PlacedType(ArrayType):
    """The type of an array with its placement, which does not belong to the type."""

    __slots__ = ("placement",)

    def __init__(self, dtype: DType, shape: Shape, placement: Placement) -> None:
        super().__init__(dtype, shape)
        self.placement = placement


class _Placing(Instantiation):
    """Turns specifications into types with placements."""

    def array(self, spec: ArraySpec, like: ArrayType | None = None) -> ArrayType:
        found = super().array(spec, like)
        axes: list[tuple[str, ...]] = []
        for dim, along in zip(spec.dims, spec.mesh_axes or ((),) * len(spec.dims), strict=True):
            surplus = found.rank - len(spec.dims) + 1  # there is one group at most
            axes.extend(((),) * surplus if isinstance(dim, Variadic) else (along,))
        return _PlacedType(found.dtype, found.shape, Placement(tuple(axes)))


# The precondition that excludes the choices for which a check fails.


def exclusion(failing: Sequence[Choice], right: Sequence[Choice]) -> str:
    """Return a lower bound of a length or static number that excludes all failing choices.

    It must admit one of the `right` choices; otherwise the bound is useless. It is in the words of
    the kernel: `len(xs) >= 1`; empty if there is none.
    """
    out = [dict(_numbers(choice)) for choice in failing]
    numbers = [dict(_numbers(choice)) for choice in right]
    for number in out[0]:
        if all(number in each for each in out):
            bound = max(each[number] for each in out) + 1
            if any(each.get(number, 0) >= bound for each in numbers):
                return f"{number} >= {bound}"
    return ""


def bound_by(failing: Sequence[Choice], claims: Sequence[tuple[Fact, ...]]) -> str:
    """Return a condition that extends the claims for some values of a static number to all values.

    `n >= 2` for `k=1` and `n >= 3` for `k=2` become `n >= k+1`; empty if there is no such number.
    """
    facts = [each[0] for each in claims if len(each) == 1]
    if len(facts) != len(failing) or any(each.relation != "<=" for each in facts):
        return ""
    if any(each.right != facts[0].right for each in facts):
        return ""
    numbers = [dict(_numbers(choice)) for choice in failing]
    for key in numbers[0]:
        values = [each.get(key) for each in numbers]
        gaps = {
            each.left - value if isinstance(each.left, int) and value is not None else None
            for each, value in zip(facts, values, strict=True)
        }
        gap = gaps.pop()
        if gap is not None and not gaps and len({*values}) > 1 and key.isidentifier():
            return str(Fact("<=", variable(key) + gap, facts[0].right))
    return ""


def is_sampled_integer(spec: Spec) -> bool:
    """Return whether this is a static integer with values to try."""
    return isinstance(spec, StaticSpec) and spec.form == Instance(int) and bool(spec.samples)


def _numbers(choice: Choice) -> Iterator[tuple[str, int]]:
    """Yield the numbers in a choice that `assert` can bound."""
    for path, length in choice.lengths:
        yield f"len({path})", length
    for parameter, static in choice.statics:
        if isinstance(static.value, int) and not isinstance(static.value, bool):
            yield parameter, static.value
