"""What static arguments are: lists, slices, arrays known while checking, integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from pscdsl.typing.dims import Dim, Size

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def is_sequence(x: object) -> TypeGuard[Sequence[Any]]:
    """Whether an argument is a list or tuple."""
    return isinstance(x, list | tuple)


def as_items(x: object) -> Sequence[Any]:
    """The items of a list or tuple; anything else is one item."""
    return x if is_sequence(x) else (x,)


def is_known_array(x: object) -> TypeGuard[NDArray]:
    """Whether an argument is an array that is known while checking."""
    return isinstance(x, np.ndarray)


def is_mapping(x: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether an argument is a dictionary."""
    return isinstance(x, dict)


def is_known_float(x: object) -> TypeGuard[float]:
    """Whether an argument is a floating-point number that is known while checking."""
    return isinstance(x, float | np.floating)


def is_slice(x: object) -> TypeGuard[Any]:
    """Whether an argument is a slice, of any bounds."""
    return isinstance(x, slice)


def as_known_integer(x: object) -> Size | None:
    """An integer that is known while checking, maybe in terms of sizes; None for anything else."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)  # pyright: ignore[reportUnknownArgumentType]
    return None
