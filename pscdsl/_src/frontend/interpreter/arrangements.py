"""Views with the axes in another order, and ufuncs, as in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pscdsl._src.frontend.interpreter.places import Arranged
from pscdsl._src.frontend.values import AnyValue
from pscdsl.typing.python_containers import is_known_array


def inputs_of_ufunc(name: str) -> int | None:
    """Return the number of a ufunc's inputs, without `out`; None for other functions."""
    found = getattr(np, name.removeprefix("numpy."), None) if name.startswith("numpy.") else None
    return found.nin if isinstance(found, np.ufunc) and found.nout == 1 else None


def arrangement(
    name: str, rank: int, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> Arranged | None:
    """Return the arrangement of axes that a NumPy function makes; None if it makes none."""
    function: Any = np
    for part in name.split(".")[1:]:
        function = getattr(function, part, None)
    # The shape and the strides of an array without memory show where each axis went.
    shape = tuple(range(2, 2 + rank))
    strides = tuple(8 * 10**axis for axis in range(rank))
    whole = np.lib.stride_tricks.as_strided(np.zeros(1), shape, strides, writeable=False)
    try:
        found = function(whole, *args, **kwargs)
    except (TypeError, ValueError, IndexError):
        return None
    if not is_known_array(found) or sorted(found.shape) != sorted(shape):
        return None
    axes = tuple(size - 2 for size in found.shape)
    backwards = tuple(axis for axis, stride in enumerate(found.strides) if stride < 0)
    return Arranged(axes, backwards)
