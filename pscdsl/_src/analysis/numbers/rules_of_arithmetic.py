"""What integer arithmetic does to ranges, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pscdsl._src.analysis.numbers.ranges import Order, Range, limits, unknown
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing import dims
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, DType

Rule: TypeAlias = Callable[[Order, DType, Sequence[Range]], Range]
"""The range of the result, of a dtype, from those of the operands."""


def _apart(a: Range, b: Range) -> bool:
    """Whether two operands vary independently, so that any two of their values meet."""
    return a.along.isdisjoint(b.along)


def _add(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    apart = _apart(a, b)
    return order.fitted(
        dtype,
        a.low + b.low,
        a.high + b.high,
        apart and a.low_reached and b.low_reached,
        apart and a.high_reached and b.high_reached,
        a.along | b.along,
    )


def _subtract(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    turned = Range(-b.high, -b.low, b.high_reached, b.low_reached, b.along)
    return _add(order, dtype, (a, turned))


def _negative(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    (a,) = operands
    return order.fitted(dtype, -a.high, -a.low, a.high_reached, a.low_reached, a.along)


def _multiply(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    if a.is_single:
        a, b = b, a
    along, apart = a.along | b.along, _apart(a, b)
    if order.at_most(0, b.low):
        if b.is_single or order.at_most(0, a.low):
            low_reached = apart and a.low_reached and b.low_reached
            high_reached = apart and a.high_reached and b.high_reached
            low, high = a.low * b.low, a.high * b.high
            return order.fitted(dtype, low, high, low_reached, high_reached, along)
        if order.at_most(a.high, 0):
            return order.fitted(dtype, a.low * b.high, a.high * b.low, along=along)
        if order.at_most(a.low, 0) and order.at_most(0, a.high):
            return order.fitted(dtype, a.low * b.high, a.high * b.high, along=along)
    elif b.is_single and order.at_most(b.low, 0):
        low, high = a.high * b.low, a.low * b.low
        return order.fitted(dtype, low, high, a.high_reached, a.low_reached, along)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    numbers = [end for end in ends if isinstance(end, int)]
    if len(numbers) == len(ends):
        return order.fitted(dtype, min(numbers), max(numbers), along=along)
    return unknown(dtype).varying(along)


def _floor_divide(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    along = a.along | b.along
    if b.is_single and order.at_most(1, b.low):
        divisor = b.low
        if isinstance(divisor, int) or not {a.low, a.high} & set(limits(dtype)):
            low, high = a.low // divisor, a.high // divisor
            return order.fitted(dtype, low, high, a.low_reached, a.high_reached, along)
    if order.at_most(1, b.low) and order.at_most(0, a.low):
        return Range(0, a.high, along=along)
    return unknown(dtype).varying(along)


def _is_free(a: Range, dtype: DType) -> bool:
    """Whether every value of the dtype can occur."""
    return a.low_reached and a.high_reached and (a.low, a.high) == limits(dtype)


def _remainder(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    along = a.along | b.along
    if not order.at_most(1, b.low):
        return unknown(dtype).varying(along)
    if order.at_most(0, a.low):
        if order.at_most(a.high, b.low - 1):
            return a.varying(along)
        if order.at_most(a.high, b.high - 1):
            return Range(0, a.high, along=along)
    reached = b.is_single and _is_free(a, dtype)
    return order.fitted(dtype, 0, b.high - 1, reached, reached, along)


def _fmod(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    if order.at_most(0, a.low):
        return _remainder(order, dtype, operands).unreached()
    if not order.at_most(1, b.low):
        return unknown(dtype)
    return order.fitted(dtype, 1 - b.high, b.high - 1, along=a.along | b.along)


def _extreme(order: Order, dtype: DType, operands: Sequence[Range], largest: bool) -> Range:
    a, b = operands
    if a.is_single:
        a, b = b, a
    along = a.along | b.along
    if largest:
        low = order.closer(a.low, b.low, dtype, largest)
        high = order.larger(a.high, b.high, dtype)
    else:
        low = order.smaller(a.low, b.low, dtype)
        high = order.closer(a.high, b.high, dtype, largest)
    if not b.is_single:
        return order.fitted(dtype, low, high, along=along)

    def exact(found: Size, one: Size, other: Size) -> bool:
        return found in (one, other) and all(
            order.within(*((each, found) if largest else (found, each)), dtype)
            for each in (one, other)
        )

    # One number against a range: an end of the range is kept, or the number takes its place.
    low_reached = a.low_reached and exact(low, a.low, b.low)
    high_reached = a.high_reached and exact(high, a.high, b.high)
    return order.fitted(dtype, low, high, low_reached, high_reached, along)


def _maximum(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _extreme(order, dtype, operands, largest=True)


def _minimum(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _extreme(order, dtype, operands, largest=False)


def clamp(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    """`minimum(maximum(x, low), high)`; operands low, x, high."""
    low, x, high = operands
    return _minimum(order, dtype, (_maximum(order, dtype, (x, low)), high))


def _absolute(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    (a,) = operands
    if order.at_most(0, a.low):
        return a
    if a.low == limits(dtype)[0]:
        return unknown(dtype)  # the lowest number is its own absolute value
    if order.at_most(a.high, 0):
        return _negative(order, dtype, operands)
    return order.fitted(dtype, 0, dims.maximum(-a.low, a.high), along=a.along)


def _sign(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    (a,) = operands
    low = 1 if order.at_most(1, a.low) else 0 if order.at_most(0, a.low) else -1
    high = -1 if order.at_most(a.high, -1) else 0 if order.at_most(a.high, 0) else 1
    return order.fitted(dtype, low, high, along=a.along)


def _bitwise_and(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    along = a.along | b.along
    if dtype is BOOL:
        return _minimum(order, dtype, operands).unreached()
    masks = [each.high for each in (a, b) if order.at_most(0, each.low)]
    if not masks:
        return unknown(dtype).varying(along)
    return Range(0, masks[0] if len(masks) == 1 else dims.minimum(*masks), along=along)


def _bitwise_or(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    along = operands[0].along | operands[1].along
    if dtype is BOOL:
        return _maximum(order, dtype, operands).unreached()
    return unknown(dtype).varying(along)


def _invert(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    (a,) = operands
    top = limits(dtype)[1] if dtype is BOOL or dtype.is_unsigned else -1
    return Range(top - a.high, top - a.low, a.high_reached, a.low_reached, a.along)


def _shift(order: Order, dtype: DType, operands: Sequence[Range], left: bool) -> Range:
    a, b = operands
    if b.is_single and isinstance(b.low, int) and 0 <= b.low < dtype.bits:
        factor = Range(1 << b.low, 1 << b.low, True, True)
        return (_multiply if left else _floor_divide)(order, dtype, (a, factor))
    return unknown(dtype).varying(a.along | b.along)


def _left_shift(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _shift(order, dtype, operands, left=True)


def _right_shift(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _shift(order, dtype, operands, left=False)


def _bits(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return order.fitted(dtype, 0, dtype.bits, along=operands[0].along)


def _truth(order: Order, yes: bool, no: bool, operands: Sequence[Range]) -> Range:
    along = operands[0].along | operands[1].along
    return Range(int(yes), int(not no), yes or no, yes or no, along)


def _less(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    return _truth(order, order.at_most(a.high, b.low - 1), order.at_most(b.high, a.low), operands)


def _less_equal(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    return _truth(order, order.at_most(a.high, b.low), order.at_most(b.high, a.low - 1), operands)


def _greater(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _less(order, dtype, operands[::-1])


def _greater_equal(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _less_equal(order, dtype, operands[::-1])


def _equal(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    never = order.at_most(a.high, b.low - 1) or order.at_most(b.high, a.low - 1)
    return _truth(order, a.is_single and b.is_single and a.low == b.low, never, operands)


def _not_equal(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    return _invert(order, BOOL, (_equal(order, dtype, operands),))


ELEMENTWISE: dict[e.Elementwise, Rule] = {
    e.add: _add,
    e.subtract: _subtract,
    e.negative: _negative,
    e.multiply: _multiply,
    e.floor_divide: _floor_divide,
    e.remainder: _remainder,
    e.fmod: _fmod,
    e.maximum: _maximum,
    e.minimum: _minimum,
    e.absolute: _absolute,
    e.sign: _sign,
    e.bitwise_and: _bitwise_and,
    e.bitwise_or: _bitwise_or,
    e.invert: _invert,
    e.left_shift: _left_shift,
    e.right_shift: _right_shift,
    e.count_bits: _bits,
    e.less: _less,
    e.less_equal: _less_equal,
    e.greater: _greater,
    e.greater_equal: _greater_equal,
    e.equal: _equal,
    e.not_equal: _not_equal,
}
