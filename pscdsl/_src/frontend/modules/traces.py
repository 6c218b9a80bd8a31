"""The trace of the look-ups for a kernel, which another process can follow.

While a kernel is read, its `Trace` records each look-up of a global name or of a module's
attribute, and the value found, including names that do not exist. The parts of an object are
recorded with it: the code, cells and defaults of a function, the items of a list. A kernel or a
class that is met has a separate trace, because it is read once for all its users.

A process that has not read the kernel looks up the same names (`follow`). If the digests agree, so
do the values: then reading would do the same, step by step, and give the same program. A value that
cannot be written down by its content makes a trace `Opaque`: it represents nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import linecache
import os
import struct
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    ForwardRef,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import numpy as np

from pscdsl._src.frontend.modules.class_snapshots import add_class
from pscdsl._src.frontend.modules.snapshots import (
    CACHED,
    MISSING,
    Snapshot,
    class_of,
    is_same,
    lock,
)
from pscdsl._src.frontend.text.code_texts import (
    comes_with_python,
    content,
    file_of,
    is_outside,
)
from pscdsl._src.language.elements import ElementType
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Failure

T = TypeVar("T")

if TYPE_CHECKING:
    from pscdsl.typing.python_containers import NDArray

SIZE: Final = 32
"""Bytes of a digest."""
MOST_BYTES: Final = 1 << 24
"""The most bytes of captured arrays; writing down more takes longer than it saves."""
MOST_PARTS: Final = 100_000
"""The most parts that are written down: half a second."""
CAPTURED: Final = "^"
"""The prefix of names that a function captures."""
DEFAULTS: Final = "()"
"""The name of a function's defaults."""
MEMBER: Final = "."
"""The prefix of names of a class's members."""
CODE: Final = "{}"
"""The name of a function's code."""
ANNOTATIONS: Final = "->"
"""The name of a function's annotations."""
Owner: TypeAlias = types.FunctionType | types.ModuleType | type
"""An object whose look-ups of global names are recorded, or of its attributes."""
Names: TypeAlias = tuple[tuple[int, str], ...]
"""Look-ups, in order: the number of the object whose namespace is used, and the name."""

_OUTSIDE: Final = (types.BuiltinFunctionType, np.ufunc, np.dtype)
_DESCRIPTORS: Final = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    types.BuiltinFunctionType,
)
_KNOWN_BY_NAME: Final = (*_DESCRIPTORS, np.ufunc)


class Opaque(Exception):
    """A value whose content cannot be written down; the message names it."""


class Texts:
    """The contents of files at one time: each is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    def text(self, file: str, namespace: dict[str, Any]) -> bytes:
        """Return the digest of the text of a file, as the front end sees it."""
        cached = self._texts.get(file)
        if cached is None:
            linecache.checkcache(file)
            text = "".join(linecache.getlines(file, namespace))
            if not text:
                raise Opaque(f"{file}, which is empty")
            data = text.encode(errors="surrogatepass")
            cached = self._texts[file] = blake2b(data, digest_size=SIZE).digest()
        return cached


class Trace:
    """The look-ups while one kernel, function with rules, or class was read."""

    def __init__(self, root: object, texts: Texts | None = None, *, asked: bool = False) -> None:
        self.annotating = False
        """Whether an annotation is read: later bindings of its names do not matter."""
        self.anew = False
        """Whether all is looked up again at each call."""
        self.problem: str | None = None
        """The reason why it represents nothing."""
        self.root = root
        self._writer = _Writer(texts or Texts())
        self._names: list[tuple[int, str]] = []
        self._last: dict[tuple[int, str], tuple[Trace, object]] = {}
        self._seen: dict[tuple[int, str], tuple[Owner, Any, bytes | None]] | None = None
        """Owners, values and their contents, if changes are to be detected."""
        self.snapshot = Snapshot()
        """The captured values at that time."""
        if isinstance(root, type):
            add_class(self.snapshot, root)
        if asked or isinstance(root, type):
            self._seen = {}
        self.lookups: dict[tuple[int, str], tuple[Owner, Any]] = {}
        """Owners and values, by the owners' identities and the names."""
        self.met: dict[int, tuple[object, Trace | None]] = {}
        """The kernels and classes that were met, with the traces that they had then."""
        self._write(self._writer.root, root)
        self.start = self._writer.digest()
        """The digest of the root alone, before anything was looked up."""

    def look_up(self, owner: Owner, name: str) -> Any:
        """Return a global name's value in a function, a class or a module; otherwise `MISSING`.

        A Failure if it is a lazy import that raises something.
        """
        try:
            found = stands_for(owner, name)
        except Exception as error:  # whatever the module raises that is imported now
            what = f"`{name}`, whose lazy import raises {type(error).__name__} ({error}),"
            raise Failure(Unsupported(what=what, rewrite="")) from error
        self._found(owner, name, name, found)
        return found

    def constant(self, array: NDArray | np.generic[Any]) -> NDArray | np.generic[Any]:
        """Return a captured array as programs have it; unchanged if each call looks it up."""
        if self.anew or type(array) is not np.ndarray or array.dtype.hasobject:
            return array
        return lock(array).constant

    def member(self, cls: type, name: str) -> None:
        """Record that a member of the root class is read now."""
        self.snapshot.read_member(f"{cls.__name__}.{name}")
        self._found(cls, name, f"{MEMBER}{name}", vars(cls).get(name, MISSING))

    def captured(self, owner: Owner, name: str, found: object) -> None:
        """Record that a captured value of a function is read now."""
        self._found(owner, name, f"{CAPTURED}{name}", found)

    def led_to(self, function: types.FunctionType) -> None:
        """Record that a function and its defaults are read now; a look-up must have led to it."""
        self._see(function, CODE, function.__code__)
        self._see(function, DEFAULTS, (function.__defaults__, function.__kwdefaults__))
        self._see(function, ANNOTATIONS, _annotations(function))
        number = self._writer.number(function)
        if number is None or self._writer.codes[number] is not function.__code__:
            self.close("a function to which no look-up led")
        else:
            self._found(function, "_", DEFAULTS, (function.__defaults__, function.__kwdefaults__))

    def annotated(self, function: types.FunctionType) -> None:
        """Record that the annotations of a function are read now, as Python has them."""
        self._found(function, "_", ANNOTATIONS, _annotations(function))

    def changed(self) -> bool:
        """Return whether a look-up now finds another value, or one with another content."""
        return any(
            [
                not is_same(found, _looked_up(owner, event)) or known != _content_of(found)
                for (_, event), (owner, found, known) in (self._seen or {}).items()
            ]
        )

    def _found(self, owner: Owner, name: str, event: str, found: object) -> None:
        self._see(owner, event, found)
        number = self._writer.number(owner)
        if number is None or not name.isidentifier():
            self.close(f"`{name}`, which is looked up where no look-up led")
            return
        # A look-up finds the same as before, unless a binding or a value changed in between.
        _, known = self._last.get((number, event), (self, _NOTHING))
        if known is not found or not isinstance(found, _UNCHANGING):
            self._last[number, event] = (self, found)
            self._names.append((number, event))
            self._write(self._writer.found, found)

    def _see(self, owner: Owner, event: str, found: Any) -> None:
        if not self.annotating and (id(owner), event) not in self.lookups:
            self.lookups[id(owner), event] = (owner, found)
            held = found is MISSING or event.startswith(MEMBER) or stands_outside(owner, found)
            if not self.anew and not held:
                if event == DEFAULTS and getattr(self.root, "__wrapped__", None) is owner:
                    defaults, by_name = found  # only the kernel holds its function
                    found = (*(defaults or ()), *(by_name or {}).values())
                self.snapshot.add(shown_event(owner, event), found)
        if self._seen is not None and (id(owner), event) not in self._seen:
            self._seen[id(owner), event] = (owner, found, _content_of(found))

    def given(self, value: object, name: str, read: Callable[[object, str, Trace], T]) -> T:
        """Read an object that the root was made of, and record what it holds."""
        self.snapshot.add(name, value)
        return read(value, name, self)

    def meet(self, thing: object, trace: Trace | None) -> None:
        """Record a kernel or class that is read separately."""
        self.met.setdefault(id(thing), (thing, trace))

    def close(self, reason: str) -> None:
        """Make it represent nothing."""
        self.problem = self.problem or reason

    def _write(self, write: Callable[[object], None], value: object) -> None:
        if self.problem is None:
            try:
                write(value)
            except Opaque as reason:
                self.close(str(reason))
            except Exception as error:  # whatever strange objects do when they are looked at
                self.close(f"what raises {type(error).__name__}")

    @property
    def names(self) -> Names:
        """The look-ups."""
        return tuple(self._names)

    @property
    def inner(self) -> Sequence[object]:
        """The kernels and classes that were met and have separate traces."""
        return self._writer.inner

    def digest(self) -> bytes:
        """Return a digest of the values of all look-ups; raise `Opaque` if it is not known."""
        if self.problem is not None:
            raise Opaque(self.problem)
        return self._writer.digest()

    def repeat(self, number: int, name: str) -> None:
        """Repeat a look-up of another trace; raise `Opaque` if the owner was not met."""
        if number >= len(self._writer.met):
            raise Opaque("less than was looked at before")
        match self._writer.met[number]:
            case types.FunctionType() as function if name == DEFAULTS:
                self.led_to(function)
            case types.FunctionType() as function if name == ANNOTATIONS:
                self.annotated(function)
            case types.FunctionType() as function if name.startswith(CAPTURED):
                name = name.removeprefix(CAPTURED)
                self.captured(function, name, captured_by(function).get(name, MISSING))
            case type() as cls if name.startswith(MEMBER):
                self.member(cls, name.removeprefix(MEMBER))
            case types.FunctionType() | types.ModuleType() | type() as owner if name.isidentifier():
                try:
                    self.look_up(owner, name)
                except Failure:
                    raise Opaque("a lazy import that raises something") from None
            case _:
                raise Opaque("something else than was looked at before")


def _looked_up(owner: Owner, event: str) -> Any:
    """Return the current result of a look-up."""
    match owner:
        case types.FunctionType() if event == CODE:
            return owner.__code__
        case types.FunctionType() if event == DEFAULTS:
            return owner.__defaults__, owner.__kwdefaults__
        case types.FunctionType() if event == ANNOTATIONS:
            return _annotations(owner)
        case types.FunctionType() if event.startswith(CAPTURED):
            return captured_by(owner).get(event.removeprefix(CAPTURED), MISSING)
        case type() if event.startswith(MEMBER):
            return vars(owner).get(event.removeprefix(MEMBER), MISSING)
        case _:
            try:
                return stands_for(owner, event)
            except Exception:  # a lazy import, which replaced the earlier value
                return _NOTHING


def _annotations(function: types.FunctionType) -> tuple[object, ...]:
    """Return names and annotations in turn: objects that stay the same until they are set again."""
    try:
        annotations: Mapping[str, Any] = function.__annotations__
    except Exception:  # the evaluating function is the same until it is set again
        return (getattr(function, "__annotate__", None),)
    return tuple(itertools.chain.from_iterable(annotations.items()))


def stands_outside(owner: Owner, found: object) -> bool:
    """Return whether a name belongs to a library, or its value is part of one."""
    is_module = isinstance(owner, types.ModuleType)
    home: object = getattr(owner, "__name__" if is_module else "__module__", None)
    if home is not None and is_outside(str(home)):
        return True
    if isinstance(found, types.ModuleType):
        return is_outside(found.__name__)
    if isinstance(found, _OUTSIDE) or class_of(found).__module__.startswith("pscdsl.typing"):
        return True
    return isinstance(found, type | types.FunctionType) and is_outside(str(found.__module__))


def shown_event(owner: Owner, event: str) -> str:
    """Return the name of a look-up for messages."""
    name = event.removeprefix(CAPTURED).removeprefix(MEMBER)
    return name if name.isidentifier() else str(getattr(owner, "__name__", name))


def _content_of(value: object) -> bytes | None:
    """Return the digest of a mutable value; None if it is immutable, or of an unknown kind."""
    if value is MISSING or isinstance(value, _UNCHANGING):
        return None
    if hasattr(class_of(value), "__pscdsl_origin__"):
        return None  # a value that is read separately
    try:
        return described([value])
    except Exception:  # `Opaque`, or whatever strange objects do
        return None


def unrecorded(reason: str) -> Trace:
    """Return a trace that represents nothing and records nothing."""
    trace = Trace(None)
    trace.close(reason)
    return trace


def namespace_of(owner: Owner) -> Mapping[str, Any]:
    """Return the namespace in which a function, a class or a module looks up global names."""
    if isinstance(owner, types.FunctionType):
        return owner.__globals__
    if isinstance(owner, types.ModuleType):
        return vars(owner)
    module = sys.modules.get(getattr(owner, "__module__", ""))
    return {} if module is None else vars(module)


def stands_for(owner: Owner, name: str) -> Any:
    """Return the value of a global name of a function, a class or a module; `MISSING` if none.

    From Python 3.15 on, an import may be lazy: it is carried out, as in Python, when the name is
    first used. It raises whatever the import raises.
    """
    namespace: Any = namespace_of(owner)
    found = namespace.get(name, MISSING)
    if found is MISSING and isinstance(owner, types.ModuleType):
        lazy: Any = getattr(sys, "lazy_modules", ())
        if f"{owner.__name__}.{name}" in lazy and hasattr(owner, name):  # which imports it
            found = namespace.get(name, MISSING)
    if isinstance(found, _LAZY_IMPORTS):
        proxy: Any = found
        found = namespace[name] = proxy.resolve()
    return found


def annotations_of(owner: Owner) -> Mapping[str, Any]:
    """Return the annotations of a function or class; none if they cannot be evaluated."""
    return evaluated_annotations(owner) or {}


def evaluated_annotations(owner: Owner) -> Mapping[str, Any] | None:
    """Return the annotations of a function or class, or None if they cannot be evaluated.

    From Python 3.14 on they are evaluated when they are first read (PEP 649); a name that has no
    value then is a `ForwardRef`.
    """
    try:
        annotations: Mapping[str, Any] = owner.__annotations__
        return annotations
    except Exception:  # of the user's own code, too
        pass
    if sys.version_info >= (3, 14):
        import annotationlib

        try:
            return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
        except Exception:  # annotations are not evaluated either where names have values
            return None
    return None


def captured_by(function: types.FunctionType) -> dict[str, Any]:
    """Return the captured values of a function, without those not assigned yet."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            pass
    return found


class RecordedLookups(NamedTuple):
    """The look-ups for a kernel and for all that it met."""

    start: bytes
    """The digest of the kernel alone."""
    names: tuple[Names, ...]
    digest: bytes
    """The digest of the values found."""
    traces: Sequence[Trace]

    def covers(self, trace: Trace | None) -> bool:
        """Return whether the look-ups of a trace are among these."""
        return trace is None or not trace.names or any([each is trace for each in self.traces])


def recorded(kernel: object, trace_of: Callable[[object], Trace | None]) -> RecordedLookups:
    """Return all look-ups that led to a kernel as it was read; raise `Opaque` if unknown.

    `trace_of` gives the trace of a kernel or class, or None if it was not read.
    """
    texts = Texts()
    return _all(kernel, lambda _, value: trace_of(value) or Trace(value, texts))


def follow(
    kernel: object,
    wanted: Sequence[Names],
    texts: Texts | None = None,
    first: Trace | None = None,
    traces: list[Trace] | None = None,
) -> bytes:
    """Return the digest of repeated look-ups; raise `Opaque` where they do not lead as far.

    `first` may be a trace of the kernel without look-ups yet; `traces` receives those of all that
    was met.
    """
    known = texts or Texts()
    begun: dict[int, Trace] = {}

    def begin(value: object) -> Trace:
        return Trace(value, known)

    def trace(place: int, value: object) -> Trace:
        if place >= len(wanted):
            raise Opaque("more than was looked at before")
        made = first if first is not None and place == 0 else begun.get(id(value)) or begin(value)
        count = 0
        for number, name in wanted[place]:
            made.repeat(number, name)
            for each in made.inner[count:]:  # read where it is met, before more is loaded
                if id(each) not in begun:
                    begun[id(each)] = begin(each)
            count = len(made.inner)
        return made

    found = _all(kernel, trace)
    if found.names != tuple(wanted):
        raise Opaque("other things than were looked at before")
    if traces is not None:
        traces.extend(found.traces)
    return found.digest


def _all(root: object, trace_of: Callable[[int, object], Trace]) -> RecordedLookups:
    pending, places = [root], {id(root): 0}
    traces: list[Trace] = []
    made = blake2b(digest_size=SIZE)
    for place, value in enumerate(pending):  # which grows
        trace = trace_of(place, value)
        traces.append(trace)
        made.update(trace.digest())
        for each in trace.inner:
            if id(each) not in places:
                places[id(each)] = len(pending)
                pending.append(each)
            made.update(places[id(each)].to_bytes(8, "little"))
    names = tuple([each.names for each in traces])
    return RecordedLookups(traces[0].start, names, made.digest(), traces)


def described(values: Sequence[object]) -> bytes:
    """Return the digest of arguments by their content, without any look-up."""
    return recorded([*values], lambda _: None).digest


class _Writer:
    """Writes values down without ambiguity; values that were met before are numbered."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._made = blake2b(digest_size=SIZE)
        self._bytes = 0
        self._parts = 0
        self._numbers: dict[int, int] = {}
        self.met: list[object] = []
        """Functions, modules, classes and kernels, by number."""
        self.codes: list[types.CodeType | None] = []
        """The code that these had."""
        self.inner: list[object] = []
        self._files: set[str] = set()

    def digest(self) -> bytes:
        return self._made.digest()

    def number(self, value: object) -> int | None:
        return self._numbers.get(id(value))

    def root(self, value: Any) -> None:
        """Write a kernel or class with its parts; any other value as it is."""
        kind: Any = class_of(value)
        if issubclass(kind, type) and not issubclass(kind, ElementType):
            self._again(value)
            self._members(value)
        elif hasattr(kind, "__pscdsl_origin__"):
            self._again(value)
            self._put(kind.__qualname__)
            self.value(value.__pscdsl_origin__())
        else:
            self.value(value)

    def found(self, value: object) -> None:
        """Write the result of a look-up."""
        if value is MISSING:
            self._put("missing")
        else:
            self._put("found")
            self.value(value)

    def _put(self, *parts: object) -> None:
        self._parts += len(parts)
        if self._parts > MOST_PARTS:
            raise Opaque("too much to be looked at")
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
            self._made.update(len(data).to_bytes(8, "little") + data)

    def _again(self, value: object) -> bool:
        """Return whether a value was met before; if so, write its number instead."""
        number = self._numbers.get(id(value))
        if number is not None:
            self._put("again", number)
            return True
        self._numbers[id(value)] = len(self.met)
        self.met.append(value)
        self.codes.append(getattr(value, "__code__", None))
        return False

    def value(self, value: Any) -> None:
        """Any value; `Opaque` if it is of a kind that is not known."""
        kind = class_of(value)
        write = _PLAIN.get(kind)
        if write is not None:
            self._put(kind.__name__, write(value))
        elif kind in (tuple, list):
            self._put(kind.__name__, len(value))
            for each in value:
                self.value(each)
        else:
            self._thing(kind, value)

    def _thing(self, kind: type[Any], value: Any) -> None:
        """Write a value that is no scalar, tuple or list."""
        match value:
            case _ if kind is slice:
                self._put("slice")
                self.value((value.start, value.stop, value.step))
            case types.FunctionType():
                self._function(value)
            case types.ModuleType():
                self._module(value)
            case ElementType():
                self._put("arrays", value.element.__name__, value.members, repr(value.text))
            case type():
                self._class(value)
            case _ if kind is np.ndarray or issubclass(kind, np.generic):
                self._array(kind.__name__, np.asarray(value))
            case _ if get_origin(value) is not None:
                self._put("alias")
                self.value(get_origin(value))
                self.value(get_args(value))
            case _:
                self._object(kind, value)

    def _object(self, kind: type[Any], value: Any) -> None:
        """Write an instance of a class that is no scalar, container, function or array."""
        match value:
            case _ if hasattr(kind, "__pscdsl_origin__"):
                self._inner("kernel", value)
            case _ if kind in (dict, types.MappingProxyType):
                self._put("dict", len(value))
                for key, each in value.items():
                    self.value(key)
                    self.value(each)
            case _ if issubclass(kind, np.dtype):
                self._dtype(value)
            case _ if kind is functools.partial:
                self._put("partial")
                self.value([value.func, value.args, value.keywords])
            case types.MethodType():
                self._put("method")
                self.value([value.__func__, value.__self__])
            case _ if isinstance(value, CACHED):
                self._put("cached")
                self.value(value.__wrapped__)
            case Enum():
                self._put("member", value.name)
                self.value([kind, value._value_])
            case TypeVar():
                self._put("variable", value.__name__)
                self.value([value.__bound__, list(value.__constraints__)])
            case ForwardRef():  # whose name is looked up when it is read
                self._put("forward", value.__forward_arg__)
            case _ if isinstance(value, _KNOWN_BY_NAME) or _is_special_form(kind):
                self._put("outside", kind.__name__, _home(value), getattr(value, "__name__", value))
            case _ if tuple in kind.__mro__ and hasattr(kind, "_fields"):
                self.value(kind)
                self.value([*value])
            case _ if hasattr(kind, "__dataclass_fields__"):
                self.value(kind)
                names = [name for name in value.__dataclass_fields__ if hasattr(value, name)]
                self.value([[name, getattr(value, name)] for name in names])
            case _ if kind.__module__.startswith("jaxlib") and hasattr(kind, "__array__"):
                self._array(kind.__name__, np.asarray(value))
            case _:
                raise Opaque(f"an object of class {kind.__qualname__}")

    def _dtype(self, dtype: np.dtype[Any]) -> None:
        parts = None if dtype.names is None else dtype.descr
        self._put("dtype", dtype.str, dtype.name, dtype.isnative, parts)

    def _array(self, kind: str, value: NDArray) -> None:
        self._bytes += value.nbytes
        if value.dtype.hasobject or self._bytes > MOST_BYTES:
            raise Opaque("an array of objects, or a large one")
        self._put("array", kind, value.shape, value.flags.writeable)
        self._dtype(value.dtype)
        self._put(value.tobytes())

    def _inner(self, what: str, value: object) -> None:
        """Write the number of a value that has a separate trace."""
        if not self._again(value):
            self._put(what, len(self.inner))
            self.inner.append(value)

    def _module(self, module: types.ModuleType) -> None:
        """Write a module; the names that count are seen when they are looked up."""
        if self._again(module):
            return
        self._put("module", module.__name__)
        if is_outside(module.__name__):
            return
        if "__getattr__" in vars(module) or class_of(module) is not types.ModuleType:
            raise Opaque(f"the module {module.__name__}, which finds its names itself")
        self._file(file_of(vars(module)), vars(module))

    def _function(self, function: types.FunctionType) -> None:
        if self._again(function):
            return
        code, namespace = function.__code__, function.__globals__
        module = str(namespace.get("__name__"))
        self._put("function", module, function.__name__, function.__qualname__, content(code))
        if module != "__main__" and comes_with_python(module):
            return
        self._captured(function)
        self._annotations(function)
        if not is_outside(module):
            self._file(code.co_filename, namespace)

    def _captured(self, function: types.FunctionType) -> None:
        """Write the parts of a function besides its code."""
        found = captured_by(function)
        for name in function.__code__.co_freevars:
            self._put(name)
            self.found(found.get(name, MISSING))
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        self.value(getattr(function, "__wrapped__", None))

    def _annotations(self, owner: Owner) -> None:
        """Write annotations as Python has them: text, or values."""
        annotations = evaluated_annotations(owner)
        if annotations is None:
            raise Opaque("annotations that cannot be evaluated")
        self._put("annotations", len(annotations))
        for name, each in annotations.items():
            self._put(name)
            self.value(each)

    def _class(self, cls: type) -> None:
        if hasattr(cls, "dim_str") and cls.__module__ == "jaxtyping":
            known: Any = cls
            self._put("jaxtyping", known.dtype.__name__, repr(known.dim_str))
        elif is_outside(cls.__module__):
            if not self._again(cls):
                self._put("class", cls.__module__, cls.__qualname__)
        else:
            self._inner("class", cls)

    def _members(self, cls: type) -> None:
        """Write a class with all its members, which may have been set later."""
        self._put("class", cls.__module__, cls.__qualname__)
        if is_outside(cls.__module__):
            return
        module = sys.modules.get(cls.__module__)
        if module is None:
            raise Opaque(f"the class {cls.__qualname__} of no module")
        self._file(file_of(vars(module)), vars(module))
        self.value(list(cls.__mro__[1:]))
        if not {"__annotations__", "__annotate_func__"}.isdisjoint(vars(cls)):
            self._annotations(cls)
        for name, member in list(vars(cls).items()):
            if name != "__annotate_func__":
                self._member(name, member)
        self.value([getattr(cls, name, ()) for name in ("__dims__", "__parameters__")])
        self._put(repr(getattr(cls, "__dataclass_params__", None)))
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            self._put(field.name, field.init, field.kw_only)
            for each in (field.default, field.default_factory):
                self.found(MISSING if each is dataclasses.MISSING else each)

    def _member(self, name: str, member: object) -> None:
        """Write a member of a class: a method, or a value."""
        kind = class_of(member).__name__
        if isinstance(member, types.DynamicClassAttribute):
            return  # an enumeration holds its members elsewhere, too
        if isinstance(member, staticmethod | classmethod):
            member = cast("Any", member).__func__
        elif isinstance(member, property):
            member = member.fget
        elif isinstance(member, functools.cached_property):
            member = member.func
        if isinstance(member, types.FunctionType):
            if not member.__code__.co_filename.startswith("<"):  # written by `dataclass`
                self._put(name, kind)
                self._function(member)
        elif not (name.startswith("__") or name == "_abc_impl" or isinstance(member, _DESCRIPTORS)):
            if kind != "_tuplegetter":
                self._put(name, kind)
                self.value(member)

    def _file(self, file: object, namespace: dict[str, Any]) -> None:
        """Write the text of a file, as the front end sees it."""
        if file in self._files:
            return
        if not isinstance(file, str) or not os.path.isfile(file):
            raise Opaque("code that is in no file")
        self._files.add(file)
        self._put(file, self.texts.text(file, namespace))


def _complex(value: complex) -> bytes:
    return struct.pack("<dd", value.real, value.imag)


def _range(value: range) -> str:
    return f"{value.start:x} {value.stop:x} {value.step:x}"


_PLAIN: Final[Mapping[type, Any]] = {
    bool: repr,
    int: "{:x}".format,
    float: functools.partial(struct.pack, "<d"),
    complex: _complex,
    str: str,
    bytes: bytes,
    range: _range,
    type(None): repr,
    type(Ellipsis): repr,
}
"""The encodings of scalars: 0.0 is not -0.0, and text is not bytes."""


_NOTHING: Final = object()
_LAZY_IMPORTS: Final[Any] = getattr(types, "LazyImportType", ())
_UNCHANGING: Final = (
    *(bool, int, float, complex, str, bytes, range, type(None)),
    *(types.FunctionType, types.ModuleType, types.CodeType, type),
)
"""Classes of values that never change, or that are traced or read separately."""


def _is_special_form(kind: type) -> bool:
    """Return whether instances are special forms of `typing`: `typing.Any`, `typing.Literal`."""
    return kind.__module__ == "typing" and kind.__name__.lstrip("_").endswith(
        ("SpecialForm", "Alias", "AnyMeta", "TypedCacheSpecialForm")
    )


def _home(value: Any) -> str:
    """Return the owner of a value that is known by name: a module, or the class of its owner."""
    owner = getattr(value, "__self__", None)
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if owner is not None:
        return f"{class_of(owner).__module__}.{class_of(owner).__qualname__}"
    declaring = getattr(value, "__objclass__", None)
    return str(getattr(value, "__module__", "")) if declaring is None else str(declaring)


def to_text(wanted: Sequence[Names]) -> str:
    """Return look-ups as text, which `from_text` reads back."""
    return "\n\n".join("\n".join(f"{number} {name}" for number, name in each) for each in wanted)


def from_text(text: str) -> tuple[Names, ...]:
    """Return look-ups that were written down; a ValueError if the text is anything else."""
    return tuple([tuple(_pairs(block.split("\n"))) for block in text.split("\n\n")])


def _pairs(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for line in lines:
        if line:
            number, name = line.split(" ")
            yield int(number), name
