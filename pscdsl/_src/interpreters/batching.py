"""A program over a batch: what is batched has the batch as its first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from pscdsl._src.interpreters.jvp import Mask, derived
from pscdsl._src.interpreters.replay import Environment, append, closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, name

BATCH = "batch"
"""What the size of the batch is called in functions over one."""


def over_batch(type: ArrayType, size: Size) -> ArrayType:  # noqa: A002
    """The type of a batch of arrays."""
    return type.with_shape((size, *type.shape))


def repeated(value: Value, size: Size) -> Value:
    """A batch of one array, the same everywhere."""
    rank = value.ndim
    return value.builder.spread(value, (size, *value.shape), tuple(range(1, rank + 1)))


def batch(
    here: Builder, block: Block, operands: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[list[Value], list[bool]]:
    """The results of a block over a batch, and which of them are batched."""
    env = Environment(here, block.params, operands)
    many = {var for var, is_batched in zip(block.params, batched, strict=True) if is_batched}
    program = here.program
    place = program.span
    for equation in block.equations:
        program.span = equation.span
        inputs = env.all(equation.inputs)
        flags = [atom in many for atom in equation.inputs]
        outputs: Sequence[Value]
        if not any(flags):
            outputs = append(program.current, equation, inputs)
        else:
            try:
                outputs, batched_outputs = equation.primitive.batch(inputs, flags, size)
            except Failure as failure:
                raise failure.at(equation.span) from None
            many.update(
                var for var, flag in zip(equation.outputs, batched_outputs, strict=True) if flag
            )
        env.values.update(zip(equation.outputs, outputs, strict=True))
    program.span = place
    return env.all(block.results), [atom in many for atom in block.results]


def batch_block(
    facts: Assumptions, block: Block, batched: Mask, size: Size, wanted: Mask | None = None
) -> tuple[Block, Mask]:
    """The block over a batch, and which results are batched; those `wanted` to be are."""
    flags: list[bool] = []

    def build(here: Builder, params: list[Value]) -> list[Value]:
        results, batched_results = batch(here, block, params, batched, size)
        for index, is_batched in enumerate(batched_results):
            flags.append(is_batched or (wanted is not None and wanted[index]))
            if flags[-1] and not is_batched:
                results[index] = repeated(Value(here, here.atom(results[index])), size)
        return results

    types = [over_batch(t, size) if b else t for t, b in zip(block.in_types, batched, strict=True)]
    return closed(facts, types, build), tuple(flags)


@lru_cache(maxsize=4096)
def batch_function(
    function: Function, batched: Mask, may_be_empty: bool = False
) -> tuple[Function, str, Mask]:
    """A function over a batch, what the batch's size is called in it, and the batched results."""
    called = BATCH
    while called in function.dims:
        called += "_"
    facts = function.facts
    if may_be_empty:
        facts = facts.assume(Fact("<=", 0, name(called)))
    block, batched_results = batch_block(facts, function.body, batched, name(called))
    made = derived(function, "batch", block)
    return replace(made, dims=(*made.dims, called), facts=facts), called, batched_results
