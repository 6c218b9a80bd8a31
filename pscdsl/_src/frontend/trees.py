"""Trees of arrays: flattening and rebuilding them, and the functions of `psc.tree`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from pscdsl._src.frontend.interpreter.records import RecordClass, as_function
from pscdsl._src.frontend.purity import external_value
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Array,
    External,
    MapValue,
    Poison,
    Poisoned,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    as_static,
    container_value,
    describe,
    from_static,
    is_poisoned,
    is_traced,
    value_kind,
    with_tree_parts,
)
from pscdsl._src.ir.broadcasting import squeeze
from pscdsl._src.ir.builder import Builder, Program, Value, Weak
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.creation import zeros_like as zeros_of
from pscdsl.numpy.linear_algebra import root, squares
from pscdsl.numpy.manipulation import reshape
from pscdsl.numpy.products import vdot
from pscdsl.numpy.shorthand import cast, joined, part, raveled, reshaped, wide
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    ContainerType,
    MapType,
    NoneType,
    RecordType,
    SequenceType,
    Shape,
    StaticType,
    Type,
    built,
    children,
    map_leaves,
    paths,
    size_of,
    without_order,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import BadPredicate, NotATree, TreesDiffer
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.codes.language import NotCallable
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, F32, I32, DType, accepts_weak
from pscdsl.typing.python_containers import is_dict, is_tuple
from pscdsl.typing.unify import array_difference, structure_differences

# Flattening trees and rebuilding them with other leaves, in kernels and outside of them.
#
# The nodes of a tree differ: in a kernel records are values of the front end, outside they are
# instances of real classes. Each has a `Ways` for its nodes; everything else is here.


T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True)
class Node(Generic[T]):
    """A part of a tree that is no array: its parts, its type, and its constructor."""

    parts: Sequence[T]
    type_of: Callable[[tuple[Type, ...]], Type]
    made: Callable[[list[T]], T]


class Ways(Protocol[T]):
    """The way in which values are flattened as trees."""

    def node(self, value: T, /) -> Node[T] | None:
        """Return the node of a value that is no array; None for an array."""
        ...

    def array(self, value: T, /) -> ArrayType:
        """Return the type of an array or number; raise a suitable exception for anything else."""
        ...


@dataclass(frozen=True)
class Flat(Generic[T]):
    """The leaves of a tree as they are, and its type."""

    leaves: list[T]
    type: Type


def flattened(ways: Ways[T], tree: T) -> Flat[T]:
    """Return the leaves of a tree in order."""
    leaves: list[T] = []
    return Flat(leaves, _flattened(ways, tree, leaves))


def _flattened(ways: Ways[T], value: T, leaves: list[T]) -> Type:
    node = ways.node(value)
    if node is None:
        leaves.append(value)
        return ways.array(value)
    return node.type_of(tuple([_flattened(ways, part, leaves) for part in node.parts]))


def rebuilt(ways: Ways[T], tree: T, leaves: Iterator[T]) -> T:
    """Return the tree with other leaves."""
    node = ways.node(tree)
    if node is None:
        return next(leaves)
    return node.made([rebuilt(ways, part, leaves) for part in node.parts])


def together(
    name: str, trees: Sequence[Flat[T]], absent: bool = False
) -> list[tuple[T | None, ...]]:
    """Pair the leaves of trees of one structure; a Failure names the difference otherwise.

    With `absent`, a tree other than the first may hold None in place of an array, as gradients do
    for arrays without one; None then takes the place of the leaf.
    """
    first, *rest = trees
    columns: list[Sequence[T | None]] = [first.leaves]
    for index, other in enumerate(rest):
        problems = [
            TreesDiffer(
                function=name,
                position=index + 2,
                path=each.path,
                first=str(each.wanted),
                other=str(each.found),
                why=each.why,
                surplus=isinstance(each.wanted, NoneType) and absent,
            )
            for each in structure_differences(other.type, first.type)
            if not (
                absent and isinstance(each.found, NoneType) and isinstance(each.wanted, ArrayType)
            )
        ]
        if problems:
            raise Failure(*problems)
        columns.append(list(_aligned(first.type, other.type, iter(other.leaves))))
    return list(zip(*columns, strict=True))


def same_shapes(name: str, facts: Assumptions, first: Type, other: Type) -> None:
    """Refuse two trees of one structure with arrays of different shapes at one place."""
    for (path, mine), (_, theirs) in zip(paths(first), paths(other), strict=True):
        why = array_difference(facts, theirs.with_dtype(mine.dtype), mine)
        if why is not None:
            raise Failure(
                TreesDiffer(
                    function=name,
                    position=2,
                    path=path,
                    first=str(mine),
                    other=str(theirs),
                    why=why,
                )
            )


def _aligned(first: Type, other: Type, leaves: Iterator[T]) -> Iterator[T | None]:
    """Yield the leaves of the other tree, None where it lacks one of the first."""
    if isinstance(first, ArrayType):
        yield None if isinstance(other, NoneType) else next(leaves)
        return
    for (_, mine), (_, theirs) in zip(children(first), children(other), strict=True):
        yield from _aligned(mine, theirs, leaves)


# Trees of arrays: taking values apart into leaves, and putting them together again.


def leaf(here: Builder, value: AnyValue) -> Array | None:
    """Return a value as an array of the program, or None if it is not a number."""
    match value:
        case Value() | Weak():
            return value
        case np.ndarray() | np.generic():
            return here.constant(value)
        case bool() | int() | float() | complex() | Dim():
            return here.weak(value)
        case Undecided():
            return condition(here, value)
        case _:
            return None


def condition(here: Builder, value: Undecided) -> Value:
    """Return a condition on sizes as a bool of the program."""
    joined = e.bitwise_or if value.any_of else e.bitwise_and
    table = {"==": e.equal, "!=": e.not_equal, "<=": e.less_equal, "<": e.less}
    result: Value | None = None
    for fact in value.facts:
        left, right = here.size(fact.left, I32), here.size(fact.right, I32)
        (each,) = here.bind(table[str(fact.relation)], (left, right))
        result = each if result is None else here.bind(joined, (result, each))[0]
    assert result is not None
    return result


def flatten(here: Builder, value: AnyValue, what: str) -> tuple[list[Array], Type]:
    """Return the arrays of a tree, and its type; numbers count as weak arrays."""
    found = _flat(here, what, value)
    arrays = [leaf(here, each) for each in found.leaves]
    return [each for each in arrays if each is not None], found.type


def flatten_plainly(here: Builder, value: AnyValue, what: str) -> tuple[list[Array], Type]:
    """Flatten for functions that see the keys of dicts in order, and tuples for lists."""
    leaves, tree = flatten(here, value, what)
    return leaves, without_order(tree)


def unflatten(tree: Type, leaves: Iterator[AnyValue]) -> AnyValue:
    """Return the value with this type and these leaves."""
    value: AnyValue = built(tree, leaves, _made, from_static)
    return value


def _made(tree: ContainerType, parts: list[AnyValue]) -> AnyValue:
    if isinstance(tree, RecordType):
        cls = tree.record.definition
        assert isinstance(cls, RecordClass)
        names = [name for name, _ in tree.fields]
        return RecordValue(cls, dict(zip(names, parts, strict=True)))
    assert isinstance(tree, SequenceType | MapType)
    return container_value(type(tree), tree.keys, parts)


# The common parts of all combinators: function arguments, trees of arrays, agreement of types.


MAX_ROUNDS = 4
"""The most elaborations of a body until the dtypes of its weak inputs are settled."""


def applicable(function: AnyValue, combinator: str) -> Applicable:
    """Return a function argument; a Failure if it cannot be called."""
    function = as_function(function)
    if not isinstance(function, Applicable):
        instead = "give a function of the operands, for instance `lambda x: …`"
        if combinator in ("psc.cond", "psc.switch"):
            instead = "give functions, `lambda: …`, or choose between arrays with `np.where`"
        found = f"{describe(function)}, given to `{combinator}`,"
        raise Failure(NotCallable(found=found, instead=instead))
    return function


def pair_in(value: AnyValue, refuse: Callable[[str], Diagnostic]) -> tuple[AnyValue, AnyValue]:
    """Return the items of a pair; a Failure for anything else, made from its description."""
    if isinstance(value, Poison):
        raise Poisoned
    if not is_tuple(value) or len(value) != 2:
        raise Failure(refuse(describe(value)))
    return value[0], value[1]


def strong(values: Sequence[Array]) -> list[Value]:
    """Return weak arrays in their default dtypes."""
    return [
        value.default(str(index)) if isinstance(value, Weak) else value
        for index, value in enumerate(values)
    ]


def at(value: Array, dtype: DType) -> Value:
    """Return a value in a dtype, if it is weak and can take it; otherwise as it is."""
    if isinstance(value, Value):
        return value
    return value.at(dtype) if accepts_weak(dtype, value.kind) else value.default()


def of_values(tree: Type, values: Sequence[Value]) -> Type:
    """Return the type of a tree with the types of these values."""
    remaining = iter(values)
    return map_leaves(tree, lambda _: next(remaining).type)


class Attempt:
    """The state of a program before a first try, to restore before a second one."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = len(program.findings)
        self.revealed = len(program.revealed)
        self.facts = program.facts

    def failed(self) -> bool:
        """Return whether errors were found since the attempt began."""
        found = self.program.findings[self.count :]
        return any(each.severity is Severity.ERROR for each in found)

    def forget(self) -> None:
        """Drop the findings since then, and the facts assumed after reports of unproven ones.

        Impurities stay: a second try does not find those that the first one has made unknown.
        """
        findings = self.program.findings
        findings[self.count :] = [d for d in findings[self.count :] if d.code[3] == "2"]
        del self.program.revealed[self.revealed :]
        self.program.facts = self.facts


def bool_scalar(here: Builder, value: AnyValue, construct: str) -> Value:
    """Return a predicate as a bool scalar; a Failure if it is something else."""
    if isinstance(value, Poison):
        raise Poisoned
    found = leaf(here, value)
    if isinstance(found, Weak):
        found = found.default()
    if found is None or found.dtype is not BOOL or found.ndim:
        if found is not None and found.dtype is BOOL and all(size == 1 for size in found.shape):
            return squeeze(found, tuple(range(found.ndim)))
        raise Failure(BadPredicate(construct=construct, found=describe(value)))
    return found


# `psc.tree` in kernels: trees are static, so each function of them is unrolled.


class Inside:
    """Flattens the values of a kernel as trees; `what` names one in messages."""

    def __init__(self, here: Builder, what: str) -> None:
        self.here = here
        self.what = what

    def array(self, value: AnyValue) -> ArrayType:
        """Return the type of an array or number of the program."""
        found = leaf(self.here, value)
        if found is not None:
            return found.type
        if isinstance(value, External):
            raise Failure(external_value(value))
        shown = "a dict with other keys than strings" if is_dict(value) else describe(value)
        raise Failure(NotATree(what=self.what, found=shown))

    def node(self, value: AnyValue) -> Node[AnyValue] | None:
        """Return the node of a tuple, list, record, map or vector; None for an array."""
        match value:
            case None:
                return Node((), lambda _: NONE, lambda _: None)
            case str():
                return Node((), lambda _: StaticType(value), lambda _: value)
            case RecordValue():
                return _record(value)
            case _:
                kind = value_kind(value)
        if kind is None or (is_dict(value) and not all(isinstance(key, str) for key in value)):
            return None
        parts, keys = kind.apart(
            value.items if isinstance(value, MapValue | VectorValue) else value
        )
        return Node(
            parts,
            lambda types: kind.of(keys, types),
            lambda items: container_value(kind, keys, items),
        )


def _record(value: RecordValue) -> Node[AnyValue]:
    # An annotation may call these.
    from pscdsl._src.frontend.annotations import static_fields

    fields = value.fields
    static = {
        name
        for name in static_fields(value.cls)
        if name in fields and not (fields[name].__hash__ is None or is_traced(fields[name]))
    }
    return record_node(value.cls, fields, static, lambda items: with_tree_parts(value, items))


def record_node(
    cls: RecordClass,
    fields: Mapping[str, T],
    static: Collection[str],
    made: Callable[[list[T]], T],
) -> Node[T]:
    """Return the node of a record: static fields belong to its structure, others are its parts."""

    def type_of(types: tuple[Type, ...]) -> Type:
        rest = iter(types)
        known = (
            (n, StaticType(as_static(v)) if n in static else next(rest)) for n, v in fields.items()
        )
        return RecordType(cls.name, tuple(known))

    def filled(items: list[T]) -> T:
        rest = iter(items)
        return made([v if n in static else next(rest) for n, v in fields.items()])

    return Node([v for n, v in fields.items() if n not in static], type_of, filled)


def _flat(here: Builder, what: str, tree: AnyValue) -> Flat[AnyValue]:
    """Return the leaves as they are: numbers of Python's stay such."""
    if is_poisoned(tree):
        raise Poisoned
    return flattened(Inside(here, what), tree)


def _plain(here: Builder, name: str, tree: AnyValue) -> Flat[AnyValue]:
    """Return the leaves of a tree that a function of `psc.tree` takes."""
    flat = _flat(here, f"a tree of `{name}`", tree)
    return Flat(flat.leaves, without_order(flat.type))


def map_(here: Builder, f: AnyValue, tree: AnyValue, /, *rest: AnyValue) -> AnyValue:
    """Return a tree of a function's results for the leaves of trees."""
    name = "psc.tree.map"
    function = applicable(f, name)
    flat = [_plain(here, name, each) for each in (tree, *rest)]
    rows = together(name, flat, absent=True)
    mapped = [function.apply(here, row, {}) for row in rows]
    return rebuilt(Inside(here, name), tree, iter(mapped))


def leaves(here: Builder, tree: AnyValue, /) -> tuple[AnyValue, ...]:
    """Return the arrays of a tree in order."""
    return tuple(_plain(here, "psc.tree.leaves", tree).leaves)


def reduce(here: Builder, f: AnyValue, tree: AnyValue, initial: AnyValue, /) -> AnyValue:
    """Return `f(value, leaf)`, applied to each leaf in order."""
    name = "psc.tree.reduce"
    function = applicable(f, name)
    value = initial
    for each in _plain(here, name, tree).leaves:
        value = function.apply(here, (value, each), {})
    return value


def size(here: Builder, tree: AnyValue, /) -> Size:
    """Return the number of elements of all arrays together."""
    found: Size = 0
    for _, each in paths(_plain(here, "psc.tree.size", tree).type):
        found = found + size_of(each.shape)
    return found


def zeros_like(here: Builder, tree: AnyValue, /, dtype: AnyValue = None) -> AnyValue:
    """Return a tree with zeros in place of each array."""
    name = "psc.tree.zeros_like"
    made: list[AnyValue] = [zeros_of(here, each, dtype) for each in _plain(here, name, tree).leaves]
    return rebuilt(Inside(here, name), tree, iter(made))


def dot(here: Builder, a: AnyValue, b: AnyValue, /) -> Array:
    """Return the sum of the products of all elements, those of `a` conjugated."""
    name = "psc.tree.dot"
    flat = [_plain(here, name, each) for each in (a, b)]
    pairs = together(name, flat)
    same_shapes(name, here.facts, flat[0].type, flat[1].type)
    products = [vdot(*[_accumulating(here, name, each) for each in pair]) for pair in pairs]
    return _summed(here, products)


def norm(here: Builder, tree: AnyValue, /) -> Array:
    """Return the Euclidean norm of all elements together."""
    name = "psc.tree.norm"
    parts = [_accumulating(here, name, each) for each in _plain(here, name, tree).leaves]
    strong = [each.default() if isinstance(each, Weak) else each for each in parts]
    sums = [squares(each, tuple(range(each.ndim)), False) for each in strong]
    total = _summed(here, sums)
    return root(total, 0.5) if isinstance(total, Value) else total


def _accumulating(here: Builder, name: str, value: AnyValue) -> Array:
    """Return a leaf in the dtype in which sums over it are computed."""
    found = leaf(here, value)
    assert found is not None
    if isinstance(found, Weak):
        return found
    if not found.dtype.is_inexact:
        accepts = "floating or complex"
        raise Failure(DtypeNotAccepted(function=name, given=found.type, accepts=accepts))
    return cast(found, wide(found.dtype))


def _summed(here: Builder, terms: Sequence[Array]) -> Array:
    """Return the sum of scalars in the widest of their dtypes."""
    dtypes = [each.dtype for each in terms if isinstance(each, Value)]
    widest = max((each.real for each in dtypes), key=lambda dtype: dtype.bits, default=None)
    if widest is not None and any(each.is_complex for each in dtypes):
        widest = widest.complex
    total: Array = here.weak(0.0)
    for index, each in enumerate(terms):
        if isinstance(each, Value):
            term: Array = each if widest is None else cast(each, widest)
        else:
            term = each if widest is None else each.at(widest)
        total = e.add(total, term) if index else term
    return total


def ravel(here: Builder, tree: AnyValue, /) -> tuple[Value, StaticFunction]:
    """Return all elements as one vector, and the function that makes a tree of such a vector."""
    name = "psc.tree.ravel"
    flat = _plain(here, name, tree)
    found = [each for each in (leaf(here, x) for x in flat.leaves) if each is not None]
    dtype = _one_dtype(found)
    arrays = [at(each, dtype) for each in found]
    shapes = [array.shape for array in arrays]
    pieces = [raveled(array) for array in arrays]
    vector = joined(pieces, 0) if pieces else here.full(0.0, (0,), dtype)

    def unravel(here: Builder, vector: AnyValue) -> AnyValue:
        given = leaf(here, vector)
        if given is None:
            raise Failure(NotATree(what=f"the vector of `{name}`", found=describe(vector)))
        pieces = _pieces(given.default() if isinstance(given, Weak) else given, shapes)
        return rebuilt(Inside(here, name), tree, pieces)

    return vector, StaticFunction("unravel", unravel)


def _one_dtype(found: Sequence[Array]) -> DType:
    """Return the common dtype of all arrays; f32 if there are none."""
    strong = [each for each in found if isinstance(each, Value)]
    if strong:
        strong[0].builder.program.agree(strong)
    for each in strong[1:]:
        if each.dtype is not strong[0].dtype:
            raise Failure(DtypesDiffer(left=strong[0].type, right=each.type))
    return strong[0].dtype if strong else F32


def _pieces(vector: Value, shapes: Sequence[Shape]) -> Iterator[Value]:
    """Yield arrays of these shapes from the elements of a vector, one after the other."""
    total: Size = 0
    for shape in shapes:
        total = total + size_of(shape)
    vector = reshape(vector, (total,))
    start: Size = 0
    for shape in shapes:
        stop = start + size_of(shape)
        yield reshaped(part(vector, 0, start, stop), shape)
        start = stop


def register() -> None:
    """Give the functions their names."""
    functions: dict[str, Callable[..., AnyValue]] = {
        "map": map_,
        "leaves": leaves,
        "reduce": reduce,
        "size": size,
        "zeros_like": zeros_like,
        "dot": dot,
        "norm": norm,
        "ravel": ravel,
    }
    for name, body in functions.items():
        MEANINGS[f"pscdsl.tree.{name}"] = StaticFunction(f"psc.tree.{name}", body)
