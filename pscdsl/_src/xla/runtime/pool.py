"""Large results are written where earlier ones lay that nobody holds any more.

glibc maps blocks of more than 32 MiB anew each time, whatever it is told (see `memory`), and a page
fault every 4 kB costs several times what a bandwidth-bound program takes.  XLA's client takes no
allocator, but the memory of a donated argument becomes a result's: a second executable of such a
program takes an array for each of its large results (`scratch`), and is given some of the pool.
It is compiled once the time saved by it would have paid for that; until then, and where the pool
has nothing free, the program is called as it is.

The pool holds results that were given out.  One of which no one else holds a reference is free.
There is no other way to its memory: views of NumPy's, by the buffer protocol, hold the array, and
of DLPack's XLA knows, and copies.  Beside a jax nothing is pooled: its arrays share buffers in ways
that no count of references shows.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from struct import Struct
from threading import Lock
from typing import Any, Final, NamedTuple

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.memory import REUSE, wanted

LARGE: Final = (32 << 20) - 4096
"""Bytes; the memory of smaller results, with what malloc adds, is kept by glibc for any other."""
KEPT: Final = 512 << 20
"""How many bytes of results the pool holds, whether somebody else does or not."""
GAIN: Final = 1.5e-10
"""Seconds a byte of a result that is not mapped anew, as measured; some machines take more."""
_UNHELD: Final = 3
"""References to an array that only the pool holds: its list, a variable, the question."""


def enabled() -> bool:
    """Whether results are pooled in this process as it is now."""
    return _is_asked_for() and not boot.jax_is_loaded()


@boot.once
def _is_asked_for() -> bool:
    counts_exactly = getattr(sys, "_is_gil_enabled", lambda: True)
    return counts_exactly() and wanted() == REUSE


def pooled(outputs: Sequence[Aval]) -> tuple[int, ...]:
    """Which results are large; none where the pool could not hold them twice.

    Callers often have the last results in their hands while they ask for the next.
    """
    found = tuple([i for i, each in enumerate(outputs) if _nbytes(each) >= LARGE])
    return found if 2 * sum(_nbytes(outputs[i]) for i in found) <= KEPT else ()


class Recipe(NamedTuple):
    """What a second executable is compiled from."""

    code: bytes
    """The module, as bytecode."""
    options: bytes
    """Compile options, serialised."""
    seconds: float
    """What the first one took."""

    def pack(self) -> bytes:
        """All of it in one piece."""
        return _HEAD.pack(self.seconds, len(self.options)) + self.options + self.code

    @classmethod
    def unpack(cls, content: bytes) -> Recipe:
        """What was packed."""
        seconds, length = _HEAD.unpack_from(content)
        rest = content[_HEAD.size :]
        return cls(rest[length:], rest[:length], seconds)


_HEAD: Final = Struct("<dQ")


class Pool:
    """Results that were given out, the oldest first."""

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._lock = Lock()

    def take(self, avals: Sequence[Aval]) -> list[Any]:
        """Arrays of these types that may be donated; none if there is not one for each."""
        arrays, taken = self._arrays, list[Any]()
        with self._lock:
            for aval in avals:
                for index in range(len(arrays)):
                    if boot.raw_aval(arrays[index]) == aval and _is_free(arrays, index):
                        taken.append(arrays.pop(index))
                        break
                else:
                    arrays[:0] = taken
                    return []
        return taken

    def give(self, arrays: Sequence[Any]) -> None:
        """Hold results, and forget the oldest where that is too much."""
        with self._lock:
            self._arrays += arrays
            held = sum(_nbytes(boot.raw_aval(each)) for each in self._arrays)
            while held > KEPT:
                held -= _nbytes(boot.raw_aval(self._arrays.pop(0)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._arrays.clear()


POOL: Final = Pool()
"""The pool of this process."""


class Reuse:
    """How a program with large results is called: `execute` as it is, or with arrays for these.

    `make` gives what takes the arrays after the other arguments, or None; it needs `seconds`.
    """

    def __init__(
        self,
        outputs: Sequence[Aval],
        execute: Callable[[Sequence[Any]], list[Any]],
        make: Callable[[], Callable[[Sequence[Any]], list[Any]] | None],
        seconds: float,
    ) -> None:
        self._places = pooled(outputs)
        self._avals = [outputs[place] for place in self._places]
        self._gain = GAIN * sum(map(_nbytes, self._avals))
        self._execute = execute
        self._make = make
        self._due = seconds
        self._into: Callable[[Sequence[Any]], list[Any]] | None = None
        self._lock = Lock()

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Start the program on device arrays."""
        if not enabled():  # a jax has come
            POOL.clear()
            return self._execute(buffers)
        results = self._reusing(buffers)
        POOL.give([results[place] for place in self._places])
        return results

    def _reusing(self, buffers: Sequence[Any]) -> list[Any]:
        free = POOL.take(self._avals)
        if not free:
            return self._execute(buffers)
        if self._into is None:
            with self._lock:
                self._due -= self._gain
                if self._due <= 0 and self._into is None:
                    self._into = self._make()
                    if self._into is None:
                        POOL.clear()
            if self._into is None:
                return self._execute(buffers)  # what was free is freed
        return self._into([*buffers, *free])


def _nbytes(aval: Aval) -> int:
    count: int = aval.dtype.itemsize
    for size in aval.shape:
        count *= size
    return count


def _is_free(arrays: list[Any], index: int) -> bool:
    """Whether a list alone holds an array, which has its memory still."""
    array = arrays[index]
    return (
        sys.getrefcount(array) == _UNHELD
        and not weakref.getweakrefcount(array)
        and not array.is_deleted()
    )
