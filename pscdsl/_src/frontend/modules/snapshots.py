"""The captured values of a kernel when it was read; mutable ones are compared at each call.

Names, cells, functions and classes are compared by the identity of their values; lists, dicts and
sets item by item; records by their fields. An array is locked. A lock does not stop writes by
objects that were made before: a view, a buffer, memory of another library. So the contents of an
array are compared, too, unless all its holders are known, and none is a view.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from pscdsl._src.language.elements import frozen, is_frozen, locked

if TYPE_CHECKING:
    from pscdsl.typing.python_containers import NDArray

MISSING: Final = object()
"""The result of looking up a name that does not exist."""
MOST_ITEMS: Final = 10_000
"""The most items of lists, dicts and sets that one kernel captures: comparing them takes 0.1 ms."""
MOST_BYTES: Final = 1 << 20
"""The largest array whose contents are compared: that takes 0.05 ms."""
_FEW_BYTES: Final = 4096
"""The size up to which comparing is faster than finding out whether it is necessary."""

CACHED: Final = type(functools.lru_cache(abs))
"""The class of functions with a cache."""

Get: TypeAlias = Callable[[Any], Iterable[Any]]
LAYOUT: Final = attrgetter("shape", "strides", "dtype", "flags.writeable")
CONTENT: Final = np.ndarray.tobytes
_VALUES: Final[Get] = cast("Any", dict).values
_ATOMS: Final = (bool, int, float, complex, str, bytes, range, type(None), type(Ellipsis))


class Part(NamedTuple):
    """Look-ups in one object, which are made again at each call."""

    get: Get
    owner: Any
    found: list[Any]
    """The values when the kernel was read, in a list, in which the collector finds arrays."""
    name: str
    """The name of the object in messages."""
    keys: tuple[str, ...] = ()
    """The names of the look-ups in it, if messages name them."""

    @classmethod
    def by_name(
        cls, get: Callable[..., Get], owner: object, found: Mapping[str, Any], name: str
    ) -> Part:
        """Return look-ups by `attrgetter` or `itemgetter`, which return no tuple for one name."""
        keys = (*found, *found) if len(found) == 1 else tuple(found)
        return cls(get(*keys), owner, [found[key] for key in keys], name, keys)

    def named(self, place: int) -> str:
        """Return the name of a look-up for messages."""
        return ".".join(filter(None, (self.name, *self.keys[place : place + 1])))

    def changed(self) -> Iterator[str]:
        """Yield the names whose values have changed."""
        try:
            now = tuple(self.get(self.owner))
        except (LookupError, AttributeError, ValueError, RuntimeError):  # it is not there any more
            now = ()
        if len(now) != len(self.found):
            yield self.named(0)
        elif class_of(self.owner) is set:  # the order of a set does not count
            if {(class_of(x), x) for x in now} != {(class_of(x), x) for x in self.found}:
                yield self.named(0)
        else:
            for place, pair in enumerate(zip(self.found, now, strict=True)):
                if not is_same(*pair):
                    yield self.named(place)


class Absent(NamedTuple):
    """Names that a namespace did not have, which would hide others."""

    is_disjoint: Callable[[Iterable[str]], bool]
    namespace: Collection[str]
    size: int
    """The number of names that it had: while it has no more, it has none of these."""
    name: str
    """The name for messages."""

    @classmethod
    def of(cls, names: Iterable[str], namespace: Collection[str], name: str) -> Absent:
        """Return the names that are missing."""
        return cls(frozenset(names).isdisjoint, namespace, len(namespace), name)


class Locked:
    """An array that is captured, once for all that capture it."""

    __slots__ = "__weakref__", "_layout", "array", "constant", "holders", "is_alone", "owner"

    def __init__(self, array: NDArray) -> None:
        self.array = array
        self.owner: object = array if array.base is None else array.base
        """The owner of its memory, as far as known."""
        self.holders: list[object] = []
        """Containers that it was found in."""
        self.is_alone = is_frozen(array)
        """Whether the memory is known to be written by nothing else, and the lock to hold."""
        self.constant: NDArray = locked(array)
        """The array as programs have it: a copy, or a view, which tells theirs from others."""
        if array.nbytes <= _FEW_BYTES and not self.is_alone:
            self.constant = frozen(array)
        elif self.constant is array:
            self.constant = array.view()
        self._layout = LAYOUT(array)

    def holds(self, array: NDArray) -> bool:
        """Return whether this is the array, unchanged since it was locked."""
        if self.array is not array or LAYOUT(array) != self._layout:
            return False
        is_copy = self.constant.base is not self.owner
        return not is_copy or CONTENT(self.constant) == CONTENT(array)

    def settle(self) -> None:
        """Find out whether others lead to the memory; a caller's variables must not hold the array.

        Views and buffers hold the array that owns the memory, as containers do. The collector knows
        containers: if all references are theirs, there is no view or buffer.
        """
        if self.is_alone or not _owns_memory(self.owner) or type(self.array) is not np.ndarray:
            return
        # References of variables are not asked for: from Python 3.14 on, some are not counted.
        known = (self.array is not self.owner) + (self.constant.base is self.owner)
        holders = gc.get_referrers(self.owner)
        holders += [each for each in self.holders if not gc.is_tracked(each)]
        for holder in holders:
            if _holds_itself(class_of(holder)):
                known += [*map(id, gc.get_referents(holder))].count(id(self.owner))
        self.is_alone = sys.getrefcount(self.owner) - _counted_itself() == known


_locked: Final[weakref.WeakValueDictionary[int, Locked]] = weakref.WeakValueDictionary()
"""The locks by the identities of the arrays, which they hold."""
_HOLDERS: Final = (
    *(dict, list, tuple, set, frozenset),
    *(types.CellType, types.MethodType, functools.partial),
)
"""Classes of objects that hold an array itself and make no view of it."""


def lock(array: NDArray) -> Locked:
    """Lock an array and return the lock."""
    known = _locked.get(id(array))
    if known is None or not known.holds(array):
        known = _locked[id(array)] = Locked(array)
    return known


def _owns_memory(owner: object) -> bool:
    return type(owner) is np.ndarray and owner.base is None and bool(owner.flags.owndata)


def _holds_itself(kind: type) -> bool:
    """Return whether objects of a class hold an array itself and make no view of it."""
    own = kind.__module__.startswith("pscdsl.") or tuple in kind.__mro__
    return own or kind in _HOLDERS or hasattr(kind, "__dataclass_fields__")


class _Counted:
    """An object with one reference, that of its attribute."""

    __slots__ = ("owner",)

    def __init__(self) -> None:
        self.owner = object()


def _counted_itself() -> int:
    """Return the references that `sys.getrefcount` counts for an attribute as its argument."""
    counted = _Counted()
    return sys.getrefcount(counted.owner) - 1


class HeldArray(NamedTuple):
    """An array as it was when it was read."""

    lock: Locked
    layout: tuple[Any, ...]
    content: bytes
    """A digest, if it is large."""
    name: str

    @classmethod
    def of(cls, name: str, array: NDArray, holder: object = None) -> HeldArray:
        """Lock an array; `holder` is the container that has it."""
        known = lock(array)
        known.holders.append(holder)
        return cls(known, LAYOUT(array), _content(array), name)

    def is_compared(self) -> bool:
        """Return whether its contents may change; a Failure if they are too large to compare."""
        size = self.lock.array.nbytes
        if size > _FEW_BYTES:
            self.lock.settle()
        if size > MOST_BYTES and not self.lock.is_alone:
            what = f"an array of {size / 2**20:.3g} MiB that others may write"
            raise _too_large(self.name, what)
        return not self.lock.is_alone

    def changed(self) -> bool:
        """Return whether its contents or its layout have changed."""
        array = self.lock.array
        return LAYOUT(array) != self.layout or _content(array) != self.content


def _content(array: NDArray) -> bytes:
    content = CONTENT(array)
    return content if len(content) <= MOST_BYTES else blake2b(content).digest()


class Snapshot:
    """The parts of the values that one kernel, or one class, captured."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.containers: list[Any] = []
        """Lists, dicts and sets among the owners, whose lengths are compared."""
        self.arrays: list[HeldArray] = []
        self.absent: list[Absent] = []
        self.members: dict[str, Snapshot | Exception] = {}
        """Snapshots of the members of a class that have not been read, or why they cannot be
        compared."""
        self._seen: dict[int, object] = {}
        self._items = 0

    def add(self, name: str, value: Any, holder: object = None) -> None:
        """Add a captured value, with all that it holds; `holder` is its container."""
        kind = class_of(value)
        if kind in _ATOMS or id(value) in self._seen:
            return
        if np.ndarray in kind.__mro__:
            self._seen[id(value)] = value
            self.arrays.append(HeldArray.of(name, value, holder))
        elif kind in (list, dict, set):
            self._seen[id(value)] = value
            self._container(name, value)
        elif kind in (tuple, frozenset):
            self._items_of(name, value)
        elif not isinstance(value, type | types.FunctionType | types.ModuleType):
            self._seen[id(value)] = value
            self._object(name, kind, value)

    def add_member(self, name: str, value: object) -> None:
        """Take a snapshot of a class member, for use as soon as it is read: see `read_member`."""
        inner = self.members[name] = Snapshot()
        try:
            inner.add(name, value)
        except Exception as problem:
            self.members[name] = problem

    def read_member(self, name: str) -> None:
        """Compare the value that a member had when the class was read, from now on."""
        inner = self.members.pop(name, None)
        if isinstance(inner, Exception):
            self.members[name] = inner
            raise inner
        if inner is not None:
            self.parts += inner.parts
            self.containers += inner.containers
            self.arrays += inner.arrays

    def attributes(self, name: str, owner: object, names: Iterable[str]) -> None:
        """Take attributes which are there, with all that they hold."""
        found = {each: getattr(owner, each) for each in names}
        if found:
            self.parts.append(Part.by_name(attrgetter, owner, found, name))
        for key, value in found.items():
            self.add(f"{name}.{key}", value, owner)

    def _container(self, name: str, value: Any) -> None:
        self._items += len(value)
        if self._items > MOST_ITEMS:
            what = f"lists, dicts and sets of more than {MOST_ITEMS:,} items"
            raise _too_large(name, what)
        self.containers.append(value)
        self.parts.append(Part(iter, value, [*value], name))
        if class_of(value) is dict:
            self.parts.append(Part(_VALUES, value, [*value.values()], name))
        self._items_of(name, value)

    def _items_of(self, name: str, value: Any) -> None:
        pairs = value.items() if class_of(value) is dict else enumerate(value)
        for key, item in pairs:
            if class_of(item) not in _ATOMS:
                self.add(f"{name}[{key!r}]", item, value)

    def _object(self, name: str, kind: type[Any], value: Any) -> None:
        """Add the parts of an instance of a class that kernels read."""
        if issubclass(kind, Enum):
            self.attributes(name, value, ["_value_"])
        elif kind is functools.partial:
            self.attributes(name, value, ["func", "args", "keywords"])
        elif kind is types.MappingProxyType:
            self.parts.append(Part(iter, value, [*value], name))
            self.parts.append(Part(_values, value, [*_values(value)], name))
            for key, item in value.items():
                self.add(f"{name}[{key!r}]", item)
        elif isinstance(value, types.MethodType):
            self.add(name, value.__self__)
        elif kind is functools.cached_property:
            self.attributes(name, value, ["func"])
        elif kind is CACHED:
            self.attributes(name, value, ["__wrapped__"])
        elif tuple in kind.__mro__:  # a NamedTuple
            self._items_of(name, value)
        elif (persistent := _persistent(value)) is not None:
            for key, item in persistent:
                self.add(f"{name}[{key!r}]", item)
        elif hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_pclass_fields"):
            fields = getattr(kind, "__dataclass_fields__", getattr(kind, "_pclass_fields", ()))
            self.attributes(name, value, [each for each in fields if hasattr(value, each)])


def _persistent(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the items of a pyrsistent map or vector, which never changes itself."""
    known: Any = sys.modules.get("pyrsistent")  # unloaded, it has no objects
    if known is None or not isinstance(value, known.PMap | known.PVector):
        return None
    items: Any = value.items() if isinstance(value, known.PMap) else enumerate(value)
    return cast("Iterable[tuple[Any, Any]]", items)


def _too_large(name: str, what: str) -> Exception:
    # A process that finds its kernels on disk loads no findings.
    from pscdsl.typing.codes.limits import CaptureTooLarge
    from pscdsl.typing.diagnostics import Failure

    return Failure(CaptureTooLarge(name=name, what=what))


def _values(mapping: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(mapping.values())


def class_of(value: object) -> type:
    """Return the class of any object."""
    return type(value)


def is_same(one: Any, other: Any) -> bool:
    """Return whether a look-up still finds the same object or an equal constant."""
    if one is other:
        return True
    kind = class_of(one)
    if kind is not class_of(other):
        return False
    if kind is tuple:  # a cell that is run again makes equal numbers, and tuples of such
        return len(one) == len(other) and all(map(is_same, one, other))
    if kind in (float, complex) or np.generic in kind.__mro__:
        parts = [np.asarray(each) for each in (one, other)]
        dtypes = [each.dtype for each in parts]
        return (
            dtypes[0] == dtypes[1]
            and not dtypes[0].hasobject
            and CONTENT(parts[0]) == (CONTENT(parts[1]))
        )
    return kind in _ATOMS and bool(one == other)
