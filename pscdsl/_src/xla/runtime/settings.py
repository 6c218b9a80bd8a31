"""Settings of calls and of compiled programs: what the environment says, and bounds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Final

from pscdsl._src.support.processes import once

LOOP_BYTES: Final = 1 << 18
"""The bytes that a step of a native loop may move, in every program; see `compile.compile_module`.

A loop that takes a matrix of 100x100 doubles twice needs 0.55 of the time that it needs at half of
this; matrices of 128x128 0.65.  With twice of this, threads are lost on 64k floats.
"""


WITHOUT: Final = "PSCDSL_WITHOUT"
"""The environment variable that names the speed forms that are not to be used."""


def without() -> frozenset[str]:
    """The names in `PSCDSL_WITHOUT`, whether or not there are such forms."""
    names = os.environ.get(WITHOUT, "").split(",")
    return frozenset(name for part in names if (name := part.strip()))


def word(variable: str, words: Sequence[str]) -> str:
    """One of these words, the first if nothing is said; a ValueError if it is none of them."""
    given = os.environ.get(variable, "").strip() or words[0]
    if given not in words:
        raise ValueError(f"{variable} is `{given}`; it can be {', '.join(words)}")
    return given


# Whether a call returns when its results are there, or while they are still being computed.
#
# XLA:CPU hands a program to a thread of its own, unless its client was made to run programs where
# they are called. The handing over costs more than most programs that are called often: with two
# processors, the product of a matrix of 512x512 and a vector takes 44 us by another thread and 20
# us without, an update of 64k numbers 76 and 27 us. Programs still use all threads for their parts,
# and other threads of Python's run meanwhile. What is lost is the time in which the caller could
# have prepared the next call.
#
# PSCDSL_CALLS=wait    a call returns when its results are there, the default
# PSCDSL_CALLS=async   it may return before: for programs that do work of their own meanwhile


CALLS_VARIABLE: Final = "PSCDSL_CALLS"
WAIT: Final = "wait"
ASYNC: Final = "async"


@once
def calls_wait() -> bool:
    """Whether programs run where they are called; a ValueError if the word is none of ours."""
    return word(CALLS_VARIABLE, (WAIT, ASYNC)) == WAIT


# How many processors XLA shares work out over.


PROCESSORS_VARIABLE: Final = "PJRT_NPROC"
"""The environment variable that takes the place of the system's number."""


@cache
def processors() -> int:
    """How many threads XLA has, which is decided when its client starts."""
    given = os.environ.get(PROCESSORS_VARIABLE, "").strip()
    if given.isdecimal():
        return max(1, int(given))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
