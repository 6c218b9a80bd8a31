"""Python's numbers as device arrays: those that calls are given again and again are kept.

C++ takes a device array in less time than a number.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl.xla.boot import Aval
from pscdsl.xla.client import copied

NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))
"""The classes of Python's numbers."""
MOST: Final = 16
"""So many are kept for an argument."""
_READ: Final = frozenset(np.dtype(code) for code in ("?", *"bhiqBHIQ", *"efd"))
"""The dtypes of numbers that C++ reads."""


class Number(NamedTuple):
    """What is known of an argument that is one of Python's numbers."""

    dtype: np.dtype[Any]
    keeps: bool
    """Whether it may be kept: no call takes the memory of its array."""


class KeptNumbers(dict[Any, Any]):
    """The device arrays of numbers of one class, in a dtype."""

    def __init__(self, number: Number) -> None:
        super().__init__()
        self._dtype, self._keeps = number
        self._last: Any = None

    def __missing__(self, number: Any) -> Any:
        """An array of a number, which is kept if it is the one of the call before as well."""
        array = np.array(number, self._dtype)
        if self._keeps:
            if number == self._last and _is_all_that_equals_it(number):
                if len(self) == MOST:
                    self.clear()
                self[number] = copied(array, Aval((), self._dtype))
            self._last = number
        return array


def _is_all_that_equals_it(number: Any) -> bool:
    """Whether there is no other one of its class, as 0.0 and -0.0 are."""
    return number.__class__ is not float or number != 0


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
