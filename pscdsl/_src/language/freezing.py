"""Arrays in memory that nothing can write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pscdsl.typing.python_containers import NDArray


def frozen(array: NDArray) -> NDArray:
    """A copy whose memory belongs to a `bytes` object, so that no flag makes it writeable again."""
    return np.ndarray(array.shape, array.dtype, array.tobytes())


def locked(array: NDArray) -> NDArray:
    """The array, which cannot be written from now on, nor what it is a view of.

    Where the memory is not NumPy's own, nothing can keep others from writing it: then a copy.
    """
    base: Any = array
    while type(base) is np.ndarray:
        base.flags.writeable = False
        if base.base is None:
            return array
        base = base.base
    return array if type(base) is bytes else frozen(array)


def is_frozen(array: NDArray) -> bool:
    """Whether the memory of an array belongs to a `bytes` object; a subclass does what it likes."""
    base: Any = array
    while type(base) is np.ndarray and not base.flags.writeable:
        base = base.base
    return type(base) is bytes
