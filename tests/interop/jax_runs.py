"""Functions of JAX programs that the checker accepts, run by jax and by our typed programs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from pscdsl._src.checker.check import deep_stack, quiet
from pscdsl._src.checker.jax_functions import JaxFunction, annotated_functions
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.primitives.effects import CheckFailed
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    RecordType,
    StandardContainerType,
    StaticType,
    Type,
    paths,
)
from pscdsl.typing.dims import evaluate as evaluated
from pscdsl.typing.dtypes import KEY, Kind
from pscdsl.typing.signatures import ArraySpec, Choice, walk_paths

MOST_CHOICES: Final = 24
"""How many choices of a signature are run, spread evenly."""
FREE: Final = ((5, 3, 2, 4, 6, 7, 8, 9), (2, 4, 3, 5, 7, 6), (4, 4, 4), (3, 6, 9), (1,), (0,))
"""Numbers for the names of sizes, repeated if there are more."""
KINDS: Final = ("normal", "whole", "special")
"""Arrays that are tried: any numbers; small whole ones, with ties; with NaN and infinities."""


def jax_itself() -> Any:
    """Return the module jax, which programs that are only checked do without."""
    return importlib.import_module("jax")


class NotRun(Exception):
    """The reason why a function is not run."""


@dataclass(frozen=True)
class Program:
    """The typed program of an accepted function, for a choice."""

    of: JaxFunction
    definition: JaxDefinition
    choice: Choice
    function: Function

    @property
    def name(self) -> str:
        """The name in the module."""
        return self.of.name


def accepted(path: Path, root: Path | None = None) -> list[JaxFunction]:
    """Return the functions of a file that the checker accepts."""
    files = files_below([str(root or path)])
    with deep_stack(), quiet():
        module = Project(files=files).at(str(path))
        return [each for each in annotated_functions(module) if each.variants]


def programs(function: JaxFunction) -> Iterator[Program]:
    """Yield the typed programs of an accepted function."""
    pairs = [
        (definition, choice)
        for definition in function.variants
        for choice in definition.signature.choices() or ()
    ]
    tried = min(len(pairs), MOST_CHOICES)
    for number in range(tried):
        definition, choice = pairs[number * len(pairs) // tried]
        try:
            with deep_stack(), quiet():
                program = definition.instance(choice)
        except Excluded:
            continue
        yield Program(function, definition, choice, program)


def sizes_of(function: Function) -> Iterator[Mapping[str, int]]:
    """Yield admitted sizes: also 1 and 0 where these are admitted."""
    met: list[Mapping[str, int]] = []
    facts = function.facts.facts
    least = {name: function.facts.lower_bound(name) for name in function.dims}
    for numbers in FREE:
        for extra in (0, 1, 2):
            sizes = {
                name: max(numbers[at % len(numbers)] + extra * (at % 2), least[name])
                for at, name in enumerate(function.dims)
            }
            if sizes not in met and all(fact.holds(sizes) for fact in facts):
                met.append(sizes)
                yield sizes
                break


Array = np.ndarray[Any, Any]


def drawn(leaf: ArrayType, shape: Sequence[int], rng: np.random.Generator, kind: str) -> Array:
    """Return an array of a type."""
    shape = tuple(shape)
    if leaf.dtype is KEY:
        return rng.integers(0, 1 << 32, (*shape, 2), np.uint32)
    dtype = to_numpy(leaf.dtype)
    if leaf.dtype.kind is Kind.BOOL:
        return np.asarray(rng.random(shape) < 0.6)
    if leaf.dtype.is_integer:
        low = 0 if leaf.dtype.is_unsigned or kind == "normal" else -3
        return np.asarray(rng.integers(low, 5, shape)).astype(dtype)
    if kind == "whole":
        found = np.asarray(rng.integers(-1, 3, shape)).astype(float)
    else:
        found = np.round(rng.normal(size=shape), 3)
        if kind == "normal" and rng.random() < 0.5:
            found = np.abs(found) + 0.25
    if kind == "special":
        pick = rng.integers(0, 12, shape)
        for number, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
            found = np.where(pick == number, value, found)
    if leaf.dtype.is_complex:
        return np.asarray(found + 1j * rng.permutation(np.ravel(found)).reshape(shape)).astype(
            dtype
        )
    return np.asarray(found).astype(dtype)


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


def theirs(program: Program, module: ModuleType, arrays: Sequence[Array]) -> Sequence[Array] | str:
    """Return what jax computes, or the reason why it refuses."""
    jax = jax_itself()
    rest = iter(arrays)
    given: dict[str, Any] = {}
    signature = program.definition.signature
    for parameter, (name, tree) in zip(
        signature.parameters, program.function.parameters, strict=True
    ):
        python = {
            where
            for where, part in walk_paths(parameter.spec, name)
            if isinstance(part, ArraySpec) and part.python
        }
        if isinstance(tree, StaticType) and parameter.has_default:
            continue
        given[name] = _object(tree, rest, module, name, python)
    spec = program.of.node.args
    positional = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    owner, _, name = program.name.rpartition(".")
    function: Any = getattr(vars(module)[owner] if owner else module, name)
    if owner and positional[0] not in given:  # its object is made of the arguments
        suffix = f"_of_{owner}"
        made = [each for each in given if each not in positional]
        parts = {each.removesuffix(suffix): given.pop(each) for each in made}
        given[positional[0]] = vars(module)[owner](**parts)
    args: list[Any] = []
    while positional and positional[0] in given:
        args.append(given.pop(positional.pop(0)))

    try:
        with warnings.catch_warnings(), jax.enable_x64(False):
            warnings.simplefilter("ignore")
            return [_array(each) for each in jax.tree.leaves(function(*args, **given))]
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().split("\n")[0][:300]


def _array(x: Any) -> Array:
    """Return an array, of keys their words."""
    jax = jax_itself()
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(x))
    return np.asarray(jax.numpy.asarray(x))


def _object(
    tree: Type, rest: Iterator[Array], module: ModuleType, where: str, python: set[str]
) -> Any:
    """Return what jax takes for a tree, of the next arrays."""
    jax = jax_itself()
    if isinstance(tree, ArrayType):
        array = next(rest)
        if tree.dtype is KEY:
            return jax.random.wrap_key_data(jax.numpy.asarray(array))
        return array.item() if where in python else jax.numpy.asarray(array)
    if tree == NONE:
        return None
    if isinstance(tree, StaticType):
        value: Any = tree.value
        if not isinstance(value, bool | int | float | str | None):
            raise NotRun(f"an argument is {value!r}")
        return value
    if isinstance(tree, RecordType):
        return _record(tree, rest, module, where, python)
    assert isinstance(tree, StandardContainerType)
    parts = [
        _object(part, rest, module, where + step, python)
        for step, part in zip(tree.steps, tree.parts, strict=True)
    ]
    return tree.made(tree.keys, parts)


def _record(
    tree: RecordType, rest: Iterator[Array], module: ModuleType, where: str, python: set[str]
) -> Any:
    """Return an object of a class of the program."""
    found = [
        vars(each)[tree.record.name]
        for each in [module, *list(sys.modules.values())]
        if isinstance(getattr(each, "__dict__", {}).get(tree.record.name), type)
    ]
    if not found:
        raise NotRun(f"the class {tree.record.name} is not found")
    cls: Any = found[0]
    fields = {
        name: _object(part, rest, module, f"{where}.{name}", python) for name, part in tree.fields
    }
    if hasattr(cls, "_fields"):
        return cls(**fields)
    try:
        made = object.__new__(cls)
    except TypeError as error:
        raise NotRun(str(error)) from None
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def ours(
    program: Program, sizes: Mapping[str, int], arrays: Sequence[Array]
) -> Sequence[Array] | str:
    """Return what the typed program computes, or the condition that does not hold."""
    try:
        with deep_stack(), quiet(), np.errstate(all="ignore"):
            return evaluate(program.function, sizes, arrays)
    except CheckFailed as failed:
        return str(failed)


def difference(mine: Sequence[Array] | str, wanted: Sequence[Array] | str) -> str:
    """Return in words how outcomes differ; empty if they do not."""
    if isinstance(wanted, str):
        return "" if isinstance(mine, str) else f"jax raises {wanted}"
    if isinstance(mine, str):
        return f"our program raises {mine}"
    if len(mine) != len(wanted):
        return f"{len(mine)} results and {len(wanted)} of jax"
    for number, (left, right) in enumerate(zip(mine, wanted, strict=True)):
        if left.dtype != right.dtype:
            return f"dtype {left.dtype} and {right.dtype} of jax, in result {number}"
        if left.shape != right.shape:
            return f"shape {left.shape} and {right.shape} of jax, in result {number}"
        if not close(left, right):
            return f"values {_shown(left)} and {_shown(right)} of jax, in result {number}"
    return ""


def _shown(x: Array) -> str:
    return np.array2string(x, threshold=12, precision=6).replace("\n", "")


def close(mine: Array, wanted: Array) -> bool:
    """Return whether values are equal but for rounding, as of the largest of them."""
    if mine.dtype.kind in "biu":
        return bool(np.array_equal(mine, wanted))
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    left, right = mine.astype(wide), wanted.astype(wide)
    finite = np.abs(right[np.isfinite(right)])
    largest = float(finite.max()) if finite.size else 0.0
    near = 1e-4 if mine.dtype.itemsize >= 4 else 3e-2
    return bool(np.allclose(left, right, rtol=near, atol=near * largest + 1e-6, equal_nan=True))


@dataclass(frozen=True)
class Run:
    """One run of a program: where, and how the outcomes differ."""

    program: Program
    sizes: Mapping[str, int]
    kind: str
    difference: str

    def __str__(self) -> str:
        place = self.program.choice.at(self.sizes)
        return f"{self.program.name} ({place}; {self.kind}): {self.difference}"


def runs(function: JaxFunction, module: ModuleType, kinds: Sequence[str] = KINDS) -> Iterator[Run]:
    """Yield the runs of an accepted function, at several sizes of each name."""
    for program in programs(function):
        for number, sizes in enumerate(sizes_of(program.function)):
            for kind in kinds:
                rng = np.random.default_rng(number + 7)
                arrays = arguments(program, sizes, rng, kind)
                wanted = theirs(program, module, arrays)
                yield Run(program, sizes, kind, difference(ours(program, sizes, arrays), wanted))


def imported(path: Path, name: str) -> ModuleType:
    """Return a file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
