"""Reuse of the memory of released results: settings of the C library, and a pool.

XLA:CPU asks malloc for the memory of every result. glibc maps and unmaps large blocks each time, or
cuts free memory off the end of its heap, so that each result costs a page fault every 4 kB: several
times what a bandwidth-bound program takes. jaxlib's client takes no allocator of ours, but glibc's
limits can be changed while a process runs (mallopt(3)), for the whole process:

threshold      blocks up to 32 MiB, the most that glibc takes, come from its heap
trim           the heap keeps up to 256 MiB of free memory at its end
pad            the heap grows by 128 MiB more than it must, of addresses; this is also what keeps
               the small heaps of threads other than the main one
fast           blocks of up to 24 bytes wait to be taken again, others are joined with free ones
               next to them when they are freed.  glibc alone has blocks of up to 128 bytes wait
               until it runs out of memory to cut from; with as much as it keeps here that takes
               long, and the remainders of XLA's aligned blocks lay in a million pieces over 60
               MB: after the first 20,000, calls found their memory in no cache, and took 1.4
               times as long

Free memory inside the heap stays resident until something takes it, as it always does. Larger
results are retained for the next ones by a pool; see below.

PSCDSL_MEMORY=system   everything is left as it is, the default: all this is for a whole process
PSCDSL_MEMORY=reuse    as above
PSCDSL_MEMORY=heap     blocks of any size, from one heap of all threads that keeps up to 2 GiB, in
                       place of the pool: for programs that work on large arrays, and nothing
                       else, to their end

Nothing is set either if the environment has its own settings (MALLOC_*, GLIBC_TUNABLES), with
another C library, or with another malloc in place of glibc's.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from struct import Struct
from threading import Lock
from typing import Any, Final, NamedTuple

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.settings import word

MEMORY_VARIABLE: Final = "PSCDSL_MEMORY"
SYSTEM: Final = "system"
REUSE: Final = "reuse"

# From glibc's malloc.h.
_MXFAST: Final = 1
_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_MMAP_MAX: Final = -4
_ARENA_MAX: Final = -8

MIB: Final = 1 << 20
SETTINGS: Final = {
    REUSE: (
        (_TRIM_THRESHOLD, 256 * MIB),
        (_TOP_PAD, 128 * MIB),
        (_MMAP_THRESHOLD, 32 * MIB),
        (_MXFAST, 24),
    ),
    "heap": (
        (_ARENA_MAX, 1),
        (_MMAP_MAX, 0),
        (_TRIM_THRESHOLD, 2047 * MIB),
        (_TOP_PAD, 128 * MIB),
        (_MXFAST, 24),
    ),
}
"""The settings for each word, in order.

glibc refuses a threshold beyond half of HEAP_MAX_SIZE, which is 32 MiB with addresses of 64 bits.
Any of these settings ends glibc's own adaptation, so that the trim threshold has to be given as
well. A pad of less than HEAP_MAX_SIZE, 64 MiB, lets threads other than the main one give a block's
heap back.
"""


class _Place(ctypes.Structure):
    """The result of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class _Counts(ctypes.Structure):
    """The result of mallinfo(3), modulo 2^32; older C libraries have no mallinfo2."""

    _fields_ = (
        ("others", ctypes.c_int * 4),
        ("mapped", ctypes.c_uint),
        ("more", ctypes.c_int * 2),
        ("allocated", ctypes.c_uint),
        ("free", ctypes.c_int * 2),
    )


_BLOCK: Final = 100_000
"""A size that no list of small blocks holds, in bytes."""


@boot.once
def keep_freed_memory() -> bool:
    """Have freed memory retained for the next results, once a process; whether that was done."""
    settings = SETTINGS.get(wanted_memory(), ())
    if not settings or not glibc():
        return False
    process = ctypes.CDLL(None)
    return malloc_is_glibcs(process) and all(
        [process.mallopt(option, value) == 1 for option, value in settings]
    )


def wanted_memory() -> str:
    """Return the environment's word; raise ValueError if it is unknown."""
    given = word(MEMORY_VARIABLE, (SYSTEM, *SETTINGS))
    if "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", ""):
        return SYSTEM
    return SYSTEM if any(name.startswith("MALLOC_") for name in os.environ) else given


def glibc() -> bool:
    """Return whether this process runs on Linux with glibc, and has addresses of 64 bits."""
    if not sys.platform.startswith("linux") or sys.maxsize <= 1 << 32:
        return False
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):  # another C library does not know the name
        return False


def malloc_is_glibcs(process: Any) -> bool:
    """Return whether malloc is the C library's, and mallopt sets it.

    A replacement (jemalloc, tcmalloc) is preloaded or linked in. The address of malloc does not
    tell: in a program at fixed addresses, such as Debian's Python, it is a stub of the program.
    """
    try:
        places = {_file_of(process, getattr(process, name)) for name in ("mallopt", "mallinfo")}
        return (
            places == {_file_of(process, process.gnu_get_libc_version)}
            and None not in places
            and any(_is_counted(process) for _ in range(3))  # other threads may come between
        )
    except AttributeError:  # a symbol that is not there
        return False


def _is_counted(process: Any) -> bool:
    """Return whether the C library counts a block that malloc gives."""
    process.malloc.restype = ctypes.c_void_p
    process.mallinfo.restype = _Counts
    before = process.mallinfo()
    block = ctypes.c_void_p(process.malloc(_BLOCK))
    after = process.mallinfo()
    process.free(block)
    new = after.allocated - before.allocated + after.mapped - before.mapped
    return block.value is not None and _BLOCK <= new % (1 << 32) < 2 * _BLOCK


def _file_of(process: Any, function: Any) -> bytes | None:
    """Return the file of the library that a function was found in."""
    place = _Place()
    address = ctypes.cast(function, ctypes.c_void_p)
    found: int = process.dladdr(address, ctypes.byref(place))
    return place.file if found else None


# Large results reuse the memory of earlier ones that are no longer referenced.
#
# glibc maps blocks of more than 32 MiB each time, with any settings (see above), and a page fault
# every 4 kB costs several times what a bandwidth-bound program takes. XLA's client takes no
# allocator, but the memory of a donated argument becomes a result's: a second executable of such a
# program takes an array for each of its large results (`compilation.with_scratch`), and gets some
# from the pool. It is compiled once the time saved by it would have paid for that; until then, and
# if the pool has nothing free, the program is called as it is.
#
# The pool holds results that were given out. A result that nothing else references is free. There
# is no other way to its memory: views of NumPy's, by the buffer protocol, hold the array, and XLA
# knows those of DLPack, and copies. With jax in the process nothing is pooled: its arrays share
# buffers in ways that no count of references shows.


LARGE: Final = (32 << 20) - 4096
"""The least bytes of a pooled result; glibc keeps the memory of smaller ones, with its overhead."""
KEPT: Final = 512 << 20
"""The most bytes of results that the pool holds, referenced elsewhere or not."""
GAIN: Final = 1.5e-10
"""Seconds saved for each byte that is not newly mapped, as measured; some machines save more."""
_UNHELD: Final = [object()]
"""An object that only a list references; its reference count depends on Python's version."""


def pools_results() -> bool:
    """Return whether results are pooled in the present state of the process."""
    return _is_asked_for() and not boot.jax_is_loaded()


@boot.once
def _is_asked_for() -> bool:
    return wanted_memory() == REUSE


def pooled(outputs: Sequence[Aval]) -> tuple[int, ...]:
    """Return the indices of large results; empty if the pool could not hold them twice.

    Callers often have the last results in their hands while they ask for the next.
    """
    found = tuple([i for i, output in enumerate(outputs) if _nbytes(output) >= LARGE])
    return found if 2 * sum(_nbytes(outputs[i]) for i in found) <= KEPT else ()


class Recipe(NamedTuple):
    """The inputs of compiling a second executable."""

    code: bytes
    """The module, as bytecode."""
    options: bytes
    """Compile options, serialised."""
    seconds: float
    """The compilation time of the first one."""

    def pack(self) -> bytes:
        """Return the recipe as bytes."""
        return _HEAD.pack(self.seconds, len(self.options)) + self.options + self.code

    @classmethod
    def unpack(cls, content: bytes) -> Recipe:
        """Restore a packed recipe."""
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
        """Return arrays of these types that may be donated; none unless there is one for each."""
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
            held = sum(_nbytes(boot.raw_aval(array)) for array in self._arrays)
            while held > KEPT:
                held -= _nbytes(boot.raw_aval(self._arrays.pop(0)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._arrays.clear()


POOL: Final = Pool()
"""The pool of this process."""


class Reuse:
    """Calls of a program with large results, by `execute` or an executable that reuses arrays.

    `make` gives a function that takes the arrays after the other arguments, or None; it needs
    `seconds`.
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
        if not pools_results():  # a jax has come
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
                return self._execute(buffers)  # free memory has been released
        return self._into([*buffers, *free])


def _nbytes(aval: Aval) -> int:
    count: int = aval.dtype.itemsize
    for size in aval.shape:
        count *= size
    return count


def _is_free(arrays: list[Any], index: int) -> bool:
    """Return whether only the list references an array that still has its memory."""
    if sys.getrefcount(arrays[index]) != sys.getrefcount(_UNHELD[0]):
        return False
    array = arrays[index]
    return not weakref.getweakrefcount(array) and not array.is_deleted()
