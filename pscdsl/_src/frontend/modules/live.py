"""Modules as loaded: real objects as the values that `scope` reads from source."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import importlib
import operator
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeGuard, TypeVar, get_args, get_origin

import numpy as np

from pscdsl._src.frontend.annotations import TypeVariable, bounded_by, type_parameter
from pscdsl._src.frontend.captures.captured import Guard
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.equality import compares_as_itself
from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure
from pscdsl._src.frontend.interpreter.python_library import Cached
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.files import LIBRARY_NAME
from pscdsl._src.frontend.modules.known import (
    KNOWN_MODULES,
    LOADING,
    builtin,
    known_module,
    load_all,
)
from pscdsl._src.frontend.modules.loaded_classes import class_of_object, kind_of
from pscdsl._src.frontend.modules.loaded_code import (
    PartOfModule,
    alias_of,
    current_source,
    function_in_text,
    is_applied,
    is_pythons,
    public_name,
    unchecked,
)
from pscdsl._src.frontend.modules.snapshots import CACHED, MISSING, class_of
from pscdsl._src.frontend.modules.traces import Trace, captured_by, namespace_of
from pscdsl._src.frontend.text.bindings import Bindings, uses
from pscdsl._src.frontend.text.code_texts import comes_with_python, file_of, is_outside
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Atomic,
    ConstantValue,
    External,
    KnownNumber,
    Marker,
    Once,
    Partial,
    RecordValue,
    container_value,
)
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.support.processes import forget_at_end
from pscdsl.numpy.constants import NumpyInfo
from pscdsl.typing.array_types import container_kind
from pscdsl.typing.codes.language import NoSuchAttribute, Unsupported
from pscdsl.typing.codes.limits import SeveralFunctions, TextChanged
from pscdsl.typing.codes.projects import ComputedName
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_constant, is_dtype, is_precord


class LoadedModule:
    """The names of a loaded module, and of the function that is looked at if it is nested."""

    def __init__(
        self,
        owner: types.FunctionType | type | None,
        source: Source | None,
        trace: Trace,
        cells: Mapping[str, object] | None = None,
        function: FunctionNode | None = None,
    ) -> None:
        self.owner = owner
        """The function or class in whose module names are looked up; None if it has none."""
        self.namespace: Mapping[str, Any] = {} if owner is None else namespace_of(owner)
        self.source = source
        self.trace = trace
        """The trace that records the look-ups."""
        self.cells = dict(cells or {})
        self.function = function
        """The function whose cells these are."""
        self._values: dict[str, AnyValue] = {}
        self._annotations: set[str] = set()
        """The names that are only in annotations, which Python evaluates once at most."""

    @property
    def module(self) -> str:
        """The module's name."""
        return str(self.namespace.get("__name__", "__main__"))

    def library_module(self, name: str) -> AnyValue:
        """Return a module of the standard library."""
        return abstract(importlib.import_module(f"{LIBRARY_NAME}.{name}"), name, self.trace)

    @property
    def is_jax(self) -> bool:
        """Return False: a module of JAX's is checked, and never run here."""
        return False

    def jax_array_member(self, name: str) -> AnyValue | None:
        """Return None: no array here is JAX's."""

    def lookup(self, name: str, user: ast.AST | None = None) -> AnyValue:
        """Return the value of a name of this module or of Python itself, for any reader."""
        del user  # the bindings of a module have no user
        if name in self._values:
            if name in self._annotations and not self.trace.annotating:
                self._annotations.discard(name)
                self._global(name)  # from now on its value counts
            return self._values[name]
        if name in LOADING:
            return External(f"builtins.{name}")
        if self.owner is not None and name in self.cells:
            self.trace.captured(self.owner, name, self.cells[name])
            value = abstract(self.cells[name], name, self.trace)
            self._admit_cell(name, value)
        elif (imported := self._imported(name)) is not None:
            value = imported
        elif (found := self._global(name)) is not MISSING:
            value = abstract(found, name, self.trace)
            if self.source is not None and not _is_outside(value):
                self.guard.admit(None, name, value)
        else:
            value = builtin(name)
        self._values[name] = value
        return value

    def _global(self, name: str) -> object:
        return MISSING if self.owner is None else self.trace.look_up(self.owner, name)

    def lookup_annotation(self, name: str) -> AnyValue:
        """Look up a name of an annotation; imports for type checkers are carried out now."""
        known, annotating = name in self._values, self.trace.annotating
        self.trace.annotating = True
        try:
            return self.lookup(name)
        except KeyError:
            if self.source is None:
                raise
        finally:
            self.trace.annotating = annotating
            if not known:
                self._annotations.add(name)
        bindings = Bindings(self.source.tree.body, lambda _: ())
        for binding, statement in bindings.for_types.get(name, ()):
            if isinstance(binding, ast.alias):
                assert isinstance(statement, ast.Import | ast.ImportFrom)
                node = copy.copy(statement)
                node.names = [binding]
                return imported_at_run_time(self, node)[name]
        raise KeyError(name)

    def _imported(self, name: str) -> External | None:
        """Return an unknown value for a name imported from a Python module; None for others."""
        for node in () if self.source is None else self.source.imports():
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and is_pythons(node.module or "")
            ):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return External(f"{node.module}.{alias.name}", library=True)
        return None

    def _admit_cell(self, name: str, value: AnyValue) -> None:
        if self.source is None or self.function is None:
            return
        owner = uses(self.source).owner(self.function, name)
        if isinstance(owner, FunctionNode):
            self.guard.of_function(self.source, owner, name, value)

    @property
    def guard(self) -> Guard:
        """Return a guard that refuses values that cannot be held."""
        return Guard(anew=self.trace.anew)


def _is_outside(value: AnyValue) -> bool:
    """Return whether only the name of a value is known: every use of it is refused."""
    if isinstance(value, LoadedModuleValue):
        return is_pythons(value.name)
    return isinstance(value, External)


class LoadedModuleValue(Atomic):
    """A loaded module used as a value."""

    def __init__(self, module: types.ModuleType, trace: Trace) -> None:
        self.name = module.__name__
        self.module = module
        self.trace = trace

    def lookup_attribute(self, name: str) -> AnyValue:
        """Return `module.name`."""
        if is_pythons(self.name):
            return External(f"{self.name}.{name}", library=True)
        found = self.trace.look_up(self.module, name)
        if found is MISSING:
            if not hasattr(self.module, name):
                raise Failure(NoSuchAttribute(owner=f"module `{self.name}`", attribute=name))
            found = getattr(self.module, name)
            if vars(self.module).get(name, MISSING) is not found and not is_outside(self.name):
                raise Failure(ComputedName(module=self.name, name=name))
            self.trace.close(f"`{self.name}.{name}`, which the module computes")
        value = abstract(found, f"{self.name}.{name}", self.trace)
        if name in vars(self.module) and not isinstance(value, External):
            Guard(anew=self.trace.anew).admit(None, name, value)
        return value


def definition_of(function: types.FunctionType, trace: Trace) -> Definition:
    """Return the kernel of a loaded function."""
    made = Definition(closure_of(function, trace))
    *_, owner, _ = ("", *function.__qualname__.split("."))
    if owner != "<locals>":
        made.method_of = owner
    return made


def closure_of(function: types.FunctionType, trace: Trace) -> Closure:
    """Return a loaded function as its source; a Failure if there is no source.

    What is looked up when it is elaborated is written down in the trace.
    """
    function = unchecked(function)
    trace.led_to(function)
    source, node, held = function_in_text(function)
    cells = captured_by(function)
    scope = LoadedModule(function, source, trace, cells, node)
    parameters = [*node.args.posonlyargs, *node.args.args]
    defaults: dict[str, AnyValue] = {}
    values = function.__defaults__ or ()
    for parameter, value in zip(parameters[len(parameters) - len(values) :], values, strict=True):
        defaults[parameter.arg] = abstract(value, parameter.arg, trace)
    for name, value in (function.__kwdefaults__ or {}).items():
        defaults[name] = abstract(value, name, trace)
    if held:
        trace.annotated(function)
    annotated: dict[str, AnyValue] = {}
    for name, value in held.items():
        module, _, part = name.rpartition(".")
        real = abstract(value, part, trace)
        if not module:
            annotated[part] = real
        elif isinstance(owner := annotated.setdefault(module, PartOfModule(module)), PartOfModule):
            owner.names[part] = real
    return Closure(function.__name__, node, source, scope, None, defaults, annotated=annotated)


_SCALARS = (bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis))


def _is_plain(value: object) -> TypeGuard[KnownNumber | ConstantValue]:
    """Return whether kernels have a value as it is."""
    kind = class_of(value)
    is_member = issubclass(kind, Enum) and compares_as_itself(value)
    return is_member or (isinstance(value, _SCALARS) and kind.__module__ == "builtins")


def abstract(value: object, name: str, trace: Trace) -> AnyValue:
    """Return the value in a kernel for a real object.

    The trace has recorded the object already; it also records the look-ups that this needs.
    """
    if _is_plain(value):
        return value
    kind = class_of(value)
    if isinstance(value, types.ModuleType):  # some modules answer to any name
        known = known_module(value.__name__)
        return known if known is not None else LoadedModuleValue(value, trace)
    if isinstance(value, TypeVar):
        return type_variable(value, trace)
    found = _by_identity(value)
    if is_applied(value):
        return alias_of(
            value, LoadedModule(None, None, trace), functools.partial(abstract, trace=trace)
        )
    if found is not None:
        return found
    if hasattr(kind, "__pscdsl_definition__"):
        kernel: Any = value
        definition: AnyValue = kernel.__pscdsl_definition__()
        trace.meet(value, trace_of(value))
        return definition
    match value:
        case types.FunctionType():
            return _function(value, trace)
        case _ if hasattr(kind, "__globals__"):  # a function of Cython
            return External(f"{value.__module__}.{getattr(value, '__qualname__', name)}")
        case _ if isinstance(value, CACHED):
            function = called(value.__wrapped__, name, trace)
            return Cached(function, value.cache_parameters()["typed"])
        case types.MethodType(__func__=method, __self__=owner):
            function = called(method, name, trace)
            called_as = getattr(method, "__name__", name)
            return BoundMethod(called_as, function, abstract(owner, name, trace))
        case functools.partial():
            args = tuple(abstract(argument, name, trace) for argument in value.args)
            kwargs = {key: abstract(each, key, trace) for key, each in value.keywords.items()}
            return Partial(called(value.func, name, trace), args, kwargs)
        case type():
            return _met_class(value, trace)
        case _ if is_constant(value):
            return trace.constant(value)
        case _ if is_dtype(value):
            try:
                return from_numpy(value)
            except TypeError:
                return External(f"numpy.{value}")
        case np.finfo() | np.iinfo():
            return NumpyInfo(value)
        case _ if kind.__module__ == "itertools":  # an iterator: its remaining items are a state
            return External(f"itertools.{kind.__name__}")
        case _:
            return _instance(value, name, trace)


def called(function: object, name: str, trace: Trace) -> Applicable:
    """Return the function that another object calls; an unknown one if kernels cannot call it."""
    found = abstract(function, name, trace)
    return found if isinstance(found, Applicable) else External(name)


def type_variable(variable: TypeVar, trace: Trace) -> TypeVariable:
    """Return a real type variable; its bound may be `psc.Tree`, of some dtype."""
    name = variable.__name__
    if getattr(variable, "__infer_variance__", False):  # `def f[T](…)`
        return type_parameter(name)
    bound: Any = variable.__bound__
    if variable.__constraints__:
        return TypeVariable(name, problem="it has constraints, and no bound")
    inside = [abstract(each, name, trace) for each in get_args(bound)]
    return bounded_by(
        name, abstract(get_origin(bound) or bound, name, trace), *inside[:1] or (None,)
    )


def _function(function: types.FunctionType, trace: Trace) -> Closure | External:
    function = unchecked(function)
    home = str(function.__globals__.get("__name__"))
    if comes_with_python(home):
        return External(f"{home}.{function.__qualname__}", library=True)
    try:
        return closure_of(function, trace)
    except Failure as failure:
        if any(
            isinstance(diagnostic, TextChanged | SeveralFunctions)
            for diagnostic in failure.diagnostics
        ):
            raise
        return External(f"{function.__module__}.{function.__qualname__}")


def _instance(value: object, name: str, trace: Trace) -> AnyValue:
    container = container_kind(value)
    if container is not None:
        parts, keys = container.apart(value)
        names = sorted(map(str, keys)) if keys else [name] * len(parts)
        read = [abstract(part, each, trace) for part, each in zip(parts, names, strict=True)]
        return container_value(container, keys, read)
    items: Any = value
    kind = class_of(value)
    cls = _met_class(kind, trace)
    if isinstance(cls, RecordClass) and cls.kind != "namespace":
        get = items.__getitem__ if is_precord(value) else functools.partial(getattr, value)
        try:
            fields = {each: get(each) for each in cls.field_names()}
        except (KeyError, AttributeError) as missing:  # pyrsistent's need not have all
            return External(f"{cls.title} object `{name}` without {missing}")
        return RecordValue(
            cls, {each: abstract(item, each, trace) for each, item in fields.items()}
        )
    if kind in (set, frozenset):
        parts = [abstract(item, name, trace) for item in items]
        return set(parts) if kind is set else frozenset(parts)
    if kind in _ITERATORS:
        return Once(_ITERATORS[kind], ())
    if hasattr(value, "__array__") and kind.__module__.startswith(("jaxlib", "pscdsl")):
        return np.asarray(value)
    return External(f"{public_name(kind.__module__)}.{kind.__qualname__} object `{name}`")


_ITERATORS: dict[type, str] = {
    zip: "a `zip`",
    map: "a `map`",
    filter: "a `filter`",
    enumerate: "an enumeration",
    reversed: "the iterator of `reversed`",
    types.GeneratorType: "a generator",
}


def _by_identity(value: object) -> AnyValue | None:
    """Return the meaning of an object in a known module."""
    entry = _identities(tuple([name in sys.modules for name in _optional()])).get(id(value))
    if entry is not None and entry[0] is value:
        return entry[1]
    return _by_module(value)


@functools.cache
def _homes() -> dict[str, str]:
    """Return the module of each of our public names, by the package's list, without loading it."""
    package = sys.modules["pscdsl"]
    listed: dict[str, str] = vars(package)["_HOMES"]
    return {f"pscdsl.{x}": f"pscdsl.{x}" if y == "pscdsl" else y for x, y in listed.items()}


@functools.cache
def _optional() -> tuple[str, ...]:
    """Return known modules that are slow to load; none of their objects exist before that."""
    known = ("scipy.fft", "scipy.linalg", "scipy.special", "typeguard")
    return (*known, *dict.fromkeys(_homes().values()))


@functools.cache
def _identities(loaded: tuple[bool, ...]) -> dict[int, tuple[object, AnyValue]]:
    """Return the meanings of the objects of known modules, without optional ones not yet loaded."""
    load_all()
    missing = {name for name, there in zip(_optional(), loaded, strict=True) if not there}
    found: dict[int, tuple[object, AnyValue]] = {}
    for qualified, meaning in [*MEANINGS.items(), *_types()]:
        module, _, attribute = qualified.partition(".")
        name = f"{module}.{attribute.partition('.')[0]}"
        if not missing.isdisjoint((module, name, _homes().get(name))):
            continue
        real: Any = builtins if module == "builtins" else _module(module)
        for part in attribute.split("."):
            real = getattr(real, part, None)
        if real is not None and not isinstance(real, _SCALARS):
            found.setdefault(id(real), (real, meaning))
    return found


def _module(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _types() -> list[tuple[str, Marker]]:
    names = (
        "pscdsl.Record pscdsl.Static pscdsl.Array pscdsl.Tree pyrsistent.PRecord pyrsistent.PClass "
        "pyrsistent.PMap pyrsistent.PVector numpy.ndarray typing.NamedTuple typing.TypedDict "
        "typing.Any typing.Literal typing.Annotated typing.Tuple typing.Callable numpy.s_ "
        "numpy.index_exp numpy.mgrid numpy.ogrid numpy.r_ numpy.c_"
    )
    return [(name, Marker(name)) for name in names.split()]


def _by_module(value: object) -> Marker | External | None:
    """Return the meaning of a name in a module of types: jaxtyping's, typing's."""
    module = getattr(value, "__module__", "") or ""
    name = getattr(value, "__name__", "") or getattr(value, "_name", "") or ""
    if isinstance(value, types.FunctionType) or not isinstance(module, str):
        return None
    if module.startswith("jaxtyping") and name:
        return Marker(f"jaxtyping.{name}")
    if module in ("typing", "collections.abc") and name:
        return Marker(f"{module}.{name}")
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        if isinstance(owner, types.ModuleType):
            return External(f"{public_name(owner.__name__)}.{value.__name__}", library=True)
        home = public_name(type(owner).__module__)
        return External(f"{home}.{type(owner).__name__}.{value.__name__}")
    if isinstance(value, np.ufunc):
        return External(f"numpy.{value.__name__}")
    return None


@dataclass(frozen=True)
class _ReadClass:
    """A class as it was read, and its members at that time."""

    cls: type
    held: Sequence[object]
    value: AnyValue
    trace: Trace


_CLASSES: dict[int, _ReadClass] = {}
"""The classes that were read, by identity, which a metaclass cannot change."""
forget_at_end(_CLASSES)


def record_class(cls: type) -> RecordClass | None:
    """Return the record class of a real class; None if its instances are not records."""
    found = _class(cls)
    return found if isinstance(found, RecordClass) else None


def trace_of(value: object) -> Trace | None:
    """Return the trace of the look-ups for a kernel, a function with rules, or a class."""
    if isinstance(value, type):
        known = _CLASSES.get(id(value))
        return None if known is None else known.trace
    found: Trace | None = getattr(value, "trace", None)
    return found


def is_as_read(cls: type) -> bool:
    """Return whether reading a class now would give the value that it gave before."""
    known = _CLASSES.get(id(cls))
    return known is not None and _is_current(known, _held(cls))


def _is_current(known: _ReadClass, held: Sequence[object]) -> bool:
    same = len(known.held) == len(held) and all(map(operator.is_, known.held, held))
    return same and (isinstance(known.value, External) or not known.trace.changed())


def _met_class(cls: type, trace: Trace) -> AnyValue:
    found = _class(cls)
    trace.meet(cls, trace_of(cls))
    return found


def _class(cls: type) -> AnyValue:
    known, held = _CLASSES.get(id(cls)), _held(cls)
    if known is not None and _is_current(known, held):
        return known.value
    trace = Trace(cls)
    if known is not None:  # the earlier look-ups with it differ from the new ones
        trace.close(f"the class {cls.__qualname__}, which was changed after it had been read")
    itself = External(f"{cls.__module__}.{cls.__qualname__}")
    _CLASSES[id(cls)] = _ReadClass(cls, held, itself, trace)  # while it is read
    try:
        value = _read_class(cls, trace)
    except BaseException:
        del _CLASSES[id(cls)]
        raise
    _CLASSES[id(cls)] = _ReadClass(cls, held, value, trace)
    return value


_DECLARING = ("__annotations__", "__dataclass_fields__", "__dims__")


def _held(cls: type) -> list[object]:
    """Return the members of a class: `%autoreload` changes classes in place."""
    found: list[object] = []
    for each in cls.__mro__:
        if not is_outside(each.__module__):
            for name, member in vars(each).items():
                code = getattr(member, "__code__", None)
                if code is not None or not name.startswith("__") or name in _DECLARING:
                    found += (name, member, code)
    return found


def _read_class(cls: type, trace: Trace) -> AnyValue:
    if np.generic in cls.__mro__:
        try:
            return from_numpy(np.dtype(cls))
        except TypeError:
            return External(f"numpy.{cls.__name__}")
    if cls.__module__ in KNOWN_MODULES or cls.__module__ == "builtins":
        return External(f"{cls.__module__}.{cls.__qualname__}")
    if is_pythons(cls.__module__):
        return External(f"{public_name(cls.__module__)}.{cls.__qualname__}", library=True)
    module = sys.modules.get(cls.__module__)
    namespace = {} if module is None else vars(module)
    filename = file_of(namespace)
    source = None if filename is None else current_source(filename, namespace)
    stands = source is not None and cls.__qualname__ in source.classes()
    if filename is None or stands or kind_of(cls) is not None:
        scope, read = LoadedModule(cls, source, trace), functools.partial(abstract, trace=trace)
        try:
            return class_of_object(cls, scope, read, source)
        except Failure as failure:
            if module is None:  # nothing is known of the names in its text
                raise _without_module(cls, failure) from None
            raise
    return External(f"{cls.__module__}.{cls.__qualname__}")


def _without_module(cls: type, failure: Failure) -> Failure:
    """Return the failure for a class whose module cannot be found."""
    name = cls.__module__
    what = f"the class `{cls.__qualname__}` of `{name}`, which is not in `sys.modules`,"
    rewrite = f'set `sys.modules["{name}"]` to the module before it is run'
    return Failure(Unsupported(what=what, rewrite=rewrite, span=failure.diagnostics[0].span))


def imported_at_run_time(
    scope: LoadedModule, node: ast.Import | ast.ImportFrom
) -> dict[str, AnyValue]:
    """Return the names that an import inside a loaded function binds."""
    trace = scope.trace
    trace.close("what imports when it is read")
    names: dict[str, AnyValue] = {}
    for alias in node.names:
        if isinstance(node, ast.Import):
            module = importlib.import_module(alias.name)
            real = module if alias.asname else importlib.import_module(alias.name.split(".")[0])
            names[alias.asname or alias.name.split(".")[0]] = abstract(real, alias.name, trace)
        else:
            package = scope.namespace.get("__package__") or ""
            base = importlib.import_module("." * node.level + (node.module or ""), package)
            names[alias.asname or alias.name] = abstract(
                getattr(base, alias.name), alias.name, trace
            )
    return names
