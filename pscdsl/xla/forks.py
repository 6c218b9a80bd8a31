"""What there is one of in a process, and what is left of it in processes that are forked.

XLA's client has threads, which a forked child does not have: who waits for them waits for ever, and
locks that they held are never given back.  That is so for whatever uses several threads, and for
compiling, also by a client that the child makes.  So a child of a process with a client refuses to
run and to compile, and says what to do.  Children of a process that has none yet, which are forked
before the first call of a kernel, make their own.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, Final, Protocol, TypeVar

from pscdsl.tracebacks import UsersError

Made = TypeVar("Made")


class ForkedProcessError(UsersError, RuntimeError):
    """A kernel was to be run or compiled in a process that cannot."""


_SAID: Final = (
    "kernels do not run in a process that was forked after the first of them had run: "
    "XLA's threads are missing here. Start processes by "
    'multiprocessing.get_context("spawn") or "forkserver", or fork before the first call'
)


class Forked(Protocol):
    """Something that has to know that it is in a process which cannot run kernels."""

    def forked(self) -> None:
        """Refuse to be called from now on."""
        ...


class _State:
    """Whether kernels can run in this process."""

    __slots__ = ("can_run",)

    def __init__(self) -> None:
        self.can_run = True


STATE: Final = _State()
_making: Final[Any] = RLock()
_ours: Final[list[list[Any]]] = []
"""What belongs to a client, each in a list that is empty until it is made."""
_told: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def tell(thing: Forked) -> None:
    """Have something told when its process turns out to be one that cannot run kernels."""
    _told.add(thing)


def require() -> None:
    """Refuse to go on where a kernel would wait for ever."""
    if not STATE.can_run:
        raise ForkedProcessError(_SAID)


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """A thing of which a process has one, made at first use, by whichever thread comes first."""
    return _once(make, [])


def once_a_client(make: Callable[[], Made]) -> Callable[[], Made]:
    """The same for the client and what belongs to it."""
    made: list[Made] = []
    _ours.append(made)
    return _once(make, made)


def _once(make: Callable[[], Made], made: list[Made]) -> Callable[[], Made]:
    @wraps(make)
    def get() -> Made:
        if not made:
            with _making:
                if not made:
                    made.append(make())
        return made[0]

    return get


def _keep_for_ever(things: list[Any]) -> None:
    """Never free what belongs to the parent's client: that may wait for its threads."""
    import ctypes

    for each in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def _in_child() -> None:
    _making._at_fork_reinit()  # a thread of the parent's may have had it
    if not any(_ours):
        return
    STATE.can_run = False
    for made in _ours:
        _keep_for_ever(made)
        made.clear()
    for thing in list(_told):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
