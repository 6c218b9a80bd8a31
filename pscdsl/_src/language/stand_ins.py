"""What stands for an array where only its type counts: `f32["128 64"]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.elements import ElementType
from pscdsl.typing.dims import DimSyntaxError, parse
from pscdsl.typing.dtypes import KEY


def stand_in(value: Any) -> Any:
    """Return an array of zeros of the type `f32["128 64"]` that occupies no memory.

    It is an example argument for `compile_all` and `export`. Other values are returned unchanged.
    """
    if not isinstance(value, ElementType):
        return value
    try:
        shape = tuple([parse(each) for each in (value.text or "").split()])
    except DimSyntaxError as problem:
        raise TypeError(f"{value}: {problem}") from None
    if len(value.members) != 1 or not all(isinstance(size, int) for size in shape):
        raise TypeError(f"{value} is not one type of arrays: its dtype and sizes must be known")
    (dtype,) = value.members
    full: Any = (*shape, 2) if dtype is KEY else shape
    return np.broadcast_to(np.zeros((), to_numpy(dtype)), full)
