"""The clock by which work is bounded, which other threads and processes do not move on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

thread_time: Final[Callable[[], float]] = getattr(time, "thread_time", time.process_time)
"""Return the seconds that this thread has computed; those of the process in a browser."""
