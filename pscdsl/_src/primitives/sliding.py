"""Windows that slide along axes: where they stand, and which elements they see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from pscdsl._src.ir.primitive import Evaluation, Hlo, NDArray
from pscdsl._src.primitives.shaping import at_most, with_gaps
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size, maximum

Padding: TypeAlias = tuple[tuple[Size, Size], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """What slides along one axis, and how."""

    size: Size
    stride: int = 1
    low: Size = 0
    high: Size = 0
    base_dilation: int = 1
    dilation: int = 1

    def at(self, here: Evaluation) -> Window:
        """The window at given sizes."""
        low, high = here.size(self.low), here.size(self.high)
        size = here.size(self.size)
        return Window(size, self.stride, low, high, self.base_dilation, self.dilation)

    @property
    def reach(self) -> Size:
        """How far its last element is from its first."""
        return (self.size - 1) * self.dilation

    def always_sees(self, facts: Assumptions, size: Size) -> bool:
        """Whether it is known to see an element from each place, if there are any places."""
        if self == Window(1):
            return True
        if self.base_dilation != 1 or not at_most(facts, 1, size):
            return False
        most = self.size - 1 if self.dilation == 1 else 0
        return at_most(facts, self.low, most) and at_most(facts, self.high, most)

    def back(self, facts: Assumptions, size: Size, places: Size) -> Window:
        """What slides over the places and reaches, at each of `size` elements, all that saw it.

        Where this window has its first elements, that one has its last.
        """
        spread = with_gaps(facts, places, self.stride - 1)
        high = (size - 1) * self.base_dilation + 1 - spread + self.low
        low = self.reach - self.low
        return Window(self.size, self.base_dilation, low, high, self.stride, self.dilation)

    def across(self, facts: Assumptions, size: Size, places: Size) -> Window:
        """What slides the places over `size` elements, and reaches all that met a window element.

        There is one of its places for each element of this window.
        """
        spread = with_gaps(facts, size, self.base_dilation - 1)
        high = self.reach + (places - 1) * self.stride + 1 - spread - self.low
        return Window(places, self.dilation, self.low, high, self.base_dilation, self.stride)

    def places(self, facts: Assumptions, size: Size) -> Size | None:
        """How many places there are along an axis; None if the window may be empty."""
        if not at_most(facts, 1, self.size):
            return None
        spread = with_gaps(facts, size, self.base_dilation - 1)
        room = spread + self.low + self.high - self.reach - 1
        if at_most(facts, 0, room):
            return room // self.stride + 1
        count = (room + self.stride) // self.stride
        return count if at_most(facts, 0, count) else maximum(count, 0)


def slide(
    facts: Assumptions, windows: Sequence[Window], shape: Sequence[Size]
) -> tuple[Size, ...] | None:
    """How many places there are along each axis; None if a window may be empty."""
    places: list[Size] = []
    for window, size in zip(windows, shape, strict=True):
        count = window.places(facts, size)
        if count is None:
            return None
        places.append(count)
    return tuple(places)


def laid_out(here: Evaluation, x: NDArray, windows: Sequence[Window], padding: object) -> NDArray:
    """An array with what stands between and around its elements, along its last axes."""
    first = x.ndim - len(windows)
    for axis, window in enumerate(windows, first):
        count = x.shape[axis]
        low, high = here.size(window.low), here.size(window.high)
        length = max((count - 1) * window.base_dilation + 1, 0) + low + high
        result = np.full((*x.shape[:axis], max(length, 0), *x.shape[axis + 1 :]), padding, x.dtype)
        places = [at for i in range(count) if 0 <= (at := i * window.base_dilation + low) < length]
        skipped = len([i for i in range(count) if i * window.base_dilation + low < 0])
        np.moveaxis(result, axis, 0)[places] = np.moveaxis(x, axis, 0)[skipped:][: len(places)]
        x = result
    return x


def offsets(
    here: Evaluation, windows: Sequence[Window], places: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each place in the window, and the elements that stand there as it slides."""
    for offset in product(*(range(here.size(window.size)) for window in windows)):
        yield (
            offset,
            tuple(
                [
                    slice(at * w.dilation, at * w.dilation + count * w.stride, w.stride)
                    for at, w, count in zip(offset, windows, places, strict=True)
                ]
            ),
        )


def emit_padding(hlo: Hlo, padding: Padding) -> object:
    """The padding as an attribute."""
    pairs = [[hlo.size(low), hlo.size(high)] for low, high in padding]
    return hlo.i64_elements(np.array(pairs, np.int64).reshape(len(pairs), 2))
