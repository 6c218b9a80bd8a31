"""The iterables of loops: a range, the rows of arrays, several of these in parallel.

A loop over known items (a list, a tuple, a dict), or with a small known number of steps, is
unrolled. All other loops are rolled: the program counts their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, overload

from pscdsl._src.frontend.interpreter.places import (
    Index,
    Located,
    Ref,
    Shared,
    Walked,
)
from pscdsl._src.frontend.interpreter.python_numbers import computed
from pscdsl._src.frontend.values import (
    AnyValue,
    Array,
    Once,
    Open,
    Place,
    describe,
)
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy import indexing
from pscdsl.numpy.calling import OfCounter, size_of_counter
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.control import LoopLengthsDiffer
from pscdsl.typing.codes.language import LOOPS, BadArguments, NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, maximum
from pscdsl.typing.dtypes import I64, U64, Kind

FEW_STEPS: Final = 16
"""The limit on the known number of steps of a loop over arrays or ranges that is unrolled."""
Count: TypeAlias = "Size | Value"
"""The number of steps of a loop: a size, or a computed value."""


@dataclass(frozen=True, eq=False)
class Position:
    """The number of a step in a rolled loop, from 0, as a value, and as a size if it is one."""

    number: Value
    size: Size | None = None

    def times(self, step: int) -> Value:
        """Return the number multiplied by `step`."""
        return self.number if step == 1 else _times(self.number, step)

    def as_number(self) -> Weak:
        """Return a Python number, which is also the size."""
        return as_counter(computed(self.number, Kind.INT), self.size)

    def before(self, last: Size) -> Position:
        """Return the step at the same distance from the last one."""
        now = self.number.builder.program.current
        high = now.size(last, self.number.dtype)
        (number,) = now.bind(e.subtract, (high, self.number))
        return Position(number, None if self.size is None else last - self.size)


def as_counter(number: Weak, size: Size | None) -> Weak:
    """Return a Python number, which is also a size if one is given."""
    if size is None:
        return number
    return OfCounter(number.builder.program.current, size, number)


Step: TypeAlias = int | Position
"""The number of a step, from 0: in a loop that is unrolled, or in a rolled one."""


@dataclass(frozen=True, eq=False)
class Iterated(Walked):
    """The iterable of a loop whose items are computed from a counter that starts at 0."""

    kind: str
    count: Count
    item: Callable[[Step], Place]
    """Returns the item of a step."""
    located: tuple[Located, ...] = ()
    """The arrays whose rows it gives."""
    once: bool = False
    """Whether it is an iterator, which can be consumed only once."""
    line: tuple[Size, int] | None = None
    """The first item and the step, if the items are a range of sizes."""

    def description(self) -> str:
        """Describe the iterable for messages."""
        return self.kind

    @property
    def unrolled(self) -> range | None:
        """The counters of a loop that is unrolled; None if it is rolled."""
        count = self.count
        return range(count) if isinstance(count, int) and count <= FEW_STEPS else None


def counted_range(here: Builder, bounds: Sequence[AnyValue]) -> Iterated | None:
    """Return `range(…)` of sizes and computed integers; None for other bounds."""
    start, limit, step = map(size_of_counter, _bounds(bounds))
    if isinstance(step, bool) or not isinstance(step, int) or step == 0:
        raise Failure(NotStatic(what="the step of a `range`", rewrite="give a number other than 0"))
    first: Count
    count: Count
    if isinstance(start, int | Dim) and isinstance(limit, int | Dim):
        first, count = start, _known_count(here, start, limit, step)
    else:
        low, high = _as_integer(here, start), _as_integer(here, limit)
        if low is None or high is None:
            return None
        low, high = cast(low, I64), cast(high, I64)
        first = start if isinstance(start, int | Dim) else low
        count = _computed_count(here, low, high, step)

    def item(counter: Step) -> Array | Size:
        if isinstance(counter, int):
            assert isinstance(first, int | Dim)
            return first + step * counter
        scaled, size = counter.times(step), None
        if counter.size is not None and isinstance(first, int | Dim):
            size = first + step * counter.size
        if isinstance(first, int) and first == 0:
            return as_counter(computed(scaled, Kind.INT), size)
        now = scaled.builder.program.current
        base = now.size(first, scaled.dtype) if isinstance(first, int | Dim) else first
        return as_counter(computed(now.bind(e.add, (base, scaled))[0], Kind.INT), size)

    line = (first, step) if isinstance(first, int | Dim) else None
    return Iterated("a `range`", count, item, line=line)


def _bounds(bounds: Sequence[AnyValue]) -> tuple[AnyValue, AnyValue, AnyValue]:
    if not 1 <= len(bounds) <= 3:
        problem = "takes one to three integers"
        raise Failure(BadArguments(function="range", problem=problem))
    first, *rest = bounds
    return (0, first, 1) if not rest else (first, rest[0], rest[1] if len(rest) == 2 else 1)


def _as_integer(here: Builder, value: AnyValue) -> Value | None:
    if isinstance(value, int | Dim) and not isinstance(value, bool):
        return here.size(value, I64)
    if isinstance(value, Weak):
        value = value.at(I64) if value.kind is Kind.INT and not value.ndim else None
    if not isinstance(value, Value) or value.ndim or not value.dtype.is_integer:
        return None
    return None if value.dtype is U64 else value


def _known_count(here: Builder, start: Size, limit: Size, step: int) -> Size:
    distance = limit - start if step > 0 else start - limit
    count: Size = (distance + (abs(step) - 1)) // abs(step) if abs(step) > 1 else distance
    if isinstance(count, int):
        return max(count, 0)
    return count if here.facts.proves(Fact("<=", 0, count)) else maximum(count, 0)


def _times(counter: Value, factor: int) -> Value:
    here = counter.builder.program.current
    return here.bind(e.multiply, (counter, here.literal(factor, counter.dtype)))[0]


def _computed_count(here: Builder, low: Value, high: Value, step: int) -> Value:
    first, last = (low, high) if step > 0 else (high, low)
    (distance,) = here.bind(e.subtract, (last, first))
    (distance,) = here.bind(e.maximum, (distance, here.literal(0, I64)))
    if abs(step) == 1:
        return distance
    (up,) = here.bind(e.add, (distance, here.literal(abs(step) - 1, I64)))
    return e.floor_divide(up, abs(step))


@overload
def row_of(array: Ref | Array, step: Step) -> Ref | Array: ...
@overload
def row_of(array: Located | Array, step: Step) -> Located | Array: ...
def row_of(array: Located | Array, step: Step) -> Located | Array:
    """Return the row of an array for a step: a view, or a scalar."""
    index = step if isinstance(step, int) else step.as_number()
    row = indexing.getitem(array.load() if isinstance(array, Located) else array, index)
    if not row.ndim or not isinstance(array, Located):
        return row
    if isinstance(array, Ref):
        return array.view(Index(index), row)
    return Shared(row, array.cells(), "the array that it is a row of")


def rows_of(array: Located) -> Iterated:
    """Return the rows of an array; each is read when its step begins."""
    seen = array.seen()
    if not seen.ndim:
        raise Failure(NotStatic(what=f"a loop over {describe(seen)}, which has no axes,"))
    return Iterated("the rows of an array", seen.shape[0], partial(row_of, array), (array,))


class Long(Open):
    """A list whose length is the number of steps of a loop."""

    @property
    def length(self) -> Size:
        """The number of items."""
        raise NotImplementedError

    def sized(self) -> str:
        """Describe the list."""
        return f"a list of {self.length} items"

    def item(self, index: AnyValue) -> AnyValue:
        """Return `items[index]`."""
        raise NotImplementedError

    def array(self) -> Array:
        """Return the list as an array."""
        raise NotImplementedError

    def iterated(self) -> Iterated:
        """Return the iterable of a loop over the list."""
        raise NotImplementedError


class Generated(Open):
    """A generator over arrays; its consumer takes all items where it is written."""

    def __init__(self, items: Long) -> None:
        self.array = items.array
        """Returns the items as an array."""

    def description(self) -> str:
        """Describe the generator for messages."""
        return "a generator"


def is_lazy(*values: Place) -> bool:
    """Return whether the items of any value are computed only when they are consumed."""
    return any(
        isinstance(each, Generated) or (isinstance(each, Once) and each.lazy) for each in values
    )


def iterated(value: Place) -> Iterated | None:
    """Return the iterable of a loop that counts its steps; None for known items."""
    if isinstance(value, Located):
        return rows_of(value)
    if isinstance(value, Long):
        return value.iterated()
    return value if isinstance(value, Iterated) else None


def numbered(source: Iterated, start: int) -> Iterated:
    """Return `enumerate(source, start)`."""

    def item(counter: Step) -> Place:
        if isinstance(counter, int):
            return counter + start, source.item(counter)
        number = counter.as_number()
        if start != 0:
            size = None if counter.size is None else counter.size + start
            moved = number + start
            assert isinstance(moved, Weak)
            number = as_counter(moved, size)
        return number, source.item(counter)

    return Iterated("an enumeration", source.count, item, source.located, once=True)


def side_by_side(here: Builder, sources: Sequence[Iterated | Sequence[Place]]) -> Iterated:
    """Return `zip(…)` of iterables, some of them of arrays, which must have the same length."""
    parts = [source for source in sources if isinstance(source, Iterated)]
    known = [source for source in sources if not isinstance(source, Iterated)]
    count = parts[0].count
    lengths = [*(part.count for part in parts[1:]), *(len(items) for items in known)]
    for length in lengths:
        if (
            isinstance(length, Value)
            or isinstance(count, Value)
            or not here.facts.equal(count, length)
        ):
            why = "Python ends with the shortest"
            raise Failure(
                LoopLengthsDiffer(combinator="zip", lengths=(str(count), str(length)), why=why)
            )
    if known and parts[0].unrolled is None:
        raise Failure(
            NotStatic(what="`zip` of a list and of arrays of unknown length", rewrite=LOOPS)
        )

    def item(counter: Step) -> Place:
        items: list[Place] = []
        for source in sources:
            if isinstance(source, Iterated):
                items.append(source.item(counter))
            else:
                assert isinstance(counter, int)
                items.append(source[counter])
        return tuple(items)

    located = tuple(array for each in parts for array in each.located)
    return Iterated("a `zip`", count, item, located, once=True)


def backwards(source: Iterated) -> Iterated:
    """Return `reversed(source)`."""
    count = source.count

    def item(counter: Step) -> Place:
        if isinstance(counter, int):
            assert isinstance(count, int)
            return source.item(count - 1 - counter)
        if isinstance(count, int | Dim):
            return source.item(counter.before(count - 1))
        here = counter.number.builder.program.current
        return source.item(Position(here.bind(e.subtract, (count - 1, counter.number))[0]))

    line = None
    if source.line is not None and isinstance(count, int | Dim):
        first, step = source.line
        line = first + step * (count - 1), -step
    return Iterated("the iterator of `reversed`", count, item, source.located, once=True, line=line)
