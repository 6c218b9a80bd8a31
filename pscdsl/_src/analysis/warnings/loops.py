"""What is carried by loops: ranges that hold in every step, found by running bodies on ranges.

A carry to which each step adds something bounded is bounded by the number of steps.  Any other is
assumed to be in some range, at first where it starts; what a step makes of it is joined to that
until nothing is added.  A bound that goes on moving is given up (*widening*), and then taken from
what a step makes of the rest, which is inside (*narrowing*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pscdsl._src.analysis.numbers.ranges import Order, Range, limits, unknown
from pscdsl._src.analysis.numbers.refinement import Refinement
from pscdsl._src.ir.program import Block, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Scan, While
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType

Ranges: TypeAlias = list[Range | None]
"""One for each of some variables; None for those that are no integers."""
Run: TypeAlias = Callable[[Block, Order, Ranges], Ranges]

_ATTEMPTS = 6
"""A body is run so often at most; from the second time on, bounds that still move are given up."""
_MOST_STEPS = 100
"""So many steps of a loop are gone through one by one, as long as it is known that it goes on."""
_MOST_WORK = 50_000
"""How many equations are gone through again, at most, for the sake of better bounds."""


class Loops:
    """Runs the bodies of one function's loops."""

    def __init__(self, run: Run, refinement: Refinement) -> None:
        self.run = run
        self._refinement = refinement
        self._work = 0

    def scan(self, at: Equation, primitive: Scan, order: Order, operands: Ranges) -> Ranges:
        """The results of a loop over a known number of steps."""
        captured, init, arrays = primitive.roles(operands)
        body, count, length = primitive.body, primitive.carried, primitive.length
        inside = order
        if not order.at_most(1, length):
            inside = Order(order.facts.assume(Fact("<=", 1, length)))
        rows = [row_of(each, at) for each in arrays]
        dtypes = [var.type.dtype for var in at.outputs]
        bounded: dict[int, tuple[Range, Range]] = {}
        while any(each is not None for each in init):  # what is added may depend on a counter
            start = [each and unknown(d) for each, d in zip(init, dtypes, strict=False)]
            for position, (during, _) in bounded.items():
                start[position] = during
            self.run(body, inside, [*captured, *start, *rows])
            found = self._accumulated(at, primitive, inside, init)
            if len(found) <= len(bounded):
                break
            bounded = found

        def step(carry: Ranges) -> Ranges:
            return self.run(body, inside, [*captured, *carry, *rows])

        fixed = {position: during for position, (during, _) in bounded.items()}
        carry, results = self.settled(inside, body, init, fixed, dtypes, step)
        ended = unreached(carry)  # what was reached need not be so in the last step
        final = [bounded[k][1] if k in bounded else ended[k] for k in range(count)]
        stacks = [_stacked(each, at) for each in results[count:]]
        return [*(each and _left(each, at) for each in final), *stacks]

    def _accumulated(
        self, at: Equation, primitive: Scan, order: Order, init: Ranges
    ) -> dict[int, tuple[Range, Range]]:
        """By position, carries to which something bounded is added: during the loop, and after."""
        body, count, length = primitive.body, primitive.carried, primitive.length
        params = body.params[primitive.captured : primitive.captured + count]
        found: dict[int, tuple[Range, Range]] = {}
        for position, (param, result) in enumerate(zip(params, body.results, strict=False)):
            start = init[position]
            if start is None:
                continue
            if result is param:
                found[position] = start, start
                continue
            added = self._added(param, result)
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
            found[position] = during, after
        return found

    def _added(self, param: Var, result: object) -> Range | None:
        """What a step adds to a carry, if it does nothing else to it."""
        at = self._refinement.definitions.get(result) if isinstance(result, Var) else None
        if at is None or param not in at.inputs:
            return None
        if at.primitive is e.add:
            other = at.inputs[1] if at.inputs[0] is param else at.inputs[0]
        elif at.primitive is e.subtract and at.inputs[0] is param:
            other = at.inputs[1]
        else:
            return None
        found: Range | None
        if isinstance(other, Literal):
            found = Range(int(other.value), int(other.value), True, True)  # type: ignore[arg-type]
        else:
            found = self._refinement.ranges.get(other)
        if found is None or other is param:
            return None
        if any(bound in limits(param.type.dtype) for bound in (found.low, found.high)):
            return None
        if at.primitive is e.subtract:
            return Range(-found.high, -found.low, found.high_reached, found.low_reached)
        return found

    def repeat(self, at: Equation, primitive: While, order: Order, operands: Ranges) -> Ranges:
        """The results of a loop that ends when its condition fails."""
        by_cond, by_body, init = primitive.roles(operands)
        by_cond, by_body, init = (unreached(each) for each in (by_cond, by_body, init))
        cond, body = primitive.cond, primitive.body
        dtypes = [var.type.dtype for var in at.outputs]
        followed = self._followed(primitive, order, by_cond, by_body, init)
        if followed is not None:
            return followed
        tested = cond.params[primitive.cond_captured :]

        def where(carry: Ranges, holds: bool) -> Ranges:
            self.run(cond, order, [*by_cond, *carry])
            known = self._refinement.constraints(order, cond.results[0], holds)
            return [known.get(var, old) for var, old in zip(tested, carry, strict=True)]

        def step(carry: Ranges) -> Ranges:
            return unreached(self.run(body, order, [*by_body, *where(carry, True)]))

        carry, _ = self.settled(order, body, init, {}, dtypes, step)
        return where(carry, False)

    def _followed(
        self, primitive: While, order: Order, by_cond: Ranges, by_body: Ranges, init: Ranges
    ) -> Ranges | None:
        """The results of a loop of numbers that are known, as those of Euclid's algorithm."""
        cond, body, carry, visited = primitive.cond, primitive.body, init, [init]
        dtypes = [var.type.dtype for var in body.params[primitive.body_captured :]]
        if not all(each is not None and each.is_single for each in init):
            return None
        for _ in range(_MOST_STEPS):
            (going,) = self.run(cond, order, [*by_cond, *carry])
            self._work += len(cond.equations) + len(body.equations)
            if going is None or not going.is_single or self._work > _MOST_WORK:
                return None
            if going.low == 0:
                break
            visited.append(carry)
            carry = unreached(self.run(body, order, [*by_body, *carry]))
        else:
            return None

        def met(carries: Sequence[Ranges]) -> Ranges:
            columns = zip(zip(*carries, strict=True), dtypes, strict=True)
            return [order.join([x for x in c if x is not None], d).unreached() for c, d in columns]

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
        """Ranges of the carry that every step keeps, and the results of a step from there."""
        carry = [fixed.get(k, each) for k, each in enumerate(init)]
        results: Ranges = []
        following: Ranges = []
        moving = [k for k, each in enumerate(init) if each is not None and k not in fixed]

        def joined(results: Ranges) -> Ranges:
            return [
                order.join([start, results[k] or unknown(dtypes[k])], dtypes[k]).unreached()
                if k in moving and (start := init[k]) is not None
                else carry[k]
                for k in range(len(init))
            ]

        widened = False
        for attempt in range(_ATTEMPTS):
            results = step(carry)
            self._work += len(body.equations)
            following = joined(results)
            moved = [k for k in moving if not _inside(order, following[k], carry[k])]
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
                    carry[k] = _widened(order, old, new, dtypes[k])
                    widened = True
                else:
                    carry[k] = order.join([old, new], dtypes[k]).unreached()
        if widened:
            carry = following
            results = step(carry)
        return carry, results


def _widened(order: Order, old: Range, new: Range, dtype: DType) -> Range:
    """A range without the bounds that have moved."""
    least, most = limits(dtype)
    low = old.low if order.at_most(old.low, new.low) else least
    high = old.high if order.at_most(new.high, old.high) else most
    return Range(low, high, along=old.along | new.along)


def _inside(order: Order, inner: Range | None, outer: Range | None) -> bool:
    """Whether one range lies in another."""
    if inner is None or outer is None:
        return inner is outer
    return order.at_most(outer.low, inner.low) and order.at_most(inner.high, outer.high)


def scaled(order: Order, bound: Size, steps: Size, largest: bool) -> Size | None:
    """The extreme of what is added in 0 to `steps` steps; None if the sign is not known."""
    if order.at_most(0, bound):
        return bound * steps if largest else 0
    if order.at_most(bound, 0):
        return 0 if largest else bound * steps
    return None


def unreached(ranges: Ranges) -> Ranges:
    """The same bounds, as what may never be reached."""
    return [each and each.unreached() for each in ranges]


def row_of(given: Range | None, loop: Equation) -> Range | None:
    """The range of an array's slice in every step."""
    if given is None or not any(isinstance(x, int) for x in given.along):
        return given
    moved = [x - 1 if isinstance(x, int) and x else loop if x == 0 else x for x in given.along]
    return replace(given, along=frozenset(moved))


def _stacked(given: Range | None, loop: Equation) -> Range | None:
    """The range of what the steps give, along a new leading axis."""
    if given is None:
        return None
    moved = [x + 1 if isinstance(x, int) else 0 if x is loop else x for x in given.along]
    return replace(given, along=frozenset(moved))


def _left(given: Range, loop: Equation) -> Range:
    """The range of a carry after the loop."""
    return replace(given, along=given.along - {loop})
