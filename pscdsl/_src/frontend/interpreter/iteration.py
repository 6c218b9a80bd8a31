"""What a loop goes through: a range, the rows of arrays, several of these side by side.

A loop over known items (a list, a tuple, a dict), and one of few known steps, is unrolled.  Every
other is rolled: the program counts its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pscdsl._src.frontend.interpreter.places import Array, Index, Located, Ref, Shared, Walked
from pscdsl._src.frontend.interpreter.python_numbers import computed
from pscdsl._src.frontend.values import Once, Open, describe
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
"""A loop of so many known steps is unrolled."""
Count: TypeAlias = "Size | Value"
"""How many steps a loop has: known for all sizes, or computed."""


@dataclass(frozen=True, eq=False)
class Position:
    """Which step of a rolled loop it is, from 0: as a number, and as a size if it is one."""

    number: Value
    size: Size | None = None

    def times(self, step: int) -> Value:
        """The number multiplied."""
        return self.number if step == 1 else _times(self.number, step)

    def as_number(self) -> Weak:
        """A number of Python's, which is a size, too."""
        return as_counter(computed(self.number, Kind.INT), self.size)

    def before(self, last: Size) -> Position:
        """The step that is as far from the last one."""
        now = self.number.builder.program.current
        high = now.size(last, self.number.dtype)
        (number,) = now.bind(e.subtract, (high, self.number))
        return Position(number, None if self.size is None else last - self.size)


def as_counter(number: Weak, size: Size | None) -> Weak:
    """A number of Python's, which is a size, too."""
    if size is None:
        return number
    return OfCounter(number.builder.program.current, size, number)


@dataclass(frozen=True, eq=False)
class Iterated(Walked):
    """What a loop goes through whose items are made of a counter from 0."""

    kind: str
    count: Count
    item: Callable[[Any], Any]
    """What the loop's target is bound to in a step, of the counter: an int, or a `Position`."""
    located: tuple[Any, ...] = ()
    """The arrays of which it gives rows."""
    once: bool = False
    """Whether it can be gone through once: it is used up where it stands."""
    line: tuple[Size, int] | None = None
    """The first item and the step, where the items are a range of sizes."""

    def description(self) -> str:
        """How messages speak of it."""
        return self.kind

    @property
    def few(self) -> range | None:
        """The counters of a loop that is unrolled."""
        count = self.count
        return range(count) if isinstance(count, int) and count <= FEW_STEPS else None


def counted_range(here: Builder, bounds: Sequence[Any]) -> Iterated | None:
    """`range(…)` of sizes and computed integers; None if the bounds are no such."""
    start, limit, step = map(size_of_counter, _bounds(bounds))
    if isinstance(step, bool) or not isinstance(step, int) or step == 0:
        raise Failure(NotStatic(what="the step of a `range`", rewrite="give a number other than 0"))
    ends = (start, limit)
    if all(isinstance(each, int | Dim) for each in ends):
        count: Count = _known_count(here, start, limit, step)
    else:
        found = [_as_integer(here, each) for each in ends]
        if None in found:
            return None
        low, high = (cast(each, I64) for each in found if each is not None)
        count = _computed_count(here, low, high, step)
        start = start if isinstance(start, int | Dim) else low

    def item(counter: Any) -> Any:
        if isinstance(counter, int):
            assert isinstance(start, int | Dim)
            return start + step * counter
        scaled, size = counter.times(step), None
        if counter.size is not None and isinstance(start, int | Dim):
            size = start + step * counter.size
        if isinstance(start, int) and start == 0:
            return as_counter(computed(scaled, Kind.INT), size)
        now = scaled.builder.program.current
        base = now.size(start, scaled.dtype) if isinstance(start, int | Dim) else start
        return as_counter(computed(now.bind(e.add, (base, scaled))[0], Kind.INT), size)

    line = (start, step) if isinstance(start, int | Dim) else None
    return Iterated("a `range`", count, item, line=line)


def _bounds(bounds: Sequence[Any]) -> tuple[Any, Any, Any]:
    if not 1 <= len(bounds) <= 3:
        problem = "takes one to three integers"
        raise Failure(BadArguments(function="range", problem=problem))
    first, *rest = bounds
    return (0, first, 1) if not rest else (first, rest[0], rest[1] if len(rest) == 2 else 1)


def _as_integer(here: Builder, value: Any) -> Value | None:
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
    found: Value = e.floor_divide(up, abs(step))
    return found


def row_of(array: Any, index: Any) -> Any:
    """One row of an array: a view, or a scalar."""
    row = indexing.getitem(array.load() if isinstance(array, Located) else array, index)
    if not row.ndim or not isinstance(array, Located):
        return row
    if isinstance(array, Ref):
        return array.view(Index(index), row)
    return Shared(row, array.cells(), "the array that it is a row of")


def rows_of(array: Located) -> Iterated:
    """The rows of an array; numbers are read when their step begins."""
    seen = array.seen()
    if not seen.ndim:
        raise Failure(NotStatic(what=f"a loop over {describe(seen)}, which has no axes,"))

    def item(counter: Any) -> Any:
        index = counter if isinstance(counter, int) else counter.as_number()
        return row_of(array, index)

    return Iterated("the rows of an array", seen.shape[0], item, (array,))


class Long(Open):
    """A list that is as long as a loop has steps."""

    @property
    def length(self) -> Size:
        """How many items there are."""
        raise NotImplementedError

    def sized(self) -> str:
        """What it is in words."""
        return f"a list of {self.length} items"

    def item(self, index: Any) -> Any:
        """`items[index]`."""
        raise NotImplementedError

    def array(self) -> Array:
        """What NumPy makes of the list."""
        raise NotImplementedError

    def iterated(self) -> Iterated:
        """What a loop over it goes through."""
        raise NotImplementedError


class Generated(Open):
    """What a generator over arrays gives: a reader takes all of it where it stands."""

    def __init__(self, items: Long) -> None:
        self.array = items.array
        """What NumPy makes of the items."""

    def description(self) -> str:
        """How messages speak of it."""
        return "a generator"


def is_lazy(*values: Any) -> bool:
    """Whether the items of a value are computed where they are gone through."""
    return any(
        isinstance(each, Generated) or (isinstance(each, Once) and each.lazy) for each in values
    )


def iterated(value: Any) -> Iterated | None:
    """What a loop goes through by a counter; None if it goes through known items."""
    if isinstance(value, Located):
        return rows_of(value)
    if isinstance(value, Long):
        return value.iterated()
    return value if isinstance(value, Iterated) else None


def numbered(source: Iterated, start: Any) -> Iterated:
    """`enumerate(source, start)`."""

    def item(counter: Any) -> Any:
        if isinstance(counter, int):
            return counter + start, source.item(counter)
        number = counter.as_number()
        if start != 0:
            size = None if counter.size is None else counter.size + start
            number = as_counter(number + start, size)
        return number, source.item(counter)

    return Iterated("an enumeration", source.count, item, source.located, once=True)


def side_by_side(here: Builder, sources: Sequence[Any]) -> Iterated:
    """`zip(…)` of arrays and ranges, which have to be of one length."""
    found = [iterated(source) for source in sources]
    parts = [each for each in found if each is not None]
    known = [each for each in sources if iterated(each) is None]
    count = parts[0].count
    lengths = [*(each.count for each in parts[1:]), *(len(each) for each in known)]
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
    if known and parts[0].few is None:
        raise Failure(
            NotStatic(what="`zip` of a list and of arrays of unknown length", rewrite=LOOPS)
        )

    def item(counter: Any) -> Any:
        return tuple(
            source[counter] if each is None else each.item(counter)
            for source, each in zip(sources, found, strict=True)
        )

    located = tuple(array for each in parts for array in each.located)
    return Iterated("a `zip`", count, item, located, once=True)


def backwards(source: Iterated) -> Iterated:
    """`reversed(source)`."""
    count = source.count

    def item(counter: Any) -> Any:
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
