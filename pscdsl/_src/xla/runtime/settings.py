"""Settings of calls and compiled programs: variables and bounds, for which jaxlib is not loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Final

from pscdsl._src.support.processes import once

LOOP_BYTES: Final = 1 << 18
"""The bytes that a step of a native loop may move, in every program; see `compilation`.

A loop that takes a matrix of 100x100 doubles twice needs 0.55 of the time that it needs at half of
this; matrices of 128x128 0.65.  With twice of this, threads are lost on 64k floats.
"""


WITHOUT: Final = "PSCDSL_WITHOUT"
"""The environment variable that names the speed forms that are not to be used."""


def without() -> frozenset[str]:
    """Return the names in `PSCDSL_WITHOUT`, including those of unknown forms."""
    names = os.environ.get(WITHOUT, "").split(",")
    return frozenset(name for part in names if (name := part.strip()))


def word(variable: str, words: Sequence[str]) -> str:
    """Return the variable's word, by default the first; raise ValueError for any other word."""
    given = os.environ.get(variable, "").strip() or words[0]
    if given not in words:
        raise ValueError(f"{variable} is `{given}`; it can be {', '.join(words)}")
    return given


# Whether a call returns after its results are computed, or before.
#
# XLA:CPU hands a program to a separate thread, unless its client was made to run programs in the
# calling thread. The handing over costs more than most programs that are called often: with two
# processors, the product of a matrix of 512x512 and a vector takes 44 us by another thread and 20
# us without, an update of 64k numbers 76 and 27 us. Programs still use all threads for their parts,
# and Python's other threads run meanwhile. The caller only loses the time in which it could have
# prepared the next call.
#
# PSCDSL_CALLS=wait, the default: a call returns when its results are computed.
#
# PSCDSL_CALLS=async: it may return before, for programs that do other work meanwhile.


CALLS_VARIABLE: Final = "PSCDSL_CALLS"
WAIT: Final = "wait"
ASYNC: Final = "async"


@once
def calls_wait() -> bool:
    """Return whether calls wait for their results; raise ValueError for an unknown word."""
    return word(CALLS_VARIABLE, (WAIT, ASYNC)) == WAIT


# The number of processors that XLA shares work among.


PROCESSORS_VARIABLE: Final = "PJRT_NPROC"
"""The environment variable that takes the place of the system's number."""


@cache
def processors() -> int:
    """Return the number of XLA's threads, which is fixed when its client starts."""
    given = os.environ.get(PROCESSORS_VARIABLE, "").strip()
    if given.isdecimal():
        return max(1, int(given))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
