"""Functions of `psc` called outside of kernels: compiled and run as a kernel would.

Each call is a program. Arrays and NumPy scalars among the arguments are its parameters, with their
dtypes and shapes; Python numbers are known while checking, like literals in a kernel; functions are
read from their source. Sizes and axes must be known while checking, so NumPy integers are known
there, as captured ones are. A function sees the current values of the names around it: it is read
at each call. Kernels, transformations and functions with rules that it calls are read once, as
everywhere. A program that was compiled before is found again by its content, so that another call
does not compile.
"""

from __future__ import annotations

import ast
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from threading import RLock
from typing import Any, Final, NoReturn

import numpy as np

from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint
from pscdsl._src.analysis.keys.walk import reused_keys
from pscdsl._src.calls import boundary
from pscdsl._src.calls.errors import ArgumentError, CallSite, CheckError
from pscdsl._src.frontend.interpreter.call_findings import INITIAL, with_operands
from pscdsl._src.frontend.interpreter.calls import invoke
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.modules.live import LoadedModule, abstract, record_class
from pscdsl._src.frontend.modules.traces import Trace, unrecorded
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.trees import flatten, of_values, strong
from pscdsl._src.frontend.values import Poisoned, RecordValue, container_value
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.program import Function, Var
from pscdsl._src.kernels.captured_state import Watch
from pscdsl._src.kernels.compiling import obtained
from pscdsl._src.language.instances import absent, reader
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED
from pscdsl._src.transforms.simplify import simplify, with_largest
from pscdsl._src.xla.runtime.devices import host_view, prepare
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.arrays import Array
from pscdsl.typing.array_types import ArrayType, Type, container_kind
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.element_types import ArgumentDtype
from pscdsl.typing.codes.keys import NotOneKey
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label, Severity, Span
from pscdsl.typing.dtypes import defaults
from pscdsl.typing.python_containers import is_counted, is_dtype
from pscdsl.typing.static_values import exact

MOST_PROGRAMS: Final = 512
"""Compiled programs that are cached; those that were not called for longest are forgotten."""
MOST_KEYS: Final = 5
"""The most arrays that may be keys or words; with more, all are treated alike."""
_STATIC: Final = (bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis))


@dataclass(frozen=True)
class EagerProgram:
    """A program that runs on the arrays of a call."""

    executable: Any
    result: Type

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Return the result, as a tree."""
        return boundary.result(self.result, iter(self.executable.run(arrays)))


class Recent:
    """A cache of the most recently used results."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: Hashable) -> Any:
        """Return the entry of a key; None if there is none."""
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                self._made.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Any) -> None:
        """Add a value under a key."""
        with self._lock:
            self._made[key] = value
            while len(self._made) > MOST_PROGRAMS:
                self._made.popitem(last=False)


CALLS: Final = Recent()
"""Programs of calls without functions, by their arguments."""
_BY_VALUE: Final = object()
"""An entry of `CALLS` for a call with one program for each value of NumPy's integers."""
PROGRAMS: Final = Recent()
"""Executables by the fingerprints of their programs."""


class Arguments:
    """The arguments of a call, flattened: arrays, and the key of their program.

    With `by_value`, NumPy integers and bools are known while checking, as Python's are.
    """

    def __init__(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], by_value: bool = False
    ) -> None:
        self.name = name
        self.arrays: list[Any] = []
        self.types: list[ArrayType] = []
        self.key: Hashable = None
        """The key of the program of these arguments; None if there is none, as with functions."""
        self._args, self._kwargs, self._by_value = args, kwargs, by_value
        self._keyed, self._counted = True, False
        parts = [self._key(each) for each in (*args, *kwargs.values())]
        if self._keyed:
            key = (name, len(args), tuple(kwargs), tuple(parts), tuple(self.types), by_value)
            try:
                hash(key)
                self.key = key
            except TypeError:
                pass  # a dict with keys that cannot be hashed

    def by_value(self) -> Arguments | None:
        """Return these with NumPy's integers known while checking; None if that changes nothing."""
        if not self._counted:
            return None
        return Arguments(self.name, self._args, self._kwargs, by_value=True)

    def values(self, params: Sequence[Value], trace: Trace) -> tuple[list[Any], dict[str, Any]]:
        """Return the values of the arguments in a program with these parameters."""
        rest = iter(params)
        args = [self._value(each, rest, trace) for each in self._args]
        return args, {key: self._value(each, rest, trace) for key, each in self._kwargs.items()}

    def _key(self, value: Any) -> Hashable:
        kind: type[Any] = value.__class__
        if kind in _STATIC:
            try:
                return "static", exact(value)
            except TypeError:  # a slice, before Python 3.12
                return "slice", exact((value.start, value.stop, value.step))
        if is_counted(value):
            if self._by_value:
                return "static", exact(value)
            self._counted = True
        if _is_array(value):
            self._array(value)
            return "array"
        parts = _parts(value)
        if parts is not None:
            return kind, parts[0], tuple([self._key(each) for each in parts[1]])
        if isinstance(value, type) or is_dtype(value):
            return "type", value
        self._keyed = False
        return None

    def _array(self, value: Any) -> None:
        array: Any = value
        kind: type[Any] = value.__class__
        try:
            if not isinstance(value, np.ndarray | np.generic | Array):
                array = host_view(value)
            self.types.append(boundary.array_type(array))
            self.arrays.append(array)
        except boundary.NotAnArgument as problem:
            raise ArgumentError(f"an argument of `{self.name}` is {problem}") from None
        except (BufferError, RuntimeError, TypeError) as error:
            text = (
                f"an argument of `{self.name}` is an array of class {kind.__qualname__} "
                "that cannot be read"
            )
            raise ArgumentError(f"{text}: {error}") from None

    def _value(self, value: Any, params: Any, trace: Trace) -> Any:
        if value.__class__ in _STATIC:
            return value
        if _is_array(value) and not (self._by_value and is_counted(value)):
            return next(params)
        parts = _parts(value)
        if parts is not None:
            return parts[2]([self._value(each, params, trace) for each in parts[1]])
        return abstract(value, getattr(value, "__name__", "argument"), trace)


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic | Array):
        return True
    kind: type[Any] = value.__class__
    if kind.__module__.startswith("jax.") and hasattr(value, "aval"):
        if kind.__name__ == "PRNGKeyArray":
            raise ArgumentError(
                "a function of `psc` is given a key of jax's: give it `jax.random.key_data(key)`"
            )
        raise ArgumentError(
            "a function of `psc` is given a value that jax is tracing: "
            "write a kernel, and call its `to_jax()` there"
        )
    return hasattr(kind, "__dlpack__") and not isinstance(value, type)


def _parts(value: Any) -> tuple[Hashable, list[Any], Callable[[list[Any]], Any]] | None:
    """Return a container's structure besides its class, its items, and its constructor."""
    kind: type[Any] = value.__class__
    container = container_kind(value)
    if container is not None:
        parts, keys = container.apart(value)
        return (
            (len(parts), keys),
            list(parts),
            lambda items: container_value(container, keys, items),
        )
    if isinstance(value, type) or (callable(value) and not hasattr(kind, "__dataclass_fields__")):
        return None
    cls = record_class(kind)
    if cls is None or cls.kind == "namespace":
        return None
    if missing := absent(cls, value):
        left_out = ", ".join(f"`{each}`" for each in missing)
        raise ArgumentError(f"an object of class {cls.title} without {left_out}")
    read, fields = reader(cls), cls.field_names()
    found = [read(value, each) for each in fields]
    return fields, found, lambda items: RecordValue(cls, _together(fields, items))


def _together(names: Sequence[Any], items: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(names, items, strict=True))


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function of `psc` as in a kernel; CheckError if it is refused."""
    prepare()
    try:
        given = Arguments(f"psc.{name}", args, kwargs)
        known = _known(given)
        if known is _BY_VALUE:
            given = given.by_value() or given
            known = _known(given)
    except Failure as failure:  # a class that has no meaning
        raise CheckError(failure.diagnostics) from None
    if known is None:
        first, (given, program) = given, _program(name, given, _caller())
        known = _compiled(program)
        if first.key is not None:
            CALLS.put(first.key, known if first is given else _BY_VALUE)
            CALLS.put(given.key, known)
    return known(given.arrays)


def _known(given: Arguments) -> Any:
    return None if given.key is None else CALLS.get(given.key)


def _compiled(function: Function) -> EagerProgram:
    program = with_largest(simplify(without_effects(function, COMPILED.kinds)))
    assert program.result is not None
    try:
        key = program.name, fingerprint(program)
    except NoFingerprint:
        key = None
    executable = None if key is None else PROGRAMS.get(key)
    if executable is None:
        executable = obtained(Specialisation(program, {}))
        if key is not None:
            PROGRAMS.put(key, executable)
    return EagerProgram(executable, program.result)


def _program(name: str, given: Arguments, site: CallSite) -> tuple[Arguments, Function]:
    """Return the program of a call, and the arguments that it takes.

    Outside of kernels a key is an array of words like others, and NumPy integers are scalars. If
    the call needs keys, as few as possible of the arrays that can hold keys become keys; if it
    needs integers that are known while checking, NumPy's integers are known.
    """
    by_value = given.by_value()
    refused: tuple[Arguments, Sequence[ArrayType]] = given, given.types
    for each in (given,) if by_value is None else (given, by_value):
        wants_keys = False
        for types in _with_keys(each.types):
            try:
                return each, _elaborated(name, each, types, None)
            except Failure as failure:
                still_wants = any(map(_wants_keys, failure.diagnostics))
            if types is each.types:
                refused, wants_keys = (each, types), still_wants
            elif wants_keys and not still_wants:
                refused, wants_keys = (each, types), False
            if types is each.types and not wants_keys:
                break
    _refuse(name, *refused, site)


def _wants_keys(finding: Diagnostic) -> bool:
    match finding:
        case NotOneKey():
            return True
        case ArgumentDtype():
            return finding.wants_keys()
        case _:
            return False


def _with_keys(types: Sequence[ArrayType]) -> Iterator[Sequence[ArrayType]]:
    """Yield the types, and those with keys in place of words: one array of them, two, and so on."""
    yield types
    keys = [boundary.keys_in(each) for each in types]
    places = [at for at, each in enumerate(types) if keys[at] != each]
    if len(places) > MOST_KEYS:
        yield keys
        return
    for count in range(1, len(places) + 1):
        for chosen in combinations(places, count):
            yield [keys[at] if at in chosen else each for at, each in enumerate(types)]


def _refuse(name: str, given: Arguments, types: Sequence[ArrayType], site: CallSite) -> NoReturn:
    """Raise the error of a call, with the place of the call."""
    try:
        _elaborated(name, given, types, site)
    except Failure as failure:
        raise CheckError(failure.diagnostics) from None
    raise AssertionError("a call is refused or not, wherever it stands")


def _elaborated(
    name: str, given: Arguments, types: Sequence[ArrayType], site: CallSite | None
) -> Function:
    program = Program(Assumptions(), defaults(each.dtype for each in types))
    session = Session(program)
    here = program.current
    place = None if site is None else site.place()
    source, span = (Source("", ""), NOWHERE) if place is None else place
    program.span = span
    names = [f"a{at}" for at in range(len(types))]
    params = [Value(here, Var(each, called)) for each, called in zip(types, names, strict=True)]
    trace = unrecorded("a call that is read anew each time")
    trace.anew = True
    frame = Frame(session, source, LoadedModule(None, None, trace))
    try:
        args, kwargs = given.values(params, trace)
        result = _invoked(frame, here, MEANINGS[f"pscdsl.{name}"], args, kwargs)
        errors = [each for each in session.findings if each.severity is Severity.ERROR]
        if errors:
            raise Failure(*errors)
        program.span = span
        leaves, tree = flatten(here, result, f"the result of `{given.name}`")
        values = strong(leaves)
    except Poisoned:
        raise Failure(*session.findings) from None
    except Failure as failure:
        node = None if place is None else _call_at(source, span)
        raise Failure(*_placed(failure, frame, node, span, given.name)) from None
    body, _ = here.finish(params, values)
    function = Function(
        name.rpartition(".")[2],
        (),
        program.facts,
        body,
        tuple(zip(names, types, strict=True)),
        of_values(tree, values),
        span,
        program.origins,
    )
    Watch([trace]).require_same(lambda: given.name)  # kernels that it calls were read once
    reused = reused_keys(function, program.names, span)
    if reused:
        raise Failure(*reused)
    return function


def _invoked(
    frame: Frame, here: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    try:
        return invoke(frame, here, function, args, kwargs)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        if not isinstance(function, Meaning):
            raise
        problem = f"does not take these arguments ({error})"
        raise Failure(BadArguments(function=function.name, problem=problem)) from None


def _placed(
    failure: Failure, frame: Frame, node: ast.Call | None, span: Span, name: str
) -> Sequence[Diagnostic]:
    """Return findings with the place of the call, where they have no other."""
    if node is not None:
        failure = with_operands(failure, frame, node.args)
        position, keyword = INITIAL.get(name, (None, ""))
        found = [each.value for each in node.keywords if each.arg == keyword]
        if position is not None and len(node.args) > position:
            found.append(node.args[position])
        if found and any(hasattr(each, "loop") for each in failure.diagnostics):
            failure = failure.labelled(Label(frame.span(found[0]), "the carry starts as this"))
    return failure.at(span).diagnostics


def _call_at(source: Source, span: Span) -> ast.Call | None:
    """Return the call at a place."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and source.span(node) == span:
            return node
    return None


def _caller() -> CallSite:
    """Return the place where the function of `psc` is called."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return CallSite(frame.f_code, frame.f_lasti, frame.f_globals)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "pscdsl"
