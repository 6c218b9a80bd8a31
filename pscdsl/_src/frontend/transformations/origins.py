"""What derivatives and batches were made of, for warnings and for how often keys are used."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from pscdsl._src.analysis.keys.walk import concerns_keys
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Equation, Origin, Var
from pscdsl._src.primitives.control.scan import Rows
from pscdsl._src.primitives.shaping import Reshape
from pscdsl.typing.dims import Size


@contextmanager
def made_of(
    here: Builder, block: Block | None, operands: Sequence[Value], results: list[Value]
) -> Generator[None]:
    """What is appended in this context is made of a block; `results` are filled in meanwhile.

    None as the block: of something that was computed before.
    """
    current = here.program.current
    first = len(current.equations)
    inputs = tuple(map(current.atom, operands))
    yield
    count = len(current.equations) - first
    if not count:
        if block is None or not operands or not concerns_keys(block):
            return
        current.bind(Reshape(operands[0].shape), operands[:1])  # so that what it did is known
        count = 1
    outputs = tuple(map(current.atom, results))
    here.program.origins[current.equations[first]] = Origin(count, block, inputs, outputs)


def over_rows(
    here: Builder, block: Block, batched: Sequence[bool], size: Size
) -> tuple[Block, list[int]]:
    """A block as a loop over rows, and which of the block's operands its own are, in order."""
    held = [at for at, flag in enumerate(batched) if not flag]
    rows = [at for at, flag in enumerate(batched) if flag]
    order = [*held, *rows]
    body = Block(tuple([block.params[at] for at in order]), block.equations, block.results)
    given = [Var(block.params[at].type, block.params[at].hint) for at in held]
    for at in rows:
        row = block.params[at]
        given.append(Var(row.type.with_shape((size, *row.type.shape)), row.hint))
    results = tuple([Var(t.with_shape((size, *t.shape))) for t in block.out_types])
    loop = Rows(body, len(held), 0, size)
    equation = Equation(loop, tuple(given), results, here.program.span)
    return Block(tuple(given), (equation,), results), order
