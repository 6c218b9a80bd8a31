"""The jaxlib versions that the tests run with, and the warning about others.

XLA comes with jaxlib and changes with it.  `make compat` tries the oldest and the newest, and
README has the table; pip must not choose another one.
"""

from __future__ import annotations

import re
import sys
import types
import warnings
from typing import Final

from pscdsl._src.support.tracebacks import FOLDER

OLDEST: Final = "0.10.2"
NEWEST: Final = "0.12.0.1"
"""Of jaxlib."""
_PACKAGE: Final = FOLDER


class UntriedVersionWarning(UserWarning):
    """The installed jaxlib is older or newer than those that pscdsl is tried with.

    It is given once, when XLA is first used, and everything works as far as it can.  To silence it:

    ```python
    warnings.filterwarnings("ignore", category=psc.UntriedVersionWarning)
    ```
    """

    __module__ = "pscdsl"


def warn_if_untried(installed: str) -> None:
    """An `UntriedVersionWarning`, at the line that uses XLA, if a version is not in the range."""
    if _numbers(OLDEST) <= _numbers(installed) <= _numbers(NEWEST):
        return
    age = "older" if _numbers(installed) < _numbers(OLDEST) else "newer"
    text = (
        f"jaxlib {installed} is {age} than the versions that pscdsl is tried with, {OLDEST} to "
        f"{NEWEST}: kernels may fail to compile or give other results; "
        f"`pip install 'jaxlib>={OLDEST},<={NEWEST}'` installs one that is tried"
    )
    file, line = _place()
    warnings.warn_explicit(text, UntriedVersionWarning, file, line)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, with zeros behind, so that 0.12 is 0.12.0."""
    found = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(word) for word in found[0].split(".")] if found else []
    return (*numbers, *[0] * (6 - len(numbers)))


def _place() -> tuple[str, int]:
    """The line that called this package."""
    at = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    frame: types.FrameType | None = at
    while frame is not None:
        caller = frame.f_back
        if frame.f_code.co_filename.startswith(_PACKAGE) and caller is not None:
            at = caller
        frame = caller
    return at.f_code.co_filename, at.f_lineno
