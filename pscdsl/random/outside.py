"""What functions that make keys compute outside of kernels: their NumPy meanings."""

from __future__ import annotations

from operator import index
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Evaluator
from pscdsl._src.primitives.random import FoldIn, SeedKey, SplitKey
from pscdsl.typing.python_containers import is_sequence

_HERE: Final = Evaluator({})


def call(function: str, *args: Any) -> Any:
    """Return what a function gives, whose keys are words."""
    if function == "random.split":
        key, num = args
        return _made("split", SplitKey(_shape(num)), key)
    if function == "random.fold_in":
        return _made("fold_in", FoldIn(), *args)
    assert function == "random.key"
    return _made("key", SeedKey(), *args)


def _made(name: str, primitive: Primitive, *operands: Any) -> Any:
    """The NumPy meaning, of one key and of integers."""
    arrays = [np.asarray(each) for each in operands]
    for array in arrays[:-1] if len(arrays) > 1 else arrays:
        if name != "key" and (array.dtype != np.uint32 or array.shape != (2,)):
            raise TypeError(f"psc.random.{name} takes a key, not {array.dtype}{[*array.shape]}")
    if name != "split" and (arrays[-1].dtype.kind not in "iu" or arrays[-1].ndim):
        raise TypeError(f"psc.random.{name} takes an integer of up to 64 bits, not {operands[-1]}")
    return primitive.evaluate(_HERE, *arrays)[0]


def _shape(num: Any) -> tuple[int, ...]:
    """The shape of keys that are split off outside of kernels, checked as there."""
    sizes = num if is_sequence(num) else (num,)
    try:
        shape = tuple(index(each) for each in sizes if not isinstance(each, bool))
    except TypeError:
        shape = ()
    if len(shape) < len(sizes) or any(each < 0 for each in shape):
        raise TypeError(f"psc.random.split takes a number of keys or a shape, not {num!r}")
    return shape
