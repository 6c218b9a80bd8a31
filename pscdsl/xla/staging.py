"""Device arrays that calls write into: Python's numbers, and small arrays of NumPy's, go there.

A device array costs C++ 0.4 us, one that it makes of an array of NumPy's or a number 1 to 1.3 us.
Where a program has run when its call returns (see `waiting`), the same device arrays serve one call
after another: each writes into their memory what it was given, in less than 0.1 us.  No result lies
in that memory, as no call gives it away, and no two calls have it at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl.xla import trees
from pscdsl.xla.boot import Aval
from pscdsl.xla.client import copied
from pscdsl.xla.python_numbers import NUMBERS
from pscdsl.xla.readable import is_native
from pscdsl.xla.waiting import calls_wait

STAGED_BYTES: Final = 1 << 15
"""Arrays of NumPy's that have more are left to C++, which may take them as they lie."""
MOST: Final = 256
"""So many arrays are staged in a call, or none."""

Handed: TypeAlias = "str | int | tuple[Handed, ...]"
"""What C++ is given: an expression of Python's, a staged array by its place, or several."""


class Leaf(NamedTuple):
    """What is known of a leaf that C++ is not given as it is."""

    aval: Aval
    staged: bool
    """Whether it is written into a device array; a number may be made an array instead."""


class Unlike(ValueError):
    """No function can be written for such values."""


def changed_leaves(
    leaves: Sequence[Any],
    used: Sequence[Any],
    types: Sequence[Aval],
    donated: Collection[int],
    *,
    arrays: bool,
) -> dict[int, Leaf]:
    """The leaves that C++ is not given as they are: numbers, and small `arrays` of NumPy's.

    By their place among the leaves.  `used` are those that a program takes, in order, of these
    `types`; it may take the memory of those at `donated` places.  An Unlike where it cannot be
    told which number is which: Python has one object for some of them.
    """
    changed = _numbers(leaves, used, types, donated)
    if arrays:
        known = {id(leaf) for leaf in used} - {id(used[place]) for place in donated}
        small = {
            place: Leaf(Aval(leaf.shape, leaf.dtype), staged=True)
            for place, leaf in enumerate(leaves)
            if id(leaf) in known and is_native(leaf) and 0 < leaf.nbytes <= STAGED_BYTES
        }
        if len(small) <= MOST:
            changed.update(small)
    return changed


def _numbers(
    leaves: Sequence[Any], used: Sequence[Any], types: Sequence[Aval], donated: Collection[int]
) -> dict[int, Leaf]:
    numbers = [place for place, leaf in enumerate(used) if leaf.__class__ in NUMBERS]
    if not numbers:
        return {}
    first = trees.places(used, leaves)
    last = trees.places(used[::-1], leaves[::-1])
    if first is None or last is None:
        raise Unlike
    if any(first[place] + last[~place] != len(leaves) - 1 for place in numbers):
        raise Unlike
    waits = calls_wait()
    return {first[place]: Leaf(types[place], waits and place not in donated) for place in numbers}


class Stage:
    """The arrays that calls of one kind write into."""

    def __init__(self) -> None:
        self._avals: list[Aval] = []
        self._whole: list[Handed] = []

    def add(self, aval: Aval) -> int:
        """A further array; its place."""
        self._avals.append(aval)
        return len(self._avals) - 1

    def expression(self, handed: Handed) -> str:
        """Python that gives what is handed over; arrays that are staged together have a name."""
        if isinstance(handed, str):
            return handed
        if _is_staged(handed):
            self._whole.append(handed)
            return f"staged_{len(self._whole) - 1}"
        assert isinstance(handed, tuple)
        return f"({''.join([f'{self.expression(part)}, ' for part in handed])})"

    def names(self) -> list[str]:
        """What the values of `made` are called, in order; those at the end are written into."""
        whole = [f"staged_{place}" for place in range(len(self._whole))]
        return [*whole, *[memory(place) for place in range(len(self._avals))]]

    def made(self) -> list[Any]:
        """New arrays, as they are handed over, and the memory of each of them."""
        pairs = [writable(aval) for aval in self._avals]

        def filled(handed: Handed) -> Any:
            if isinstance(handed, int):
                return pairs[handed][0]
            return tuple([filled(part) for part in handed])

        return [*map(filled, self._whole), *[memory for _, memory in pairs]]


def memory(place: int) -> str:
    """What the memory of an array is called in the function that writes into it."""
    return f"memory_{place}"


def _is_staged(handed: Handed) -> bool:
    if isinstance(handed, tuple):
        return all(map(_is_staged, handed))
    return isinstance(handed, int)


def writable(aval: Aval) -> tuple[Any, Any]:
    """A device array, and its memory as an array of NumPy's, which does not keep it alive."""
    array = copied(np.zeros(aval.shape, aval.dtype), aval)
    size = aval.dtype.itemsize * int(np.prod(aval.shape, dtype=np.int64))
    there: Any = (ctypes.c_char * size).from_address(_address(array))
    return array, np.ndarray(aval.shape, aval.dtype, there)


def _address(array: Any) -> int:
    """Where its memory is."""
    try:
        found: int = np.asarray(memoryview(array)).ctypes.data
    except BufferError:  # bf16
        found = array.unsafe_buffer_pointer()  # takes long: it looks for a jax, and finds none
    return found
