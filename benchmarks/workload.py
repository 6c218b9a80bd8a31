"""What is measured: a kernel, and the same function written for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pscdsl import Record
from pscdsl._src.kernels.kernel import Kernel

Maker: TypeAlias = Callable[[Any], Callable[..., Any]]
"""Makes a function, given the module `jax`; it is only imported when it is measured."""


@dataclass(frozen=True)
class Derived:
    """A kernel made by a transformation."""

    forward: Kernel[Any, Any]
    transform: Callable[[Kernel[Any, Any]], Kernel[Any, Any]]
    goal: float | None = None
    """The ratio of its time to that of the kernel it is made of that we mean not to exceed."""


@dataclass(frozen=True)
class Workload:
    """A kernel, its arguments at a scale, and the same function for others."""

    name: str
    kernel: Kernel[Any, Any]
    arguments: Callable[[int], tuple[Any, ...]]
    """Trees of NumPy arrays at a scale; the others get records as plain tuples."""
    scale: int
    jax: Maker
    """The function that `jax.jit` is to compile."""
    others: Mapping[str, Callable[[], Callable[..., Any]]] = field(
        default_factory=dict[str, Callable[[], Callable[..., Any]]]
    )
    """By name: what makes a function of the same NumPy arrays."""
    goal: float | None = None
    """The ratio of our time to that of jax.jit that we mean not to exceed."""
    derived: Derived | None = None
    """How the kernel is made of another one, if it is."""
    choices: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the signature leaves open, as `Kernel.ir` takes it."""
    double: bool = False
    """Whether jax has to be told that there are 64-bit types."""
    alone: bool = False
    """Whether each side is measured in a process of its own (`benchmarks.alone`)."""
    settings: tuple[tuple[str, str], ...] = ()
    """Variables of the environment of our process, where each side has one."""
    tolerance: float = 1e-4
    """How far results may be apart, as a part of the greatest."""


def children(tree: Any) -> list[Any] | None:
    """What a record or a tuple consists of; None for arrays."""
    if isinstance(tree, Record):
        return [getattr(tree, name) for name in type(tree).__annotations__]
    return list(tree) if is_sequence(tree) else None


def is_sequence(tree: object) -> bool:
    """Whether something is a tuple, named or not, or a list."""
    return isinstance(tree, tuple | list)


def plain(tree: Any) -> Any:
    """A tree whose records and named tuples are plain tuples."""
    parts = children(tree)
    return tree if parts is None else tuple([plain(part) for part in parts])


def leaves(tree: Any) -> list[Any]:
    """The arrays of a tree, in order."""
    parts = children(tree)
    return [tree] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def normal(*shape: int, scale: float = 0.3, dtype: Any = np.float32) -> Any:
    """Normal numbers, the same ones for the same shape."""
    return (np.random.default_rng(sum(shape)).normal(size=shape) * scale).astype(dtype)
