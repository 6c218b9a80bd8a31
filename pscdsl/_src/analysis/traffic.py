"""How many bytes a program reads and writes, as a polynomial in its sizes.

Counted as if every equation read its operands from memory and wrote its results to it.  XLA fuses
many, and moves less.  What only looks at a part of an array moves that part.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pscdsl._src.ir.program import Block, Equation, Function, Literal
from pscdsl._src.primitives.control import Call, Control, Switch
from pscdsl._src.primitives.diagonals import Diagonal
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.indexing import Gather, Scatter
from pscdsl._src.primitives.shaping import Reshape, Slice
from pscdsl.typing.arrays import ArrayType, size_of
from pscdsl.typing.dims import Size, maximum, substitute


def bytes_of(array: ArrayType) -> Size:
    """What the elements of an array take."""
    return size_of(array.shape) * max(1, array.dtype.bits // 8)


def total_bytes(types: Iterable[ArrayType]) -> Size:
    """What several arrays take."""
    total: Size = 0
    for each in types:
        total = total + bytes_of(each)
    return total


@lru_cache(maxsize=1024)
def function_traffic(function: Function) -> Size:
    """The bytes that one run of a function moves, in its own sizes."""
    return block_traffic(function.body)


def block_traffic(block: Block) -> Size:
    """The bytes that one run of a block moves."""
    total: Size = 0
    for each in block.equations:
        total = total + traffic(each)
    return total


def traffic(equation: Equation) -> Size:
    """The bytes that an equation moves; of a loop whose steps are not known, those of one."""
    primitive = equation.primitive
    if isinstance(primitive, Call):
        return substitute(function_traffic(primitive.function), dict(primitive.sizes))
    if isinstance(primitive, Switch):
        dearest: Size = 0
        for branch in primitive.branches:
            dearest = maximum(dearest, block_traffic(branch))
        return dearest
    if isinstance(primitive, Control):
        total: Size = 0
        for block, times in primitive.runs():
            total = total + block_traffic(block) * times
        return total
    return _moved(equation)


def _moved(equation: Equation) -> Size:
    """Of an equation without blocks."""
    primitive = equation.primitive
    given = [atom.type for atom in equation.inputs if not isinstance(atom, Literal)]
    made = [var.type for var in equation.outputs]
    match primitive:
        case Reshape():
            return 0
        case Slice() | Diagonal() | DynamicSlice() | Gather():
            return 2 * total_bytes(made) + total_bytes(given[1:])
        case DynamicUpdate():
            return 2 * bytes_of(equation.inputs[1].type) + total_bytes(given[2:])
        case Scatter():
            indices, updates = equation.inputs[1].type, equation.inputs[2].type
            return 3 * bytes_of(updates) + bytes_of(indices)
        case _:
            return total_bytes(given) + total_bytes(made)
