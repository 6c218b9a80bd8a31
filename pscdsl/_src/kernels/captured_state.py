"""What a kernel captured is compared with what is there now, whenever the kernel is called.

The front end refuses what any text of the project may write.  What no text shows (names that are
computed, files outside of the project, extensions) is found here: the names that were looked up
when the kernel was read are looked up again, and have to stand for the same objects.  That takes
some tens of nanoseconds a name; names of libraries and modules are left out, so that a kernel
without others is called directly.

PSCDSL_CAPTURES=contents   what arrays, lists and dicts hold is compared, too
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, is_, itemgetter
from typing import Any, Final

import numpy as np

from pscdsl._src.frontend.modules.traces import (
    CAPTURED,
    CODE,
    DEFAULTS,
    MISSING,
    Trace,
    class_of,
    is_outside,
    namespace_of,
)
from pscdsl._src.support.tracebacks import shown

VARIABLE: Final = "PSCDSL_CAPTURES"
CONTENTS: Final = "contents"
_OUTSIDE: Final = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, np.dtype)


class Watch:
    """The look-ups that led to a kernel and all that it meets."""

    def __init__(self, traces: Iterable[Trace | None], own: object) -> None:
        self._traces = list(_all_of(traces))
        by_owner: dict[int, tuple[Any, dict[str, Any]]] = {}
        absent: dict[int, tuple[Any, list[str]]] = {}
        parts: list[tuple[Any, Any, tuple[Any, ...]]] = []
        for trace in self._traces:
            for (_, event), (owner, found) in trace.lookups.items():
                if owner is own and event in (CODE, DEFAULTS):
                    continue  # of the kernel itself, whose function is held by nobody else
                if event == CODE:
                    parts.append((attrgetter("__code__", "__code__"), owner, (found, found)))
                elif event == DEFAULTS:
                    parts.append((attrgetter("__defaults__", "__kwdefaults__"), owner, found))
                elif event.startswith(CAPTURED):
                    cell = _cell(owner, event.removeprefix(CAPTURED))
                    if cell is not None:
                        get = attrgetter("cell_contents", "cell_contents")
                        parts.append((get, cell, (found, found)))
                elif event.isidentifier() and not _is_outside(owner, found):
                    namespace = namespace_of(owner)
                    if found is MISSING:
                        absent.setdefault(id(namespace), (namespace, []))[1].append(event)
                    else:
                        by_owner.setdefault(id(namespace), (namespace, {}))[1][event] = found
        for namespace, names in by_owner.values():
            keys = [*names, next(iter(names))]  # two or more, so that a tuple is found
            parts.append((itemgetter(*keys), namespace, tuple([names[key] for key in keys])))
        if parts:  # a name of Python's own, which the module may come to have
            for namespace, missing in absent.values():
                parts.append((_has_none_of(missing), namespace, (True,)))
        self._parts = parts
        self._contents = os.environ.get(VARIABLE) == CONTENTS

    def __bool__(self) -> bool:
        return bool(self._parts)

    def guarded(self, entry: Callable[..., Any], refuse: Callable[[], None]) -> Callable[..., Any]:
        """An entry that is entered only if all is as it was; else `refuse` is called before."""
        parts, same, contents = tuple(self._parts), is_, self._contents

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                changed = contents
                for get, owner, found in parts:
                    if not all(map(same, get(owner), found)):
                        changed = True
            except (LookupError, AttributeError, ValueError):  # it is not there any more
                changed = True
            if changed:
                try:
                    refuse()
                except Exception as error:
                    error.__traceback__ = shown(error)
                    raise
            return entry(*args, **kwargs)

        return call

    def arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """The arrays of NumPy's among what was looked up, also in tuples, lists and dicts."""
        for trace in self._traces:
            for _, found in trace.lookups.values():
                yield from _arrays_in(found)

    def changed(self) -> Iterator[str]:
        """What is looked up and is something else than it was."""
        for trace in self._traces:
            yield from trace.different(contents=self._contents)


def _all_of(traces: Iterable[Trace | None]) -> Iterator[Trace]:
    """The traces, and those of all that was met."""
    seen: set[int] = set()
    pending = [each for each in traces if each is not None]
    while pending:
        trace = pending.pop()
        if id(trace) not in seen:
            seen.add(id(trace))
            yield trace
            pending += [each for _, each in trace.met.values() if each is not None]


def _arrays_in(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(value, np.ndarray):
        yield value
    elif type(value) in (tuple, list):
        for each in value:
            yield from _arrays_in(each)
    elif type(value) is dict:
        yield from _arrays_in([*value.values()])


def _has_none_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[bool]]:
    return lambda namespace: (namespace.keys().isdisjoint(names),)


def _cell(function: Any, name: str) -> Any:
    """The cell in which a function has a name of the function around it."""
    code: types.CodeType = function.__code__
    cells: Mapping[str, Any] = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    return cells.get(name)


def _is_outside(owner: Any, found: Any) -> bool:
    """Whether a name belongs to a library, or stands for a part of one."""
    home = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    if home is not None and is_outside(str(home)):
        return True
    if isinstance(found, _OUTSIDE) or class_of(found).__module__.startswith("pscdsl.typing"):
        return True
    kind: Any = found if isinstance(found, type | types.FunctionType) else class_of(found)
    return isinstance(found, type | types.FunctionType) and is_outside(str(kind.__module__))
