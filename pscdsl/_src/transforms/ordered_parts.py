"""Elements or rows that are combined in their order, along an axis that is cut.

Each device combines those of its own piece. The totals of the pieces are gathered, one for each
device, and combined in the order of the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.collectives import AllGather, DevicePlace, MeshAxes, OwnPart
from pscdsl._src.primitives.reductions import Cumulative, LinearRecurrence, before, identity
from pscdsl._src.primitives.scan import Fold, joined, row, rows_of, single
from pscdsl._src.primitives.shaping import Broadcast, Reshape, part_of, without
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, KEY

_OPERATIONS: Final = {
    "sum": e.add,
    "product": e.multiply,
    "maximum": e.maximum,
    "minimum": e.minimum,
}


@dataclass(frozen=True)
class Pieces:
    """The pieces of arrays that are cut along an axis."""

    here: Builder
    mesh: MeshAxes
    along: tuple[str, ...]
    axis: int
    count: Size
    """The number of pieces."""

    def ends(self, x: Value, *, reverse: bool) -> Value:
        """Return the last element of each piece, the first one if `reverse`."""
        length = x.shape[self.axis]
        start: Size = 0 if reverse else length - 1
        end = part_of(x.shape, self.axis, start, start + 1)(x)
        return self.gathered(end)

    def gathered(self, x: Value) -> Value:
        """Return the pieces, of length 1, put together."""
        gather = AllGather(self.along, self.mesh, self.axis, self.count, meant=True)
        return self.here.bind(gather, (x,))[0]

    def own(self, x: Value) -> Value:
        """Return the element of this piece without the axis, of an array with one for each."""
        part = self.here.bind(OwnPart(self.along, self.mesh, self.axis, 1), (x,))[0]
        return Reshape(without(x.shape, (self.axis,)))(part)

    def repeated(self, x: Value, like: Value) -> Value:
        """Return an element of this piece at each place of it."""
        return Broadcast(like.shape, without(range(like.ndim), (self.axis,)))(x)

    def combined(self, primitive: Primitive, operands: Sequence[Value]) -> Sequence[Value] | None:
        """Return the results of an equation on pieces of at least one element; None without."""
        match primitive:
            case Cumulative():
                return [self.cumulative(primitive, *operands)]
            case LinearRecurrence():
                return [self.recurrence(primitive, *operands)]
            case AssociativeScan():
                return self.prefixes(primitive, operands)
            case MapReduce():
                return self.total(primitive, operands)
            case _:
                return None

    # Numbers along any axis.

    def cumulative(self, primitive: Cumulative, x: Value) -> Value:
        """Return the elements up to each one combined."""
        kind, reverse = primitive.kind, primitive.reverse
        (result,) = self.here.bind(primitive, (x,))
        neutral = -0.0 if kind == "sum" and x.dtype.is_float else identity(kind, x.dtype)
        (totals,) = self.here.bind(primitive, (self.ends(result, reverse=reverse),))
        earlier = self.own(before(totals, self.axis, neutral, reverse=reverse))
        return _OPERATIONS[kind](self.repeated(earlier, result), result)

    def recurrence(self, primitive: LinearRecurrence, a: Value, b: Value) -> Value:
        """Return the states of a linear recurrence."""
        reverse = primitive.reverse
        (result,) = self.here.bind(primitive, (a, b))
        (factors,) = self.here.bind(Cumulative("product", self.axis, reverse), (a,))
        ends = [self.ends(x, reverse=reverse) for x in (factors, result)]
        (states,) = self.here.bind(primitive, ends)
        earlier = self.own(before(states, self.axis, 0, reverse=reverse))
        return e.add(e.multiply(factors, self.repeated(earlier, result)), result)

    # Rows, along the first axis.

    def prefixes(
        self, primitive: AssociativeScan, operands: Sequence[Value]
    ) -> Sequence[Value] | None:
        """Return the rows up to each one combined; None if many rows cannot be at once."""
        captured, arrays = primitive.roles(operands)
        length = arrays[0].shape[0]
        if any(x.dtype is KEY for x in arrays):  # keys cannot be selected
            return None
        try:
            combine = Fold(primitive.combine, captured, len(arrays))
            after = combine.over_rows(self.here.facts, length)
        except Failure:  # a primitive of a user's has no such rule
            return None
        results = self.here.bind(replace(primitive, length=length), operands)
        ends = [self.ends(x, reverse=False) for x in results]
        totals = self.here.bind(replace(primitive, length=self.count), [*captured, *ends])
        last = self.count - 1
        earlier = [self.own(joined([single(row(x, 0)), rows_of(x, 0, last)])) for x in totals]
        (place,) = self.here.bind(DevicePlace(self.along, self.mesh), ())
        is_first = e.equal(place, self.here.literal(0, I32))
        combined = after.once(self.here, earlier, results)
        return [e.Select()(is_first, x, y) for x, y in zip(results, combined, strict=True)]

    def total(self, primitive: MapReduce, operands: Sequence[Value]) -> Sequence[Value]:
        """Return the results of all rows combined."""
        by_body, by_combine, initial, arrays = primitive.roles(operands)
        length = arrays[0].shape[0]
        own = self.here.bind(
            replace(primitive, initial=0, length=length), [*by_body, *by_combine, *arrays]
        )
        types = [x.type for x in own]
        itself = closed(self.here.facts, types, lambda _, params: params)
        rest = replace(primitive, body=itself, body_captured=0, length=self.count)
        rows = [self.gathered(single(x)) for x in own]
        return self.here.bind(rest, [*by_combine, *initial, *rows])


def without_rows(primitive: AssociativeScan | MapReduce, operands: Types) -> int:
    """Return the number of operands that have no rows, which come first."""
    if isinstance(primitive, AssociativeScan):
        return primitive.captured
    *others, _ = primitive.roles(operands)
    return sum(map(len, others))


__all__ = ["Pieces", "without_rows"]
