"""Calls replaced by what they call, where a loop is better seen as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from pscdsl._src.ir.program import Atom, Block, Equation
from pscdsl._src.primitives.control.base import substitute_block
from pscdsl._src.primitives.control.call import Call

LARGEST = 1000
"""How many equations a block has at most that takes the place of one with calls."""


def inlined(block: Block) -> Block:
    """The block without calls; itself if there are none, or if it became too large."""
    if not any(isinstance(each.primitive, Call) for each in block.equations):
        return block
    if _size(block, LARGEST) > LARGEST:
        return block
    equations: list[Equation] = []
    results = _append(equations, block, {})
    return Block(block.params, tuple(equations), results)


def _size(block: Block, most: int) -> int:
    """How many equations a block has without calls, or a number above the most."""
    total = 0
    for each in block.equations:
        primitive = each.primitive
        total += _size(primitive.function.body, most) if isinstance(primitive, Call) else 1
        if total > most:
            break
    return total


def _append(
    equations: list[Equation], block: Block, known: Mapping[Atom, Atom]
) -> tuple[Atom, ...]:
    names = dict(known)
    for each in block.equations:
        inputs = tuple([names.get(atom, atom) for atom in each.inputs])
        primitive = each.primitive
        if isinstance(primitive, Call):
            body = substitute_block(primitive.function.body, dict(primitive.sizes))
            results = _append(equations, body, dict(zip(body.params, inputs, strict=True)))
            names.update(zip(each.outputs, results, strict=True))
        else:
            equations.append(Equation(primitive, inputs, each.outputs, each.span))
    return tuple([names.get(atom, atom) for atom in block.results])
