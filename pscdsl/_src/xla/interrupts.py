"""Ctrl-C during a call: the first is answered when the call returns, the second ends the process.

A call runs in C++, where nothing looks at signals, and cannot be left.  Python writes each signal
that arrives to a descriptor, if it is given one; a thread reads there.  With the first Ctrl-C it
asks Python to tell when the main thread is in Python again.  If it was not when another one comes,
the process is ended.  Calls pay nothing for that.

Code that has given Python a descriptor before, as asyncio does for handlers of signals, keeps it.
IPython's prompt takes it away each time: there, it is given again before each cell.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any, Final

from pscdsl._src.support.processes import WATCHER

APART: Final = 0.3
"""Seconds: sooner signals are the same Ctrl-C, seen twice."""
EXIT: Final = 130
"""The exit status that shells report after SIGINT."""
_SAID: Final = b"\npscdsl: interrupted twice during a call that does not return: the process ends\n"


class Watcher:
    """A thread that reads the signals of this process."""

    def __init__(self) -> None:
        self._reads, self.writes = os.pipe()
        os.set_blocking(self.writes, False)
        self._asked = 0.0
        """The time of a first unanswered Ctrl-C; 0 if there is none."""
        self._answer: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._answered)
        threading.Thread(target=self._watch, name=WATCHER, daemon=True).start()

    def _answered(self, _: object) -> int:
        """Called by Python in the main thread, where it would also run a handler."""
        self._asked = 0.0
        return 0

    def _watch(self) -> None:
        while signals := os.read(self._reads, 64):
            if signal.SIGINT not in signals:
                continue
            now = time.monotonic()
            if not self._asked:
                self._asked = now
                ctypes.pythonapi.Py_AddPendingCall(self._answer, None)
            elif now - self._asked > APART:
                os.write(2, _SAID)
                os._exit(EXIT)


_WATCHER: Final[list[Watcher]] = []


def watch() -> None:
    """Watch for Ctrl-C if this is the main thread, and no other handler is installed."""
    if threading.current_thread() is not threading.main_thread():
        return
    if not callable(signal.getsignal(signal.SIGINT)):
        return  # it ends the process, or is ignored
    if not _WATCHER:
        _WATCHER.append(Watcher())
        get: Any = getattr(sys.modules.get("IPython"), "get_ipython", None)
        shell: Any = None if get is None else get()
        if shell is not None:
            shell.events.register("pre_run_cell", _before_cell)
    _give(_WATCHER[0].writes, instead_of=-1)


def _before_cell(_: object) -> None:
    watch()


def _give(descriptor: int, *, instead_of: int) -> None:
    """Have Python write signals to a descriptor, unless it has another one already."""
    before = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    if before not in (descriptor, instead_of):
        signal.set_wakeup_fd(before)


def _in_child() -> None:
    """Detach the signals of a forked child: the other end of the pipe is its parent's."""
    if _WATCHER:
        _give(-1, instead_of=_WATCHER.pop().writes)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
