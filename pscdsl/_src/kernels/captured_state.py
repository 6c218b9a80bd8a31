"""What a kernel captured is compared with what is there now, whenever the kernel is called.

The front end refuses what any text of the project may write.  What no text shows (names that are
computed, files outside of the project, extensions) is found here: what was looked up when the
kernel was read is looked up again, and has to be the same objects.  These are names of modules,
cells, the code and the defaults of functions, and what classes hold.  That takes some tens of
nanoseconds a name; names of libraries and modules are left out, so that a kernel without others is
called directly.

PSCDSL_CAPTURES=contents   what arrays, lists and dicts hold is compared, too
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from operator import attrgetter, is_, itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl._src.frontend.modules.traces import (
    CAPTURED,
    CODE,
    MISSING,
    Trace,
    class_of,
    is_generated,
    is_outside,
    is_same,
    namespace_of,
    shown_event,
)
from pscdsl._src.language.elements import locked
from pscdsl._src.support.tracebacks import shown

VARIABLE: Final = "PSCDSL_CAPTURES"
CONTENTS: Final = "contents"
_OUTSIDE: Final = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, np.dtype)
_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType)
_CODE: Final = attrgetter("__code__", "__defaults__", "__kwdefaults__")
_KINDS: Final = (object, int, float, complex, tuple, list, dict, set, str, type(iter(())))
_SPECIAL: Final = frozenset(
    "__array__ __array_function__ __array_priority__ __array_ufunc__ __bool__ __enter__ __exit__ "
    "__getattr__ __imatmul__ __index__ __match_args__ __matmul__ __missing__ __post_init__ "
    "__rmatmul__".split()
).union(*map(dir, _KINDS)) - frozenset(
    "__delattr__ __dir__ __doc__ __getnewargs__ __getstate__ __init_subclass__ __reduce__ "
    "__reduce_ex__ __setattr__ __sizeof__ __subclasshook__".split()
)
"""The names that syntax looks up in classes."""


_BY_PYTHON: Final = frozenset(
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ "
    "__delattr__ __doc__ __parameters__ __setattr__ __signature__ __slotnames__".split()
)
"""What a class holds that Python itself may enter later, or that no kernel reads."""


class Part(NamedTuple):
    """Look-ups that are made again at each call."""

    get: Callable[[Any], Iterable[Any]]
    owner: Any
    found: tuple[Any, ...]
    """What they gave when the kernel was read."""
    names: tuple[str, ...]
    """How messages name them."""

    def changed(self) -> Iterator[str]:
        """The names of what is something else by now."""
        try:
            now = tuple(self.get(self.owner))
        except (LookupError, AttributeError, ValueError):  # it is not there any more
            now = tuple([MISSING for _ in self.found])
        for name, one, other in zip(self.names, self.found, now, strict=True):
            if not is_same(one, other):
                yield name


class Absent(NamedTuple):
    """Names that a namespace did not have, which would hide others."""

    is_disjoint: Callable[[Any], bool]
    namespace: Any
    size: int
    """The number of names that it had: as long as it has no more, it has none of these."""
    name: str
    """How messages name them."""

    @classmethod
    def of(cls, names: Iterable[str], namespace: Any, name: str) -> Absent:
        """Names that are not there."""
        return cls(frozenset(names).isdisjoint, namespace, len(namespace), name)


class Watch:
    """The look-ups that led to a kernel and all that it meets."""

    def __init__(self, traces: Iterable[Trace | None], own: object) -> None:
        self._traces = list(_all_of(traces))
        self._contents = os.environ.get(VARIABLE) == CONTENTS
        self._parts = [*self._cells(), *self._functions(own), *self._names()]
        self._absent: list[Absent] = []
        for cls in {id(each): each for each in self._classes()}.values():
            self._parts += _of_class(cls)
            self._absent.append(_absent_from(cls))
        if self._parts:  # a name of Python's own, which the module may come to have
            self._absent += self._absent_names()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def _cells(self) -> Iterator[Part]:
        for owner, event, found in self._lookups():
            cell = _cell(owner, event) if event.startswith(CAPTURED) else None
            if cell is not None:
                get = attrgetter("cell_contents", "cell_contents")
                yield Part(get, cell, (found, found), (shown_event(owner, event),) * 2)

    def _functions(self, own: object) -> Iterator[Part]:
        """Code and defaults, but not of the kernel itself: nobody else holds its function."""
        functions = [owner for owner, event, _ in self._lookups() if event == CODE]
        for function in {id(each): each for each in functions if each is not own}.values():
            yield _of_function(function)

    def _names(self) -> Iterator[Part]:
        """Global names, all of a module at once."""
        by_owner: dict[int, tuple[Any, dict[str, Any]]] = {}
        for owner, event, found in self._lookups():
            if event.isidentifier() and found is not MISSING and not _is_outside(owner, found):
                namespace = namespace_of(owner)
                by_owner.setdefault(id(namespace), (namespace, {}))[1][event] = found
                if isinstance(found, Enum):
                    yield _of_members([found])
                elif not isinstance(found, type) and hasattr(found, "__dataclass_fields__"):
                    yield from _of_fields(event, found)
        for namespace, names in by_owner.values():
            keys = _two_or_more(names)
            yield Part(itemgetter(*keys), namespace, tuple([names[key] for key in keys]), keys)

    def _absent_names(self) -> Iterator[Absent]:
        names: dict[int, tuple[Any, set[str]]] = {}
        for owner, event, found in self._lookups():
            if event.isidentifier() and found is MISSING:
                namespace = namespace_of(owner)
                names.setdefault(id(namespace), (namespace, set()))[1].add(event)
        for namespace, missing in names.values():
            yield Absent.of(missing, namespace, min(missing))

    def _classes(self) -> Iterator[type[Any]]:
        """The classes that were read, with those that they derive from, without libraries'.

        Of a class that holds nothing but fields without defaults, nothing else can be read.
        """
        roots = [trace.root for trace in self._traces]
        met = [thing for trace in self._traces for thing, _ in trace.met.values()]
        classes = [each for each in (*roots, *met) if isinstance(each, type)]
        for cls in {id(each): each for each in classes}.values():
            bases = [base for base in cls.__mro__ if not is_outside(base.__module__)]
            if not all(map(_holds_fields_alone, bases)):
                yield from bases

    def _lookups(self) -> Iterator[tuple[Any, str, Any]]:
        for trace in self._traces:
            for (_, event), (owner, found) in trace.lookups.items():
                yield owner, event, found

    def lock(self) -> None:
        """Lock the arrays that were looked up, as reading does."""
        for owner, _, found in self._lookups():
            if type(found) is np.ndarray and not _is_outside(owner, found):
                locked(found)

    def guarded(self, entry: Callable[..., Any], refuse: Callable[[], None]) -> Callable[..., Any]:
        """An entry that is entered only if all is as it was; else `refuse` is called before."""
        parts = tuple([(part.get, part.owner) for part in self._parts])
        found = tuple([each for part in self._parts for each in part.found])
        absent = tuple([each[:3] for each in self._absent])
        same, contents = is_, self._contents

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                now: list[Any] = []
                for get, owner in parts:
                    now += get(owner)
                changed = contents or len(now) != len(found) or not all(map(same, now, found))
                for is_disjoint, namespace, size in absent:
                    if len(namespace) != size and not is_disjoint(namespace):
                        changed = True
            except (LookupError, AttributeError, ValueError):  # it is not there any more
                changed = True
            try:
                if changed:
                    refuse()
                return entry(*args, **kwargs)
            except Exception as error:
                error.__traceback__ = shown(error)
                raise

        return call

    def arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """The arrays of NumPy's among what was looked up, also in tuples, lists and dicts."""
        for _, _, found in self._lookups():
            yield from _arrays_in(found)

    def changed(self) -> Iterator[str]:
        """What is looked up and is something else than it was."""
        for part in self._parts:
            yield from part.changed()
        for names in self._absent:
            if not names.is_disjoint(names.namespace):
                yield names.name
        if self._contents:
            for trace in self._traces:
                yield from trace.changed_contents()


def _two_or_more(names: Iterable[str]) -> tuple[str, ...]:
    """The names, of which getters give a tuple."""
    keys = tuple(names)
    return keys if len(keys) > 1 else keys * 2


def _of_function(function: types.FunctionType) -> Part:
    name = function.__qualname__.rpartition("<locals>.")[2]
    return Part(_CODE, function, _CODE(function), (name,) * 3)


def _of_class(cls: type[Any]) -> Iterator[Part]:
    """What a class holds."""
    held = dict(vars(cls))
    names = [name for name in held if name not in _BY_PYTHON]
    if names:
        keys = _two_or_more(names)
        shown_names = tuple([f"{cls.__name__}.{name}" for name in keys])
        yield Part(itemgetter(*keys), vars(cls), tuple([held[key] for key in keys]), shown_names)
    for name in ("__init__", "__new__"):  # of which dataclasses and named tuples keep defaults
        function = getattr(held.get(name), "__func__", held.get(name))
        if isinstance(function, types.FunctionType) and function.__defaults__:
            yield _of_function(function)
    if issubclass(cls, Enum):
        yield _of_members([*cls])


def _holds_fields_alone(cls: type[Any]) -> bool:
    """Whether a class holds neither methods nor values, but what makes records enters."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType):
            if not is_generated(function):
                return False
        elif name == "_field_defaults":
            if member:
                return False
        elif not (
            isinstance(member, _DESCRIPTORS)
            or class_of(member).__name__ == "_tuplegetter"
            or name in ("_fields", "_abc_impl")
            or (name.startswith("__") and not callable(member))
            or member is None
        ):
            return False
    return not issubclass(cls, Enum)


def _absent_from(cls: type[Any]) -> Absent:
    """The names by which a class could hide what it inherits, or what syntax means."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    names = _SPECIAL | {name for name in inherited if not name.startswith("__")}
    return Absent.of(names - vars(cls).keys(), vars(cls), cls.__name__)


def _of_members(members: Sequence[Enum]) -> Part:
    values = tuple([member._value_ for member in members])
    names = tuple([f"{type(member).__name__}.{member.name}.value" for member in members])
    return Part(partial(map, attrgetter("_value_")), members, values, names)


def _of_fields(name: str, record: Any) -> Iterator[Part]:
    """The fields of a frozen dataclass, which `object.__setattr__` writes."""
    fields = [each for each in record.__dataclass_fields__ if hasattr(record, each)]
    if fields:
        keys = _two_or_more(fields)
        get = attrgetter(*keys)
        yield Part(get, record, get(record), tuple([f"{name}.{key}" for key in keys]))


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


def _cell(function: Any, event: str) -> Any:
    """The cell in which a function has a name of the function around it."""
    code: types.CodeType = function.__code__
    cells: Mapping[str, Any] = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    return cells.get(event.removeprefix(CAPTURED))


def _is_outside(owner: Any, found: Any) -> bool:
    """Whether a name belongs to a library, or stands for a part of one."""
    home = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    if home is not None and is_outside(str(home)):
        return True
    if isinstance(found, _OUTSIDE) or class_of(found).__module__.startswith("pscdsl.typing"):
        return True
    kind: Any = found if isinstance(found, type | types.FunctionType) else class_of(found)
    return isinstance(found, type | types.FunctionType) and is_outside(str(kind.__module__))
