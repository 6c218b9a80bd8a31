"""Which part of which array of keys a variable is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from pscdsl.typing.arrays import Shape, substitute_shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim, Size, substitute

if TYPE_CHECKING:
    from pscdsl._src.analysis.keys.numbers import Number
    from pscdsl._src.analysis.keys.uses import Use

_AGES: Final = count()


class Fork:
    """Where a program goes one of several ways."""

    def __init__(self) -> None:
        self.age: Final = next(_AGES)


When = tuple[tuple[object, int], ...]
"""The branches in which something happens: a fork, and the number of the branch."""


def exclusive(left: When, right: When) -> bool:
    """Whether two things never both happen, being on two branches of one fork."""
    taken = dict(left)
    return any(taken.get(fork, branch) != branch for fork, branch in right)


class Root:
    """An array of keys that came into being as a whole: a parameter, the result of a split.

    `sources` are the places from which its keys were taken, if they are not new; to use a part
    of it is to use those.  With `repeated` one key may stand at several places of it.
    """

    def __init__(
        self,
        shape: Shape,
        name: str = "",
        sources: tuple[tuple[Place, When], ...] = (),
        repeated: bool = False,
        agent: object = None,
    ) -> None:
        self.shape: Final = shape
        self.name: Final = name
        self.sources = sources
        self.repeated: Final = repeated
        self.agent: Final = self if agent is None else agent
        """Who uses the sources: one agent's uses are of different keys, or seen to elsewhere."""
        self.element: Number | None = None
        """Which place of its one source it is, along the first axis, if that can be told."""
        self.is_row = False
        """Whether it is an element of its one source, along the first axis."""
        self.uses: list[Use] = []
        self.cells: dict[object, dict[object, list[Use]]] = {}
        """The uses by element, and by the number that it is folded with, where both are known."""
        self.age: Final = next(_AGES)

    def add(self, use: Use) -> None:
        """Note a use."""
        self.uses.append(use)
        element, constant = use.cell
        self.cells.setdefault(element, {}).setdefault(constant, []).append(use)

    def substituted(self, env: Mapping[str, Size]) -> Shape:
        """The shape with sizes in place of names."""
        return substitute_shape(self.shape, env)


class Seeds(Root):
    """All keys that can be made of seeds: the key of a seed is the element of that number."""

    def __init__(self) -> None:
        super().__init__((), "psc.random.key(…)")
        self.arguments: Final = object()
        """On whose account arguments are seeds: that they differ is for the caller to see."""


@dataclass(frozen=True)
class Range:
    """Every `step`-th place from `start` up to, not including, `stop`."""

    start: Size
    stop: Size
    step: int = 1

    def inside(self, start: Size, stop: Size, step: int) -> Range:
        """A range counted in the places of this one."""
        return Range(
            self.start + start * self.step, self.start + stop * self.step, self.step * step
        )

    def substitute(self, env: Mapping[str, Size]) -> Range:
        """With sizes in place of names."""
        return Range(_substituted(self.start, env), _substituted(self.stop, env), self.step)

    def apart(self, other: Range, facts: Assumptions) -> bool:
        """Whether the two have provably no place in common."""
        return (
            _at_most(facts, self.stop, other.start)
            or _at_most(facts, other.stop, self.start)
            or self._interleaved(other)
        )

    def _interleaved(self, other: Range) -> bool:
        gap = self.start - other.start
        return self.step == other.step > 1 and isinstance(gap, int) and gap % self.step != 0

    @property
    def only(self) -> Size | None:
        """The one place that there is, if it is one."""
        return self.start if self.stop - self.start == 1 else None


def _at_most(facts: Assumptions, low: Size, high: Size) -> bool:
    if isinstance(low, int) and isinstance(high, int):
        return low <= high
    return facts.proves(Fact("<=", low, high))


def _substituted(size: Size, env: Mapping[str, Size]) -> Size:
    return substitute(size, env) if isinstance(size, Dim) else size


@dataclass(frozen=True)
class Place:
    """A part of a root: a range along each of its axes.

    `axes` says, for each axis of the part, which axis of the root it is; None for one of size 1
    that was put in.
    """

    root: Root
    ranges: tuple[Range, ...]
    axes: tuple[int | None, ...]
    name: str = field(default="", compare=False)
    """What the code calls it."""

    @classmethod
    def whole(cls, root: Root) -> Place:
        """All of a root."""
        ranges = tuple(Range(0, size) for size in root.shape)
        return cls(root, ranges, tuple(range(len(ranges))), root.name)

    def called(self, name: str) -> Place:
        """The same place under a name, if it has none."""
        return self if self.name or not name else replace(self, name=name)

    def sliced(self, starts: Shape, stops: Shape, steps: tuple[int, ...]) -> Place:
        """The part of it that a slice takes."""
        ranges = list(self.ranges)
        for axis, start, stop, step in zip(self.axes, starts, stops, steps, strict=True):
            if axis is not None:
                ranges[axis] = ranges[axis].inside(start, stop, step)
        return replace(self, ranges=tuple(ranges), name="")

    def transposed(self, permutation: tuple[int, ...]) -> Place:
        """The same part with its axes in another order."""
        return replace(self, axes=tuple(self.axes[axis] for axis in permutation))

    def reshaped(self, given: Shape, wanted: Shape) -> Place | None:
        """The same part with axes of size 1 taken away or put in; None for any other shape."""
        kept = [(axis, size) for axis, size in zip(self.axes, given, strict=True) if size != 1]
        if [size for _, size in kept] != [size for size in wanted if size != 1]:
            return None
        remaining = iter(kept)
        return replace(self, axes=tuple(None if s == 1 else next(remaining)[0] for s in wanted))

    def within(self, outer: Place, env: Mapping[str, Size]) -> Place:
        """The same part of what the root stands for: another place, in a caller."""
        ranges = [each.substitute(env) for each in self.ranges]
        shape = self.root.substituted(env)
        if all(r == Range(0, size) for r, size in zip(ranges, shape, strict=True)):
            part = outer
        else:
            part = outer.sliced(
                tuple(r.start for r in ranges),
                tuple(r.stop for r in ranges),
                tuple(r.step for r in ranges),
            )
        axes = tuple(None if axis is None else part.axes[axis] for axis in self.axes)
        return replace(part, axes=axes)

    def across(self, array: Place) -> Place:
        """The same part, of a row, of all rows of an array."""
        ranges = list(array.ranges)
        for axis, part in zip(array.axes[1:], self.ranges, strict=True):
            if axis is not None:
                ranges[axis] = ranges[axis].inside(part.start, part.stop, part.step)
        return replace(array, ranges=tuple(ranges), name="")

    def before(self, source: Place) -> Place:
        """Where in a source of its root it was taken from."""
        return self.across(source) if self.root.is_row else source

    def single(self) -> bool:
        """Whether it is one key."""
        return all(each.only is not None for each in self.ranges)

    def apart(self, other: Place, facts: Assumptions) -> bool:
        """Whether two parts of one root have provably no key in common."""
        return any(a.apart(b, facts) for a, b in zip(self.ranges, other.ranges, strict=True))

    def __str__(self) -> str:
        if self.name:
            return self.name
        name = self.root.name
        if not name or not self.ranges:
            return name
        parts = [_shown(r, size) for r, size in zip(self.ranges, self.root.shape, strict=True)]
        while parts and parts[-1] == ":":
            parts.pop()
        return f"{name}[{', '.join(parts)}]" if parts else name


def _shown(range_: Range, size: Size) -> str:
    if range_.only is not None and size != 1:
        return str(range_.only)
    if range_ == Range(0, size):
        return ":"
    start = "" if range_.start == 0 else str(range_.start)
    stop = "" if range_.stop == size else str(range_.stop)
    return f"{start}:{stop}" + (f":{range_.step}" if range_.step != 1 else "")
