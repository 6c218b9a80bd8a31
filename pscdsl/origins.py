"""What a kernel is read from, in few bytes: what decides which program it is, without reading it.

The origin of a function holds the text of its file, what it captures, its defaults, and the values
of all global names that occur in its code, with those of every function and class that is reached
from there; annotations are taken as they were evaluated, where they are no text.  That is more than
the front end looks at, so equal origins have equal programs, and an origin that differs without
need costs time.  Modules of the same project
that are loaded count as well, for a write in one of them makes what is captured unfit.  Values
that cannot be written down by their content have no origin.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b
from opcode import opmap
from typing import Any, Final, TypeGuard, cast, get_args, get_origin

import numpy as np

from pscdsl.beside import loaded_beside, root_of
from pscdsl.elements import ElementType

SIZE: Final = 32
"""Bytes of an origin."""
MOST_BYTES: Final = 1 << 24
"""Of captured arrays; writing down more takes longer than it saves."""
MOST_PARTS: Final = 100_000
"""Of what is written down: half a second."""
_LOADING: Final = frozenset(
    "__annotations__ __builtins__ __cached__ __doc__ __file__ __loader__ __name__ __package__ "
    "__path__ __spec__".split()
)
"""Names that say how a module was loaded, and have no meaning in kernels."""
_LIBRARIES: Final = frozenset(
    "jaxlib jaxtyping ml_dtypes numpy pscdsl pyrsistent scipy typeguard typing_extensions".split()
)
"""Packages that the front end knows by name, beside Python's own."""
_PLAIN: Final = frozenset(
    (*(bool, int, float, complex, str, bytes, range, slice), type(None), type(Ellipsis))
)
_DESCRIPTORS: Final = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
_PACKAGE: Final = os.path.join(os.path.dirname(__file__), "")
_IMPORT: Final = opmap["IMPORT_NAME"]
_HAS_DOCSTRING: Final = 0x4000000
"""A flag of code, from Python 3.14 on; before, the first constant is the docstring or None."""
_FOR_TYPES: Final = re.compile(r"^( *)if\b.*TYPE_CHECKING.*\n((?:\1 +.*\n|\s*\n)*)", re.MULTILINE)
"""What is imported for type checkers, which the front end imports where an annotation needs it."""
_WORD: Final = re.compile(r"[^\W\d]\w*")


class NoOrigin(Exception):
    """Something whose content cannot be written down; says what."""


def origin(*values: Any) -> bytes:
    """The origin of values, functions among them; `NoOrigin` says what has none."""
    return _read(*values).made.digest()


def _read(*values: Any) -> _Reader:
    reader = _Reader()
    try:
        for each in values:
            reader.value(each)
        reader.finish()
    except NoOrigin:
        raise
    except Exception as error:  # whatever strange objects do when they are looked at
        raise NoOrigin(f"what raises {type(error).__name__}") from error
    return reader


def attempt(value: Any) -> bytes:
    """The origin of a value; nothing if it has none."""
    try:
        return origin(value)
    except NoOrigin:
        return b""


def as_read(kernel: Any, content: bytes) -> bool:
    """Whether the kernel still has this origin, and all kernels in it that of when they were read.

    What was read once is not read again: a global name may have been bound anew since then.
    """
    try:
        reader = _read(kernel)
    except NoOrigin:
        return False
    read = [(each, each.read_from) for each in reader.kernels]
    return reader.made.digest() == content and all(
        found is None or found == attempt(each) for each, found in read
    )


class _Reader:
    """Writes values down without ambiguity; what was met before is numbered."""

    def __init__(self) -> None:
        self.made = blake2b(digest_size=SIZE)
        self._bytes = 0
        self._met: dict[int, int] = {}
        self._alive: list[object] = []
        self.kernels: list[Any] = []
        """The kernels that were met."""
        self._parts = 0
        self._modules: dict[str, types.ModuleType] = {}
        self._names: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._files: set[str] = set()
        self._for_types: dict[int, set[str]] = {}
        """What a module's text names for type checkers, by the module's namespace."""
        self._roots: set[str] = set()

    def finish(self) -> None:
        """The names of the modules that were met: all that the code asks anything for.

        Which function asks which module cannot be told; a module may be an argument.
        """
        while True:
            due = [
                (place, name)
                for place, module in sorted(self._modules.items())
                for name in sorted(self._names & vars(module).keys())
                if (place, name) not in self._asked and name not in _LOADING
            ]
            if not due:
                return
            self._asked.update(due)
            for place, name in due:
                self._put(place, name)
                self.value(vars(self._modules[place])[name])

    def _put(self, *parts: object) -> None:
        self._parts += len(parts)
        if self._parts > MOST_PARTS:
            raise NoOrigin("too much to be looked at")
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
            self.made.update(len(data).to_bytes(8, "little") + data)

    def _again(self, value: object) -> bool:
        """Whether something was met before; its number then stands for it."""
        number = self._met.get(id(value))
        if number is not None:
            self._put("again", number)
            return True
        self._met[id(value)] = len(self._met)
        self._alive.append(value)
        return False

    def value(self, value: Any) -> None:
        """Any value; a NoOrigin if it is of a kind that is not known."""
        kind = class_of(value)
        if kind in _PLAIN:
            self._put(kind.__name__, repr(value))
        elif kind in (tuple, list):
            self._put(kind.__name__, len(value))
            for each in value:
                self.value(each)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, ElementType):
            self._put("arrays", value.element.__name__, value.members, value.text)
        elif isinstance(value, type):
            self._class(cast("type[Any]", value))
        elif kind is np.ndarray or issubclass(kind, np.generic):
            self._array(np.asarray(value))
        elif get_origin(value) is not None:
            self._put("alias")
            self.value(get_origin(value))
            self.value(get_args(value))
        else:
            self._object(kind, value)

    def _object(self, kind: type[Any], value: Any) -> None:
        """An instance of a class that is no scalar, container, function or array."""
        if hasattr(kind, "__pscdsl_origin__"):
            if not self._again(value):
                self._put(kind.__qualname__)
                self.value(value.__pscdsl_origin__())
                if hasattr(value, "read_from"):
                    self.kernels.append(value)
        elif kind in (dict, types.MappingProxyType):
            self._put("dict", len(value))
            for key, each in value.items():
                self.value(key)
                self.value(each)
        elif isinstance(value, np.dtype):
            self._put("dtype", cast("Any", value).name, value.isnative)
        elif isinstance(value, functools.partial):
            self._put("partial")
            self.value([value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            self._put("method")
            self.value([value.__func__, value.__self__])
        elif kind.__name__ == "_lru_cache_wrapper":
            self._put("cached")
            self.value(value.__wrapped__)
        elif isinstance(value, Enum):
            self.value(kind)
            self._put(value.name)
        elif _named_outside(kind, value):
            self._put("outside", kind.__name__, value.__module__, value.__name__)
        elif tuple in kind.__mro__ and hasattr(kind, "_fields"):
            self.value(kind)
            self.value([getattr(value, name) for name in kind._fields])
        elif hasattr(kind, "__dataclass_fields__"):
            self.value(kind)
            self.value([getattr(value, name) for name in kind.__dataclass_fields__])
        elif kind.__module__.startswith("jaxlib") and hasattr(kind, "__array__"):
            self._array(np.asarray(value))
        else:
            raise NoOrigin(f"an object of class {kind.__qualname__}")

    def _array(self, value: Any) -> None:
        self._bytes += value.nbytes
        if value.dtype.hasobject or self._bytes > MOST_BYTES:
            raise NoOrigin("an array of objects, or a large one")
        self._put("array", value.dtype.name, value.dtype.isnative, value.shape, value.tobytes())

    def _module(self, module: types.ModuleType) -> None:
        """A module: those of its names that the function at hand may ask for."""
        self._put("module", module.__name__)
        if _outside(module.__name__):
            return
        if "__getattr__" in vars(module):
            raise NoOrigin(f"the module {module.__name__}, which finds its names itself")
        self._file(getattr(module, "__file__", None), vars(module))
        self._modules[module.__name__] = module

    def _function(self, function: types.FunctionType) -> None:
        if self._again(function):
            return
        code, namespace = function.__code__, function.__globals__
        module = str(namespace.get("__name__"))
        self._put("function", module, function.__qualname__, code.co_firstlineno)
        ours = module.partition(".")[0] == "pscdsl"
        if _outside(module) and not ours:
            return
        self._captured(function)
        if not ours:
            self._file(code.co_filename, namespace)
            names = {*_names(code), *self._annotations(function.__annotations__)}
            self._names |= names
            self._globals(namespace, names - set(code.co_freevars))

    def _captured(self, function: types.FunctionType) -> None:
        """What a function holds besides its code."""
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self._put(name)
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                self._put("empty")
            else:
                self.value(content)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        self.value(getattr(function, "__wrapped__", None))

    def _annotations(self, annotations: dict[str, Any]) -> Iterator[str]:
        """The names in annotations that are text; others are values."""
        for each in annotations.values():
            if isinstance(each, str):
                yield from _WORD.findall(each)
            else:
                self.value(each)

    def _globals(self, namespace: dict[str, Any], names: Iterable[str]) -> None:
        if unknown := self._for_types.get(id(namespace), set()) & set(names) - namespace.keys():
            raise NoOrigin(f"`{min(unknown)}`, which is imported for type checkers")
        for name in sorted(names):
            if name in namespace and name not in _LOADING:
                self._put(name)
                self.value(namespace[name])

    def _class(self, cls: type[Any]) -> None:
        if self._again(cls):
            return
        self._put("class", cls.__module__, cls.__qualname__)
        module = sys.modules.get(cls.__module__)
        if _outside(cls.__module__):
            return
        if module is None:
            raise NoOrigin(f"the class {cls.__qualname__} of no module")
        self._file(getattr(module, "__file__", None), vars(module))
        for base in cls.__mro__[1:]:
            self.value(base)
        names = set(self._annotations(vars(cls).get("__annotations__", {})))
        self._globals(vars(module), names)
        for name, member in vars(cls).items():
            self._member(name, member)
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            if isinstance(field.default_factory, types.FunctionType):
                self.value(field.default_factory)

    def _member(self, name: str, member: Any) -> None:
        """What stands in a class: methods, and values, which may have been set later."""
        if isinstance(member, staticmethod | classmethod):
            member = cast("Any", member).__func__
        elif isinstance(member, property):
            member = member.fget
        elif isinstance(member, functools.cached_property):
            member = member.func
        if isinstance(member, types.FunctionType):
            if not member.__code__.co_filename.startswith("<"):  # written by `dataclass`
                self._put(name)
                self._function(member)
        elif not (name.startswith("__") or name == "_abc_impl" or isinstance(member, _DESCRIPTORS)):
            if type(member).__name__ != "_tuplegetter":
                self._put(name)
                self.value(member)

    def _file(self, file: object, namespace: dict[str, Any]) -> None:
        """The text of a file, as the front end sees it, and the project that it is a part of."""
        if file in self._files:
            return
        if not isinstance(file, str) or not os.path.isfile(file):
            raise NoOrigin("code that is in no file")
        text = "".join(linecache.getlines(file, namespace))
        if not text:
            raise NoOrigin(f"{file}, which is empty")
        for _, block in _FOR_TYPES.findall(text):
            self._for_types.setdefault(id(namespace), set()).update(_imported(block))
        self._files.add(file)
        self._put(file, text)
        root = root_of(namespace)
        if root not in self._roots:
            self._roots.add(root)
            for path in sorted(loaded_beside(root, namespace)):
                if path.startswith(_PACKAGE):
                    continue  # counted with the language
                state = os.stat(path)
                self._put(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def class_of(value: object) -> type[Any]:
    """The class of any object."""
    return type(value)


def is_tuple(x: object) -> TypeGuard[tuple[Any, ...]]:
    """As `narrowing` has it, which takes longer to load than all this."""
    return isinstance(x, tuple)


def _outside(module: str) -> bool:
    """Whether a module is known by its name alone."""
    top = module.partition(".")[0]
    return top in _LIBRARIES or (top in sys.stdlib_module_names and top != "__main__")


def _named_outside(kind: type[Any], value: Any) -> bool:
    """Whether an object is known by its name: NumPy's functions, and what is written in C."""
    if kind.__module__.partition(".")[0] == "pscdsl" or not _outside(kind.__module__):
        return False  # ours have the names of what they decorate
    return isinstance(getattr(value, "__name__", None), str)


def _imported(block: str) -> Iterator[str]:
    """The names that the imports in a block of code bind."""
    for node in ast.walk(ast.parse(textwrap.dedent(block))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                yield each.asname or each.name.partition(".")[0]


def _names(code: types.CodeType) -> Iterator[str]:
    """All names that occur in code, in what is nested in it, and in its texts: annotations."""
    if _IMPORT in code.co_code[::2]:
        raise NoOrigin(f"{code.co_name}, which imports")
    yield from filter(str.isidentifier, code.co_names)  # pytest has others
    constants = code.co_consts
    documented = sys.version_info < (3, 14) or code.co_flags & _HAS_DOCSTRING
    if documented and constants and isinstance(constants[0], str):
        constants = constants[1:]
    yield from _in_constants(constants)


def _in_constants(constants: tuple[Any, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):
            yield from _WORD.findall(constant)
        elif is_tuple(constant):
            yield from _in_constants(constant)
