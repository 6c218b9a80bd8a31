"""Kernels that an earlier process compiled, called without being read.

The store holds three kinds of entries besides the executables. One is stored for a kernel, under
the digest of the kernel without its look-ups: the look-ups of each known way of reading it. One is
stored for the results of these look-ups: the calling convention. And one for each kind of arguments
of its calls: the executable, its types, and the structure of the result. If anything that was read
is different, no entry is found, and the kernel is read as usual; see
`pscdsl._src.frontend.modules.traces`.
"""

from __future__ import annotations

import ast
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pscdsl._src.calls.called import Called, CallingConvention
from pscdsl._src.frontend.modules.snapshots import class_of
from pscdsl._src.frontend.modules.traces import (
    Names,
    Opaque,
    Texts,
    Trace,
    described,
    follow,
    from_text,
    recorded,
    to_text,
)
from pscdsl._src.ir.numpy_dtypes import is_masked, to_numpy
from pscdsl._src.language import records
from pscdsl._src.xla import disk
from pscdsl._src.xla.binding import register_class
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.dispatch import BoundExecutable
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.settings import WITHOUT as VARIABLE
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import ArrayType, NoneType, RecordType, StaticType, TupleType

if TYPE_CHECKING:
    from pscdsl._src.caching.store import Store
    from pscdsl._src.xla.runtime.executable import Executable
    from pscdsl._src.xla.specialisation import Key, Specialisation
    from pscdsl.typing.array_types import Type

_DTYPES: Final = {to_numpy(each).name: to_numpy(each) for each in dtypes.ALL}
_WAYS: Final = 8
"""The most stored ways of reading one kernel: the captured values may differ each time."""
_NEXT_WAY: Final = "\f"
_STATIC: Final = (bool, int, float, str, type(None))
"""The classes of static parts of results; other values are not written down."""

log: Final = logging.getLogger("pscdsl.compile")


class StoredCall(NamedTuple):
    """The stored entry for arguments of a kind."""

    executable: str
    """The entry that holds it."""
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    result: Any
    """See `_written`."""
    sizes: tuple[tuple[str, int], ...]
    donate: tuple[int, ...]
    constants: tuple[str, ...]
    """The parameters that are left to defaults which the program has."""
    closed: bool
    """Whether the signature leaves nothing open but sizes."""

    def key(self, device: Device) -> Key:
        """Return the key of its specialisation; a special key if the signature leaves more open."""
        if self.closed:
            return None, self.sizes, self.donate, self.constants, device
        return self, device


class Unknown(Exception):
    """An argument or a result of a kind that is not written down."""


class Start:
    """The stored entries of one kernel, and those to store."""

    def __init__(self, store: Store, kernel: Any) -> None:
        self._store = store
        self._device: Device = kernel.device
        self._here = _conditions(self._device)
        self._loaded: dict[str, Executable] = {}
        self._keys: list[str] = []
        """The key under which the kernel is stored, as the known look-ups find it."""
        self.convention: CallingConvention | None = None
        """The calling convention; None if none is stored."""
        self._texts = texts = Texts()
        self.traces: list[Trace] = []
        """The traces of the kernel and of all that it meets, if it is found in one of these ways.
        """
        self._followed: list[tuple[tuple[Names, ...], str]] = []
        """The look-ups that led to these keys."""
        alone = Trace(kernel, texts)
        if alone.problem is not None:
            log.debug("a kernel is read when it is called: it holds %s", alone.problem)
            return
        start, unused = alone.start, [alone]
        for wanted in self._ways(start):
            try:
                first = unused.pop() if unused else None
                traces: list[Trace] = []
                key = self._found(start, wanted, follow(kernel, wanted, texts, first, traces))
            except Opaque:
                continue
            convention = _convention(store, key)
            if convention is not None:
                self._keys.append(key)
                self._followed.append((wanted, key))
                self.traces.extend(traces)
                self.convention = convention

    def has_changed(self, kernel: Any) -> bool:
        """Return whether the look-ups that led to the kernel now find something else."""
        try:
            start = Trace(kernel, self._texts).start
            return any(
                [
                    self._found(start, wanted, follow(kernel, wanted, self._texts)) != key
                    for wanted, key in self._followed
                ]
            )
        except Opaque:
            return True

    @classmethod
    def of(cls, kernel: Any) -> Start | None:
        """Return the stored entries of a kernel; None if nothing can be stored.

        If a log of reasons is wanted, the program is read.
        """
        store = disk.opened()
        if store is None or log.isEnabledFor(logging.INFO):
            return None
        return cls(store, kernel)

    def _entry(self, start: bytes) -> str:
        return disk.digest("look-ups", *self._here, start)

    def _ways(self, start: bytes) -> list[tuple[Names, ...]]:
        """Return the look-ups that reading a kernel took, in each way that is stored."""
        content = self._store.get(self._entry(start))
        if content is None:
            return []
        try:
            return [from_text(text) for text in content.decode().split(_NEXT_WAY)][:_WAYS]
        except (ValueError, UnicodeDecodeError):
            return []

    def _found(self, start: bytes, wanted: Sequence[Names], found: bytes) -> str:
        return disk.digest("kernel", *self._here, start, to_text(wanted), found)

    def find(
        self, kernel: Called[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[BoundExecutable, Key] | None:
        """Return the program for arguments of this kind, if one is stored."""
        convention = self.convention
        if convention is None:
            return None
        try:
            walk = self._walk(kernel, args, kwargs, convention)
            content = described([*walk.classes, *walk.statics])
            for key in self._keys:
                stored = _read(self._store, _call(key, walk, content), StoredCall)
                if stored is not None:
                    return self._bound(kernel, walk, stored, convention), stored.key(self._device)
        except (Unknown, Opaque, LookupError, TypeError, ValueError):
            pass
        return None

    def _bound(
        self,
        kernel: Called[..., Any],
        walk: Walk,
        stored: StoredCall,
        convention: CallingConvention,
    ) -> BoundExecutable:
        inputs, outputs = (
            [boot.Aval(shape, _DTYPES[name]) for shape, name in avals]
            for avals in (stored.inputs, stored.outputs)
        )
        if len(inputs) != len(walk.leaves):
            raise Unknown
        for leaf, aval in zip(walk.leaves, inputs, strict=True):
            _must_fit(leaf, aval.dtype)
        build = _read_tree(stored.result)
        donated = frozenset(stored.donate)
        executable = self._loaded.get(stored.executable)
        if executable is None:
            executable = disk.load(self._store, stored.executable, inputs, outputs, self._device)
            if executable is None:
                raise Unknown
            self._loaded[stored.executable] = executable
        for cls in walk.classes:
            records.register(cls, register_class)

        def flatten(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
            try:
                leaves = self._walk(kernel, args, kwargs, convention).leaves
                for leaf, aval in zip(leaves, inputs, strict=True):
                    _must_fit(leaf, aval.dtype)
            except (Unknown, ValueError):
                # this call reports the problem
                return kernel.arguments(args, kwargs, stored.constants)[0]
            return leaves

        return BoundExecutable(executable, flatten, lambda arrays: build(iter(arrays)), donated)

    def keep(
        self,
        kernel: Called[..., Any],
        call: tuple[Sequence[Any], Mapping[str, Any]],
        convention: CallingConvention,
        bound: BoundExecutable,
        specialisation: Specialisation,
    ) -> None:
        """Store the executable and the look-ups of a call, unless a part cannot be written down."""
        executable, (args, kwargs) = bound.executable, call
        if convention.inner_statics or convention.tree_statics or not executable.entry:
            return
        from pscdsl._src.frontend.modules.live import trace_of  # the kernel was read

        try:
            read = recorded(kernel, trace_of)
            start, now = read.start, Trace(kernel)
            if (
                now.problem is not None
                or now.start != start
                or _conditions(self._device) != self._here
            ):
                return  # something was changed since it was read
            walk = self._walk(kernel, args, kwargs, convention)
            leaves = bound.flatten(args, kwargs)  # type: ignore[arg-type]
            if [id(each) for each in walk.leaves] != [id(each) for each in leaves]:
                return
            inputs, outputs = (
                tuple([(each.shape, each.dtype.name) for each in avals])
                for avals in (executable.inputs, executable.outputs)
            )
            program = specialisation.program
            assert program.result is not None
            stored = StoredCall(
                executable.entry,
                inputs,
                outputs,
                _written(program.result),
                tuple([(name, specialisation.sizes[name]) for name in program.dims]),
                specialisation.donate,
                specialisation.constants,
                specialisation.choice == type(specialisation.choice)(),
            )
            content = described([*walk.classes, *walk.statics])
            if not all(map(read.covers, map(trace_of, walk.classes))):
                return
        except (Unknown, Opaque):
            return
        key = self._found(start, read.names, read.digest)
        self._store.put(_call(key, walk, content), repr(tuple(stored)).encode())
        self._store.put(key, repr(tuple(convention)).encode())
        self._add(start, read.names)

    def _add(self, start: bytes, wanted: tuple[Names, ...]) -> None:
        """Keep look-ups among those of the kernel; the oldest entries make room."""
        known = self._ways(start)
        if wanted not in known:
            ways = [wanted, *known][:_WAYS]
            text = _NEXT_WAY.join(map(to_text, ways))
            self._store.put(self._entry(start), text.encode())

    def _walk(
        self,
        kernel: Called[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        convention: CallingConvention,
    ) -> Walk:
        names = convention.parameters
        if not kwargs and len(args) == len(names) == convention.positional:
            values: Mapping[str, Any] = dict(zip(names, args, strict=True))
        else:
            values = kernel.bound(args, kwargs)
        left_out = kernel.left_out(args, kwargs)
        walk = Walk()
        for name in names:
            if name in left_out:
                walk.text.append("default")
            elif name in convention.static:
                walk.static(values[name])
            else:
                walk.value(values[name])
        return walk


def _conditions(device: Device) -> tuple[str, ...]:
    """Return the conditions that affect reading, besides the sources that are read."""
    without = os.environ.get(VARIABLE, "")
    return (*disk.backend(device), *disk.reading_conditions(), f"without {without}")


def _call(key: str, walk: Walk, content: bytes) -> str:
    """Return the name of the entry for arguments of a kind."""
    return disk.digest("call", key, " ".join(walk.text), content)


class Walk:
    """A walk over arguments: their arrays in order, and the kind of the arguments."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.text: list[str] = []
        self.classes: dict[type[Any], None] = {}
        self.statics: list[Any] = []

    def static(self, value: Any) -> None:
        """Add a static value, which counts in full."""
        self.statics.append(value)
        self.text.append("static")

    def value(self, value: Any) -> None:
        """Add an argument, or a part of one."""
        kind = class_of(value)
        if kind is boot.ArrayImpl:
            self._array(value, value.aval.dtype, value.aval.shape)
        elif kind is np.ndarray or (np.generic in kind.__mro__ and not is_masked(value)):
            self._array(value, value.dtype, value.shape)
        elif kind in (bool, int, float, complex):
            self.leaves.append(value)
            self.text.append(kind.__name__)
        elif value is None:
            self.text.append("None")
        elif kind is tuple:
            self._parts(value)
        else:
            names = records.field_names(kind)
            if names is None:
                raise Unknown
            self.classes[kind] = None
            self.text.append(f"{kind.__module__}.{kind.__qualname__}")
            self._parts([getattr(value, name) for name in names])

    def _array(self, value: Any, dtype: Any, shape: tuple[int, ...]) -> None:
        self.leaves.append(value)
        self.text.append(f"{dtype.name}{shape}")

    def _parts(self, parts: Sequence[Any]) -> None:
        self.text.append("(")
        for part in parts:
            self.value(part)
        self.text.append(")")


def _convention(store: Store, key: str) -> CallingConvention | None:
    convention = _read(store, key, CallingConvention)
    if (
        convention is None
        or not isinstance(convention.name, str)
        or not isinstance(convention.positional, int)
    ):
        return None
    texts = (
        convention.parameters,
        convention.static,
        convention.donated,
        convention.constants,
        convention.mesh_axes,
    )
    return (
        convention
        if all(type(t) is tuple and all(type(n) is str for n in t) for t in texts)
        else None
    )


def _read(store: Store, key: str, kind: Callable[..., Any]) -> Any:
    """Return an entry that was written as a tuple of literals; None if it has another form."""
    content = store.get(key)
    if content is None:
        return None
    try:
        return kind(*ast.literal_eval(content.decode()))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _must_fit(value: Any, dtype: Any) -> None:
    """Raise `Unknown` unless a Python scalar certainly fits into a dtype."""
    kind = class_of(value)
    if kind not in (bool, int, float, complex):
        return
    if kind is int and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = limits.min <= value <= limits.max
    elif kind is bool and dtype.kind in "biu":
        fits = True
    else:
        large = 3e38 if dtype.itemsize > 2 else 6e4
        fits = dtype.kind in "fc" and (value != value or abs(value) < large)
    if not fits:
        raise Unknown


def _written(tree: Type) -> Any:
    """Return the structure of a result, in literals."""
    if isinstance(tree, ArrayType):
        return "array"
    if isinstance(tree, NoneType):
        return ("static", None)
    if isinstance(tree, StaticType) and type(tree.value) in _STATIC:
        return ("static", tree.value)
    if type(tree) is TupleType:
        return ("tuple", *[_written(item) for item in tree.items])
    if isinstance(tree, RecordType):
        cls: Any = getattr(tree.record.definition, "constructor", None)
        names = tuple([name for name, _ in tree.fields])
        if cls is None or records.field_names(cls) != names:
            raise Unknown
        where = (cls.__module__, cls.__qualname__)
        if _class(*where) is not cls:
            raise Unknown
        return ("record", *where, *[_written(item) for _, item in tree.fields])
    raise Unknown


def _class(module: str, name: str) -> type[Any]:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    if not isinstance(value, type):
        raise Unknown
    return value


def _read_tree(written: Any) -> Callable[[Iterator[Any]], Any]:
    """Return a function that takes arrays in order and makes the result of them."""
    if written == "array":
        return next
    kind, *rest = written
    if kind == "static":
        (value,) = rest
        return lambda arrays: value
    if kind == "tuple":
        parts = [_read_tree(item) for item in rest]
        return lambda arrays: tuple([part(arrays) for part in parts])
    module, name, *fields = rest
    cls = _class(module, name)
    names = records.field_names(cls)
    if kind != "record" or names is None or len(names) != len(fields):
        raise Unknown
    records.register(cls, register_class)
    parts = [_read_tree(item) for item in fields]
    return lambda arrays: records.construct_container(cls, names, [part(arrays) for part in parts])
