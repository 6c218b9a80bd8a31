"""Type guards for Python containers, with types for their items.

`isinstance(value, tuple)` leaves the items of an unknown type; these say that they are anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyrsistent

if TYPE_CHECKING:
    from typing_extensions import TypeIs

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def is_tuple(x: object) -> TypeIs[tuple[Any, ...]]:
    """Return whether this is a tuple."""
    return isinstance(x, tuple)


def is_sequence(x: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Return whether this is a list or tuple."""
    return isinstance(x, (list, tuple))


def sequence_leaves(x: Any) -> Iterator[Any]:
    """Yield the items of nested lists and tuples in order; anything else alone."""
    if is_sequence(x):
        for item in x:
            yield from sequence_leaves(item)
    else:
        yield x


def is_dict(x: object) -> TypeIs[dict[Any, Any]]:
    """Return whether this is a dictionary."""
    return isinstance(x, dict)


def is_frozenset(x: object) -> TypeIs[frozenset[Any]]:
    """Return whether this is a frozenset."""
    return isinstance(x, frozenset)


def is_slice(x: object) -> TypeIs[slice[Any, Any, Any]]:
    """Return whether this is a slice, of any bounds."""
    return isinstance(x, slice)


def is_known_array(x: object) -> TypeIs[NDArray]:
    """Return whether this is an array that is known while checking."""
    return isinstance(x, np.ndarray)


def is_constant(x: object) -> TypeIs[NDArray | np.generic[Any]]:
    """Return whether this is an array or a scalar of NumPy, known while checking."""
    return isinstance(x, (np.ndarray, np.generic))


def is_scalar(x: object) -> TypeIs[np.generic[Any]]:
    """Return whether this is a scalar of NumPy."""
    return isinstance(x, np.generic)


def is_counted(x: object) -> TypeIs[np.integer[Any] | np.bool_]:
    """Return whether this is an integer or a truth value of NumPy, which is no array."""
    return isinstance(x, np.integer | np.bool_)


def is_integer_scalar(x: object) -> TypeIs[np.integer[Any]]:
    """Return whether this is an integer of NumPy, which is no array."""
    return isinstance(x, np.integer)


def is_dtype(x: object) -> TypeIs[np.dtype[Any]]:
    """Return whether this is a dtype of NumPy."""
    return isinstance(x, np.dtype)


def is_pmap(x: object) -> TypeIs[pyrsistent.PMap[Any, Any]]:
    """Return whether this is a pyrsistent map; records are maps too."""
    return isinstance(x, pyrsistent.PMap)


def is_precord(x: object) -> bool:
    """Return whether this is a pyrsistent record."""
    return isinstance(x, pyrsistent.PRecord)


def is_pvector(x: object) -> TypeIs[pyrsistent.PVector[Any]]:
    """Return whether this is a pyrsistent vector."""
    return isinstance(x, pyrsistent.PVector)
