"""Functions of JAX programs that are proven, run by jax and by our typed programs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from pscdsl._src.checker.check import deep_stack, quiet
from pscdsl._src.checker.jax_functions import annotated_functions
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.discover.candidates import NO_DEFAULT, AnyFunction
from pscdsl._src.discover.equality import KINDS, Array, close, drawn, sizes_of
from pscdsl._src.discover.jax_classes import Unfit
from pscdsl._src.discover.jax_inference import (
    SECONDS,
    TypedFunction,
    functions_of,
    typed_function,
)
from pscdsl._src.discover.jax_parameters import Opaque
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.jax_programs import enables_x64
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.primitives.effects import CheckFailed
from pscdsl.typing.array_types import (
    ArrayType,
    DictType,
    RecordType,
    StandardContainerType,
    StaticType,
    Type,
    paths,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dims import evaluate as evaluated
from pscdsl.typing.dtypes import KEY
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import ArraySpec, Choice, walk_paths

MOST_CHOICES: Final = 24
"""How many choices of a signature are run, spread evenly."""


def jax_itself() -> Any:
    """Return the module jax, which programs that are only checked do without."""
    return importlib.import_module("jax")


class NotRun(Exception):
    """The reason why a function is not run."""


@dataclass(frozen=True)
class Program:
    """The typed program of a function that is proven, for a choice."""

    name: str
    """The name in the module."""
    definition: JaxDefinition
    choice: Choice
    function: Function


@dataclass(frozen=True)
class Proven:
    """A function and the definitions with which it is proven."""

    name: str
    definitions: tuple[JaxDefinition, ...]

    def programs(self) -> Iterator[Program]:
        """Yield the typed programs, for the choices that it is tried with."""
        pairs = [(each, choice) for each in self.definitions for choice in _choices(each)]
        tried = min(len(pairs), MOST_CHOICES)
        for number in range(tried):
            definition, choice = pairs[number * len(pairs) // tried]
            with deep_stack(), quiet(), suppress(Excluded):
                yield Program(self.name, definition, choice, definition.instance(choice))


def _choices(definition: JaxDefinition) -> Sequence[Choice]:
    if isinstance(definition, TypedFunction):
        return [definition.choice]
    return definition.signature.choices() or ()


def module_of(path: Path, root: Path | None = None) -> StaticModule:
    """Return a file as the checker reads it."""
    return Project(files=files_below([str(root or path)])).at(str(path))


def accepted(path: Path, root: Path | None = None) -> list[Proven]:
    """Return the annotated functions of a file that the checker accepts."""
    with deep_stack(), quiet():
        found = [*annotated_functions(module_of(path, root))]
    return [Proven(each.name, each.variants) for each in found if each.variants]


def inferred(path: Path, root: Path | None = None, seconds: float = SECONDS) -> list[Proven]:
    """Return the functions of a file for which types are found."""
    found: list[Proven] = []
    with deep_stack(), quiet():
        module = module_of(path, root)
        for name, node, cls in functions_of(module.source.tree) if module.is_jax else ():
            try:
                found.append(Proven(name, (typed_function(module, node, cls, seconds),)))
            except (Failure, Poisoned, Unfit):
                continue
    return found


def arguments(
    program: Program, sizes: Mapping[str, int], rng: np.random.Generator, kind: str
) -> list[Array]:
    """Return the arrays of a program's parameters, in order."""
    parameters, signature = program.function.parameters, program.definition.signature
    if len(parameters) > len(signature.parameters):
        raise NotRun("it calls a function that is an argument")
    found: list[Array] = []
    for _, tree in parameters:
        for _, leaf in paths(tree):
            shape = [x if isinstance(x, int) else evaluated(x, sizes) for x in leaf.shape]
            found.append(drawn(leaf, shape, rng, kind))
    return found


def theirs(
    program: Program, module: ModuleType, sizes: Mapping[str, int], arrays: Sequence[Array]
) -> Sequence[Array] | str:
    """Return what jax computes, or the reason why it refuses."""
    jax, definition = jax_itself(), program.definition
    with warnings.catch_warnings(), jax.enable_x64(enables_x64(definition.source)):
        warnings.simplefilter("ignore")
        given = _given(program, _Objects(iter(arrays), module, sizes))
        try:
            result = _result(program, module, given)
            assert program.function.result is not None
            return [*_leaves(result, program.function.result)]
        except NotRun:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}".strip().split("\n")[0][:300]


def _given(program: Program, objects: _Objects) -> dict[str, Any]:
    """Return the arguments by the names of the program's parameters, without defaults."""
    definition = program.definition
    given: dict[str, Any] = {}
    for parameter, (name, tree) in zip(
        definition.signature.parameters, program.function.parameters, strict=True
    ):
        value = tree.value if isinstance(tree, StaticType) else None
        if isinstance(value, RecordClass):
            continue  # of a class method
        if isinstance(tree, StaticType) and definition.defaults.get(name, NO_DEFAULT) == value:
            continue
        python = {
            where
            for where, part in walk_paths(parameter.spec, name)
            if isinstance(part, ArraySpec) and part.python
        }
        given[name] = objects.made(tree, name, python)
    return given


def _result(program: Program, module: ModuleType, given: dict[str, Any]) -> Any:
    """Return the result for arguments: of a constructor, fields; of functions, their results."""
    definition = program.definition
    node = definition.closure.node
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    title, _, name = program.name.rpartition(".")
    owner: Any = getattr(module, title) if title else module
    called = definition.returned if isinstance(definition, TypedFunction) else ()
    further = [{each: given.pop(part.prefix + each) for each in part.names} for part in called]
    if isinstance(definition, TypedFunction) and definition.own.makes is not None:
        made = _concrete(owner)(**given)
        tree = program.function.result
        assert isinstance(tree, DictType)
        return {each: getattr(made, each) for each in tree.keys}
    function: Any = getattr(owner, name)
    if isinstance(function, property):
        function = function.fget
    elif isinstance(function, cached_property):
        function = function.func
    if title and positional and positional[0] not in given and inspect.isfunction(function):
        suffix = f"_of_{title}"  # its object is made of the arguments
        made = [each for each in given if each not in positional]
        parts = {each.removesuffix(suffix): given.pop(each) for each in made}
        given[positional[0]] = owner(**parts)
    result = _called(function, node.args, given)
    if not called:
        return result
    found = [each for each in jax_itself().tree.leaves(result) if callable(each)]
    if len(found) != len(called):
        raise NotRun("its result holds other functions")
    return tuple(
        _called(each, part.closure.node.args, of)
        for each, part, of in zip(found, called, further, strict=True)
    )


def _called(function: Any, spec: ast.arguments, given: dict[str, Any]) -> Any:
    """Return the result of a call with arguments by name."""
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    if positional and inspect.ismethod(function) and positional[0] not in given:
        del positional[0]
    args: list[Any] = []
    while positional and positional[0] in given:
        args.append(given.pop(positional.pop(0)))
    return function(*args, **given)


def _leaves(value: Any, tree: Type) -> Iterator[Array]:
    """Yield the arrays of a result that a type describes."""
    match tree:
        case ArrayType():
            yield _array(value)
        case StaticType():
            pass
        case RecordType(fields=fields):
            for name, part in fields:
                yield from _leaves(getattr(value, name), part)
        case StandardContainerType():
            if not tree.holds(value):
                raise TypeError(f"{type(value).__name__} in place of {tree.noun}")
            items, _ = tree.apart(value)
            for item, part in zip(items, tree.parts, strict=True):
                yield from _leaves(item, part)
        case _:
            if value is not None:
                raise TypeError(f"{type(value).__name__} in place of None")


def _array(x: Any) -> Array:
    """Return an array, of keys their words."""
    jax = jax_itself()
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(x))
    return np.asarray(jax.numpy.asarray(x))


@dataclass(frozen=True)
class _Objects:
    """Makes what jax takes, of the next arrays."""

    rest: Iterator[Array]
    module: ModuleType
    sizes: Mapping[str, int]

    def made(self, tree: Type, where: str, python: set[str]) -> Any:
        """Return an object of a type."""
        jax = jax_itself()
        match tree:
            case ArrayType():
                array = next(self.rest)
                if tree.dtype is KEY:
                    return jax.random.wrap_key_data(jax.numpy.asarray(array))
                return array.item() if where in python else jax.numpy.asarray(array)
            case StaticType(value=value):
                return self._static(value)
            case RecordType():
                return self._record(tree, where, python)
            case StandardContainerType():
                parts = [
                    self.made(part, where + step, python)
                    for step, part in zip(tree.steps, tree.parts, strict=True)
                ]
                return tree.made(tree.keys, parts)
            case _:
                return None

    def _static(self, value: Any) -> Any:
        match value:
            case Dim():
                return evaluated(value, self.sizes)
            case AnyFunction():
                return _first
            case Opaque():
                return jax_itself().numpy.float32(0)
            case _ if is_tuple(value):
                return tuple(map(self._static, value))
            case bool() | int() | float() | str() | None:
                return value
            case _:
                raise NotRun(f"an argument is {value!r}")

    def _record(self, tree: RecordType, where: str, python: set[str]) -> Any:
        """Return an object of a class of the program, or of one made for the attributes it has."""
        fields = {name: self.made(part, f"{where}.{name}", python) for name, part in tree.fields}
        definition = tree.record.definition
        if isinstance(definition, RecordClass) and _is_guessed(definition):
            return _of_guessed(definition, fields)
        found = [
            vars(each)[tree.record.name]
            for each in [self.module, *list(sys.modules.values())]
            if isinstance(getattr(each, "__dict__", {}).get(tree.record.name), type)
        ]
        if not found:
            raise NotRun(f"the class {tree.record.name} is not found")
        cls: Any = found[0]
        if hasattr(cls, "_fields"):
            return cls(**fields)
        try:
            made = object.__new__(_concrete(cls))
            for name, value in fields.items():
                object.__setattr__(made, name, value)
        except (AttributeError, TypeError) as error:
            raise NotRun(str(error)) from None
        return made


def _first(*args: Any, **kwargs: Any) -> Any:
    """Return the first argument."""
    return [*args, *kwargs.values(), 0.0][0]


def _concrete(cls: Any) -> Any:
    """Return a class of which there can be instances."""
    if inspect.isabstract(cls):
        cls.__abstractmethods__ = frozenset[str]()
    return cls


def _is_guessed(cls: RecordClass) -> bool:
    """Return whether a class stands for an unknown one, of the attributes that a text names."""
    return not cls.parents and not cls.members and all(x.frame is None for x in cls.fields)


_NAMED: Final[Any] = namedtuple  # of names that no type checker knows


def _of_guessed(cls: RecordClass, fields: dict[str, Any]) -> Any:
    if cls.kind == "namedtuple":
        return _NAMED(cls.title, [*fields])(**fields)
    made = make_dataclass(cls.title, [*fields], namespace={"replace": replace, "_replace": replace})
    jax_itself().tree_util.register_dataclass(made, [*fields], [])
    return made(**fields)


def ours(
    program: Program, sizes: Mapping[str, int], arrays: Sequence[Array]
) -> Sequence[Array] | str:
    """Return what the typed program computes, or the condition that does not hold."""
    try:
        with deep_stack(), quiet(), np.errstate(all="ignore"):
            return evaluate(program.function, sizes, arrays)
    except CheckFailed as failed:
        return str(failed)


def difference(
    mine: Sequence[Array] | str,
    wanted: Sequence[Array] | str,
    alike: Callable[[Array, Array], bool] | None = None,
) -> str:
    """Return in words how outcomes differ; empty if they do not.

    A text is the reason for having none.
    """
    if isinstance(wanted, str):
        return "" if isinstance(mine, str) else f"jax raises: {wanted}"
    if isinstance(mine, str):
        return f"refused: {mine}"
    if len(mine) != len(wanted):
        return f"results: {len(mine)} and {len(wanted)} of jax"
    for number, (left, right) in enumerate(zip(mine, wanted, strict=True)):
        if left.dtype != right.dtype:
            return f"dtype: {left.dtype} and {right.dtype} of jax, in result {number}"
        if left.shape != right.shape:
            return f"shape: {left.shape} and {right.shape} of jax, in result {number}"
        if not (alike or close)(left, right):
            return f"values: {_shown(left)} and {_shown(right)} of jax, in result {number}"
    return ""


def _shown(x: Array) -> str:
    return np.array2string(x, threshold=12, precision=6).replace("\n", "")


@dataclass(frozen=True)
class Run:
    """One run of a program: where, and how the outcomes differ."""

    program: Program
    sizes: Mapping[str, int]
    kind: str
    difference: str
    refused: bool
    """Whether jax computes nothing."""

    @property
    def place(self) -> str:
        """The choice and the sizes."""
        return self.program.choice.at(self.sizes)

    def __str__(self) -> str:
        return f"{self.program.name} ({self.place}; {self.kind}): {self.difference}"


def runs(function: Proven, module: ModuleType, kinds: Sequence[str] = KINDS) -> Iterator[Run]:
    """Yield the runs of a function that is proven, at several sizes of each name."""
    for program in function.programs():
        for number, sizes in enumerate(sizes_of(program.function)):
            for kind in kinds:
                rng = np.random.default_rng(number + 7)
                arrays = arguments(program, sizes, rng, kind)
                wanted = theirs(program, module, sizes, arrays)
                found = difference(ours(program, sizes, arrays), wanted)
                yield Run(program, sizes, kind, found, isinstance(wanted, str))


def imported(path: Path, name: str) -> ModuleType:
    """Return a file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
