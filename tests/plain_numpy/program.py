"""A program in plain NumPy, with what is needed to run it: inputs, sizes, what it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Sizes(dict[str, int]):
    """Sizes by their names, which are attributes, too."""

    def __getattr__(self, name: str) -> int:
        return self[name]

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.items())


class Draw:
    """Random inputs of one run."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def reals(self, *shape: int) -> NDArray:
        """Numbers between -1 and 1."""
        return self.generator.uniform(-1.0, 1.0, shape)

    def positive(self, *shape: int) -> NDArray:
        """Numbers between 0.5 and 1.5."""
        return self.generator.uniform(0.5, 1.5, shape)

    def singles(self, *shape: int) -> NDArray:
        """Numbers between -1 and 1 in single precision."""
        return self.reals(*shape).astype(np.float32)

    def complexes(self, *shape: int) -> NDArray:
        """Complex numbers whose parts are between -1 and 1."""
        return self.reals(*shape) + 1j * self.reals(*shape)

    def integers(self, low: int, high: int, *shape: int) -> NDArray:
        """Integers from `low` to `high`, without the latter."""
        return self.generator.integers(low, high, shape)

    def definite(self, n: int) -> NDArray:
        """A symmetric positive definite matrix."""
        root = self.reals(n, n)
        return root @ root.T + n * np.eye(n)

    def dominant(self, n: int) -> NDArray:
        """A matrix whose diagonal dominates, so that elimination needs no pivots."""
        return self.reals(n, n) + 2 * n * np.eye(n)


@dataclass(frozen=True)
class Program:
    """A function of NumPy arrays."""

    function: Callable[..., Any]
    arguments: Callable[[Draw, Sizes], Sequence[Any]]
    """Inputs for given sizes, in the order of the parameters."""
    sizes: Sequence[Sizes]
    """Where the program is defined and worth to be run."""
    writes: tuple[str, ...] = ()
    """The parameters that it stores into."""
    tolerance: float = 1e-12
    """How far a result may be from another rounding, as a part of its largest number."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def inputs(self, sizes: Sizes) -> list[Any]:
        """The same inputs in each call."""
        return list(self.arguments(Draw(sum(sizes.values())), sizes))

    def written(self, arguments: Sequence[Any]) -> list[Any]:
        """Those of the arguments that the program stores into."""
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        given = dict(zip(names, arguments, strict=False))  # the last may have defaults
        return [x for name, x in given.items() if name in self.writes]


def sizes(names: str, *numbers: int | tuple[int, ...]) -> tuple[Sizes, ...]:
    """Sets of sizes: `sizes("n m", (1, 1), (3, 2))`; of one name, just numbers."""
    rows = [(each,) if isinstance(each, int) else each for each in numbers]
    return tuple(Sizes(zip(names.split(), row, strict=True)) for row in rows)


def leaves(results: Any) -> list[Any]:
    """The arrays and numbers of a result."""
    if results is None:
        return []
    if isinstance(results, tuple | list):
        return [leaf for each in cast("Sequence[Any]", results) for leaf in leaves(each)]
    return [results]


def flat(results: Any) -> list[NDArray]:
    """The arrays of a result; numbers are arrays of rank 0."""
    return [np.asarray(each) for each in leaves(results)]


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, as a part of the largest number; 0 if they are equal.

    Arrays of other shapes or dtypes are infinitely far apart.  A Python number has any dtype of
    its kind.
    """
    weak = type(wanted) in (bool, int, float, complex)
    found, wanted = np.asarray(found), np.asarray(wanted)
    if weak and found.dtype.kind == wanted.dtype.kind:
        wanted = wanted.astype(found.dtype)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if found.size == 0 or np.array_equal(found, wanted, equal_nan=wanted.dtype.kind in "fc"):
        return 0.0
    if wanted.dtype.kind not in "fc":
        return float("inf")
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(found - wanted))
    scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
    largest = float(np.max(apart)) / (scale or 1.0)
    return float("inf") if np.isnan(largest) else largest
