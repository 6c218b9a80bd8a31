"""Comparison of captured values with the current ones at each call of a kernel.

Captured values are constant from the kernel's first use on. Reading the kernel takes a snapshot of
its look-ups: names of modules, cells, functions, classes and the parts of values; see `snapshots`.
A call repeats these look-ups. They must find the same objects, which takes some tens of nanoseconds
each. Names of libraries and modules are left out, so that a kernel without others is called
directly.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, is_, itemgetter
from typing import Any, Final

import numpy as np

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.frontend.modules.class_snapshots import CODE_PARTS
from pscdsl._src.frontend.modules.snapshots import CONTENT, LAYOUT, MISSING, Absent, HeldArray, Part
from pscdsl._src.frontend.modules.traces import (
    CAPTURED,
    CODE,
    DEFAULTS,
    Trace,
    namespace_of,
    shown_event,
    stands_outside,
)
from pscdsl._src.support.generated import generated
from pscdsl._src.support.tracebacks import public, shown
from pscdsl.typing.diagnostics import Failure

_CODE: Final = attrgetter(*CODE_PARTS)
_FEW: Final = 8
"""The most values that are compared one by one."""
_CELL: Final = attrgetter("cell_contents", "cell_contents")


class Watch:
    """The results of all look-ups for a kernel and for the objects that it meets.

    `own` is the function of the kernel itself, which has no other holder.
    """

    def __init__(self, traces: Iterable[Trace | None], own: object = None) -> None:
        self._traces = list(_all_of(traces))
        snapshots = [trace.snapshot for trace in self._traces]
        found = [*self._cells(), *self._functions(own), *self._names()]
        found += [part for each in snapshots for part in each.parts]
        self._parts = list(
            {(id(each.owner), repr(each.get)): each for each in found[::-1]}.values()
        )
        held = [array for each in snapshots for array in each.arrays]
        self._arrays: list[HeldArray] = list({id(each.lock): each for each in held[::-1]}.values())
        try:
            self._compared = [each for each in self._arrays if each.is_compared()]
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        boxes = [box for each in snapshots for box in each.containers]
        self._containers = list({id(each): each for each in boxes}.values())
        self._absent = [absent for each in snapshots for absent in each.absent]
        if self._parts:  # a name of Python's own, which the module may come to have
            self._absent += self._absent_names()

    def __bool__(self) -> bool:
        return bool(self._parts or self._arrays)

    def _cells(self) -> Iterator[Part]:
        for owner, event, found in self._lookups():
            cell = _cell(owner, event) if event.startswith(CAPTURED) else None
            if cell is not None:
                yield Part(_CELL, cell, [found, found], shown_event(owner, event))

    def _functions(self, own: object) -> Iterator[Part]:
        """Yield code and defaults of functions, except the kernel's, which has no other holder."""
        codes = {
            id(owner): (owner, code) for owner, event, code in self._lookups() if event == CODE
        }
        defaults = {id(owner): each for owner, event, each in self._lookups() if event == DEFAULTS}
        for function, code in codes.values():
            if function is not own:
                found = [code, *defaults.get(id(function), (None, None))]
                yield Part(_CODE, function, found, _shown_function(function))

    def _names(self) -> Iterator[Part]:
        """Yield global names, all of a module together."""
        by_owner: dict[int, tuple[Any, dict[str, Any]]] = {}
        for owner, event, found in self._lookups():
            if event.isidentifier() and found is not MISSING and not stands_outside(owner, found):
                namespace = namespace_of(owner)
                by_owner.setdefault(id(namespace), (namespace, {}))[1].setdefault(event, found)
        for namespace, names in by_owner.values():
            yield Part.by_name(itemgetter, namespace, names, "")

    def _absent_names(self) -> Iterator[Absent]:
        names: dict[int, tuple[Any, set[str]]] = {}
        for owner, event, found in self._lookups():
            if event.isidentifier() and found is MISSING:
                namespace = namespace_of(owner)
                names.setdefault(id(namespace), (namespace, set()))[1].add(event)
        for namespace, missing in names.values():
            yield Absent.of(missing, namespace, min(missing))

    def _lookups(self) -> Iterator[tuple[Any, str, Any]]:
        for trace in self._traces:
            for (_, event), (owner, found) in trace.lookups.items():
                yield owner, event, found

    def watching(self, entry: Callable[..., Any], named: Callable[[], str]) -> Callable[..., Any]:
        """Return an entry that is entered only if all is unchanged; `named` returns the name."""
        if not self:
            return entry
        names: dict[str, Any] = {
            **{"all_of": all, "map_of": map, "same": is_, "layout": LAYOUT, "content": CONTENT},
            **{"require_same": self.require_same, "named": named, "entry": entry, "shown": shown},
            "absent": (LookupError, AttributeError, ValueError, RuntimeError),
        }
        conditions = list(self._conditions(names))
        source = "\n ".join(
            (
                "def call(*args, **kwargs):",
                "try:",
                " changed = (",
                *[f"  {condition} or" for condition in conditions],
                "  False)",
                "except absent:",  # it is not there now
                " changed = True",
                "try:",
                " if changed:",
                "  require_same(named)",
                " return entry(*args, **kwargs)",
                "except Exception as error:",
                " error.__traceback__ = shown(error)",
                " raise",
            )
        )
        return generated(source, names, __file__)

    def _conditions(self, names: dict[str, Any]) -> Iterator[str]:
        """Yield the conditions of a change, which look up the names that are entered."""
        for at, part in enumerate(self._parts):
            names[f"get{at}"], names[f"owner{at}"] = part.get, part.owner
            names[f"found{at}"] = found = tuple(part.found)
            look_up = f"get{at}(owner{at})"
            if not isinstance(part.get, attrgetter | itemgetter):
                yield f"len(now := [*{look_up}]) != {len(found)}"
                yield f"not all_of(map_of(same, now, found{at}))"
            elif len(found) > _FEW:
                yield f"not all_of(map_of(same, {look_up}, found{at}))"
            else:
                for index, value in enumerate(found):
                    names[f"found{at}_{index}"] = value
                    now = "now" if index else f"(now := {look_up})"
                    yield f"{now}[{index}] is not found{at}_{index}"
        for at, each in enumerate(self._absent):
            names[f"space{at}"], names[f"disjoint{at}"] = each.namespace, each.is_disjoint
            yield f"(len(space{at}) != {each.size} and not disjoint{at}(space{at}))"
        for at, box in enumerate(self._containers):
            names[f"box{at}"] = box
            yield f"len(box{at}) != {len(box)}"
        for at, array in enumerate(self._arrays):
            names[f"array{at}"], names[f"layout{at}"] = array.lock.array, array.layout
            yield f"layout(array{at}) != layout{at}"
        for at, array in enumerate(self._compared):
            names[f"text{at}"], names[f"content{at}"] = array.lock.array, array.content
            yield f"content(text{at}) != content{at}"

    def arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the NumPy arrays that were captured, also in tuples, lists, dicts and records."""
        for each in self._arrays:
            yield each.lock.array

    def changed(self) -> Iterator[str]:
        """Yield the names of look-ups that now find something else."""
        for part in self._parts:
            yield from part.changed()
        for names in self._absent:
            if not names.is_disjoint(names.namespace):
                yield names.name
        for array in self._arrays:
            if array.changed():
                yield array.name

    @public
    def require_same(self, named: Callable[[], str]) -> None:
        """Raise a CheckError if a captured value of the kernel has changed since it was read."""
        changed = next(self.changed(), None)
        if changed is not None:
            from pscdsl.typing.codes.limits import CapturedStateChanged

            raise CheckError((CapturedStateChanged(name=changed, function=named()),))


def _shown_function(function: types.FunctionType) -> str:
    return function.__qualname__.rpartition("<locals>.")[2]


def _all_of(traces: Iterable[Trace | None]) -> Iterator[Trace]:
    """Yield the traces, and those of all that was met."""
    seen: set[int] = set()
    pending = [each for each in traces if each is not None]
    while pending:
        trace = pending.pop()
        if id(trace) not in seen:
            seen.add(id(trace))
            yield trace
            pending += [each for _, each in trace.met.values() if each is not None]


def _cell(function: Any, event: str) -> Any:
    """Return the cell of a name that a function captures."""
    code: types.CodeType = function.__code__
    cells: Mapping[str, Any] = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    return cells.get(event.removeprefix(CAPTURED))
