"""Equations of known small arrays, computed by their NumPy meaning."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from pscdsl._src.ir.evaluate import Evaluator, literal_array
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Atom, Literal, Var
from pscdsl._src.ir.regions import holds_programs
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.creation import Constant, Iota
from pscdsl._src.primitives.elementwise import Bitcast, Clamp, Convert, Elementwise, Select
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl._src.primitives.windows import ArgReduceWindow, ReduceWindow
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import KEY

MAX_ELEMENTS = 64

POINTWISE: Final = (Elementwise, Convert, Bitcast, Select, Clamp)
"""What commutes with repeating a scalar."""
_COMPACT: Final = (Constant, Iota, Broadcast)
"""What says an array shortly: it is known, but stays as it is."""
_WIDE: Final = (Convolution, ReduceWindow, ArgReduceWindow)
"""What may need far more room than its operands and results take."""
"""Where the meanings that may run while compiling come from: a user's never do."""
_HERE: Final = Evaluator({})

Known = dict[Atom, NDArray]


def fold(
    primitive: Primitive, inputs: Sequence[Atom], outputs: Sequence[Var], known: Known
) -> list[NDArray] | None:
    """The results of an equation, if they are to take its place; `known` grows by all found."""
    for var in outputs:
        if not _is_small(var.type):
            return None
    operands: list[NDArray] = []
    for atom in inputs:
        array = literal_array(atom) if isinstance(atom, Literal) else known.get(atom)
        if array is None:
            return None
        operands.append(array)
    if isinstance(primitive, _WIDE) or holds_programs(primitive):
        return None  # not bounded by the sizes of operands and results
    if not type(primitive).__module__.startswith(OWN_PRIMITIVES):
        return None
    results = _evaluated(primitive, operands, outputs)
    if results is None:
        return None
    known.update(zip(outputs, results, strict=True))
    if isinstance(primitive, _COMPACT) and outputs[0].type.shape:
        return None
    return results


def fold_scalars(primitive: Primitive, scalars: Sequence[Literal], output: Var) -> Literal | None:
    """The number that a pointwise function of arrays of one number each has everywhere."""
    result = Var(ArrayType(output.type.dtype))
    found = _evaluated(primitive, [literal_array(each) for each in scalars], (result,))
    return None if found is None else literal_of(found[0], result.type)


def literal_of(array: NDArray, of: ArrayType) -> Literal:
    """An array of rank 0 as a literal."""
    return Literal(array.item(), of.dtype)


def _is_small(given: ArrayType) -> bool:
    shape = given.shape
    if not shape:
        return given.dtype is not KEY
    if given.dtype is KEY or not all(isinstance(size, int) for size in shape):
        return False
    return prod(size for size in shape if isinstance(size, int)) <= MAX_ELEMENTS


def _evaluated(
    primitive: Primitive, operands: Sequence[NDArray], outputs: Sequence[Var]
) -> list[NDArray] | None:
    """The results; None if the meaning needs a size or fails."""
    try:
        with np.errstate(all="ignore"):
            results = primitive.evaluate(_HERE, *operands)
    except Exception:  # whatever it is, it is to happen when the program runs
        return None
    for result, var in zip(results, outputs, strict=True):
        if result.shape != var.type.shape or result.dtype != to_numpy(var.type.dtype):
            return None
    return list(results)
