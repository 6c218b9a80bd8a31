"""All warnings about a typed program; here are those about computed indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pscdsl._src.analysis.intervals import Intervals, intervals
from pscdsl._src.analysis.ranges import Order, limits
from pscdsl._src.analysis.warnings.numerics import (
    check_bounds,
    check_equality,
    check_forms,
    check_hidden_nan,
)
from pscdsl._src.analysis.warnings.performance import (
    check_columns,
    check_constants,
    check_doubles,
    check_rows,
)
from pscdsl._src.analysis.warnings.programs import LiveProgram, SourceText, Wording, as_written
from pscdsl._src.analysis.warnings.repeats import check_repeats
from pscdsl._src.ir.program import Atom, Equation, Function, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.shaping import Broadcast, Concatenate, Reshape, SizeValue, Transpose
from pscdsl.typing.assumptions import Fact, Verdict
from pscdsl.typing.codes.numerics import IndexLeavesAxis, StartLeavesAxis
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.diagnostics import Diagnostic, Span
from pscdsl.typing.dims import Size

# Computed indices against the axes that they index, by interval analysis.


_FAR = 6
"""The number of equations that are followed from an index to a condition."""

WRITTEN = (
    "Subscript",
    "take",
    "take_along_axis",
    "update",
    "dynamic_slice",
    "dynamic_update",
)
"""The texts of indexing operations; those inside of library functions are not the user's."""

INDEXING = (Gather, Scatter, DynamicSlice, DynamicUpdate)


@dataclass(frozen=True)
class IndexedPlace:
    """An index on an axis, as it was computed; `part` is how much is taken there."""

    at: Equation
    index: Atom
    axis: int
    size: Size
    part: Size
    from_end: bool
    """Whether negative ones count from the end."""


def check_indices(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Report the computed indices that certainly leave their axis."""
    anything = {*program.function.body.params}
    sites = [
        (block, place)
        for block, at in program.placed(*INDEXING)
        for place in _places(program, at)
        if program.source(place.index) not in anything
    ]
    if not sites:
        return
    found = intervals(program.function)
    for block, place in sites:
        order = found.orders.get(block)
        finding = None if order is None else _check(program, found, order, place, wording)
        if finding is None or wording.operation(place.at.span) not in WRITTEN:
            continue
        read = isinstance(place.at.primitive, Gather | DynamicSlice)
        if not read or not _thrown_away(program, place):
            yield finding.at(place.at.span)


def _places(program: LiveProgram, at: Equation) -> Iterator[IndexedPlace]:
    primitive, shape = at.primitive, at.inputs[0].type.shape
    if isinstance(primitive, Gather | Scatter):
        columns = _columns(program, at.inputs[1], len(primitive.axes))
        pairs = zip(primitive.axes, columns, strict=True)
        parts: Sequence[Size] = [1] * len(shape)
    elif isinstance(primitive, DynamicSlice):
        pairs = zip(range(len(shape)), at.inputs[1:], strict=True)
        parts = primitive.sizes
    else:
        pairs = zip(range(len(shape)), at.inputs[2:], strict=True)
        parts = at.inputs[1].type.shape
    for axis, index in pairs:
        if index is None or parts[axis] == shape[axis]:
            continue
        counted = _counted_from_end(program, index, shape[axis])
        place = index if counted is None else counted
        yield IndexedPlace(at, place, axis, shape[axis], parts[axis], counted is not None)


def _columns(program: LiveProgram, indices: Atom, count: int) -> Sequence[Atom | None]:
    """Return the index on each axis, of index tuples; None where it is not known."""
    at = program.definition(indices)
    last = indices.type.rank - 1
    if at is not None and isinstance(at.primitive, Concatenate) and at.primitive.axis == last:
        columns = [_unmoved(program, operand) for operand in at.inputs]
        return columns if len(columns) == count else [None] * count
    return [_unmoved(program, indices)] if count == 1 else [None] * count


def _unmoved(program: LiveProgram, atom: Atom) -> Atom:
    """Return the atom before a change of its axes, or a wider integer type."""
    while (at := program.definition(atom)) is not None:
        primitive, given = at.primitive, at.inputs[0].type.dtype if at.inputs else None
        wider = isinstance(primitive, e.Convert) and given is not None and given.is_integer
        if wider and isinstance(primitive, e.Convert):
            (low, high), (least, most) = limits(given), limits(primitive.dtype)  # type: ignore[arg-type]
            wider = primitive.dtype.is_integer and least <= low and high <= most
        if not (wider or isinstance(primitive, Reshape | Broadcast | Transpose)):
            return atom
        atom = at.inputs[0]
    return atom


def _counted_from_end(program: LiveProgram, atom: Atom, size: Size) -> Atom | None:
    """Return the `i` of `where(i < 0, i + size, i)`; None if it is something else."""
    at = program.definition(_unmoved(program, atom))
    if at is None or not isinstance(at.primitive, e.Select):
        return None
    condition, shifted, plain = at.inputs
    test, added = program.definition(condition), program.definition(shifted)
    if test is None or added is None or test.primitive is not e.less:
        return None
    if added.primitive is not e.add or test.inputs[0] is not plain or added.inputs[0] is not plain:
        return None
    zero, amount = test.inputs[1], added.inputs[1]
    if not isinstance(zero, Literal) or zero.value != 0 or _number(program, amount) != size:
        return None
    return _unmoved(program, plain)


def _number(program: LiveProgram, atom: Atom) -> Size | None:
    if isinstance(atom, Literal):
        return atom.value if isinstance(atom.value, int) else None
    at = program.definition(atom)
    return at.primitive.size if at is not None and isinstance(at.primitive, SizeValue) else None


def _check(
    program: LiveProgram, found: Intervals, order: Order, place: IndexedPlace, wording: Wording
) -> IndexLeavesAxis | StartLeavesAxis | None:
    """Return the finding if the index is known to leave its axis."""
    known = found.of(place.index)
    if known is None:
        return None
    least, most = limits(place.index.type.dtype)
    first: Size = -place.size if place.from_end else 0
    last = place.size - place.part
    for bound, reached, extreme, claim in (
        (known.high, known.high_reached, most, Fact("<=", known.high, last)),
        (known.low, known.low_reached, least, Fact("<=", first, known.low)),
    ):
        if not reached or bound == extreme or order.at_most(claim.left, claim.right):
            continue
        if order.facts.decide(claim) is not Verdict.NO:
            continue
        always = order.at_most(claim.right + 1, claim.left)
        why = "" if always else instance(order.facts, claim)
        index = wording.index(place.at.span, place.axis) or wording.name(program, place.index)
        array = program.source(place.at.inputs[0])
        count = wording.count(array if isinstance(array, Var) else None, place.axis, place.size)
        if place.part == 1 and not wording.operation(place.at.span).startswith("dynamic"):
            return IndexLeavesAxis(
                index=index,
                bound=bound,
                size=place.size,
                count=count,
                why=why,
                written=isinstance(place.at.primitive, Scatter | DynamicUpdate),
            )
        return StartLeavesAxis(
            start=index, bound=bound, size=place.size, part=place.part, count=count, why=why
        )
    return None


def _thrown_away(program: LiveProgram, place: IndexedPlace) -> bool:
    """Return whether the elements read are used only where a condition on the index holds."""
    related = _sources(program, place.index)
    return all(_is_masked(program, var, related, _FAR) for var in place.at.outputs)


def _is_masked(program: LiveProgram, var: Var, related: set[Atom], depth: int) -> bool:
    uses = program.uses.get(var, [])
    if not depth or not uses or program.is_result(var):
        return False
    for at in uses:
        primitive = at.primitive
        if isinstance(primitive, e.Select) and at.inputs[0] is not var:
            if related.isdisjoint(_sources(program, at.inputs[0])):
                return False
        elif primitive is e.multiply and any(
            _is_mask(program, operand, related) for operand in at.inputs if operand is not var
        ):
            continue
        elif isinstance(primitive, _PASSING):
            if not all(_is_masked(program, output, related, depth - 1) for output in at.outputs):
                return False
        else:
            return False
    return True


_PASSING = e.Elementwise | e.Convert | e.Clamp | Reshape | Broadcast | Transpose


def _is_mask(program: LiveProgram, atom: Atom, related: set[Atom]) -> bool:
    at = program.definition(_unshaped(program, atom))
    if at is None or not isinstance(at.primitive, e.Convert):
        return False
    condition = at.inputs[0]
    return condition.type.dtype.name == "bool" and not related.isdisjoint(
        _sources(program, condition)
    )


def _unshaped(program: LiveProgram, atom: Atom) -> Atom:
    while (at := program.definition(atom)) and isinstance(at.primitive, Reshape | Broadcast):
        atom = at.inputs[0]
    return atom


def _sources(program: LiveProgram, atom: Atom) -> set[Atom]:
    """Return the variables that an atom is computed from, itself included."""
    atoms: set[Atom] = {program.source(atom)}
    for at in program.ancestors(atom, _FAR):
        atoms.update(each for each in map(program.source, at.inputs) if isinstance(each, Var))
    return atoms


# All warnings about a typed program.


CHECKS = (
    check_indices,
    check_hidden_nan,
    check_forms,
    check_equality,
    check_bounds,
    check_columns,
    check_constants,
    check_repeats,
    check_rows,
)


def warnings(function: Function, source: SourceText, *, declared: bool) -> list[Diagnostic]:
    """Warnings about a function, each kind once a place; `declared` if its result type is."""
    program, wording = LiveProgram(as_written(function)), Wording(source)
    found: dict[tuple[str, Span], Diagnostic] = {}
    for check in CHECKS if declared else (*CHECKS, check_doubles):
        for each in check(program, wording):
            found.setdefault((each.code, each.span), each)
    return list(found.values())
