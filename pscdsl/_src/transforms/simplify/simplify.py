"""Smaller programs with the same meaning.

Two passes over each block until nothing changes: `Forward` replaces what is known (equal
equations, constants, identities), `Pruner` leaves out what nobody needs.  Time is linear in the
size of the program; what is as simple as can be is returned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pscdsl._src.ir.program import Block, Function
from pscdsl._src.ir.regions import mapped
from pscdsl._src.transforms.simplify.forward import Forward
from pscdsl._src.transforms.simplify.prune import Pruner
from pscdsl._src.transforms.simplify.unused_results import narrowed, uses_keys

ROUNDS = 4
"""How often the passes are repeated at most; the second time rarely finds anything."""


def simplify(function: Function) -> Function:
    """The function, and all that it calls, without what they do not need."""

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        body = simplify_block(current.body, functions)
        body = narrowed(current.facts, body, simplify_block)
        return current if body is current.body else replace(current, body=body)

    return mapped(function, changed)


def simplify_block(block: Block, functions: Mapping[Function, Function] | None = None) -> Block:
    """The block without what it does not need; `functions` says what to call instead of what."""
    for _ in range(ROUNDS):
        before = block
        block = Forward(functions or {}).block(block)
        block = Pruner().block(block)
        if block is before or all(each.primitive.blocks() == () for each in block.equations):
            break  # only where loops or choices have changed can there be more to find
    return block


def tidied(block: Block) -> Block:
    """A block that a transformation has made, before another one takes it.

    Tangents of what is computed twice, or for nothing, would be so too: without this, programs of
    derivatives of derivatives are several times as large.  What uses random keys stays as it is,
    so that a key that is used twice is found.
    """
    return block if uses_keys(block) else simplify_block(block)
