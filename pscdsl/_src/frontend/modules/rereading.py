"""Kernels are read again after their sources were loaded again.

A kernel stays as it was when it was first read: calls check nothing. But `importlib.reload` and
`%autoreload` replace functions, classes and values that the kernel found, and so do cells of a
notebook that define them again. At the first call after such an event, all kernels that were read
are checked: do their look-ups still find the same values? The others are forgotten, and read again
when they are called.
"""

from __future__ import annotations

import importlib
import sys
import types
import weakref
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from pscdsl._src.frontend.modules.traces import Trace


class Read(Protocol):
    """Something that is read when it is first needed: a kernel, or a function with rules."""

    @property
    def trace(self) -> Trace | None:
        """The look-ups when it was read."""
        ...

    def ask_first(self) -> None:
        """Call `reread` before the next call, if calls go past it."""
        ...

    def go_on(self) -> None:
        """Stop calling it."""
        ...

    def found_changed(self, changed: Callable[[object], bool]) -> bool:
        """Return whether it would be read differently now for reasons outside its trace."""
        ...

    def forget(self) -> None:
        """Be read again."""
        ...


class _Asking:
    """The state of the checks for kernels to read again."""

    __slots__ = ("asked", "asks", "watches")

    def __init__(self) -> None:
        self.asked = False
        """Before the next call."""
        self.asks = False
        """Just now."""
        self.watches = False


STATE: Final = _Asking()
_lock: Final = RLock()
_read: Final[weakref.WeakSet[Read]] = weakref.WeakSet()


def tell(thing: Read) -> None:
    """Register a thing that is read now for later checks."""
    _read.add(thing)
    if not STATE.watches:
        STATE.watches = True
        sys.meta_path.insert(0, _Reloads())
        get: Any = getattr(sys.modules.get("IPython"), "get_ipython", None)
        shell: Any = None if get is None else get()
        if shell is not None:
            shell.events.register("pre_run_cell", ask)


class _Reloads:
    """Receives each module that is loaded again, and finds none."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Have kernels checked if a module that exists already is loaded again; find nothing."""
        if target is not None:
            ask()


AUTORELOAD: Final = "IPython.extensions.autoreload"
"""The extension that gives imported functions the code of their replacements."""


def successor(function: types.FunctionType, kernel: object, spec: object) -> object:
    """Return the replacement of a kernel in the module that `spec` loaded; the kernel if none."""
    module = sys.modules.get(function.__module__)
    if AUTORELOAD not in sys.modules or module is None:
        return kernel
    if spec is None or spec is module.__spec__:
        return kernel
    found: object = vars(module).get(function.__qualname__, kernel)
    return found


def spec_of(function: types.FunctionType, kernel: object) -> ModuleSpec | None:
    """Return the spec of a kernel's module if the kernel has its name there; None otherwise."""
    module = sys.modules.get(function.__module__)
    stands = module is not None and vars(module).get(function.__qualname__) is kernel
    return module.__spec__ if stands and module is not None else None


def ask(cell: object = None) -> None:
    """Have everything that was read checked before its next call, as when a cell is run."""
    del cell
    with _lock:
        STATE.asked = True
        for thing in list(_read):
            thing.ask_first()


def read_things() -> list[Any]:
    """Return the kernels, and functions with rules, that were read so far."""
    return list(_read)


def reread() -> None:
    """Forget the things that would be read differently by now, if there may be any."""
    if not STATE.asked:
        return
    with _lock:
        if STATE.asked and not STATE.asks:
            STATE.asks = True
            try:
                _ask_all()
            finally:
                STATE.asks = False


def _ask_all() -> None:
    things = list(_read)
    for thing in [each for each in things if _changed(each, set())]:
        thing.forget()
    if not getattr(importlib, "_RELOADING", None):  # else a module goes on to change
        for thing in things:
            thing.go_on()
        STATE.asked = False


def _changed(thing: object, asked: set[int]) -> bool:
    """Return whether a thing, or one that its reading met, would be read differently now."""
    if id(thing) in asked:
        return False
    asked.add(id(thing))

    def changed(each: object) -> bool:
        return _changed(each, asked)

    if isinstance(thing, type):
        # A class was read: it is loaded.
        from pscdsl._src.frontend.modules.live import is_as_read, trace_of

        return not is_as_read(thing) or _met_changed(trace_of(thing), changed)
    if not hasattr(thing, "found_changed"):
        return False  # a primitive or a function that is vouched for never changes
    known = cast("Read", thing)
    return known.found_changed(changed) or _met_changed(known.trace, changed)


def _met_changed(trace: Trace | None, changed: Callable[[object], bool]) -> bool:
    if trace is None:
        return False
    if trace.changed():
        return True
    from pscdsl._src.frontend.modules.live import trace_of  # a kernel was read: it is loaded

    return any([trace_of(each) is not then or changed(each) for each, then in trace.met.values()])
