"""Tracebacks of errors of the user's, without our own frames.

An error that leaves one of our functions has an entry for each frame that it went through.  Where
the outermost of ours sets the entries anew and says `raise` alone, Python adds none for it.  Errors
of ours keep all: their readers want to know where they are from.

PSCDSL_TRACEBACK=full   every error keeps all
"""

from __future__ import annotations

import contextlib
import functools
import os
import types
from collections.abc import Callable
from opcode import opmap
from typing import Final, ParamSpec, TypeVar

# Where the files of the package are, and which classes are its own.


FOLDER: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder `pscdsl` itself."""
LIBRARY: Final = os.path.realpath(os.path.join(FOLDER, "stdlib"))
"""The standard library, where its links lead."""
OWN_PRIMITIVES: Final = ("pscdsl._src.primitives.", "pscdsl._src.targets.")
"""How the names of modules begin that define primitives of ours."""


P = ParamSpec("P")
R = TypeVar("R")

VARIABLE: Final = "PSCDSL_TRACEBACK"
FULL: Final = "full"
_PACKAGE: Final = os.path.join(FOLDER, "")
_BETWEEN: Final = (functools.__file__, contextlib.__file__)
"""Other code that ours goes through."""
_RAISE: Final = opmap["RAISE_VARARGS"]


class UsersError(Exception):
    """Base of errors that say what is wrong with a user's program, and never with ours."""


def shown(error: BaseException) -> types.TracebackType | None:
    """The traceback of an error that leaves our code, as the user is to see it."""
    found = error.__traceback__
    if found is None or os.environ.get(VARIABLE) == FULL or not _is_users(error):
        return found
    entries: list[types.TracebackType] = []
    while found is not None:
        if not is_ours(found.tb_frame.f_code):
            entries.append(found)
        found = found.tb_next
    made: types.TracebackType | None = None
    for entry in reversed(entries):
        made = types.TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made


def _is_users(error: BaseException) -> bool:
    """Whether an error is the user's: it is of such a class, or we say that an argument is none."""
    if isinstance(error, UsersError):
        return True
    if type(error) not in (TypeError, ValueError, LookupError, AttributeError):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    missed = type(error) is TypeError and code is _CALL  # the arguments are not those it takes
    return missed or (is_ours(code) and code.co_code[last.tb_lasti] == _RAISE)


def is_ours(code: types.CodeType) -> bool:
    """Whether code is of this package, or was written by it."""
    file = code.co_filename
    return file in _BETWEEN or file.startswith(_PACKAGE)


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call, whose errors of theirs have none of our frames."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = shown(error)
            raise

    return call


_CALL: Final[object] = getattr(public(shown), "__code__", None)
