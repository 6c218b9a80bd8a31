"""Memory that results gave back is kept for the next ones: what the C library is told of it.

XLA:CPU asks malloc for the memory of every result.  glibc maps large blocks anew and unmaps them
when they are freed, or cuts free memory off the end of its heap, so that each result is paid for
with a page fault every 4 kB: several times what a bandwidth-bound program takes.  jaxlib's client
takes no allocator of ours, but glibc's limits can be moved while a process runs (mallopt(3)), for
the whole process:

threshold      blocks up to 32 MiB, the most that glibc takes, come from its heap
trim           the heap keeps up to 256 MiB of free memory at its end
pad            the heap grows by 128 MiB more than it must, of addresses; this is also what keeps
               the small heaps of threads other than the main one
fast           blocks of up to 24 bytes wait to be taken again, others are joined with free ones
               next to them when they are freed.  By itself glibc has blocks of up to 128 bytes wait
               until it runs out of memory to cut from; with as much as it keeps here that takes
               long, and what XLA's aligned blocks leave over lay in a million pieces over 60 MB:
               after the first 20,000, calls found their memory in no cache, and took 1.4 times as
               long

Free memory inside the heap stays resident until something takes it, as it always does.  Larger
results are kept for the next ones by `pool`.

PSCDSL_MEMORY=system   everything is left as it is, the default: all this is for a whole process
PSCDSL_MEMORY=reuse    as above
PSCDSL_MEMORY=heap     blocks of any size, from one heap of all threads that keeps up to 2 GiB, in
                       place of the pool: for programs that work on large arrays, and nothing else,
                       to their end

Where the environment has settings of its own for it (MALLOC_*, GLIBC_TUNABLES), with another C
library, or another malloc in place of glibc's, nothing is set either.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Final

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.environment import word

VARIABLE: Final = "PSCDSL_MEMORY"
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
"""What is set for which word, in order.

The threshold is refused beyond half of HEAP_MAX_SIZE, 32 MiB where addresses have 64 bits.  Any of
these ends glibc's own adaptation, so that the trim threshold has to be given as well.  A pad of
less than HEAP_MAX_SIZE, 64 MiB, lets threads other than the main one give a block's heap back.
"""


class _Place(ctypes.Structure):
    """What dladdr(3) tells."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class _Counts(ctypes.Structure):
    """What mallinfo(3) tells, modulo 2^32; older C libraries have no mallinfo2."""

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
    """Have freed memory kept for the next results, once a process; whether that was done."""
    settings = SETTINGS.get(wanted(), ())
    if not settings or not glibc():
        return False
    process = ctypes.CDLL(None)
    return malloc_is_glibcs(process) and all(
        [process.mallopt(option, value) == 1 for option, value in settings]
    )


def wanted() -> str:
    """The word that the environment says; a ValueError if it is none that we know."""
    given = word(VARIABLE, (SYSTEM, *SETTINGS))
    if "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", ""):
        return SYSTEM
    return SYSTEM if any(name.startswith("MALLOC_") for name in os.environ) else given


def glibc() -> bool:
    """Whether this process runs on Linux with glibc, and has addresses of 64 bits."""
    if not sys.platform.startswith("linux") or sys.maxsize <= 1 << 32:
        return False
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):  # another C library does not know the name
        return False


def malloc_is_glibcs(process: Any) -> bool:
    """Whether the C library gives the memory that malloc gives, and mallopt sets the C library.

    A replacement (jemalloc, tcmalloc) is preloaded or linked in.  Where malloc lies does not say
    so: in a program at fixed addresses, such as Debian's Python, it is a stub of the program.
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
    """Whether the C library counts a block that malloc gives."""
    process.malloc.restype = ctypes.c_void_p
    process.mallinfo.restype = _Counts
    before = process.mallinfo()
    block = ctypes.c_void_p(process.malloc(_BLOCK))
    after = process.mallinfo()
    process.free(block)
    new = after.allocated - before.allocated + after.mapped - before.mapped
    return block.value is not None and _BLOCK <= new % (1 << 32) < 2 * _BLOCK


def _file_of(process: Any, function: Any) -> bytes | None:
    """The file of the library that a function was found in."""
    place = _Place()
    address = ctypes.cast(function, ctypes.c_void_p)
    found: int = process.dladdr(address, ctypes.byref(place))
    return place.file if found else None
