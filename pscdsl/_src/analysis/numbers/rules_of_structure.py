"""What creating, moving, picking and combining elements does to ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pscdsl._src.analysis.numbers.ranges import Order, Range, unknown
from pscdsl._src.ir.program import Equation
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Constant, Iota, SizeValue
from pscdsl._src.primitives.diagonals import Diagonal
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.extreme_places import ArgReduce
from pscdsl._src.primitives.indexing import Gather, Scatter
from pscdsl._src.primitives.reductions import Cumulative, Reduce
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
    without,
)
from pscdsl._src.primitives.sorting import TopK
from pscdsl.typing.arrays import size_of
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, DType

Rule: TypeAlias = Callable[[Order, Any, Equation, Sequence[Range]], Range]
"""The range of the one result of a primitive; all its operands have one too."""


def _axes(given: Range, moved: dict[int, int]) -> frozenset[object]:
    """What a range varies along after its axes have moved."""
    return frozenset(moved[x] if isinstance(x, int) else x for x in given.along)


def _everywhere(given: Range, rank: int) -> frozenset[object]:
    """As if what varies along some axis varied along every one, for want of knowing which."""
    if not any(isinstance(x, int) for x in given.along):
        return given.along
    return _all_axes(given.along, rank)


def _all_axes(along: frozenset[object], rank: int) -> frozenset[object]:
    """Every axis of a result, and what else its operand varies with."""
    return frozenset(x for x in along if not isinstance(x, int)) | frozenset(range(rank))


def _constant(order: Order, primitive: Constant, at: Equation, operands: Sequence[Range]) -> Range:
    values = primitive.array()
    if not values.size:
        return unknown(primitive.type.dtype)
    low, high = int(values.min()), int(values.max())
    varies = frozenset(range(values.ndim)) if low < high else frozenset[int]()
    return Range(low, high, True, True, frozenset[object](varies))


def _size(order: Order, primitive: SizeValue, at: Equation, operands: Sequence[Range]) -> Range:
    size = primitive.size
    return order.fitted(primitive.dtype, size, size, True, True)


def _iota(order: Order, primitive: Iota, at: Equation, operands: Sequence[Range]) -> Range:
    last = primitive.shape[primitive.axis] - 1
    along = frozenset[object]((primitive.axis,))
    if primitive.dtype.is_unsigned and not order.at_most(0, last):
        return unknown(primitive.dtype)  # no element at all
    return order.fitted(primitive.dtype, 0, last, True, True, along)


def converted(order: Order, given: DType, wanted: DType, x: Range) -> Range:
    """A range in another dtype."""
    if wanted is BOOL:
        nonzero = order.at_most(1, x.low) or order.at_most(x.high, -1)
        zero = x.is_single and x.low == 0
        return Range(int(nonzero), int(not zero), nonzero or zero, nonzero or zero, x.along)
    return order.fitted(wanted, x.low, x.high, x.low_reached, x.high_reached, x.along)


def _convert(order: Order, primitive: e.Convert, at: Equation, operands: Sequence[Range]) -> Range:
    return converted(order, at.inputs[0].type.dtype, primitive.dtype, operands[0])


def _broadcast(
    order: Order, primitive: Broadcast, at: Equation, operands: Sequence[Range]
) -> Range:
    (x,) = operands
    return x.varying(_axes(x, dict(enumerate(primitive.dims))))


def _reshape(order: Order, primitive: Reshape, at: Equation, operands: Sequence[Range]) -> Range:
    (x,) = operands
    old, new = at.inputs[0].type.shape, primitive.shape
    kept = [axis for axis, size in enumerate(old) if size != 1]
    now = [axis for axis, size in enumerate(new) if size != 1]
    if [old[axis] for axis in kept] == [new[axis] for axis in now]:
        moved = dict(zip(kept, now, strict=True))
        left = {x for x in x.along if not isinstance(x, int) or x in moved}
        return x.varying(_axes(x.varying(frozenset(left)), moved))
    return x.varying(_everywhere(x, len(new)))


def _transpose(
    order: Order, primitive: Transpose, at: Equation, operands: Sequence[Range]
) -> Range:
    (x,) = operands
    moved = {old: new for new, old in enumerate(primitive.permutation)}
    return x.varying(_axes(x, moved))


def _same(order: Order, primitive: object, at: Equation, operands: Sequence[Range]) -> Range:
    return operands[0]


def _slice(order: Order, primitive: Slice, at: Equation, operands: Sequence[Range]) -> Range:
    (x,) = operands
    cut = {
        axis
        for axis, size in enumerate(at.inputs[0].type.shape)
        if primitive.limit[axis] != size or primitive.start[axis] != 0
    }
    cut |= {axis for axis, stride in enumerate(primitive.stride) if stride != 1}
    return x.unreached() if cut & x.along else x


def _joined(
    order: Order, primitive: Concatenate | Pad, at: Equation, operands: Sequence[Range]
) -> Range:
    parts = [each for each, atom in zip(operands, at.inputs, strict=True) if _some(order, atom)]
    output = at.outputs[0].type
    found = order.join(parts or operands, output.dtype).unreached()
    return found.varying(_all_axes(found.along, output.rank))


def _some(order: Order, atom: Any) -> bool:
    """Whether there may be an element."""
    return not any(size == 0 for size in atom.type.shape)


def _picked(order: Order, primitive: object, at: Equation, operands: Sequence[Range]) -> Range:
    (x, *_) = operands
    return x.unreached().varying(_all_axes(x.along, at.outputs[0].type.rank))


def _put(
    order: Order, primitive: Scatter | DynamicUpdate, at: Equation, operands: Sequence[Range]
) -> Range:
    output = at.outputs[0].type
    updates = operands[2] if isinstance(primitive, Scatter) else operands[1]
    if isinstance(primitive, Scatter) and primitive.combine in ("add", "multiply"):
        return unknown(output.dtype)
    found = order.join((operands[0], updates), output.dtype).unreached()
    return found.varying(_all_axes(found.along, output.rank))


def _reduce(order: Order, primitive: Reduce, at: Equation, operands: Sequence[Range]) -> Range:
    (x,) = operands
    given, output = at.inputs[0].type, at.outputs[0].type
    kept = without(range(given.rank), primitive.axes)
    moved = {axis: place for place, axis in enumerate(kept)}
    left = x.varying(frozenset(s for s in x.along if not isinstance(s, int) or s in moved))
    along = _axes(left, moved)
    count: Size = size_of(tuple([given.shape[axis] for axis in primitive.axes]))
    low, high = x.low, x.high
    match primitive.kind:
        case "maximum" | "minimum" | "all" | "any" | "and" | "or" if order.at_most(1, count):
            if primitive.kind in ("and", "or") and output.dtype is not BOOL:
                return unknown(output.dtype)
            return order.fitted(
                output.dtype,
                low,
                high,
                x.low_reached and primitive.kind == "minimum",
                x.high_reached and primitive.kind == "maximum",
                along,
            )
        case "sum" if order.at_most(0, count):
            alone = not any(isinstance(source, int) for source in x.along)
            return order.fitted(
                output.dtype,
                low * count,
                high * count,
                alone and x.low_reached,
                alone and x.high_reached,
                along,
            )
        case _:
            return unknown(output.dtype).varying(along)


def _cumulative(
    order: Order, primitive: Cumulative, at: Equation, operands: Sequence[Range]
) -> Range:
    (x,) = operands
    output = at.outputs[0].type
    if primitive.kind in ("maximum", "minimum"):
        return x.unreached()
    along = x.along | {primitive.axis}
    if primitive.kind == "sum":
        count = output.shape[primitive.axis]
        low = x.low if order.at_most(0, x.low) else x.low * count
        high = x.high if order.at_most(x.high, 0) else x.high * count
        if order.at_most(x.low, 0) or low == x.low:
            if order.at_most(0, x.high) or high == x.high:
                return order.fitted(output.dtype, low, high, along=along)
    return unknown(output.dtype).varying(along)


def _place(order: Order, primitive: ArgReduce, at: Equation, operands: Sequence[Range]) -> Range:
    size = at.inputs[0].type.shape[primitive.axis]
    if not order.at_most(1, size):
        return unknown(primitive.dtype)
    source = frozenset[object]((at,))
    return order.fitted(primitive.dtype, 0, size - 1, True, True, source)


def sorted_ranges(at: Equation, operands: Sequence[Range | None]) -> list[Range | None]:
    """Each operand of a sort, in another order."""
    rank = at.outputs[0].type.rank
    along = frozenset((at, *range(rank)))
    return [None if x is None else x.varying(x.along | along) for x in operands]


def top_places(order: Order, primitive: TopK, at: Equation) -> Range:
    """Where the largest elements are."""
    size = at.inputs[0].type.shape[-1]
    output = at.outputs[1].type
    if not order.at_most(1, size):
        return unknown(output.dtype)
    along = frozenset((at, *range(output.rank)))
    return order.fitted(output.dtype, 0, size - 1, True, True, along)


STRUCTURE: dict[type, Rule] = {
    e.Convert: _convert,
    Constant: _constant,
    SizeValue: _size,
    Iota: _iota,
    Broadcast: _broadcast,
    Reshape: _reshape,
    Transpose: _transpose,
    Reverse: _same,
    Slice: _slice,
    Concatenate: _joined,
    Pad: _joined,
    Diagonal: _picked,
    Gather: _picked,
    DynamicSlice: _picked,
    Scatter: _put,
    DynamicUpdate: _put,
    Reduce: _reduce,
    Cumulative: _cumulative,
    ArgReduce: _place,
}
"""Rules by primitive; `Gather`, `Scatter` and the like need the range of what is picked alone."""
