"""The supported versions of Python and jaxlib, which the tests run with, and others.

`make compat` tries the oldest, the newest and the Pythons between; README has the table.
"""

from __future__ import annotations

import _thread
import re
import sys
import types
import warnings
from functools import cache
from typing import Final

TESTED: Final = {"Python": ("3.11", "3.15"), "jaxlib": ("0.10.2", "0.12.0.1")}
"""The oldest and the newest version of each."""
_RISKS: Final = {
    "Python": "kernels may be refused or misread",
    "jaxlib": "kernels may fail to compile or give other results; "
    "`pip install 'jaxlib>={},<={}'` installs a tested one",
}


class UntriedVersionWarning(UserWarning):
    """Python is newer than those that pscdsl is tested with, or jaxlib is newer or older.

    The warning about Python is given once, where pscdsl is imported first; that about jaxlib once,
    when XLA is first used.  Everything works as far as it can.  To silence both, say so before the
    import:

    ```python
    warnings.filterwarnings("ignore", message="pscdsl is tested with")
    ```

    The environment variable `PYTHONWARNINGS="ignore:pscdsl is tested with"` does the same.  After
    the import, `category=psc.UntriedVersionWarning` can be used for the warning about jaxlib.

    Examples:
        >>> import warnings
        >>> warnings.simplefilter("ignore", psc.UntriedVersionWarning)
    """

    __module__ = "pscdsl"


@cache
def require_python() -> None:
    """Raise an ImportError where the package cannot work; warn of a Python newer than the tested.

    It is asked when the package is imported, and not again when it is reloaded.
    Only an interpreter from Python 3.12 on says whether it is the main one.
    """
    if not getattr(_thread, "_is_main_interpreter", lambda: True)():
        raise ImportError(
            "pscdsl does not work in subinterpreters, because NumPy and jaxlib do not: "
            "import it in the main interpreter, and use threads or processes"
        )
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "pscdsl needs the global interpreter lock, and this free-threaded Python runs "
            "without it: set the environment variable PYTHON_GIL=1"
        )
    warn_if_untried("Python", sys.version.split()[0])


def warn_if_untried(name: str, installed: str) -> None:
    """Give an `UntriedVersionWarning` at the user's line, if a version is not in the range."""
    oldest, newest = TESTED[name]
    if _numbers(installed, like=oldest) < _numbers(oldest):
        age = "older"
    elif _numbers(installed, like=newest) > _numbers(newest):
        age = "newer"
    else:
        return
    text = f"pscdsl is tested with {name} {oldest} to {newest}, and {installed} is {age}: "
    text += _RISKS[name].format(oldest, newest)
    warnings.warn_explicit(text, UntriedVersionWarning, *_place())


def _numbers(version: str, like: str = "") -> list[int]:
    """Return the numbers that a version begins with, as many as those of another."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(word) for word in match[0].split(".")] if match else []
    length = like.count(".") + 1 if like else len(numbers)
    return [*numbers, *[0] * length][:length]


def _place() -> tuple[str, int]:
    """Return the file and the line that called this package, or imported it."""
    from pscdsl._src.support.tracebacks import is_ours  # nearly all imports warn of nothing

    users: types.FrameType | None = None
    frame: types.FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if is_ours(frame.f_code):
            users = None
        elif users is None and not frame.f_code.co_filename.startswith("<frozen "):
            users = frame
        frame = frame.f_back
    return ("sys", 1) if users is None else (users.f_code.co_filename, users.f_lineno)
