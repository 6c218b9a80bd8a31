"""Slices of an axis: NumPy's rules for bounds, for sizes that may be symbolic."""

from __future__ import annotations

from dataclasses import dataclass

from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl.numpy.shorthand import largest, least
from pscdsl.numpy.sizes import as_size
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_indexing import IndexOutOfRange
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape, UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size


@dataclass(frozen=True)
class Cut:
    """A part of an axis: from `start` up to `limit`, maybe reversed, then every `stride`-th."""

    start: Size
    limit: Size
    stride: int = 1
    backwards: bool = False

    @property
    def width(self) -> Size:
        """How many elements there are before the stride."""
        return self.limit - self.start

    @property
    def size(self) -> Size:
        """How many elements there are."""
        if self.stride == 1:
            return self.width
        return (self.width + (self.stride - 1)) // self.stride

    def is_whole(self, size: Size) -> bool:
        """Whether it leaves an axis of a size as it is."""
        whole = self.start == 0 and self.limit == size
        return whole and self.stride == 1 and not self.backwards


def cut(facts: Assumptions, given: slice, size: Size) -> Cut:
    """A slice of an axis of a size; bounds beyond the ends are moved there, as in NumPy."""
    step = 1 if given.step is None else _bound(given.step)
    if not isinstance(step, int) or step == 0:
        problem = f"takes a step that is a number other than zero, not {describe(step)}"
        raise Failure(BadArguments(function="slice", problem=problem))
    if step > 0:
        start = 0 if given.start is None else _clipped(facts, given.start, size)
        stop = size if given.stop is None else _clipped(facts, given.stop, size)
        return Cut(start, largest(facts, start, stop), step)
    limit = size if given.start is None else _clipped(facts, given.start, size, 1)
    start = 0 if given.stop is None else _clipped(facts, given.stop, size, 1)
    return Cut(start, largest(facts, start, limit), -step, backwards=True)


def cut_between(facts: Assumptions, start: Size, stop: Size, size: Size) -> Cut:
    """The elements from `start` up to `stop`, by NumPy's rules."""
    return cut(facts, slice(start, stop), size)


def _bound(x: object) -> Size:
    if isinstance(x, Value | Weak) and not (isinstance(x, Weak) and x.made_of_sizes):
        raise Failure(
            DataDependentShape(
                what="a slice with a computed bound",
                instead="to use the elements before `i` alone, mask the others: "
                "`np.where(np.arange(x.shape[0]) < i, x, 0)`; "
                "`psc.dynamic_slice(x, [i], [k])` takes `k` of them",
            )
        )
    return as_size(x, "slice")


def _clipped(facts: Assumptions, given: object, size: Size, after: int = 0) -> Size:
    """A bound counted from the front, plus `after`, within 0 and the size."""
    bound = _bound(given)
    if facts.proves(Fact("<=", 0, bound)):
        return least(facts, bound + after, size)
    if not facts.proves(Fact("<=", bound, -1)):
        claim = Fact("<=", bound, -1) if _falls(bound) else Fact("<=", 0, bound)
        raise Failure(UnprovenSize.of(facts, "a bound of a slice", claim))
    return largest(facts, bound + size + after, 0)


def _falls(bound: Size) -> bool:
    """Whether a bound is negative for all sizes that are large: it counts from the end then."""
    if isinstance(bound, int):
        return bound < 0
    return all(coefficient < 0 for monomial, coefficient in bound.terms if monomial)


def place(facts: Assumptions, index: Size, size: Size, axis: int) -> Size:
    """A static index counted from the front; a Failure if it is not proven to be in range."""
    if facts.proves(Fact("<=", 0, index)):
        if facts.proves(Fact("<", index, size)):
            return index
    elif facts.proves(Fact("<=", index, -1)) and facts.proves(Fact("<=", 0, index + size)):
        return index + size
    raise Failure(IndexOutOfRange.of(facts, index, size, axis))
