"""Whether a call returns when its results are there, or while they are still being computed.

XLA:CPU hands a program to a thread of its own, unless its client was made to run programs where
they are called.  The handing over costs more than most programs that are called often: with two
processors, the product of a matrix of 512x512 and a vector takes 44 us by another thread and 20 us
without, an update of 64k numbers 76 and 27 us.  Programs still use all threads for their parts, and
other threads of Python's run meanwhile.  What is lost is the time in which the caller could have
prepared the next call.

PSCDSL_CALLS=wait    a call returns when its results are there, the default
PSCDSL_CALLS=async   it may return before: for programs that do work of their own meanwhile
"""

from __future__ import annotations

from typing import Final

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.environment import word

VARIABLE: Final = "PSCDSL_CALLS"
WAIT: Final = "wait"
ASYNC: Final = "async"


@boot.once
def calls_wait() -> bool:
    """Whether programs run where they are called; a ValueError if the word is none of ours."""
    return word(VARIABLE, (WAIT, ASYNC)) == WAIT
