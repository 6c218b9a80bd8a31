"""Processes in which kernels cannot run: some forked ones, and those about to end.

XLA's client has threads, which a forked child does not have: waiting for them never ends, and the
locks that they held are never released. This concerns everything that uses several threads, and
compilation, even by a client that the child makes. So a child of a process with a client refuses to
run and to compile, and explains the remedy. Children of a process without a client yet, which are
forked before the first call of a kernel, make their own.

While Python shuts down, it loads no modules, so that nothing is compiled; kernels that were called
before can be called. Python also ends other threads where they return to it: in C++ that is a
crash. So they do not return: as soon as the functions of `atexit` are called, kernels that other
threads call never return, and running ones are waited for, up to a bound.

Caches of a program's modules are emptied then. Parts of this package live until after Python has
cleared its builtins: a module that is reachable from here would live as long, and a `__del__` of
its objects would run without `float` and `print`.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Mapping, MutableMapping
from functools import wraps
from threading import RLock
from typing import Any, Final, Protocol, TypeVar

from pscdsl._src.support.tracebacks import UsersError, is_ours

Made = TypeVar("Made")


class ForkedProcessError(UsersError, RuntimeError):
    """A kernel was to be run or compiled in a process that cannot."""


_SAID: Final = (
    "kernels do not run in a process that was forked after the first of them had run: "
    "XLA's threads are missing here. Start processes by "
    'multiprocessing.get_context("spawn") or "forkserver", or fork before the first call'
)


class ShutdownError(UsersError, RuntimeError):
    """A kernel was to be compiled while Python shuts down."""


class Asking(Protocol):
    """Something that is called, and has to know where it can be."""

    def ask_first(self) -> None:
        """Call `require` before anything else, from now on."""
        ...


class _State:
    """The state of this process: whether kernels can run."""

    __slots__ = ("can_run", "is_ending")

    def __init__(self) -> None:
        self.can_run = True
        self.is_ending = False


STATE: Final = _State()
WATCHER: Final = "pscdsl interrupts"
"""The name of a thread of ours, which runs no kernels."""
LAST_CALLS: Final = 1.0
"""Seconds for which the end of a process waits for calls of other threads."""
_WAITING: Final = frozenset(
    os.path.join(os.path.dirname(os.__file__), *name.split("/")) + ".py"
    for name in "threading queue selectors socket ssl subprocess multiprocessing/connection "
    "multiprocessing/queues multiprocessing/synchronize".split()
)
"""Modules of Python in which threads wait for others."""
_making: Final[Any] = RLock()
_ours: Final[list[list[Any]]] = []
"""The objects of a client, each in a list that is empty until the object is made."""
_told: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
_forgotten: Final[list[MutableMapping[Any, Any]]] = []
"""Caches that hold modules, functions or classes of users."""


def tell(thing: Asking) -> None:
    """Register a function to call when the rules of calls change."""
    _told.add(thing)


def forget_at_end(*kept: MutableMapping[Any, Any]) -> None:
    """Empty caches of a program's modules, which can be rebuilt, when Python ends."""
    _forgotten.extend(kept)


def require() -> None:
    """Refuse to go on where a kernel would wait for ever, and stop other threads at the end."""
    if not STATE.can_run:
        raise ForkedProcessError(_SAID)
    if STATE.is_ending and threading.current_thread() is not threading.main_thread():
        while True:
            time.sleep(3600)


def require_modules() -> None:
    """Refuse to read or compile something if kernels cannot run, or modules cannot be loaded."""
    require()
    if sys.is_finalizing():
        raise ShutdownError(
            "Python is shutting down, and compiles nothing more: call a kernel for arguments of "
            "this kind before, or use `atexit` instead of `__del__`"
        )


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """Return a function that makes an object once in a process, at first use, in any thread."""
    return _once(make, [])


def once_a_client(make: Callable[[], Made]) -> Callable[[], Made]:
    """Return a function that makes an object once for each client."""
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


def has_client() -> bool:
    """Return whether there is a client, or anything else that was made once for each."""
    return any(_ours)


def keep_for_ever(thing: Any) -> None:
    """Never free an object, not even when Python ends."""
    import ctypes  # imported only when needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _in_child() -> None:
    _making._at_fork_reinit()  # a thread of the parent's may have had it
    if not any(_ours):
        return
    STATE.can_run = False
    for made in _ours:
        for each in made:
            keep_for_ever(each)  # objects of the parent's client may wait for its threads
        made.clear()
    for thing in list(_told):
        thing.ask_first()


def _at_exit() -> None:
    _stop_other_threads()
    for each in _forgotten:
        each.clear()


def _stop_other_threads() -> None:
    """Let no other thread come back from C++ while Python shuts down."""
    others = {
        each.ident: None
        for each in threading.enumerate()
        if each is not threading.current_thread() and each.name != WATCHER
    }
    if not others or not STATE.can_run or not any(_ours):
        return
    STATE.is_ending = True
    for thing in list(_told):
        thing.ask_first()
    first = _positions(others)
    end = time.monotonic() + LAST_CALLS
    while first and time.monotonic() < end:
        time.sleep(0.005)
        now = _positions(first)
        first = {ident: place for ident, place in now.items() if place == first[ident]}


def _positions(threads: Mapping[int | None, object]) -> dict[int | None, object]:
    """Return the places at which threads call possible kernels; not of stopped or waiting threads.

    A call in C++ has no frame: the innermost frame that is not ours is the caller's.
    """
    found: dict[int | None, object] = {}
    for ident, top in sys._current_frames().items():  # pyright: ignore[reportPrivateUsage]
        waits = top.f_code is require.__code__ or top.f_code.co_filename in _WAITING
        if ident in threads and not waits:
            frame: types.FrameType | None = top
            while frame is not None and is_ours(frame.f_code):
                frame = frame.f_back
            found[ident] = None if frame is None else (id(frame), frame.f_lasti)
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)
