"""What static arguments are: items of lists and tuples, numbers known while checking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.python_containers import is_sequence


def as_items(x: object) -> Sequence[Any]:
    """The items of a list or tuple; anything else is one item."""
    return x if is_sequence(x) else (x,)


def is_known_float(x: object) -> TypeGuard[float]:
    """Whether an argument is a floating-point number that is known while checking."""
    return isinstance(x, float | np.floating)


def as_known_integer(x: object) -> Size | None:
    """An integer that is known while checking, maybe in terms of sizes; None for anything else."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)  # pyright: ignore[reportUnknownArgumentType]
    return None
