"""Equations whose result is there already, and operands that are reached more directly.

Only where that holds for every value, NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import copysign
from typing import TypeAlias

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Equation, Literal, Scalar, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from pscdsl.typing.dtypes import BOOL, DType, Kind

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
