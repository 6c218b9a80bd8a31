"""`pscdsl run`: the results of a kernel on arguments that are given or drawn."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pscdsl import random
from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.kernel_arguments import chosen, dims, reporting
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function
from pscdsl.typing.array_types import ArrayType, Type, paths
from pscdsl.typing.dims import Size, evaluate, names
from pscdsl.typing.dtypes import KEY

# Argument values for `run`: from files, from literals, or drawn at random.


Leaf: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def parse(options: Iterable[str], parameters: Sequence[tuple[str, Type]]) -> dict[str, Leaf]:
    """Parse options `NAME=VALUE` into arrays by name: `x`, `p.w`, `p.layers[0]`."""
    types = leaf_types(parameters)
    given: dict[str, Leaf] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise Unusable(f"not an argument: {option} (write NAME=VALUE or NAME=file.npy)")
        if name not in types:
            raise Unusable(f"no argument {name}; there are {', '.join(types) or 'none'}")
        given[name] = _read(name, value, types[name])
    return given


def leaf_types(parameters: Iterable[tuple[str, Type]]) -> dict[str, ArrayType]:
    """Return the arrays of the parameters by name, in order."""
    return dict(path for name, tree in parameters for path in paths(tree, name))


def sizes_of(
    types: Mapping[str, ArrayType], given: Mapping[str, Leaf], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return the given sizes, and those that follow from the given arrays."""
    found = dict(sizes)
    for name, leaf in given.items():
        for size, length in zip(types[name].shape, leaf.shape, strict=False):
            if not isinstance(size, int) and names(size) == frozenset({str(size)}):
                found.setdefault(str(size), length)
    return found


def complete(
    types: Mapping[str, ArrayType], given: Mapping[str, Leaf], sizes: Mapping[str, int], seed: int
) -> list[Leaf]:
    """Return every array in order: as given, if its shape is right, or else drawn at random."""
    generator = np.random.default_rng(seed)
    leaves: list[Leaf] = []
    for name, type_ in types.items():
        shape = _stored_shape(type_, sizes)
        leaf = given.get(name)
        if leaf is None:
            try:
                leaf = _draw(generator, type_, shape)
            except (MemoryError, ValueError):
                raise Unusable(f"argument {name} is too large: {type_} means {shape}") from None
        elif leaf.shape != shape:
            raise Unusable(f"argument {name} has shape {leaf.shape}, but {type_} means {shape}")
        leaves.append(leaf)
    return leaves


def _read(name: str, value: str, type_: ArrayType) -> Leaf:
    dtype = to_numpy(type_.dtype)
    if value.endswith(".npy"):
        if not os.path.isfile(value):  # a pipe would wait for ever, a device never end
            raise Unusable(f"argument {name}: no such file: {value}")
        try:
            loaded: Leaf = np.asarray(np.load(value, allow_pickle=False))
        except (OSError, ValueError, EOFError, MemoryError) as problem:
            raise Unusable(f"argument {name}: cannot read {value}: {problem}") from problem
        if loaded.dtype != dtype:
            raise Unusable(f"argument {name} is {loaded.dtype} in {value}, but {dtype} is needed")
        return loaded
    try:
        found = json.loads(value)
        if type_.dtype is KEY and type(found) is int:
            return np.asarray(random.key(found))
        made = np.asarray(found)
        if made.dtype.kind in "iu" and dtype.kind in "iu":
            return np.array(found, dtype)  # refuses what is out of range
        return made.astype(dtype, casting="same_kind")
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise Unusable(f"argument {name}: not a literal of type {type_}: {problem}") from problem


def _stored_shape(type_: ArrayType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(_number(size, sizes) for size in type_.shape)
    return (*shape, 2) if type_.dtype is KEY else shape


def _number(size: Size, sizes: Mapping[str, int]) -> int:
    return size if isinstance(size, int) else evaluate(size, sizes)


def _draw(generator: np.random.Generator, type_: ArrayType, shape: tuple[int, ...]) -> Leaf:
    dtype = to_numpy(type_.dtype)
    if type_.dtype.is_inexact:
        return np.asarray(generator.standard_normal(shape)).astype(dtype)
    if type_.dtype is KEY:
        return generator.integers(0, 2**32, shape, dtype=np.uint32)
    # Small numbers, because integers are mostly indices and counts.
    return np.asarray(generator.integers(0, 2, shape)).astype(dtype)


def run(arguments: argparse.Namespace) -> int:
    """Call the kernel and print each array of the result."""
    sizes = dims(arguments.dims)

    def work() -> None:
        found = list(chosen(arguments))
        if len(found) != 1:
            raise Unusable(f"{len(found)} kernels in {arguments.target}: name one, FILE:KERNEL")
        kernel = found[0]
        function = kernel.ir()
        types = leaf_types(function.parameters)
        given = parse(arguments.arg, function.parameters)
        known = sizes_of(types, given, sizes)
        missing = [name for name in function.dims if name not in known]
        if missing:
            example = ",".join(f"{name}=8" for name in missing)
            raise Unusable(f"sizes are missing: write --dims {example}")
        used = {name: known[name] for name in function.dims}
        if not function.facts.admits(used):
            facts = ", ".join(map(str, function.facts.facts)) or "sizes are at least 1"
            raise Unusable(f"these sizes break a precondition: {facts}")
        leaves = complete(types, given, used, arguments.seed)
        results = kernel.lower(**used).compile().run(leaves)
        for where, result in zip(_places(function), results, strict=True):
            say(where)
            say(np.asarray(result))

    return reporting(work)


def _places(function: Function) -> list[str]:
    """Return each array of the result with its path and type."""
    if function.result is None:
        return [str(type_) for type_ in function.body.out_types]
    return [f"{name}: {type_}" if name else str(type_) for name, type_ in paths(function.result)]
