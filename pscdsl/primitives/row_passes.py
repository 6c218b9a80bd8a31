"""One pass over the rows of a matrix: products with vectors, and the sum of the weighted rows.

A block of a few rows is read from memory once: its products with the vectors give the weights, and
the rows times these are added up while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pscdsl.ir import Block
from pscdsl.primitive import H, Hlo, Primitive, Types
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dtypes import I32

BLOCK_BYTES: Final = 10 << 10
"""So many bytes of rows are taken in a step; with thrice that its loop would not be native, ..."""
MOST_ROWS: Final = 8
"""... but no more rows than this."""
GROUP: Final = 64
"""So many steps are added up before they are added to the others."""
WIDTH: Final = 32
"""Products of a row are added up by slices of so many columns."""


@dataclass(frozen=True)
class RowPass(Primitive):
    """The sum of the rows of a matrix, each times a weight that depends on products with the row.

    Operands: the matrix, the vectors that its rows are multiplied with, and what the weights
    depend on besides: vectors with an element for each row, and scalars.  `weights` takes these
    products, then the others, and gives the weights, all for the rows of the matrix; it is
    pointwise.  Results: the sum, then those products whose places are in `kept`.  There is no
    other rule than its lowering: it takes the place of other equations when they are emitted.
    """

    weights: Block
    vectors: int
    """How many vectors the rows are multiplied with."""
    kept: tuple[int, ...]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        rows, columns = hlo.shape(inputs[0].shape)
        taken = BLOCK_BYTES // (columns * inputs[0].dtype.bits // 8)
        taken = min(max(taken, 1), MOST_ROWS, rows)
        steps, left = divmod(rows, taken)
        state = [hlo.full(0.0, each) for each in outputs]
        step = _Step(self, hlo, operands, inputs, outputs)
        state = self._loop(hlo, step, steps, taken, state)
        if left:
            state = step(hlo.full(steps * taken, ArrayType(I32)), left, state)
        return state

    def _loop(self, hlo: Hlo, step: _Step, steps: int, rows: int, state: list[H]) -> list[H]:
        """The steps in groups, whose sums are added up: rounding errors grow less."""
        count = ArrayType(I32)

        def group(now: Sequence[H]) -> list[H]:
            first, total, *kept = now
            last = hlo.binary("add", first, hlo.full(GROUP, count))
            last = hlo.binary("minimum", last, hlo.full(steps, count))
            inits = [first, hlo.full(0.0, step.outputs[0]), *kept]
            _, found, *kept = hlo.while_loop(
                inits, lambda now: hlo.compare("LT", now[0], last), body
            )
            return [last, hlo.binary("add", total, found), *kept]

        def body(now: Sequence[H]) -> list[H]:
            start = hlo.binary("multiply", now[0], hlo.full(rows, count))
            after = hlo.binary("add", now[0], hlo.full(1, count))
            return [after, *step(start, rows, now[1:])]

        return list(
            hlo.while_loop(
                [hlo.full(0, count), *state],
                lambda now: hlo.compare("LT", now[0], hlo.full(steps, count)),
                group,
            )[1:]
        )


@dataclass(frozen=True)
class _Step:
    """What is done with a few rows."""

    what: RowPass
    hlo: Hlo
    operands: Sequence[H]
    inputs: Types
    outputs: Types

    def __call__(self, start: H, rows: int, state: Sequence[H]) -> list[H]:
        """The results so far with these rows."""
        hlo, first = self.hlo, 1 + self.what.vectors
        matrix, total = self.inputs[0], self.outputs[0]
        taken = [self._rows(x, each, start, rows) for x, each in self._by_row()]
        block = matrix.with_shape((rows, *hlo.shape(matrix.shape)[1:]))
        products = [self._products(taken[0], x, block) for x in self.operands[1:first]]
        weights = self._weights(products, taken[1:], rows)
        spread = hlo.broadcast(weights, block, (0,))
        weighted = hlo.binary("multiply", taken[0], spread)
        added = hlo.binary("add", state[0], self._sum(weighted, total, 0))
        kept = [
            hlo.op("dynamic_update_slice", (so_far, products[place], start), (each,))[0]
            for place, so_far, each in zip(self.what.kept, state[1:], self.outputs[1:], strict=True)
        ]
        return [added, *kept]

    def _by_row(self) -> list[tuple[H, ArrayType]]:
        """The operands that have something for each row."""
        first = 1 + self.what.vectors
        pairs = list(zip(self.operands, self.inputs, strict=True))
        return [pairs[0], *[(x, each) for x, each in pairs[first:] if each.rank]]

    def _rows(self, x: H, given: ArrayType, start: H, rows: int) -> H:
        part = (rows, *self.hlo.shape(given.shape)[1:])
        zeros = [self.hlo.full(0, ArrayType(I32))] * (len(part) - 1)
        sizes = {"slice_sizes": self.hlo.i64_array(part)}
        return self.hlo.op("dynamic_slice", (x, start, *zeros), (given.with_shape(part),), sizes)[0]

    def _products(self, rows: H, vector: H, block: ArrayType) -> H:
        """Each row times a vector."""
        hlo = self.hlo
        count, columns = hlo.shape(block.shape)
        found = hlo.binary("multiply", rows, hlo.broadcast(vector, block, (1,)))
        parts: list[H] = []
        for low in range(0, columns, WIDTH):
            high = min(low + WIDTH, columns)
            part = hlo.slice(found, (0, low), (count, high))
            if missing := low + WIDTH - high:
                fill = hlo.full(0.0, ArrayType(block.dtype))
                part = hlo.pad(part, fill, (0, 0), (0, missing))
            parts.append(part)
        while len(parts) > 1:  # two by two: it is more accurate
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [*(hlo.binary("add", a, b) for a, b in pairs), *odd]
        return self._sum(parts[0], block.with_shape((count,)), 1)

    def _weights(self, products: Sequence[H], vectors: Sequence[H], rows: int) -> H:
        others = iter(vectors)
        first = 1 + self.what.vectors
        given = [
            next(others) if each.rank else x
            for x, each in zip(self.operands[first:], self.inputs[first:], strict=True)
        ]
        (found,) = self.hlo.block(of_rows(self.what.weights, rows), [*products, *given])
        return found

    def _sum(self, x: H, to: ArrayType, axis: int) -> H:
        hlo = self.hlo
        zero = hlo.full(0.0, ArrayType(to.dtype))
        return hlo.reduce(
            [x], [zero], (axis,), [to], lambda one, two: [hlo.binary("add", one[0], two[0])]
        )[0]


def of_rows(weights: Block, rows: int) -> Block:
    """The block that gives the weights, for so many rows."""
    from pscdsl.interpreters.replay import closed
    from pscdsl.primitives.control.rowwise import spelled_out
    from pscdsl.typing.assumptions import Assumptions

    types = [each.with_shape((rows,)) if each.rank else each for each in weights.in_types]

    def build(here: Any, params: Any) -> Any:
        return spelled_out(here, weights, params, rows)

    return closed(Assumptions(), types, build)
