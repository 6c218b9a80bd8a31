"""How many processors XLA shares work out over."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

VARIABLE: Final = "PJRT_NPROC"
"""The environment variable that takes the place of the system's number."""


@cache
def processors() -> int:
    """How many threads XLA has, which is decided when its client starts."""
    given = os.environ.get(VARIABLE, "").strip()
    if given.isdecimal():
        return max(1, int(given))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
