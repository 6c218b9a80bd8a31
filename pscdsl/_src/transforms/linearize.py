"""A program split into its values and its derivative, a linear program that runs both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pscdsl._src.interpreters.cut import split_block
from pscdsl._src.interpreters.replay import (
    Mask,
    batch,
    has_tangent,
    jvp_block,
    repeated,
    replay,
    transpose_block,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, has_effects
from pscdsl._src.transforms.simplify import simplify_block
from pscdsl._src.transforms.unused_results import narrowed, uses_keys
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size


@dataclass(frozen=True)
class LinearizedProgram:
    """The derivative of a program at a point: from tangents of its active operands to tangents.

    It takes and returns one for each active operand, and for each result that has one.
    """

    facts: Assumptions
    block: Block
    saved: tuple[Value, ...]

    @property
    def inputs(self) -> tuple[ArrayType, ...]:
        """Return the types of its parameters."""
        return self.block.in_types[len(self.saved) :]

    @property
    def outputs(self) -> tuple[ArrayType, ...]:
        """Return the types of its results."""
        return self.block.out_types

    def forward(self, here: Builder, tangents: Sequence[Value]) -> list[Value]:
        """Return tangents of the results."""
        return replay(here, self.block, [*self.saved, *tangents])

    def backward(self, here: Builder, cotangents: Sequence[Value]) -> list[Value]:
        """Cotangents of the active operands."""
        return replay(here, self._transpose(), [*self.saved, *cotangents])

    def backward_rows(self, here: Builder, cotangents: Sequence[Value], size: Size) -> list[Value]:
        """Cotangents for a batch of cotangents: all along a first axis."""
        batched = [*[False] * len(self.saved), *[True] * len(cotangents)]
        given = [*self.saved, *cotangents]
        found, flags = batch(here, self._transpose(), given, batched, size)
        return [x if many else repeated(x, size) for x, many in zip(found, flags, strict=True)]

    def _transpose(self) -> Block:
        linear = tuple(place >= len(self.saved) for place in range(len(self.block.params)))
        given = (True,) * len(self.block.results)
        return transpose_block(self.facts, self.block, linear, given, linear)[0]


def linearize(
    here: Builder,
    block: Block,
    operands: Sequence[Value],
    active: Mask,
    moving_results: int | None = None,
) -> tuple[list[Value], LinearizedProgram]:
    """Return the results of a block, and the derivative of the first ones in active operands."""
    facts = here.facts
    if not uses_keys(block) and not has_effects(block):
        block = narrowed(facts, block, simplify_block, deep=True)
    first = len(block.results) if moving_results is None else moving_results
    wanted = tuple(at < first and has_tangent(t) for at, t in enumerate(block.out_types))
    moving = jvp_of(facts, block, active, wanted)
    count = len(block.params)
    late = tuple(place >= count for place in range(len(moving.params)))
    late_results = tuple(place >= len(wanted) for place in range(len(moving.results)))
    halves = split_block(facts, moving, late, late_results)
    results = replay(here, halves.early, operands)
    saved = tuple(halves.gather(operands, results))
    return results[: len(wanted)], LinearizedProgram(facts, halves.late, saved)


def jvp_of(facts: Assumptions, block: Block, active: Mask, wanted: Mask) -> Block:
    """Return the block with the tangents of exactly the results that are wanted."""
    moving, active_results = jvp_block(facts, block, active, wanted)
    count = len(wanted)
    remaining = iter(moving.results[count:])
    tangents = [next(remaining) for keeps in active_results if keeps]
    places = [at for at, keeps in enumerate(active_results) if keeps]
    chosen = [t for at, t in zip(places, tangents, strict=True) if wanted[at]]
    return Block(moving.params, moving.equations, (*moving.results[:count], *chosen))
