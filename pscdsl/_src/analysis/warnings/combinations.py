"""What rows are combined to: ranges that hold whatever the grouping.

What the combination makes of two things in a range has to be in it again, as in a loop; but sums
of rows are bounded by how many rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.analysis.numbers.ranges import Order, Range, single, unknown
from pscdsl._src.analysis.warnings.loops import Loops, Ranges, row_of, scaled, unreached
from pscdsl._src.ir.program import Block, Equation
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import AssociativeScan, MapReduce
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.dims import Size


class Combinations:
    """Runs combinations of one function's rows."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    def prefixes(
        self, at: Equation, primitive: AssociativeScan, order: Order, operands: Ranges
    ) -> Ranges:
        """The rows up to each one combined."""
        captured, arrays = primitive.roles(operands)
        inside = _of_some(order, primitive.length)
        rows = [row_of(each, at) for each in arrays]
        found, _ = self._combined(inside, primitive.combine, captured, rows, primitive.length)
        return _results(at, found)

    def total(self, at: Equation, primitive: MapReduce, order: Order, operands: Ranges) -> Ranges:
        """What is made of rows, combined."""
        by_body, by_combine, initial, arrays = primitive.roles(operands)
        inside, length = _of_some(order, primitive.length), primitive.length
        rows = [row_of(each, at) for each in arrays]
        values = self._loops.run(primitive.body, inside, [*by_body, *rows])
        starts: Ranges = initial or [None] * len(values)
        found, sums = self._combined(inside, primitive.combine, by_combine, values, length, starts)
        for place in sums:
            start, value = starts[place] or single(0), values[place]
            if value is not None:
                low, high = start.low + value.low * length, start.high + value.high * length
                known = value.is_single  # nothing is known of how the values of others are spread
                reached = start.low_reached and known, start.high_reached and known
                found[place] = order.fitted(at.outputs[place].type.dtype, low, high, *reached)
        return _results(at, found)

    def _combined(
        self,
        order: Order,
        combine: Block,
        captured: Ranges,
        rows: Ranges,
        length: Size,
        starts: Ranges | None = None,
    ) -> tuple[Ranges, list[int]]:
        """Ranges of all that is combined of rows, and the places of sums that are bounded."""
        dtypes = [each.type.dtype for each in combine.results]
        first = starts or [None] * len(rows)
        sums: dict[int, Range] = {}
        init: Ranges = []
        for place, (row, start) in enumerate(zip(rows, first, strict=True)):
            dtype = dtypes[place]
            if row is None:
                init.append(None)
                continue
            joined = row if start is None else order.join([row, start], dtype)
            init.append(joined.unreached())
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
            return unreached(self._loops.run(combine, order, [*captured, *state, *state]))

        state, _ = self._loops.settled(order, combine, init, sums, dtypes, step)
        return state, list(sums)


def _of_some(order: Order, length: Size) -> Order:
    """What is known where there is a row."""
    if order.at_most(1, length):
        return order
    return Order(order.facts.assume(Fact("<=", 1, length)))


def _is_sum(combine: Block, captured: int, place: int) -> bool:
    """Whether a part is the sum of those of both rows."""
    first = combine.params[captured + place]
    second = combine.params[captured + len(combine.results) + place]
    return any(
        each.outputs[0] is combine.results[place]
        and each.primitive is e.add
        and set(each.inputs) == {first, second}
        for each in combine.equations
    )


def _results(at: Equation, found: Sequence[Range | None]) -> Ranges:
    """Ranges of results, which may vary along all axes."""
    results: Ranges = []
    for var, each in zip(at.outputs, found, strict=True):
        along = frozenset[object]((at, *range(var.type.rank)))
        results.append(each and each.unreached().varying(along))
    return results
