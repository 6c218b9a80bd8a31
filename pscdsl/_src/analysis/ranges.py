"""Ranges of integers with symbolic bounds, and the effect of each operation on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeAlias

from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.matrices import Diagonal
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Reduce
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
    Transpose,
    without,
)
from pscdsl._src.primitives.sorting import TopK
from pscdsl.typing import dims
from pscdsl.typing.array_types import size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.dtypes import ALL, BOOL, DType

# Ranges of integers with symbolic bounds, and their order under known facts about the sizes.
#
# Bounds are sizes, within the range of the dtype. Arithmetic on them is exact, so a result that may
# not fit its dtype, and would wrap around, is unknown. Sizes are assumed to be such that `i32` and
# `i64` counts of a program fit.


_HEAVIEST = 16
"""Bounds with more factors than this are dropped: proofs about them would take long."""
_NOTHING: frozenset[object] = frozenset()


@dataclass(frozen=True, slots=True)
class Range:
    """The integers that the elements of a variable can be, in all steps of loops together.

    A bound is *reached* if some element in some step certainly has that value. `along` lists the
    things that the elements vary with: axes of the variable, loops, parameters.
    """

    low: Size
    high: Size
    low_reached: bool = False
    high_reached: bool = False
    along: frozenset[object] = _NOTHING

    @property
    def is_single(self) -> bool:
        """Return whether all elements are one number."""
        return self.low == self.high

    def loosened(self) -> Range:
        """Return the bounds as possibly loosened ones; a single number stays reached."""
        if self.is_single or not (self.low_reached or self.high_reached):
            return self
        return replace(self, low_reached=False, high_reached=False)

    def varying(self, along: frozenset[object]) -> Range:
        """Return the bounds, varying with other things."""
        return self if along == self.along else replace(self, along=along)


def single(value: Size) -> Range:
    """Return the range of one number."""
    return Range(value, value, True, True)


def limits(dtype: DType) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type, or of a truth value."""
    return _LIMITS[dtype]


_LIMITS = {each: each.range for each in ALL if each.is_integer} | {BOOL: (0, 1)}


@cache
def unknown(dtype: DType) -> Range:
    """Nothing but the dtype is known."""
    return Range(*limits(dtype))


def free(dtype: DType, source: object) -> Range:
    """Return the range of a parameter: any value of the dtype can occur."""
    return Range(*limits(dtype), True, True, frozenset((source,)))


class Order:
    """Comparisons of bounds that hold for all admitted sizes."""

    def __init__(self, facts: Assumptions) -> None:
        self.facts = facts

    def at_most(self, a: Size, b: Size) -> bool:
        """Return whether a bound is provably not above another."""
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        if a == b:
            return True
        return _prove(self.facts, a, b)

    def join(self, ranges: Sequence[Range], dtype: DType) -> Range:
        """Return the smallest range around some."""
        first = ranges[0]
        if all(interval == first for interval in ranges):
            return first
        low, high = first.low, first.high
        low_reached, high_reached = first.low_reached, first.high_reached
        along = first.along
        for interval in ranges[1:]:
            bound = self.smaller(low, interval.low, dtype)
            low_reached = (low_reached and bound == low) or (
                interval.low_reached and bound == interval.low
            )
            low = bound
            bound = self.larger(high, interval.high, dtype)
            high_reached = (high_reached and bound == high) or (
                interval.high_reached and bound == interval.high
            )
            high = bound
            along |= interval.along
        return Range(low, high, low_reached, high_reached, along)

    def meet(self, a: Range, b: Range, dtype: DType) -> Range:
        """Return the intersection of two ranges, with bounds that may be loosened."""
        low = self.tighter(a.low, b.low, dtype, largest=True)
        high = self.tighter(a.high, b.high, dtype, largest=False)
        return Range(low, high, along=a.along)

    def fitted(
        self,
        dtype: DType,
        low: Size,
        high: Size,
        low_reached: bool = False,
        high_reached: bool = False,
        along: frozenset[object] = _NOTHING,
    ) -> Range:
        """Return a range as computed, or the whole dtype if it may not fit."""
        least, most = limits(dtype)
        if isinstance(low, int) and isinstance(high, int):
            if least <= low and high <= most:
                return Range(low, high, low_reached, high_reached, along)
            return unknown(dtype)
        if not self._fits(low, dtype) or not self._fits(high, dtype):
            return unknown(dtype)
        if dtype.is_unsigned and not self.at_most(0, low):
            return unknown(dtype)
        return Range(low, high, low_reached, high_reached, along)

    def _fits(self, bound: Size, dtype: DType) -> bool:
        least, most = limits(dtype)
        if isinstance(bound, int):
            return least <= bound <= most
        if dtype.bits < 32:
            return self.at_most(least, bound) and self.at_most(bound, most)
        roof = most // 2 + 1
        return _weight(bound) <= _HEAVIEST and all(
            abs(coefficient) <= roof for _, coefficient in bound.terms
        )

    def smaller(self, a: Size, b: Size, dtype: DType) -> Size:
        """Return the smaller of two bounds, or one below both."""
        least, most = limits(dtype)
        if least in (a, b):
            return least
        if a == most or b == most:
            return b if a == most else a
        if self.at_most(a, b):
            return a
        if self.at_most(b, a):
            return b
        found = dims.minimum(a, b)
        return found if _weight(found) <= _HEAVIEST else least

    def larger(self, a: Size, b: Size, dtype: DType) -> Size:
        """Return the larger of two bounds, or one above both."""
        least, most = limits(dtype)
        if most in (a, b):
            return most
        if a == least or b == least:
            return b if a == least else a
        if self.at_most(a, b):
            return b
        if self.at_most(b, a):
            return a
        found = dims.maximum(a, b)
        return found if _weight(found) <= _HEAVIEST else most

    def within(self, a: Size, b: Size, dtype: DType) -> bool:
        """Return whether a bound is not above another, if both are within the dtype."""
        least, most = limits(dtype)
        return a == least or b == most or self.at_most(a, b)

    def tighter(self, a: Size, b: Size, dtype: DType, largest: bool) -> Size:
        """Return the tighter of two bounds of one side, or either, as both hold."""
        loosest = limits(dtype)[0 if largest else 1]
        if a == loosest or b == loosest:
            return b if a == loosest else a
        if self.at_most(a, b):
            return b if largest else a
        if self.at_most(b, a):
            return a if largest else b
        numbers = [bound for bound in (a, b) if isinstance(bound, int)]
        if numbers and abs(numbers[0]) >= 1 << 20:  # sizes are mostly smaller than this
            return b if a is numbers[0] else a
        found = dims.maximum(a, b) if largest else dims.minimum(a, b)
        return found if _weight(found) <= _HEAVIEST else a


@lru_cache(maxsize=4096)
def _prove(facts: Assumptions, a: Size, b: Size) -> bool:
    try:
        if not facts.facts and dims.evaluate(b - a, _EVERYTHING_IS_ONE) < 0:
            return False
        return facts.proves(Fact("<=", a, b))
    except DimTooLarge:
        return False


class _Ones(dict[str, int]):
    """The smallest sizes."""

    def __missing__(self, name: str) -> int:
        return 1


_EVERYTHING_IS_ONE = _Ones()


def _weight(size: Size) -> int:
    """Return the number of factors in a size."""
    total = 0
    for monomial, _ in dims.as_terms(size):
        total += 1
        for factor in monomial:
            total += 1 if factor.kind == "name" else 2 + sum(map(_weight, factor.args))
    return total


# The conclusions from a condition about the integers that it compares.


Constraints: TypeAlias = dict[Var, Range]
"""Ranges that variables have where a condition holds."""

_OPPOSITE: dict[object, e.Elementwise] = {
    e.less: e.greater_equal,
    e.less_equal: e.greater,
    e.greater: e.less_equal,
    e.greater_equal: e.less,
    e.equal: e.not_equal,
    e.not_equal: e.equal,
}


class Refinement:
    """Reads conditions; `definitions` and `ranges` are those of the program around them."""

    def __init__(self, definitions: Mapping[Var, Equation], ranges: Mapping[Var, Range]) -> None:
        self.definitions = definitions
        self.ranges = ranges

    def constraints(self, order: Order, condition: Atom, holds: bool) -> Constraints:
        """Return the ranges of variables where a condition holds, or does not."""
        found: Constraints = {}
        self._read(order, condition, holds, found, 6)
        return found

    def _read(
        self, order: Order, condition: Atom, holds: bool, found: Constraints, depth: int
    ) -> None:
        at = self.definitions.get(condition) if isinstance(condition, Var) else None
        if at is None or not depth:
            return
        primitive = at.primitive
        if primitive is e.invert:
            self._read(order, at.inputs[0], not holds, found, depth - 1)
        elif primitive is (e.bitwise_and if holds else e.bitwise_or):
            for operand in at.inputs:
                self._read(order, operand, holds, found, depth - 1)
        elif primitive in _OPPOSITE:
            relation = primitive if holds else _OPPOSITE[primitive]
            left, right = at.inputs
            self._compare(order, relation, left, right, found)

    def _compare(
        self, order: Order, relation: object, left: Atom, right: Atom, found: Constraints
    ) -> None:
        a, b = self._range(left, found), self._range(right, found)
        if a is None or b is None:
            return
        if relation is e.greater or relation is e.greater_equal:
            left, right, a, b = right, left, b, a
            relation = e.less if relation is e.greater else e.less_equal
        least, most = limits(left.type.dtype)
        if relation is e.equal:
            self._narrow(order, left, a, b, found)
            self._narrow(order, right, b, a, found)
        elif relation is e.less or relation is e.less_equal:
            gap = 1 if relation is e.less else 0
            self._narrow(order, left, a, Range(least, b.high - gap), found)
            self._narrow(order, right, b, Range(a.low + gap, most), found)
        elif relation is e.not_equal and b.is_single:
            if order.at_most(b.low, a.low):
                self._narrow(order, left, a, Range(b.low + 1, most), found)
            elif order.at_most(a.high, b.high):
                self._narrow(order, left, a, Range(least, b.high - 1), found)

    def _range(self, atom: Atom, found: Constraints) -> Range | None:
        if isinstance(atom, Literal):
            value = atom.value
            return Range(value, value) if isinstance(value, int) else None
        return found.get(atom) or self.ranges.get(atom)

    def _narrow(
        self, order: Order, atom: Atom, old: Range, bound: Range, found: Constraints
    ) -> None:
        if isinstance(atom, Var):
            found[atom] = replace(order.meet(old, bound, atom.type.dtype), along=old.along)


# Transfer functions: the effect of each operation on ranges of integers.


# The effect of integer arithmetic on ranges, element by element.


ArithmeticRule: TypeAlias = Callable[[Order, DType, Sequence[Range]], Range]
"""The range of the result, of a dtype, from those of the operands."""


def _vary_apart(a: Range, b: Range) -> bool:
    """Return whether two operands vary independently, so that all pairs of values occur."""
    return a.along.isdisjoint(b.along)


def _add(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    a, b = operands
    apart = _vary_apart(a, b)
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
    along, apart = a.along | b.along, _vary_apart(a, b)
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
    """Return whether every value of the dtype can occur."""
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
        return _remainder(order, dtype, operands).loosened()
    if not order.at_most(1, b.low):
        return unknown(dtype)
    return order.fitted(dtype, 1 - b.high, b.high - 1, along=a.along | b.along)


def _extreme(order: Order, dtype: DType, operands: Sequence[Range], largest: bool) -> Range:
    a, b = operands
    if a.is_single:
        a, b = b, a
    along = a.along | b.along
    if largest:
        low = order.tighter(a.low, b.low, dtype, largest)
        high = order.larger(a.high, b.high, dtype)
    else:
        low = order.smaller(a.low, b.low, dtype)
        high = order.tighter(a.high, b.high, dtype, largest)
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
        return _minimum(order, dtype, operands).loosened()
    masks = [each.high for each in (a, b) if order.at_most(0, each.low)]
    if not masks:
        return unknown(dtype).varying(along)
    return Range(0, masks[0] if len(masks) == 1 else dims.minimum(*masks), along=along)


def _bitwise_or(order: Order, dtype: DType, operands: Sequence[Range]) -> Range:
    along = operands[0].along | operands[1].along
    if dtype is BOOL:
        return _maximum(order, dtype, operands).loosened()
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


ELEMENTWISE: dict[e.Elementwise, ArithmeticRule] = {
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


# The effect of creating, moving, picking and combining elements on ranges.


Rule: TypeAlias = Callable[[Order, Any, Equation, Sequence[Range]], Range]
"""The range of the one result of a primitive; all its operands have one too."""


def _axes(given: Range, moved: dict[int, int]) -> frozenset[object]:
    """Return the axes that a range varies along after they have moved."""
    return frozenset(moved[x] if isinstance(x, int) else x for x in given.along)


def _everywhere(given: Range, rank: int) -> frozenset[object]:
    """Return what the range varies with, all axes if they are not known one by one."""
    if not any(isinstance(x, int) for x in given.along):
        return given.along
    return _all_axes(given.along, rank)


def _all_axes(along: frozenset[object], rank: int) -> frozenset[object]:
    """Return every axis of a result, and the other things that its operand varies with."""
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
    """Return a range in another dtype."""
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
    return x.loosened() if cut & x.along else x


def _join(
    order: Order, primitive: Concatenate | Pad, at: Equation, operands: Sequence[Range]
) -> Range:
    parts = [
        operand for operand, atom in zip(operands, at.inputs, strict=True) if _some(order, atom)
    ]
    output = at.outputs[0].type
    found = order.join(parts or operands, output.dtype).loosened()
    return found.varying(_all_axes(found.along, output.rank))


def _some(order: Order, atom: Any) -> bool:
    """Return whether there may be an element."""
    return not any(size == 0 for size in atom.type.shape)


def _picked(order: Order, primitive: object, at: Equation, operands: Sequence[Range]) -> Range:
    (x, *_) = operands
    return x.loosened().varying(_all_axes(x.along, at.outputs[0].type.rank))


def _updated(
    order: Order, primitive: Scatter | DynamicUpdate, at: Equation, operands: Sequence[Range]
) -> Range:
    output = at.outputs[0].type
    updates = operands[2] if isinstance(primitive, Scatter) else operands[1]
    if isinstance(primitive, Scatter) and primitive.combine == "add":
        x, low, high = operands[0], updates.low, updates.high
        if not isinstance(low, int) or not isinstance(high, int):
            return unknown(output.dtype)
        most = size_of(at.inputs[2].type.shape)  # all of them may be added to one element
        added = order.fitted(output.dtype, x.low + most * min(low, 0), x.high + most * max(high, 0))
        return added.varying(_all_axes(x.along | updates.along, output.rank))
    if isinstance(primitive, Scatter) and primitive.combine == "multiply":
        return unknown(output.dtype)
    found = order.join((operands[0], updates), output.dtype).loosened()
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
        return x.loosened()
    along = x.along | {primitive.axis}
    if primitive.kind == "sum":
        count = output.shape[primitive.axis]
        low = x.low if order.at_most(0, x.low) else x.low * count
        high = x.high if order.at_most(x.high, 0) else x.high * count
        if order.at_most(x.low, 0) or low == x.low:
            if order.at_most(0, x.high) or high == x.high:
                return order.fitted(output.dtype, low, high, along=along)
    return unknown(output.dtype).varying(along)


def _position(order: Order, primitive: ArgReduce, at: Equation, operands: Sequence[Range]) -> Range:
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
    """Return the range of the places of the largest elements."""
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
    Concatenate: _join,
    Pad: _join,
    Diagonal: _picked,
    Gather: _picked,
    DynamicSlice: _picked,
    Scatter: _updated,
    DynamicUpdate: _updated,
    Reduce: _reduce,
    Cumulative: _cumulative,
    ArgReduce: _position,
}
"""Rules by primitive; those like `Gather` and `Scatter` need only the range of the picked array."""
