"""Comparison of two typed programs: types for all sizes, values for some sizes and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function, evaluate, walk
from pscdsl._src.primitives.effects import CheckFailed
from pscdsl.typing.array_types import ArrayType, Type, paths
from pscdsl.typing.dims import evaluate as evaluated
from pscdsl.typing.dtypes import KEY, Kind

FREE: Final = ((5, 3, 2, 4, 6, 7, 8, 9), (2, 4, 3, 5, 7, 6), (4, 4, 4), (3, 6, 9), (1,), (0,))
"""Numbers for the names of sizes, repeated if there are more."""
KINDS: Final = ("normal", "whole", "special")
"""Arrays that are tried: any numbers; small whole ones, with ties; with NaN and infinities."""
Array = np.ndarray[Any, Any]


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


def drawn(
    leaf: ArrayType,
    shape: Sequence[int],
    rng: np.random.Generator,
    kind: str,
    bounds: tuple[int, int] | None = None,
) -> Array:
    """Return an array of a type; its integers are between two bounds, if these are given."""
    shape = tuple(shape)
    if leaf.dtype is KEY:
        return rng.integers(0, 1 << 32, (*shape, 2), np.uint32)
    dtype = to_numpy(leaf.dtype)
    if leaf.dtype.kind is Kind.BOOL:
        return np.asarray(rng.random(shape) < 0.6)
    if leaf.dtype.is_integer:
        low, high = bounds or (-3, 5)
        low = 0 if leaf.dtype.is_unsigned or kind == "normal" else low
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)
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


def close(mine: Array, wanted: Array, near: float = 1e-4) -> bool:
    """Return whether values are equal but for rounding, as of the largest of them."""
    if mine.dtype.kind in "biu":
        return bool(np.array_equal(mine, wanted))
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    left, right = mine.astype(wide), wanted.astype(wide)
    finite = np.abs(right[np.isfinite(right)])
    largest = float(finite.max()) if finite.size else 0.0
    near = near if mine.dtype.itemsize >= 4 else 3e-2
    return bool(np.allclose(left, right, rtol=near, atol=near * largest + 1e-6, equal_nan=True))


_NEAR: Final = 1e-5
"""The relative difference of two orders of the same operations in 32 bits."""


def typed(function: Function) -> tuple[tuple[str, str], ...]:
    """Return the types of a program's parameters: two programs with the same ones are a pair."""
    found: list[tuple[str, str]] = []
    for name, tree in function.parameters:
        leaves = [(where, str(leaf)) for where, leaf in paths(tree, name)]
        found += leaves or [(name, str(tree))]
    return tuple(found)


class Places(Enum):
    """The integers for which two programs have to agree."""

    ALL = auto()
    IN_RANGE = auto()
    """Those that are places along every axis, also counted from its end."""
    FROM_START = auto()


def difference(mine: Function, wanted: Function, places: Places = Places.ALL) -> str:
    """Return how a program differs from another one of the same parameters; empty if equal."""
    for fact in mine.facts.facts:
        if not wanted.facts.proves(fact):
            return f"it needs {fact}"
    if problem := _of_types(mine.result, wanted):
        return problem
    rng = np.random.default_rng(0)
    leaves = [leaf for _, tree in wanted.parameters for _, leaf in paths(tree)]
    shapes_inside = [x.type.shape for each in walk(wanted.body) for x in each.outputs]
    known = {size for shape in shapes_inside for size in shape if isinstance(size, int)} - {1}
    compared = 0
    for sizes in sizes_of(wanted):
        high = min([size for size in (*sizes.values(), *known) if size], default=1)
        bounds = {Places.IN_RANGE: (-high, high), Places.FROM_START: (0, high)}.get(places)
        for kind in KINDS:
            shapes = [
                [x if isinstance(x, int) else evaluated(x, sizes) for x in leaf.shape]
                for leaf in leaves
            ]
            arrays = [
                drawn(leaf, shape, rng, kind, bounds)
                for leaf, shape in zip(leaves, shapes, strict=True)
            ]
            left, right = _outcome(mine, sizes, arrays), _outcome(wanted, sizes, arrays)
            compared += not isinstance(right, str)
            if problem := _of_values(left, right):
                at = ", ".join(f"{name}={size}" for name, size in sizes.items())
                return f"{problem}{f' at {at}' if at else ''} ({kind} numbers)"
    return "" if compared else "no values were compared"


def _of_types(mine: Type | None, wanted: Function) -> str:
    """Return how the type of a result differs from that of another program."""
    assert mine is not None
    assert wanted.result is not None
    left, right = dict(paths(mine)), dict(paths(wanted.result))
    if left.keys() != right.keys():
        return f"the result is {mine}, and {wanted.result} in jax"
    for where, leaf in left.items():
        other = right[where]
        same = leaf.dtype == other.dtype and len(leaf.shape) == len(other.shape)
        if not same or not all(map(wanted.facts.equal, leaf.shape, other.shape)):
            return f"the result{where} is {leaf}, and {other} in jax"
    return ""


def _outcome(
    function: Function, sizes: Mapping[str, int], arrays: Sequence[Array]
) -> Sequence[Array] | str:
    """Return the results of a program, or the reason why it stops."""
    try:
        with np.errstate(all="ignore"):
            return evaluate(function, sizes, arrays)
    except (CheckFailed, ArithmeticError, np.linalg.LinAlgError) as failed:
        return f"{type(failed).__name__}: {failed}"


def _of_values(mine: Sequence[Array] | str, wanted: Sequence[Array] | str) -> str:
    if isinstance(mine, str) or isinstance(wanted, str):
        both = isinstance(mine, str) and isinstance(wanted, str)
        return "" if both else f"one of the two stops: {mine if isinstance(mine, str) else wanted}"
    for number, (left, right) in enumerate(zip(mine, wanted, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype or not close(left, right, _NEAR):
            return f"value {number} differs"
    return ""
