"""Interval analysis: the range of every integer variable of a function, for all sizes together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from pscdsl._src.analysis.ranges import (
    ELEMENTWISE,
    STRUCTURE,
    Constraints,
    Order,
    Range,
    Refinement,
    clamp,
    free,
    limits,
    single,
    sorted_ranges,
    top_places,
    unknown,
)
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Evaluator,
    Function,
    Literal,
    Var,
    literal_array,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.control import Call, Control, Switch, substitute_block
from pscdsl._src.primitives.elementwise import Bitcast
from pscdsl._src.primitives.reductions import ArgReduce
from pscdsl._src.primitives.regions import Layout, Role
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Iota, SizeValue
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.element_types import ScalarDoesNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.dtypes import BOOL, I64, DType

# Interval analysis: the range of every integer variable of a function, for all sizes together.
#
# It is one pass over the program; it repeats the body of a loop until the carry is inside the range
# assumed for it. The ranges of a loop's body are those of its last run, and hold for every step.


# Carries of loops: ranges that hold in every step, found by running bodies on ranges.
#
# A carry to which each step adds something bounded is bounded by the number of steps. Any other is
# assumed to be in some range, at first that of its start; the result of a step is joined to the
# range until it stops growing. A bound that keeps moving is given up (*widening*), and then taken
# from the result of a step on the rest, which is inside (*narrowing*).


Ranges: TypeAlias = list[Range | None]
"""One for each of some variables; None for those that are no integers."""
Run: TypeAlias = Callable[[Block, Order, Ranges], Ranges]

_ATTEMPTS = 6
"""A body is run so often at most; from the second time on, bounds that still move are dropped."""
_MOST_STEPS = 100
"""The most steps of a loop that are run one by one, as long as the loop certainly continues."""
_MOST_WORK = 50_000
"""The most equations that are run again for the sake of better bounds."""


class Loops:
    """Runs the bodies of one function's loops."""

    def __init__(self, run: Run, refinement: Refinement) -> None:
        self.run = run
        self._refinement = refinement
        self._work = 0

    def scan(self, at: Equation, primitive: Scan, order: Order, operands: Ranges) -> Ranges:
        """Return the ranges of a loop's results, over `length` steps or at most as many."""
        captured, init, arrays = primitive.roles(operands)
        captured = loosened(captured) if primitive.counted else captured
        body, count, length = primitive.body, primitive.carried, primitive.length
        inside = order
        if not order.at_most(1, length):
            inside = Order(order.facts.assume(Fact("<=", 1, length)))
        rows = [row_of(array, at) for array in arrays]
        dtypes = [var.type.dtype for var in at.outputs]
        bounded: dict[int, tuple[Range, Range]] = {}
        # The summands may depend on a counter.
        while any(interval is not None for interval in init):
            start = [each and unknown(d) for each, d in zip(init, dtypes, strict=False)]
            for position, (during, _) in bounded.items():
                start[position] = during
            self.run(body, inside, [*captured, *start, *rows])
            accumulated = self._accumulate(at, primitive, inside, init)
            if primitive.counted:  # the last step is unknown
                accumulated = {
                    k: (during.loosened(), order.join([during, after], dtypes[k]).loosened())
                    for k, (during, after) in accumulated.items()
                }
            if len(accumulated) <= len(bounded):
                break
            bounded = accumulated

        def step(carry: Ranges) -> Ranges:
            return self.run(body, inside, [*captured, *carry, *rows])

        fixed = {position: during for position, (during, _) in bounded.items()}
        carry, results = self.settled(inside, body, init, fixed, dtypes, step)
        ended = loosened(carry)  # the last step may not reach these bounds
        final = [bounded[k][1] if k in bounded else ended[k] for k in range(count)]
        stacks = [_stack_range(result, at) for result in results[count:]]
        if primitive.counted:  # the rows of steps that are not taken are zero
            stacks = [
                each and order.join([each, Range(0, 0)], dtype).loosened()
                for each, dtype in zip(stacks, dtypes[count:], strict=True)
            ]
            steps = captured[0].along if captured[0] is not None else frozenset[object]()
            final, stacks = (
                [each and each.varying(each.along | steps) for each in part]
                for part in (final, stacks)
            )
        return [*(interval and _range_after(interval, at) for interval in final), *stacks]

    def _accumulate(
        self, at: Equation, primitive: Scan, order: Order, init: Ranges
    ) -> dict[int, tuple[Range, Range]]:
        """By position, carries to which something bounded is added: during the loop, and after."""
        body, count, length = primitive.body, primitive.carried, primitive.length
        params = body.params[primitive.captured : primitive.captured + count]
        accumulated: dict[int, tuple[Range, Range]] = {}
        for position, (param, result) in enumerate(zip(params, body.results, strict=False)):
            start = init[position]
            if start is None:
                continue
            if result is param:
                accumulated[position] = start, start
                continue
            added = self._summand(param, result)
            if added is None:
                continue
            low = scaled(order, added.low, length - 1, largest=False)
            high = scaled(order, added.high, length - 1, largest=True)
            if low is None or high is None:
                continue
            dtype = param.type.dtype
            known = added.is_single
            along = start.along | frozenset((at,)) | frozenset(range(param.type.rank))
            during = order.fitted(
                dtype,
                start.low + low,
                start.high + high,
                start.low_reached and known,
                start.high_reached and known,
                start.along | frozenset((at,)) if known else along,
            )
            after = order.fitted(
                dtype,
                start.low + added.low * length,
                start.high + added.high * length,
                start.low_reached and known,
                start.high_reached and known,
                start.along if known else along,
            )
            if during == unknown(dtype) or after == unknown(dtype):
                continue  # it may have wrapped around on the way
            accumulated[position] = during, after
        return accumulated

    def _summand(self, param: Var, result: object) -> Range | None:
        """Return the range of a step's summand to a carry; None if the step does anything else."""
        at = self._refinement.definitions.get(result) if isinstance(result, Var) else None
        if at is None or param not in at.inputs:
            return None
        if at.primitive is e.add:
            other = at.inputs[1] if at.inputs[0] is param else at.inputs[0]
        elif at.primitive is e.subtract and at.inputs[0] is param:
            other = at.inputs[1]
        else:
            return None
        added: Range | None
        if isinstance(other, Literal):
            added = Range(int(other.value), int(other.value), True, True)  # type: ignore[arg-type]
        else:
            added = self._refinement.ranges.get(other)
        if added is None or other is param:
            return None
        if any(bound in limits(param.type.dtype) for bound in (added.low, added.high)):
            return None
        if at.primitive is e.subtract:
            return Range(-added.high, -added.low, added.high_reached, added.low_reached)
        return added

    def repeat(self, at: Equation, primitive: While, order: Order, operands: Ranges) -> Ranges:
        """Return the results of a loop that ends when its condition fails."""
        by_cond, by_body, init = primitive.roles(operands)
        by_cond, by_body, init = (loosened(part) for part in (by_cond, by_body, init))
        cond, body = primitive.cond, primitive.body
        dtypes = [var.type.dtype for var in at.outputs]
        followed = self._follow(primitive, order, by_cond, by_body, init)
        if followed is not None:
            return followed
        tested = cond.params[primitive.cond_captured :]

        def where(carry: Ranges, holds: bool) -> Ranges:
            self.run(cond, order, [*by_cond, *carry])
            known = self._refinement.constraints(order, cond.results[0], holds)
            return [known.get(var, old) for var, old in zip(tested, carry, strict=True)]

        def step(carry: Ranges) -> Ranges:
            return loosened(self.run(body, order, [*by_body, *where(carry, True)]))

        carry, _ = self.settled(order, body, init, {}, dtypes, step)
        return where(carry, False)

    def _follow(
        self, primitive: While, order: Order, by_cond: Ranges, by_body: Ranges, init: Ranges
    ) -> Ranges | None:
        """Return the results of a loop of known numbers, such as Euclid's algorithm."""
        cond, body, carry, visited = primitive.cond, primitive.body, init, [init]
        dtypes = [var.type.dtype for var in body.params[primitive.body_captured :]]
        if not all(interval is not None and interval.is_single for interval in init):
            return None
        for _ in range(_MOST_STEPS):
            (going,) = self.run(cond, order, [*by_cond, *carry])
            self._work += len(cond.equations) + len(body.equations)
            if going is None or not going.is_single or self._work > _MOST_WORK:
                return None
            if going.low == 0:
                break
            visited.append(carry)
            carry = loosened(self.run(body, order, [*by_body, *carry]))
        else:
            return None

        def met(carries: Sequence[Ranges]) -> Ranges:
            columns = zip(zip(*carries, strict=True), dtypes, strict=True)
            return [order.join([x for x in c if x is not None], d).loosened() for c, d in columns]

        # Once more with all that was met: the ranges of blocks hold for every step.
        self.run(cond, order, [*by_cond, *met([*visited, carry])])
        self.run(body, order, [*by_body, *met(visited)])
        return carry

    def settled(
        self,
        order: Order,
        body: Block,
        init: Ranges,
        fixed: dict[int, Range],
        dtypes: Sequence[DType],
        step: Callable[[Ranges], Ranges],
    ) -> tuple[Ranges, Ranges]:
        """Return ranges of the carry that every step keeps, and the results of one more step."""
        carry = [fixed.get(k, start) for k, start in enumerate(init)]
        results: Ranges = []
        following: Ranges = []
        moving = [k for k, start in enumerate(init) if start is not None and k not in fixed]

        def joined(results: Ranges) -> Ranges:
            return [
                order.join([start, results[k] or unknown(dtypes[k])], dtypes[k]).loosened()
                if k in moving and (start := init[k]) is not None
                else carry[k]
                for k in range(len(init))
            ]

        widened = False
        for attempt in range(_ATTEMPTS):
            results = step(carry)
            self._work += len(body.equations)
            following = joined(results)
            moved = [k for k in moving if not _is_inside(order, following[k], carry[k])]
            if not moved:
                break
            if attempt == _ATTEMPTS - 1 or self._work > _MOST_WORK:
                for k in moving:
                    carry[k] = unknown(dtypes[k])
                return carry, step(carry)
            for k in moved:
                old, new = carry[k], following[k]
                assert old is not None
                assert new is not None
                if attempt:
                    carry[k] = _widen(order, old, new, dtypes[k])
                    widened = True
                else:
                    carry[k] = order.join([old, new], dtypes[k]).loosened()
        if widened:
            carry = following
            results = step(carry)
        return carry, results


def _widen(order: Order, old: Range, new: Range, dtype: DType) -> Range:
    """Return a range without the bounds that have moved."""
    least, most = limits(dtype)
    low = old.low if order.at_most(old.low, new.low) else least
    high = old.high if order.at_most(new.high, old.high) else most
    return Range(low, high, along=old.along | new.along)


def _is_inside(order: Order, inner: Range | None, outer: Range | None) -> bool:
    """Return whether one range is inside another."""
    if inner is None or outer is None:
        return inner is outer
    return order.at_most(outer.low, inner.low) and order.at_most(inner.high, outer.high)


def scaled(order: Order, bound: Size, steps: Size, largest: bool) -> Size | None:
    """Return the extreme of a sum over 0 to `steps` steps; None if the sign is unknown."""
    if order.at_most(0, bound):
        return bound * steps if largest else 0
    if order.at_most(bound, 0):
        return 0 if largest else bound * steps
    return None


def loosened(ranges: Ranges) -> Ranges:
    """Return the same bounds as possibly loosened ones."""
    return [interval and interval.loosened() for interval in ranges]


def row_of(given: Range | None, loop: Equation) -> Range | None:
    """Return the range of an array's slice in every step."""
    if given is None or not any(isinstance(x, int) for x in given.along):
        return given
    moved = [x - 1 if isinstance(x, int) and x else loop if x == 0 else x for x in given.along]
    return replace(given, along=frozenset(moved))


def _stack_range(given: Range | None, loop: Equation) -> Range | None:
    """Return the range of the stacked results of steps, along a new leading axis."""
    if given is None:
        return None
    moved = [x + 1 if isinstance(x, int) else 0 if x is loop else x for x in given.along]
    return replace(given, along=frozenset(moved))


def _range_after(given: Range, loop: Equation) -> Range:
    """Return the range of a carry after the loop."""
    return replace(given, along=given.along - {loop})


# Combinations of rows: ranges that hold for every grouping.
#
# As in a loop, the combination of two values in a range has to be in the range again; but sums of
# rows are bounded by the number of rows.


class Combinations:
    """Runs combinations of one function's rows."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    def prefixes(
        self, at: Equation, primitive: AssociativeScan, order: Order, operands: Ranges
    ) -> Ranges:
        """Return the rows up to each one combined."""
        captured, arrays = primitive.roles(operands)
        inside = _assume_row(order, primitive.length)
        rows = [row_of(array, at) for array in arrays]
        found, _ = self._combine(inside, primitive.combine, captured, rows, primitive.length)
        return _results(at, found)

    def total(self, at: Equation, primitive: MapReduce, order: Order, operands: Ranges) -> Ranges:
        """Return the ranges of combined results of rows."""
        by_body, by_combine, initial, arrays = primitive.roles(operands)
        inside, length = _assume_row(order, primitive.length), primitive.length
        rows = [row_of(array, at) for array in arrays]
        values = self._loops.run(primitive.body, inside, [*by_body, *rows])
        starts: Ranges = initial or [None] * len(values)
        totals, sums = self._combine(inside, primitive.combine, by_combine, values, length, starts)
        for place in sums:
            start, value = starts[place] or single(0), values[place]
            if value is not None:
                low, high = start.low + value.low * length, start.high + value.high * length
                known = value.is_single  # nothing is known of how the values of others are spread
                reached = start.low_reached and known, start.high_reached and known
                totals[place] = order.fitted(at.outputs[place].type.dtype, low, high, *reached)
        return _results(at, totals)

    def _combine(
        self,
        order: Order,
        combine: Block,
        captured: Ranges,
        rows: Ranges,
        length: Size,
        starts: Ranges | None = None,
    ) -> tuple[Ranges, list[int]]:
        """Return ranges of all combinations of rows, and the places of sums that are bounded."""
        dtypes = [result.type.dtype for result in combine.results]
        first = starts or [None] * len(rows)
        sums: dict[int, Range] = {}
        init: Ranges = []
        for place, (row, start) in enumerate(zip(rows, first, strict=True)):
            dtype = dtypes[place]
            if row is None:
                init.append(None)
                continue
            joined = row if start is None else order.join([row, start], dtype)
            init.append(joined.loosened())
            if not _is_sum(combine, len(captured), place):
                continue
            bounds = start or Range(0, 0)
            least = scaled(order, row.low, length, largest=False)
            most = scaled(order, row.high, length, largest=True)
            if least is None or most is None:
                continue
            low = order.smaller(bounds.low, 0, dtype) + least
            high = order.larger(bounds.high, 0, dtype) + most
            during = order.fitted(dtype, low, high)
            if during != unknown(dtype):
                sums[place] = during

        def step(state: Ranges) -> Ranges:
            return loosened(self._loops.run(combine, order, [*captured, *state, *state]))

        state, _ = self._loops.settled(order, combine, init, sums, dtypes, step)
        return state, list(sums)


def _assume_row(order: Order, length: Size) -> Order:
    """Return the order under the assumption that there is a row."""
    if order.at_most(1, length):
        return order
    return Order(order.facts.assume(Fact("<=", 1, length)))


def _is_sum(combine: Block, captured: int, place: int) -> bool:
    """Return whether a part is the sum of the corresponding parts of both rows."""
    first = combine.params[captured + place]
    second = combine.params[captured + len(combine.results) + place]
    return any(
        equation.outputs[0] is combine.results[place]
        and equation.primitive is e.add
        and set(equation.inputs) == {first, second}
        for equation in combine.equations
    )


def _results(at: Equation, found: Sequence[Range | None]) -> Ranges:
    """Return ranges of results, which may vary along all axes."""
    results: Ranges = []
    for var, interval in zip(at.outputs, found, strict=True):
        along = frozenset[object]((at, *range(var.type.rank)))
        results.append(interval and interval.loosened().varying(along))
    return results


_SPECIAL = (Control, e.Select, Sort)
_DEPTH = 4
"""The number of definitions that are evaluated again under a condition."""


@lru_cache(maxsize=256)
def intervals(function: Function) -> Intervals:
    """Return the ranges of a function for arbitrary parameters."""
    return Intervals(function)


def counts(given: ArrayType) -> bool:
    """Return whether elements of this type have a range."""
    return given.dtype.is_integer or given.dtype is BOOL


class Intervals:
    """The ranges of a function's variables, those of nested blocks included."""

    def __init__(self, function: Function, known: Mapping[Var, Range] | None = None) -> None:
        self._known = known or {}
        """Ranges that do not follow from those of the operands."""
        self.ranges: dict[Var, Range] = {}
        self.orders: dict[Block, Order] = {}
        """Facts about sizes where a block runs, by block."""
        self.definitions: dict[Var, Equation] = {}
        """The equation that each variable is a result of; parameters of blocks have none."""
        self._counting: dict[Block, list[Equation]] = {}
        self._last: dict[Block, tuple[Assumptions, Ranges]] = {}
        """The facts and operands of each block's last run."""
        self.refinement = Refinement(self.definitions, self.ranges)
        self._loops = Loops(self.block, self.refinement)
        self._combinations = Combinations(self._loops)
        params = [free(v.type.dtype, v) if counts(v.type) else None for v in function.body.params]
        self.results = self.block(function.body, Order(function.facts), params)

    def of(self, atom: Atom) -> Range | None:
        """Return the range of an atom, None if it is no integer."""
        if isinstance(atom, Literal):
            return single(int(atom.value)) if isinstance(atom.value, int) else None
        return self.ranges.get(atom)

    def block(self, block: Block, order: Order, operands: Ranges) -> Ranges:
        """Run a block; the ranges of its results."""
        given = (order.facts, list(operands))
        if self._last.pop(block, None) != given:  # else its ranges are there: loops ask often
            self._run(block, order, operands)
        self._last[block] = given
        return [self.of(atom) for atom in block.results]

    def _run(self, block: Block, order: Order, operands: Ranges) -> None:
        self.orders[block] = order
        self._bind(block.params, operands)
        for equation in self._relevant(block):
            self._bind(equation.outputs, self._equation(equation, order))

    def _relevant(self, block: Block) -> list[Equation]:
        """Return the equations of a block that give integers, or hold blocks."""
        cached = self._counting.get(block)
        if cached is None:
            cached = self._counting[block] = []
            for equation in block.equations:
                primitive = equation.primitive
                if any(counts(v.type) for v in equation.outputs) or (
                    isinstance(primitive, Control) and primitive.blocks()
                ):
                    cached.append(equation)
                    for var in equation.outputs:
                        self.definitions[var] = equation
        return cached

    def _bind(self, variables: Sequence[Var], ranges: Ranges) -> None:
        for var, interval in zip(variables, ranges, strict=True):
            if interval is not None:
                self.ranges[var] = self._known.get(var, interval)

    def _equation(self, at: Equation, order: Order) -> Ranges:
        primitive = at.primitive
        try:
            if len(at.outputs) == 1 and not isinstance(primitive, _SPECIAL):
                return [self._rule(at, order, self._operands(at))]
            match primitive:
                case e.Select():
                    return [self._select(at, order)]
                case Scan():
                    return self._loops.scan(at, primitive, order, self._operands(at))
                case AssociativeScan():
                    operands = self._operands(at)
                    return self._combinations.prefixes(at, primitive, order, operands)
                case MapReduce():
                    return self._combinations.total(at, primitive, order, self._operands(at))
                case While():
                    return self._loops.repeat(at, primitive, order, self._operands(at))
                case Switch():
                    return self._switch(at, primitive, order)
                case Call():
                    return self._call(at, primitive, order)
                case Sort():
                    return sorted_ranges(at, self._operands(at))
                case TopK():
                    (x,) = sorted_ranges(at, self._operands(at))
                    return [x and x.loosened(), top_places(order, primitive, at)]
                case _:
                    return self._unknown(at, order)
        except DimTooLarge:
            return self._unknown(at, order)

    def _unknown(self, at: Equation, order: Order) -> Ranges:
        """Run the blocks of an equation on unknown operands, and return unknown ranges."""
        for block in at.primitive.blocks():
            self.block(block, order, _unknown_of(block.params))
        return _unknown_of(at.outputs)

    def _operands(self, at: Equation) -> Ranges:
        return [self.of(atom) for atom in at.inputs]

    def _rule(self, at: Equation, order: Order, operands: Ranges) -> Range:
        """Return the range of the one result of an equation without blocks."""
        primitive, dtype = at.primitive, at.outputs[0].type.dtype
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands) and not isinstance(primitive, ArgReduce):
            return unknown(dtype)
        if isinstance(primitive, e.Elementwise):
            elementwise = ELEMENTWISE.get(primitive)
            return unknown(dtype) if elementwise is None else elementwise(order, dtype, known)
        if isinstance(primitive, e.Clamp):
            return clamp(order, dtype, known)
        rule = STRUCTURE.get(type(primitive))
        return unknown(dtype) if rule is None else rule(order, primitive, at, known)

    def _select(self, at: Equation, order: Order) -> Range:
        """Each operand under the condition that it is chosen."""
        condition, *chosen = at.inputs
        dtype = at.outputs[0].type.dtype
        known = self.of(condition)
        if known is not None and known.is_single:
            return self.of(chosen[0 if known.low == 1 else 1]) or unknown(dtype)
        ranges: list[Range] = []
        for holds, atom in zip((True, False), chosen, strict=True):
            under = self.refinement.constraints(order, condition, holds)
            ranges.append(self._under(atom, under, order, _DEPTH) or unknown(dtype))
        along = frozenset[object](() if known is None else known.along)
        result = order.join(ranges, dtype).loosened()
        return result.varying(result.along | along | frozenset(range(at.outputs[0].type.rank)))

    def _under(self, atom: Atom, known: Constraints, order: Order, depth: int) -> Range | None:
        """Return the range of an atom where something is known of others, element by element."""
        if not isinstance(atom, Var) or atom in known:
            return known.get(atom) if isinstance(atom, Var) else self.of(atom)
        old, at = self.of(atom), self.definitions.get(atom)
        if old is None or at is None or not depth or not known:
            return old
        if not isinstance(at.primitive, e.Elementwise | e.Convert | e.Clamp):
            return old
        operands = [self._under(operand, known, order, depth - 1) for operand in at.inputs]
        if operands == self._operands(at):
            return old
        return order.meet(old, self._rule(at, order, operands), atom.type.dtype)

    def _switch(self, at: Equation, primitive: Switch, order: Order) -> Ranges:
        index, *rest = at.inputs
        results: list[Ranges] = []
        for number, branch in enumerate(primitive.branches):
            known: Constraints = {}
            if index.type.dtype is BOOL and len(primitive.branches) == 2:
                known = self.refinement.constraints(order, index, bool(number))
            operands = [self._under(atom, known, order, _DEPTH) for atom in rest]
            operands = [interval and interval.loosened() for interval in operands]
            results.append(self.block(branch, order, operands))
        joined: Ranges = []
        for var, column in zip(at.outputs, zip(*results, strict=True), strict=True):
            if not counts(var.type):
                joined.append(None)
            else:
                ranges = [interval or unknown(var.type.dtype) for interval in column]
                joined.append(order.join(ranges, var.type.dtype).loosened())
        return joined

    def _call(self, at: Equation, primitive: Call, order: Order) -> Ranges:
        """Return the ranges of the function's results for arbitrary arguments."""
        sizes = dict(primitive.sizes)
        results: Ranges = []
        for var, result in zip(at.outputs, intervals(primitive.function).results, strict=True):
            if result is None:
                results.append(None)
                continue
            low, high = (dims.substitute(bound, sizes) for bound in (result.low, result.high))
            along = frozenset((at, *range(var.type.rank)))
            results.append(order.fitted(var.type.dtype, low, high, along=along))
        return results


def _unknown_of(variables: Sequence[Var]) -> Ranges:
    return [unknown(var.type.dtype) if counts(var.type) else None for var in variables]


# Integers made only of sizes, counts and literals: they must fit once the sizes are numbers.
#
# Python's integers are unbounded, and NumPy counts in 64 bits; a program computes them in the dtype
# of the array that they meet. So where the sizes are numbers, every such integer has to be provably
# inside its dtype: otherwise it would wrap around silently. NumPy also computes values that depend
# on the elements of arrays in their dtype, and itself has only 64 bits.


def require_fitting(function: Function, sizes: Mapping[str, int]) -> None:
    """Raise a Failure if an integer made of sizes may not fit its dtype at these sizes."""
    body = substitute_block(function.body, sizes)
    made = MadeOfSizes(body)
    suspects = [equation for equation in made.equations if not _is_wide(equation)]
    if not suspects:
        return
    for equation in suspects:
        if isinstance(equation.primitive, SizeValue) and not _holds(equation.primitive):
            raise _failure(equation, sizes)
    ranges = Intervals(Function(function.name, (), Assumptions(), body), made.ranges).ranges
    for equation in suspects:
        outputs = [var for var in equation.outputs if var.type.dtype.is_integer]
        if not all(_is_bounded(var.type, ranges.get(var)) for var in outputs):
            raise _failure(equation, sizes)


def _combines(layout: Layout) -> bool:
    """Return whether rows are combined in unknown order, so that single steps are unknown."""
    return any(group.role is Role.PARTIAL for group in layout.groups)


def _is_wide(at: Equation) -> bool:
    return not isinstance(at.primitive, SizeValue) and at.outputs[0].type.dtype is I64


def _holds(primitive: SizeValue) -> bool:
    dtype, size = primitive.dtype, primitive.size
    if not dtype.is_integer or not isinstance(size, int):
        return True
    least, most = limits(dtype)
    return least <= size <= most


def _is_bounded(given: ArrayType, known: Range | None) -> bool:
    """Return whether a range is narrower than the dtype's; True for an array without elements."""
    if 0 in given.shape:
        return True
    if known is None:
        return False
    whole = (known.low, known.high) == limits(given.dtype)
    return not whole or (known.low_reached and known.high_reached)


def _failure(at: Equation, sizes: Mapping[str, int]) -> Failure:
    where = ", ".join(f"{name}={size}" for name, size in sizes.items())
    what = f"an integer made of sizes, at {where}," if where else "an integer of this program"
    return Failure(
        ScalarDoesNotFit(
            scalar=what,
            dtype=at.outputs[0].type.dtype,
            remedy="compute in 64 bits: cast what it meets with `.astype(psc.i64)`",
            span=at.span,
        )
    )


class MadeOfSizes:
    """The integer variables of a block, and of those nested in it, that depend on no array."""

    def __init__(self, body: Block) -> None:
        self.variables: set[Atom] = set()
        self.equations: list[Equation] = []
        """Those that compute such integers, without blocks, and that something depends on."""
        self.ranges: dict[Var, Range] = {}
        """Ranges of integers that are cast from known numbers, such as roots of sizes."""
        self._numbers: dict[Atom, NDArray] = {}
        """The scalars that are known where they are computed, now that sizes are numbers."""
        self._block(body, [False] * len(body.params))
        self._mark_needed(body)

    def _is_made(self, atom: Atom) -> bool:
        return isinstance(atom, Literal) or atom in self.variables

    def _block(self, block: Block, params: Sequence[bool]) -> list[bool]:
        """Return which of a block's results are made of sizes, if these parameters are."""
        self._mark(block.params, params)
        for equation in block.equations:
            self._mark(equation.outputs, self._results(equation))
            self._compute(equation)
        return [self._is_made(atom) for atom in block.results]

    def _compute(self, at: Equation) -> None:
        """Note the number that an equation gives, if all that it is given is known."""
        if not isinstance(at.primitive, SizeValue | e.Elementwise | e.Convert | e.Select):
            return
        output = at.outputs[0]
        given = [
            literal_array(operand) if isinstance(operand, Literal) else self._numbers.get(operand)
            for operand in at.inputs
        ]
        known = [each for each in given if each is not None]
        if output.type.shape or len(known) < len(given):
            return
        if isinstance(at.primitive, SizeValue) and not _holds(at.primitive):
            return
        with np.errstate(all="ignore"):
            (number,) = at.primitive.evaluate(Evaluator({}), *known)
        self._numbers[output] = number
        if isinstance(at.primitive, e.Convert) and output.type.dtype.is_integer:
            (x,) = known
            least, most = limits(output.type.dtype)
            if x.dtype.kind == "f":
                self.variables.add(output)
                if np.isfinite(x) and least <= int(x) <= most:
                    self.ranges[output] = single(int(x))

    def _mark(self, variables: Sequence[Var], made: Sequence[bool]) -> None:
        for var, is_made in zip(variables, made, strict=True):
            if is_made and counts(var.type):
                self.variables.add(var)
            else:
                self.variables.discard(var)

    def _results(self, at: Equation) -> Sequence[bool]:
        given = [self._is_made(atom) for atom in at.inputs]
        match at.primitive:
            case Iota() | SizeValue():
                return [True]
            case e.Select():
                return [all(given[1:])]
            case Control(layout=layout) if layout.is_repeated and not _combines(layout):
                others = layout.spread([not flag for flag in given], self._others)
                return [not flag for flag in others]
            case primitive if primitive.blocks():
                for block in primitive.blocks():
                    self._block(block, [False] * len(block.params))
                return [False] * len(at.outputs)
            case primitive:
                ours = type(primitive).__module__.startswith(OWN_PRIMITIVES)
                reads = ours and bool(given) and not isinstance(primitive, Bitcast)
                return [reads and all(given)] * len(at.outputs)

    def _others(self, block: Block, params: Sequence[bool]) -> list[bool]:
        """Return which of a block's results depend on arrays if these parameters do."""
        return [not made for made in self._block(block, [not flag for flag in params])]

    def _mark_needed(self, block: Block) -> None:
        needed = {atom for atom in block.results if not isinstance(atom, Literal)}
        for equation in reversed(block.equations):
            if needed.isdisjoint(equation.outputs):
                continue
            needed.update(atom for atom in equation.inputs if not isinstance(atom, Literal))
            if equation.primitive.blocks():
                for inner in equation.primitive.blocks():
                    self._mark_needed(inner)
            elif any(
                var in self.variables and var.type.dtype.is_integer for var in equation.outputs
            ):
                self.equations.append(equation)
