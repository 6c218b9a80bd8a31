"""Sums of the rows of a large matrix, each times a number, by parts of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.ir.primitive import Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Reshape
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.dims import numbers

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

ROWS_IN_PARTS = Form(
    "rows_in_parts",
    "A vector times a large matrix is a product for each of some parts of the rows, and the sum of "
    "these, instead of one product, which has no threads: 0.5 to 0.9 of the time from 3 MB on.",
)
MOST_PARTS = 8
MOST_PARTS_OF_TALL = 32
FEWEST_PARTS = 4
LEAST_BYTES = 3 << 20
TALL = 4
"""How many times as many rows as columns a tall matrix has, ..."""
ROWS_OF_TALL = 1 << 12
"""... and at least so many rows."""
WIDE = 4
"""With so many times as many columns as rows it takes longer."""
FEWEST_COLUMNS = 16


def parts(dot: DotGeneral, inputs: Types) -> int | None:
    """In how many parts the rows of a contraction are taken; None if it is not of that kind."""
    ranks = [each.rank for each in inputs]
    if dot.batched[0] or sorted(ranks) != [1, 2]:
        return None
    place = ranks.index(2)
    matrix = inputs[place]
    if dot.contract[place] != (0,) or not matrix.dtype.is_float or matrix.dtype.bits < 32:
        return None
    rows, columns = numbers(matrix.shape)
    if rows * columns * matrix.dtype.bits // 8 < LEAST_BYTES or columns < FEWEST_COLUMNS:
        return None
    if rows * WIDE <= columns:
        return None
    tall = rows >= ROWS_OF_TALL and rows >= TALL * columns
    most = MOST_PARTS_OF_TALL if tall else MOST_PARTS
    return next((n for n in range(most, FEWEST_PARTS - 1, -1) if rows % n == 0), None)


@ROWS_IN_PARTS.rewrite
def rows_in_parts(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A vector times a large matrix, by parts of the rows."""
    if parts(primitive, inputs) is None:
        return None
    return defined(by_parts, primitive, inputs)


def by_parts(dot: DotGeneral, operands: Sequence[Value]) -> Sequence[Value]:
    """The contraction as a batch of contractions, the vector first, and their sum."""
    count = parts(dot, tuple([x.type for x in operands]))
    assert count is not None
    factors: list[Value] = []
    for x in sorted(operands, key=lambda x: x.ndim):
        rows, *columns = numbers(x.shape)
        factors.append(Reshape((count, rows // count, *columns))(x))
    partial = DotGeneral(((1,), (1,)), ((0,), (0,)), dot.result)(*factors)
    return (Reduce("sum", (0,))(partial),)
