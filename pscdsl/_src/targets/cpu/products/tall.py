"""Sums of the rows of a large matrix, each times a number, by parts of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.ir.forms import form
from pscdsl._src.ir.primitive import H, Hlo, Types
from pscdsl.typing.arrays import ArrayType

if TYPE_CHECKING:
    from pscdsl._src.primitives.contractions import DotGeneral

ROWS_IN_PARTS = form(
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


def parts(hlo: Hlo, dot: DotGeneral, inputs: Types) -> int | None:
    """In how many parts the rows of a contraction are taken; None if it is not of that kind."""
    ranks = [each.rank for each in inputs]
    if dot.batched[0] or sorted(ranks) != [1, 2] or not hlo.uses(ROWS_IN_PARTS):
        return None
    place = ranks.index(2)
    matrix = inputs[place]
    if dot.contract[place] != (0,) or not matrix.dtype.is_float or matrix.dtype.bits < 32:
        return None
    rows, columns = hlo.shape(matrix.shape)
    if rows * columns * matrix.dtype.bits // 8 < LEAST_BYTES or columns < FEWEST_COLUMNS:
        return None
    if rows * WIDE <= columns:
        return None
    tall = rows >= ROWS_OF_TALL and rows >= TALL * columns
    most = MOST_PARTS_OF_TALL if tall else MOST_PARTS
    return next((n for n in range(most, FEWEST_PARTS - 1, -1) if rows % n == 0), None)


def emit_parts(
    hlo: Hlo, dot: DotGeneral, count: int, operands: Sequence[H], inputs: Types, output: ArrayType
) -> Sequence[H]:
    """The contraction as a batch of contractions, the vector first, and their sum."""
    from pscdsl._src.primitives.contractions import DotGeneral
    from pscdsl._src.primitives.reductions import Reduce

    given: list[H] = []
    types: list[ArrayType] = []
    for x, each in sorted(zip(operands, inputs, strict=True), key=lambda pair: pair[1].rank):
        rows, *columns = hlo.shape(each.shape)
        types.append(each.with_shape((count, rows // count, *columns)))
        given.append(hlo.reshape(x, types[-1]))
    partial = output.with_shape((count, *output.shape))
    found = DotGeneral(((1,), (1,)), ((0,), (0,)), dot.result).lower(
        hlo, given, tuple(types), (partial,)
    )
    return Reduce("sum", (0,)).lower(hlo, found, (partial,), (output,))
