"""What an example gives to its kernels, kept so that both languages can be given the same."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.comparison.program import Program
from benchmarks.workload import is_sequence
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl.typing.array_types import ArrayType, NoneType, RecordType, StaticType, TupleType, Type
from pscdsl.typing.dtypes import Kind

Tree = Any
"""NumPy arrays, what is known when a kernel is compiled, tuples, and the two classes here."""


@dataclass(frozen=True)
class Made:
    """A record, by the name that its class has in both languages."""

    name: str
    parts: Sequence[Tree]


@dataclass(frozen=True)
class Words:
    """Random keys, or one."""

    data: np.ndarray


def recorded(program: Program) -> dict[str, Tree]:
    """The arguments of the kernels that are timed, by their names, when the example is run."""
    example: Any = importlib.import_module(f"examples.{program.name}")
    recorders = {run.name: Recorder(getattr(example, run.name)) for run in program.runs}
    for name, recorder in recorders.items():
        setattr(example, name, recorder)
    try:
        program.example(example)
    finally:
        for name, recorder in recorders.items():
            setattr(example, name, recorder.kernel)
    return {name: recorder.arguments for name, recorder in recorders.items()}


class Recorder:
    """Stands for a kernel, and keeps the arguments of its largest call."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.bytes = -1
        self.arguments: Sequence[Tree] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the kernel gives."""
        leaves, types = self.kernel.arguments(args, kwargs)
        size = sum(np.asarray(leaf).nbytes for leaf in leaves)
        if size > self.bytes:
            arrays = iter(leaves)
            self.bytes = size
            self.arguments = [kept(each, arrays) for each in types.values()]
        return self.kernel(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def kept(type_: Type, arrays: Iterator[Any]) -> Tree:
    """A copy of an argument of this type, whose arrays come in order."""
    match type_:
        case ArrayType():
            array = np.array(next(arrays))  # a kernel may be given what it has once
            return Words(array) if type_.dtype.kind is Kind.KEY else _typed(array, type_)
        case RecordType():
            return Made(type_.record.name, [kept(each, arrays) for _, each in type_.fields])
        case TupleType():
            return tuple([kept(each, arrays) for each in type_.items])
        case StaticType():
            return type_.value
        case NoneType():
            return None
        case _:
            raise TypeError(f"no argument of an example was a {type_} before")


def _typed(array: np.ndarray, type_: ArrayType) -> np.ndarray:
    """An array, which may have been a Python scalar, in the dtype that it has in the kernel."""
    return array.astype(to_numpy(type_.dtype), copy=False)


def built(
    tree: Tree, module: Any, array: Callable[[np.ndarray], Any], key: Callable[[Any], Any]
) -> Any:
    """An argument of a module's function, with its records, arrays and random keys."""

    def of(tree: Tree) -> Any:
        if isinstance(tree, Words):
            return key(array(tree.data))
        if isinstance(tree, Made):
            return getattr(module, tree.name)(*map(of, tree.parts))
        if is_array(tree):
            return array(tree)
        return tuple(map(of, parts(tree))) if isinstance(tree, tuple) else tree

    return of(tree)


def is_wide(tree: Tree) -> bool:
    """Whether there is a number of 64 bits in it, for which jax has a switch."""
    if is_array(tree):
        return tree.dtype in (np.float64, np.complex128)
    return any(map(is_wide, parts(tree)))


def is_array(tree: Tree) -> bool:
    """Whether a tree is just an array."""
    return isinstance(tree, np.ndarray)


def parts(tree: Tree) -> Sequence[Tree]:
    """What a tree consists of; nothing for arrays."""
    if isinstance(tree, Made):
        return tree.parts
    return list(tree) if is_sequence(tree) else []
