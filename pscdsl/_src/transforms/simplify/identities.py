"""What an equation is replaced by: a result that is there already, or a known small array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import copysign, prod
from typing import Final, TypeAlias

import numpy as np

from pscdsl._src.ir.evaluate import Evaluator, literal_array
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Atom, Equation, Literal, Scalar, Var, holds_programs
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.creation import Constant, Iota
from pscdsl._src.primitives.elementwise import Bitcast, Clamp, Convert, Elementwise, Select
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.windows import ArgReduceWindow, ReduceWindow
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import BOOL, KEY, DType, Kind

# Equations whose result is there already, and operands that are reached more directly.
#
# Only where that holds for every value, NaN included.


Definitions: TypeAlias = Mapping[Atom, Equation]
Neutral: TypeAlias = Callable[[Scalar, DType], bool]


def _zero(value: Scalar, dtype: DType) -> bool:
    """What can be subtracted: 0, not -0."""
    if dtype.is_float:
        return value == 0 and copysign(1, value) == 1  # type: ignore[arg-type]
    return value == 0 and not dtype.is_complex


def _addend(value: Scalar, dtype: DType) -> bool:
    """What can be added: -0, for 0 + -0 is 0."""
    if dtype.is_float:
        return value == 0 and copysign(1, value) == -1  # type: ignore[arg-type]
    return value == 0 and not dtype.is_complex


def _one(value: Scalar, dtype: DType) -> bool:
    return value == 1 and not dtype.is_complex


def _whole_one(value: Scalar, dtype: DType) -> bool:
    return value == 1 and dtype.is_integer


def _least(value: Scalar, dtype: DType) -> bool:
    if dtype.is_integer:
        return value == dtype.range[0]
    return value is False if dtype is BOOL else value == float("-inf")


def _largest(value: Scalar, dtype: DType) -> bool:
    if dtype.is_integer:
        return value == dtype.range[1]
    return value is True if dtype is BOOL else value == float("inf")


def _all_ones(value: Scalar, dtype: DType) -> bool:
    if dtype is BOOL:
        return value is True
    return value == (-1 if dtype.signed else dtype.range[1])


def _nothing(value: Scalar, dtype: DType) -> bool:
    return value == 0 and dtype.kind <= Kind.INT


NEUTRAL_RIGHT: dict[Primitive, Neutral] = {
    e.add: _addend,
    e.subtract: _zero,
    e.multiply: _one,
    e.divide: _one,
    e.power: _one,
    e.floor_divide: _whole_one,
    e.maximum: _least,
    e.minimum: _largest,
    e.bitwise_and: _all_ones,
    e.bitwise_or: _nothing,
    e.bitwise_xor: _nothing,
    e.left_shift: _nothing,
    e.right_shift: _nothing,
}
COMMUTATIVE: frozenset[Primitive] = frozenset(
    (e.add, e.multiply, e.maximum, e.minimum, e.bitwise_and, e.bitwise_or, e.bitwise_xor)
)
INVOLUTIONS: frozenset[Primitive] = frozenset((e.negative, e.invert, e.conjugate))


def same_as(
    primitive: Primitive, inputs: Sequence[Atom], output: Var, made: Definitions
) -> Atom | None:
    """What the output of an equation always is, if it is an operand or an operand's operand."""
    found: Atom | None = None
    if isinstance(primitive, e.Elementwise):
        found = _elementwise(primitive, inputs, made)
    elif isinstance(primitive, e.Select):
        found = _select(inputs)
    elif _keeps_everything(primitive, inputs, output):
        found = inputs[0]
    elif inputs:
        found = _undone(primitive, inputs[0], made)
    return found if found is not None and found.type == output.type else None


def _elementwise(
    primitive: e.Elementwise, inputs: Sequence[Atom], made: Definitions
) -> Atom | None:
    neutral = NEUTRAL_RIGHT.get(primitive)
    if neutral is not None:
        left, right = inputs
        if isinstance(right, Literal) and neutral(right.value, right.type.dtype):
            return left
        if (
            primitive in COMMUTATIVE
            and isinstance(left, Literal)
            and neutral(left.value, left.type.dtype)
        ):
            return right
        return None
    inner = made.get(inputs[0])
    if inner is None:
        return None
    if primitive in INVOLUTIONS and inner.primitive is primitive:
        return inner.inputs[0]
    if inner.primitive is e.make_complex:
        if primitive is e.real:
            return inner.inputs[0]
        if primitive is e.imag:
            return inner.inputs[1]
    return None


def _select(inputs: Sequence[Atom]) -> Atom | None:
    predicate, x, y = inputs
    if isinstance(predicate, Literal):
        return x if predicate.value else y
    return x if x is y else None


def _keeps_everything(primitive: Primitive, inputs: Sequence[Atom], output: Var) -> bool:
    match primitive:
        case e.Convert() | Reshape():
            return inputs[0].type == output.type
        case Broadcast(dims=dims):
            return dims == tuple(range(len(output.type.shape)))
        case Transpose(permutation=permutation):
            return permutation == tuple(range(len(permutation)))
        case Slice(start=start, stride=stride):
            whole = all(each == 0 for each in start) and all(each == 1 for each in stride)
            return whole and inputs[0].type == output.type
        case Pad(low=low, high=high, interior=interior):
            return all(each == 0 for each in (*low, *high, *interior))
        case Reverse(axes=axes):
            return not axes
        case Concatenate():
            return len(inputs) == 1
        case _:
            return False


def _undone(primitive: Primitive, operand: Atom, made: Definitions) -> Atom | None:
    """The operand's operand, if the equation undoes what made the operand."""
    inner = made.get(operand)
    if inner is None:
        return None
    match primitive, inner.primitive:
        case Reshape(), Reshape():
            return inner.inputs[0]
        case Reverse(axes=outer), Reverse(axes=axes) if set(outer) == set(axes):
            return inner.inputs[0]
        case Transpose(permutation=outer), Transpose(permutation=permutation):
            undone = all(permutation[axis] == place for place, axis in enumerate(outer))
            return inner.inputs[0] if undone else None
        case _:
            return None


def without_transposes(
    dot: DotGeneral, inputs: tuple[Atom, ...], made: Definitions
) -> tuple[DotGeneral, tuple[Atom, ...]]:
    """A contraction of what its operands are transposes of, where the result's axes stay in order.

    XLA's CPU backend copies a transposed operand, which can take longer than the products.
    """
    batched, contract, operands = list(dot.batched), list(dot.contract), list(inputs)
    for place, operand in enumerate(inputs):
        inner = made.get(operand)
        if inner is None or not isinstance(inner.primitive, Transpose):
            continue
        permutation = inner.primitive.permutation
        used = {*batched[place], *contract[place]}
        free = [axis for place, axis in enumerate(permutation) if place not in used]
        if free == sorted(free):
            batched[place] = tuple([permutation[axis] for axis in batched[place]])
            contract[place] = tuple([permutation[axis] for axis in contract[place]])
            operands[place] = inner.inputs[0]
    if all(a is b for a, b in zip(operands, inputs, strict=True)):
        return dot, inputs
    left, right = zip(batched, contract, strict=True)
    direct = DotGeneral((left[1], right[1]), (left[0], right[0]), dot.result)
    return direct, tuple(operands)


# Equations of known small arrays, computed by their NumPy meaning.


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
    found = _evaluated(primitive, [literal_array(scalar) for scalar in scalars], (result,))
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
