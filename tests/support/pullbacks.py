"""Programs of one equation, and what runs them backwards: for tests of single derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.cut import split_block
from pscdsl._src.interpreters.replay import jvp_block, transpose_block
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Block, Equation, Function, Var, evaluate
from pscdsl.typing.assumptions import Assumptions
from tests.support.law_rows import array_types

NOTHING = Assumptions()


def program(primitive: Primitive, types: str, known: Assumptions = NOTHING) -> Block:
    """The program of one equation."""
    inputs = tuple(Var(each) for each in array_types(types))
    outputs = tuple(Var(t) for t in primitive.type_rule(known, *[var.type for var in inputs]))
    return Block(inputs, (Equation(primitive, inputs, outputs),), outputs)


def pullback(block: Block, known: Assumptions = NOTHING) -> tuple[Block, Block, list[int]]:
    """The early part, the transpose of the late part, and what it takes of the early results.

    Only programs whose parameters all have tangents, and whose results are saved or not needed.
    """
    count = len(block.params)
    derivative, _ = jvp_block(known, block, (True,) * count)
    late = tuple(index >= count for index in range(len(derivative.params)))
    halves = split_block(known, derivative, late)
    saved = len(halves.late.params) - count
    linear = tuple(index >= saved for index in range(len(halves.late.params)))
    given = (True,) * len(halves.late.results)
    backward, _ = transpose_block(known, halves.late, linear, given, linear)
    places = [at if kind == "parameter" else ~at for kind, at in halves.saved]
    return halves.early, backward, places


def gradient(
    primitive: Primitive,
    types: str,
    operands: Sequence[NDArray],
    cotangent: NDArray,
    known: Assumptions = NOTHING,
    **sizes: int,
) -> tuple[NDArray, ...]:
    """The cotangents of the operands, computed by the reference interpreter."""
    early, backward, places = pullback(program(primitive, types, known), known)
    results = run(early, operands, known, sizes)
    saved = [operands[at] if at >= 0 else results[~at] for at in places]
    return run(backward, [*saved, cotangent], known, sizes)


def run(
    block: Block, operands: Sequence[NDArray], known: Assumptions, sizes: Mapping[str, int]
) -> tuple[NDArray, ...]:
    """The results of a block in the reference interpreter, after its verification."""
    function = Function("test", tuple(sizes), known, block)
    verify(function)
    return evaluate(function, sizes, operands)


def names(block: Block) -> list[str]:
    """The primitives of a block, in order."""
    return [equation.primitive.label for equation in block.equations]
