"""Python's numbers as arguments of calls, and which of them a dtype has."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))
"""The classes of Python's numbers."""
_READ: Final = frozenset(np.dtype(code) for code in ("?", *"bhiqBHIQ", *"efd"))
"""The dtypes of numbers that C++ reads."""


def limits(kind: type[Any], dtype: np.dtype[Any]) -> tuple[float, float] | None:
    """Between which of Python's numbers each has its own, or nearest, number of a dtype."""
    if dtype not in _READ:
        return None
    if kind is bool:
        return (False, True) if dtype.kind == "b" else None
    if kind is int and dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype.kind != "f" or kind not in (int, float):
        return None
    finfo = np.finfo(dtype)
    if kind is float:
        return float(finfo.min), float(finfo.max)
    exact = 2 ** (finfo.nmant + 1)
    return -exact, exact
