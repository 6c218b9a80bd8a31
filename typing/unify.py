"""Matching of signatures with the types of arguments, and where two trees of arrays differ."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from pscdsl.typing.array_types import (
    ArrayType,
    DictType,
    MapType,
    NoneType,
    RecordType,
    SequenceType,
    Shape,
    StaticType,
    TupleType,
    Type,
    children,
    map_leaves,
    paths,
    size_of,
    static_text,
)
from pscdsl.typing.assumptions import Assumptions, sufficient_bound
from pscdsl.typing.codes.control import ArgumentTree, TreeArgumentsDiffer
from pscdsl.typing.codes.element_types import ArgumentDtype
from pscdsl.typing.codes.shapes import axes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import ArgumentShape, SizeNotDetermined
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, as_terms, names, substitute, variable
from pscdsl.typing.dtypes import CLASSES, DType
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import (
    Anonymous,
    ArraySpec,
    Choice,
    DictSpec,
    DimSpec,
    DTypeClass,
    MapSpec,
    NoneSpec,
    OptionalSpec,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    Variadic,
    declared_dims,
    group_dims,
    group_name,
    spec_parts,
    spec_steps,
    static_sizes,
    walk_paths,
)
from pscdsl.typing.static_values import admits

# Matching: which choice and which sizes make a signature fit the types of given arguments.


@dataclass(frozen=True)
class Match:
    """The choice and the sizes that make a signature fit."""

    choice: Choice
    sizes: Mapping[str, Size]


@dataclass(frozen=True, slots=True)
class _Demand:
    declared: Dim
    given: Size
    where: str
    spec: ArraySpec
    type: ArrayType


def match(signature: Signature, arguments: Mapping[str, Type], facts: Assumptions) -> Match:
    """Fit a signature to the types of its arguments; a Failure says which one does not fit."""
    try:
        return _match(signature, arguments, facts)
    except Failure as failure:
        raise _name_swapped(signature, arguments, facts, failure) from None


def _match(signature: Signature, arguments: Mapping[str, Type], facts: Assumptions) -> Match:
    matching = _Matching(signature, facts)
    for parameter in signature.parameters:
        matching.visit(parameter.spec, arguments[parameter.name], parameter.name)
    return matching.finish()


def _name_swapped(
    signature: Signature, arguments: Mapping[str, Type], facts: Assumptions, failure: Failure
) -> Failure:
    """Return the failure, naming an argument in the place of another if there is exactly one."""
    (finding, *others) = failure.diagnostics
    if others or not isinstance(finding, ArgumentShape | ArgumentDtype):
        return failure
    own = finding.argument
    fitting: list[str] = []
    for parameter in signature.parameters if own in arguments else ():
        other = parameter.name
        if arguments[other] == arguments[own]:
            continue
        exchanged = {**arguments, own: arguments[other], other: arguments[own]}
        try:
            _match(signature, exchanged, facts)
        except Failure:
            continue
        fitting.append(other)
    return Failure(finding.replaced(swapped=fitting[0])) if len(fitting) == 1 else failure


class _OwnSizes:
    """Static values that consist of sizes, in the function's own names of sizes.

    A size of the caller gets its name here, or a new name.
    """

    def __init__(self, signature: Signature, sizes: dict[str, Size]) -> None:
        self.sizes = sizes
        self.axes = signature.axis_names()
        self.taken = {*self.axes, *sizes, *(parameter.name for parameter in signature.parameters)}
        self.names: dict[str, Dim] = {}
        for name, size in sizes.items():
            if name in self.axes and isinstance(size, Dim) and size == variable(str(size)):
                self.names.setdefault(str(size), variable(name))

    def static(self, where: str, given: StaticType) -> StaticType:
        if isinstance(given.value, Dim) and where in self.axes:
            return StaticType(variable(where))
        value = self._value(where, given.value)
        return given if value is given.value else StaticType(value)

    def _value(self, where: str, value: object) -> object:
        if isinstance(value, Dim):
            return substitute(value, {name: self._name(where, name) for name in names(value)})
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            made = tuple([self._value(where, item) for item in items])
            return items if all(map(operator.is_, made, items)) else made
        return value

    def _name(self, where: str, name: str) -> Dim:
        if name not in self.names:
            own = f"{re.sub(r'[^A-Za-z0-9_]', '_', where)}_{name}"
            while own in self.taken:
                own += "_"
            self.taken.add(own)
            self.sizes[own] = variable(name)
            self.names[name] = variable(own)
        return self.names[name]


def undetermined(signature: Signature) -> tuple[str, ...]:
    """Return the sizes that arguments leave open, as they occur only in products or quotients."""
    known = {p.name for p in signature.parameters if isinstance(p.spec, StaticSpec)}
    dims = [
        dim
        for parameter in signature.parameters
        for _, part in walk_paths(parameter.spec, "")
        for dim in declared_dims(part)
        if isinstance(dim, Dim)
    ]
    found = True
    while found:
        found = False
        for dim in dims:
            unknown = names(dim) - known
            if len(unknown) == 1 and _linear(dim, next(iter(unknown))) is not None:
                known |= unknown
                found = True
    return tuple(sorted(set[str]().union(*(names(dim) for dim in dims)) - known))


class _Matching:
    def __init__(self, signature: Signature, facts: Assumptions) -> None:
        self.function = signature.name
        self.signature = signature
        self.facts = facts
        self.dtypes: dict[str, DType] = {}
        self.ranks: dict[str, int] = {}
        self.lengths: dict[str, int] = {}
        self.keys: dict[str, tuple[str, ...]] = {}
        self.statics: dict[str, StaticType] = {}
        self.given: dict[str, bool] = {}
        self.trees: dict[str, Bound] = {}
        self.sizes: dict[str, Size] = {}
        self.reasons: dict[str, str] = {}
        self.demands: list[_Demand] = []
        self.anonymous = 0

    def visit(self, spec: Spec, given: Type, where: str) -> None:
        match spec:
            case ArraySpec() if isinstance(given, ArrayType):
                self.array(spec, given, where)
            case StaticSpec():
                self.static(spec, given, where)
            case TreeSpec():
                self.tree(spec, given, where)
            case OptionalSpec():
                self.given[where] = not isinstance(given, NoneType)
                if self.given[where]:
                    self.visit(spec.item, given, where)
            case _ if not self.fits(spec, given, where):
                raise self.wrong_tree(where, spec, given)
            case RepeatedSpec() | MapSpec():
                for step, part in children(given):
                    self.visit(spec.item, part, where + step)
            case _:
                found = dict(children(given))
                for step, part_spec in zip(spec_steps(spec), spec_parts(spec), strict=False):
                    self.visit(part_spec, found[step], where + step)

    def fits(self, spec: Spec, given: Type, where: str) -> bool:
        """Return whether a container has the declared kind; note its length or keys."""
        match spec:
            case TupleSpec() if isinstance(given, spec.kind):
                return len(spec.items) == len(given.items)
            case RepeatedSpec():
                if not isinstance(given, spec.kind):
                    return False
                self.lengths[where] = len(given.items)
                return True
            case RecordSpec():
                if not isinstance(given, RecordType) or spec.record != given.record:
                    return False  # and what a loaded artefact says of the class may be wrong
                return [name for name, _ in spec.fields] == [name for name, _ in given.fields]
            case MapSpec():
                if not isinstance(given, MapType) or type(given) is not spec.kind:
                    return False
                self.keys[where] = given.keys
                return True
            case DictSpec():
                if not isinstance(given, DictType) or dict(given.items).keys() != {*spec.keys()}:
                    return False
                if given.order and given.order != spec.keys():
                    self.keys[where] = given.order
                return True
            case _:
                return isinstance(spec, NoneSpec) and isinstance(given, NoneType)

    def static(self, spec: StaticSpec, given: Type, where: str) -> None:
        if isinstance(given, NoneType):
            given = StaticType(None)
        if not isinstance(given, StaticType) or not admits(spec.form, given.value):
            raise self.wrong_tree(where, spec, given)
        self.statics[where] = given

    def tree(self, spec: TreeSpec, given: Type, where: str) -> None:
        """Bind a type variable, or compare with its binding."""
        found = list(paths(given))
        for path, leaf in found:
            self.dtype(_leaf(spec), leaf, where + path, spec)
            if leaf.rank < len(spec.batch):
                why = f"it has {axes(leaf.rank)}, at least {len(spec.batch)} are of the batch"
                raise self.wrong_shape(where + path, _leaf(spec), leaf, why)
            for dim, size in zip(spec.batch, leaf.shape, strict=False):
                self.demands.append(_Demand(dim, size, where + path, _leaf(spec), leaf))
        row = map_leaves(given, lambda leaf: ArrayType(leaf.dtype, leaf.shape[len(spec.batch) :]))
        bound = self.trees.get(spec.name)
        if bound is not None:
            problems = differing(self.function, spec, bound, row, where, self.facts)
            if problems:
                raise Failure(*problems)
            return
        sizes = [size for _, leaf in paths(row) for size in leaf.shape]
        self.sizes.update({str(spec.size(index)): size for index, size in enumerate(sizes)})
        count = iter(range(len(sizes)))
        general = map_leaves(
            row, lambda leaf: leaf.with_shape(tuple([spec.size(next(count)) for _ in leaf.shape]))
        )
        self.trees[spec.name] = Bound(where, row, general)

    def dtype(
        self, spec: ArraySpec, given: ArrayType, where: str, tree: TreeSpec | None = None
    ) -> None:
        """Refuse an array of another dtype than is declared; a class becomes one dtype."""
        if isinstance(spec.dtype, DType):
            fits = spec.dtype is given.dtype
        else:
            fits = given.dtype in spec.dtype.members
            if spec.dtype is not ANY_INEXACT:
                fits = fits and self.dtypes.setdefault(spec.dtype.name, given.dtype) is given.dtype
        if not fits:
            raise Failure(
                ArgumentDtype(
                    function=self.function,
                    argument=where,
                    declared=self.declared(spec, tree),
                    given=given,
                )
            )

    def array(self, spec: ArraySpec, given: ArrayType, where: str) -> None:
        self.dtype(spec, given, where)
        for dim, size in self.aligned(spec, given, where):
            if isinstance(dim, Dim):
                self.demands.append(_Demand(dim, size, where, spec, given))
            elif dim != size and not self.facts.equal(dim, size):
                why = disagreement(self.facts, size, dim)
                raise self.wrong_shape(where, spec, given, why)

    def aligned(self, spec: ArraySpec, given: ArrayType, where: str) -> Iterator[tuple[Size, Size]]:
        """Yield pairs of declared dimensions and given sizes, with groups spread out."""
        dims = spec.dims
        groups = [index for index, dim in enumerate(dims) if isinstance(dim, Variadic)]
        least = len(dims) - len(groups)
        surplus = given.rank - least
        if surplus < 0 or (surplus > 0 and not groups) or len(groups) > 1:
            wanted = f"at least {least}" if groups else f"{least}"
            raise self.wrong_shape(where, spec, given, f"it has {axes(given.rank)}, not {wanted}")
        axis = 0
        for dim in dims:
            if isinstance(dim, Variadic):
                group = group_name(dim)
                if self.ranks.setdefault(group, surplus) != surplus:
                    raise self.wrong_shape(
                        where, spec, given, f"{dim} has {axes(self.ranks[group])} elsewhere"
                    )
                for each in group_dims(group, surplus):
                    yield each, given.shape[axis]
                    axis += 1
                continue
            if isinstance(dim, Anonymous):
                self.anonymous += 1
                self.sizes[f"_{self.anonymous}"] = given.shape[axis]
            else:
                yield dim, given.shape[axis]
            axis += 1

    def finish(self) -> Match:
        """Solve for the sizes: names first, then dimensions linear in one unknown name."""
        self.sizes.update(static_sizes(self.statics))
        self.sizes.update(
            (where, each.value)
            for where, each in self.statics.items()
            if isinstance(each.value, Dim)
        )
        pending = self.demands
        while pending:
            waiting: list[_Demand] = []
            for demand in pending:
                if not self.settle(demand):
                    waiting.append(demand)
            if len(waiting) == len(pending):
                unknown = sorted(
                    set[str]().union(*(names(d.declared) for d in waiting)) - set(self.sizes)
                )
                raise Failure(SizeNotDetermined(function=self.function, names=tuple(unknown)))
            pending = waiting
        own = _OwnSizes(self.signature, self.sizes)
        self.statics = {where: own.static(where, each) for where, each in self.statics.items()}
        choice = Choice(
            tuple(self.dtypes.items()),
            tuple(self.ranks.items()),
            tuple(self.lengths.items()),
            tuple(self.keys.items()),
            tuple(self.statics.items()),
            tuple(self.given.items()),
            tuple((name, bound.general) for name, bound in self.trees.items()),
        )
        return Match(choice, self.sizes)

    def settle(self, demand: _Demand) -> bool:
        """Bind the unknown name of a demand, or check one that is known; False if neither can."""
        unknown = names(demand.declared) - self.sizes.keys()
        if len(unknown) > 1:
            return False
        if unknown:
            (name,) = unknown
            solved = _solve(demand.declared, name, demand.given, self.sizes)
            if solved is None:
                return False
            self.sizes[name] = solved
            self.reasons[name] = demand.where
            if str(demand.declared) == name:
                return True
        expected = substitute(demand.declared, self.sizes)
        if not self.facts.equal(expected, demand.given):
            why = disagreement(self.facts, demand.given, expected)
            source = self.reasons.get(str(demand.declared))
            if source is not None and source != demand.where:
                why += f" ({demand.declared} is {expected} in `{source}`)"
            raise self.wrong_shape(demand.where, demand.spec, demand.type, why)
        return True

    def wrong_tree(self, where: str, spec: Spec, given: Type) -> Failure:
        namesake = ""
        if isinstance(spec, RecordSpec) and isinstance(given, RecordType):
            if spec.record == replace(given.record, number=spec.record.number):
                namesake = given.record.name
        return Failure(
            ArgumentTree(
                function=self.function,
                argument=where,
                declared=str(spec),
                given=str(given),
                namesake=namesake,
                why=_other_keys(spec, given),
            )
        )

    def wrong_shape(self, where: str, spec: ArraySpec, given: ArrayType, why: str) -> Failure:
        return Failure(
            ArgumentShape(
                function=self.function,
                argument=where,
                declared=self.declared(spec),
                given=given,
                why=why,
            )
        )

    def declared(self, spec: ArraySpec, tree: TreeSpec | None = None) -> str:
        """Return a specification, with the dtype that its class has been bound to."""
        if tree is not None:
            known = (
                ""
                if spec.dtype.name not in self.dtypes
                else f", here {self.dtypes[spec.dtype.name]}"
            )
            return f"{tree} of {spec.dtype.name} arrays{known}"
        if isinstance(spec.dtype, DType) or spec.dtype.name not in self.dtypes:
            return str(spec)
        return f"{spec} with {spec.dtype.name} being {self.dtypes[spec.dtype.name]}"


def _other_keys(spec: Spec, given: Type) -> str:
    """Describe the missing and extra keys of a dict; empty if there are none."""
    if not isinstance(spec, DictSpec) or not isinstance(given, DictType):
        return ""
    keys, wanted = [key for key, _ in given.items], spec.keys()
    missing = [f"the key {key!r} is missing" for key in wanted if key not in keys]
    extra = [f"{key!r} is none of its keys" for key in keys if key not in wanted]
    return ", ".join(missing + extra)


ANY_INEXACT: Final = DTypeClass("Inexact", CLASSES["Inexact"])
"""The dtype of an array in a tree whose arrays may differ in dtype."""


def _leaf(spec: TreeSpec) -> ArraySpec:
    """Return the specification of each array of a tree."""
    dims: tuple[DimSpec, ...] = (*spec.batch, Variadic(None))
    return ArraySpec(spec.dtype or ANY_INEXACT, dims)


def _linear(declared: Dim, name: str) -> int | None:
    """Return the coefficient of a name in a dimension that is linear in it; None if it is not."""
    for monomial, factor in as_terms(declared):
        if len(monomial) == 1 and monomial[0] == name:
            rest = declared - factor * variable(name)
            return None if name in names(rest) else factor
    return None


def _solve(declared: Dim, name: str, given: Size, known: Mapping[str, Size]) -> Size | None:
    """Return the size of `name` that makes a dimension linear in it equal to the given size."""
    coefficient = _linear(declared, name)
    if coefficient is None:
        return None
    remainder = given - substitute(declared - coefficient * variable(name), known)
    return remainder if coefficient == 1 else remainder // coefficient


# Differences of two trees of arrays, their reasons, and remedies.


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the tree that was found is not the one that is wanted."""

    path: str
    """The text that selects it, empty for the whole."""
    found: Type
    wanted: Type
    why: str


def structure_differences(found: Type, wanted: Type, path: str = "") -> Iterator[Difference]:
    """Yield the outermost places where the structures differ, ignoring arrays."""
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return
    why = _structure(found, wanted)
    if why is not None:
        yield Difference(path, found, wanted, why)
        return
    for (step, mine), (_, other) in zip(children(found), children(wanted), strict=True):
        yield from structure_differences(mine, other, path + step)


def _structure(found: Type, wanted: Type) -> str | None:
    """Why two nodes are not of one kind, their children left aside."""
    tuples = isinstance(found, TupleType) and isinstance(wanted, TupleType)
    if type(found) is not type(wanted) and not tuples:
        return f"{kind(found)}, not {kind(wanted)}"
    if isinstance(found, NoneType):
        return None
    if isinstance(found, StaticType):
        return None if found == wanted else f"{found}, not {wanted}"
    if isinstance(found, RecordType) and isinstance(wanted, RecordType):
        if found.record != wanted.record:
            return f"{kind(found)}, not {kind(wanted)}"
    mine, others = [step for step, _ in children(found)], [step for step, _ in children(wanted)]
    if mine == others:
        return None
    if isinstance(found, SequenceType):
        return f"{kind(found)}, not {len(others)}"
    missing = [f"without {step}" for step in others if step not in mine]
    extra = [f"with {step} too" for step in mine if step not in others]
    return ", ".join(missing + extra) or "in another order"


def kind(tree: Type) -> str:
    """Return the kind of a node in words."""
    match tree:
        case ArrayType():
            return "an array"
        case NoneType():
            return "None"
        case StaticType():
            return f"the static value {static_text(tree.value)}"
        case _:
            return tree.noun


def _as_python_has_it(found: Type, wanted: Type, path: str = "") -> Iterator[Difference]:
    """Yield the differences of trees of equal structure that code can see: lists, key order."""
    if isinstance(found, TupleType) and type(found) is not type(wanted):
        yield Difference(path, found, wanted, f"{kind(found)}, not {kind(wanted)}")
        return
    if isinstance(found, DictType) and isinstance(wanted, DictType):
        if found.order != wanted.order:
            yield Difference(path, found, wanted, "the keys are in another order")
            return
    for (step, mine), (_, other) in zip(children(found), children(wanted), strict=True):
        yield from _as_python_has_it(mine, other, path + step)


def array_difference(facts: Assumptions, found: ArrayType, wanted: ArrayType) -> str | None:
    """Return the difference of two types in words; None if they are equal for all sizes."""
    if found.rank != wanted.rank:
        return f"{found.rank} {'axis' if found.rank == 1 else 'axes'}, not {wanted.rank}"
    for mine, other in zip(found.shape, wanted.shape, strict=True):
        if not facts.equal(mine, other):
            return disagreement(facts, mine, other)
    if found.dtype is not wanted.dtype:
        return f"dtype {found.dtype}, not {wanted.dtype}"
    return None


def conversion(facts: Assumptions, found: ArrayType, wanted: ArrayType) -> str:
    """Return code to append to an array to make it the other; empty if none fits all sizes.

    A dtype is cast; a shape is changed by operations that move elements and keep their values.
    """
    cast = "" if found.dtype is wanted.dtype else f".astype(psc.{wanted.dtype})"
    if _equal(facts, found.shape, wanted.shape):
        return cast
    moved = _moves_text(facts, found.shape, wanted.shape)
    return moved + cast if moved else ""


def _moves_text(facts: Assumptions, found: Shape, wanted: Shape) -> str:
    if len(found) >= 2 and _equal(facts, found[::-1], wanted):
        return ".T"
    order = _order(facts, found, wanted)
    if order:
        return f".transpose({', '.join(map(str, order))})" if len({*order}) == len(order) else ""
    longer, shorter, sign = (found, wanted, "0")
    if len(found) < len(wanted):
        longer, shorter, sign = (wanted, found, "None")
    ones = _surplus_ones(facts, longer, shorter)
    if ones:
        parts = [sign if axis in ones else ":" for axis in range(max(ones) + 1)]
        return f"[{', '.join(parts)}]"
    if facts.equal(size_of(found), size_of(wanted)):
        return f".reshape({', '.join(map(str, wanted))})"
    return ""


def _order(facts: Assumptions, found: Shape, wanted: Shape) -> list[int]:
    """Return the axes that have the wanted sizes; none if not only their order differs.

    An axis occurs twice if several have its size: the intended one is unknown.
    """
    order = [[facts.equal(a, b) for a in found].count(True) for b in wanted]
    back = [[facts.equal(a, b) for a in wanted].count(True) for b in found]
    if len(found) != len(wanted) or not all(order) or sorted(order) != sorted(back):
        return []
    return [next(i for i, a in enumerate(found) if facts.equal(a, b)) for b in wanted]


def _surplus_ones(facts: Assumptions, longer: Shape, shorter: Shape) -> list[int]:
    """Return the axes of size one that only the longer shape has; none if it differs otherwise."""
    ones: list[int] = []
    rest = list(shorter)
    for axis, size in enumerate(longer):
        if rest and facts.equal(size, rest[0]):
            rest.pop(0)
        elif facts.equal(size, 1):
            ones.append(axis)
        else:
            return []
    return [] if rest else ones


def surplus_axis(facts: Assumptions, found: Shape, wanted: Shape) -> int | None:
    """Return the one axis without which the shape that was found is the other."""
    if len(found) != len(wanted) + 1:
        return None
    for axis in range(len(found)):
        if _equal(facts, found[:axis] + found[axis + 1 :], wanted):
            return axis
    return None


def may_be_equal(facts: Assumptions, found: Shape, wanted: Shape) -> Fact | None:
    """Return the one equation between sizes that makes the shapes equal, if it can hold."""
    if len(found) != len(wanted):
        return None
    pairs = zip(found, wanted, strict=True)
    claims = {Fact("==", a, b): None for a, b in pairs if not facts.equal(a, b)}
    if len(claims) != 1:
        return None
    (claim,) = claims
    named = isinstance(claim.left, Dim) and isinstance(claim.right, Dim)
    named = named and "(" not in str(claim)  # ends of slices are never meant as one size
    example = facts.counterexample(claim.negated()) if named else None
    if example is None:
        return None
    assumed = facts.assume(claim)
    for name in claim.names():  # nor that `n-k+1` is `n`, which leaves 1 for `k`
        if assumed.proves(Fact("==", variable(name), example.get(name, 0))):
            return None
    return claim


def enough_for(facts: Assumptions, found: Shape, wanted: Shape) -> Fact | None:
    """Return the least size from which on two shapes are equal, if there is one."""
    if len(found) != len(wanted):
        return None
    pairs = zip(found, wanted, strict=True)
    return sufficient_bound(facts, [Fact("==", a, b) for a, b in pairs if not facts.equal(a, b)])


def repair(facts: Assumptions, found: ArrayType, wanted: ArrayType, subject: str) -> str:
    """Return a sentence on how to make `subject` the other array; empty if there is no way."""
    written = conversion(facts, found, wanted)
    if written:
        return f"{subject} with `{written}`"
    axis = surplus_axis(facts, found.shape, wanted.shape)
    if axis is not None:
        return f"{subject} reduced along axis {axis}, for instance with `.sum(axis={axis})`"
    bound = enough_for(facts, found.shape, wanted.shape)
    if bound is not None:
        return f"add `assert {bound}`"
    claim = may_be_equal(facts, found.shape, wanted.shape)
    if claim is not None:
        return f"if they are one size, give it one name in the signature, or `assert {claim}`"
    is_repeated = found.rank in (0, wanted.rank)  # rows of no other array are meant
    if is_repeated and broadcasts(facts, found.shape, wanted.shape):
        return f"{subject} through `np.broadcast_to(…, {_write_shape(wanted.shape)})`"
    return ""


def _write_shape(shape: Shape) -> str:
    """Return a shape as Python writes it."""
    sizes = ", ".join(map(str, shape))
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def broadcasts(facts: Assumptions, found: Shape, wanted: Shape) -> bool:
    """Return whether an array can be repeated to a shape."""
    return len(found) <= len(wanted) and all(
        facts.equal(a, 1) or facts.equal(a, b)
        for a, b in zip(found[::-1], wanted[::-1], strict=False)
    )


def _equal(facts: Assumptions, left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return len(left) == len(right) and all(
        facts.equal(a, b) for a, b in zip(left, right, strict=True)
    )


# Type variables: the binding by the first argument, and the differences of others.


@dataclass(frozen=True)
class Bound:
    """The binding of a type variable in one call."""

    where: str
    """The argument that says so."""
    tree: Type
    general: Type
    """The tree with a name in place of each size."""


def differing(
    function: str, spec: TreeSpec, bound: Bound, given: Type, where: str, facts: Assumptions
) -> list[TreeArgumentsDiffer]:
    """Return the differences between an argument and the binding of its type variable."""

    def problem(path: str, found: object, wanted: object, why: str) -> TreeArgumentsDiffer:
        return TreeArgumentsDiffer(
            function=function,
            variable=spec.name,
            argument=where + path,
            given=str(found),
            other=bound.where + path,
            wanted=str(wanted),
            why=why,
        )

    differences = list(structure_differences(given, bound.tree))
    differences = differences or list(_as_python_has_it(given, bound.tree))
    if differences:
        return [
            problem(difference.path, difference.found, difference.wanted, difference.why)
            for difference in differences
        ]
    found: list[TreeArgumentsDiffer] = []
    for (path, mine), (_, wanted) in zip(paths(given), paths(bound.tree), strict=True):
        why = array_difference(facts, mine, wanted)
        if why is not None:
            found.append(problem(path, mine, wanted, why))
    return found
