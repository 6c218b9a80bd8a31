"""The leaves of a call: what C++ may be given, and what decides which program is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import is_masked
from pscdsl._src.xla.calls import trees
from pscdsl._src.xla.calls.binding import Args, Kwargs
from pscdsl._src.xla.calls.readable import is_placed
from pscdsl._src.xla.runtime.boot import ArrayImpl
from pscdsl._src.xla.runtime.devices import view
from pscdsl._src.xla.runtime.python_numbers import NUMBERS

ARRAYS: Final = (ArrayImpl, np.ndarray)
"""The classes of arrays that are taken as they are."""


def kind(leaf: Any) -> object:
    """What of a leaf decides which program is called; None for things unknown."""
    cls: type[Any] = leaf.__class__
    if cls is ArrayImpl:
        return leaf.aval.dtype, leaf.aval.shape
    if cls is np.ndarray or issubclass(cls, np.generic):
        return leaf.dtype, leaf.shape
    return cls if cls in NUMBERS else None


def needs_no_help(leaf: Any) -> bool:
    """Whether a leaf is committed to a device; or it is for `specialise` to say what it is."""
    if type(leaf) is ArrayImpl:
        return is_placed(leaf)
    return kind(leaf) is None and not hasattr(leaf, "__dlpack__")


def is_foreign(leaf: Any) -> bool:
    """Whether a leaf is another library's array."""
    return kind(leaf) is None and hasattr(leaf, "__dlpack__") and not is_masked(leaf)


def all_arrays(leaves: Sequence[Any]) -> bool:
    """Whether there are arrays only, so that none of the leaves is a static value."""
    return all(type(x) in ARRAYS for x in leaves)


def without_foreign(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs] | None:
    """The arguments with NumPy's in the place of other libraries' arrays, if there are any."""
    leaves, structure = trees.flatten((args, kwargs))
    if not any(map(is_foreign, leaves)):
        return None
    try:
        known = [view(each) if is_foreign(each) else each for each in leaves]
    except (BufferError, RuntimeError, TypeError):
        return None  # the boundary will say what is wrong
    args, kwargs = structure.unflatten(known)
    return tuple(args), kwargs
