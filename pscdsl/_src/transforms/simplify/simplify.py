"""Smaller programs with the same meaning.

Two passes over each block until nothing changes: `Forward` replaces what is known (equal
equations, constants, identities), `Pruner` leaves out what nobody needs.  Time is linear in the
size of the program; what is as simple as can be is returned as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import TypeAlias, TypeVar

from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    is_plain,
    mapped,
    rebuilt,
)
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.control.regions import Group, Layout, Role
from pscdsl._src.transforms.simplify.forward import Forward
from pscdsl._src.transforms.simplify.unused_results import narrowed, uses_keys

# One pass from the results back: what nobody needs is not computed.


T = TypeVar("T")


class Pruner:
    """The pass; a block that is held twice stays one block."""

    def __init__(self) -> None:
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """The block with all its parameters and results, and only what these need."""
        cached = self._blocks.get(block)
        if cached is None:
            cached = self._blocks[block] = self.pruned(block, block.results)[0]
        return cached

    def pruned(self, block: Block, results: tuple[Atom, ...]) -> tuple[Block, set[Atom]]:
        """A block with these results only, and the variables that it uses."""
        used: set[Atom] = {atom for atom in results if not isinstance(atom, Literal)}
        equations: list[Equation] = []
        changed = results != block.results
        for equation in reversed(block.equations):
            if used.isdisjoint(equation.outputs):
                changed = True
                continue
            new = self.equation(equation, used)
            changed = changed or new is not equation
            equations.append(new)
            used.update([atom for atom in new.inputs if not isinstance(atom, Literal)])
        if changed:
            block = Block(block.params, tuple(reversed(equations)), results)
        return block, used

    def equation(self, equation: Equation, used: Collection[Atom]) -> Equation:
        """An equation, narrowed to those of its outputs that are used."""
        primitive = equation.primitive
        if is_plain(primitive):
            return equation
        if isinstance(primitive, Control) and primitive.layout.is_repeated:
            return self.control(primitive, equation, used)
        new = rebuilt(primitive, self.block, _same)
        if new is primitive:
            return equation
        return Equation(new, equation.inputs, equation.outputs, equation.span)

    def control(self, primitive: Control, equation: Equation, used: Collection[Atom]) -> Equation:
        """A loop or choice without what only leads to itself, nor operands that no block needs."""
        layout = primitive.layout
        live = _live(layout, layout.results([var in used for var in equation.outputs]))
        # What is not computed by a block is there if a block needs it, or the equation itself.
        takes = {
            group: live.get(group) or [group.role is Role.DECISION] * group.count
            for group in layout.groups
        }
        pruned: list[Block] = []
        for region in layout.regions:
            wanted = [flag for group in region.gives for flag in takes[group]]
            block, needed = self.pruned(region.block, _where(region.block.results, wanted))
            pruned.append(block)
            for group, params in region.params():
                if group not in live:
                    pairs = zip(takes[group], params, strict=True)
                    takes[group] = [taken or var in needed for taken, var in pairs]
        blocks = primitive.blocks()
        if all(map(all, takes.values())) and all(map(is_, pruned, blocks)):
            return equation
        for at, (region, block) in enumerate(zip(layout.regions, pruned, strict=True)):
            flags = [flag for group in region.takes for flag in takes[group]]
            pruned[at] = Block(_where(block.params, flags), block.equations, block.results)
        left = {group: _where(flags, flags) for group, flags in takes.items()}
        return Equation(
            primitive.with_blocks(pruned, layout.counts(left)),
            _where(equation.inputs, layout.inputs(takes)),
            _where(equation.outputs, layout.outputs(takes)),
            equation.span,
        )


def _same(function: Function) -> Function:
    return function


def _where(items: Sequence[T], chosen: Iterable[bool]) -> tuple[T, ...]:
    return tuple([item for item, take in zip(items, chosen, strict=True) if take])


Member: TypeAlias = tuple[Group, int]
"""One of a group."""


def _live(layout: Layout, wanted: Mapping[Group, Sequence[bool]]) -> dict[Group, list[bool]]:
    """Flags of what blocks give: whether the wanted results of an equation need it.

    A carry is needed if it is wanted, or if something is computed from it that is needed.
    """
    if all(map(all, wanted.values())):
        return {group: [True] * group.count for each in layout.regions for group in each.gives}
    made: list[dict[Atom, Equation]] = []
    members: list[dict[Atom, Member]] = []
    sources: dict[Member, list[tuple[int, Atom]]] = {}
    for at, region in enumerate(layout.regions):
        block = region.block
        made.append({var: equation for equation in block.equations for var in equation.outputs})
        named = [(group, k) for group in region.takes for k in range(group.count)]
        members.append(dict(zip(block.params, named, strict=True)))
        named = [(group, k) for group in region.gives for k in range(group.count)]
        for member, atom in zip(named, block.results, strict=True):
            sources.setdefault(member, []).append((at, atom))
    due = [
        member
        for member in sources
        if member[0].role is Role.DECISION or wanted[member[0]][member[1]]
    ]
    live = set(due)
    pending = [source for member in due for source in sources[member]]
    met = set(pending)
    while pending:
        at, atom = pending.pop()
        found: list[tuple[int, Atom]] = []
        if atom in made[at]:
            found = [(at, operand) for operand in made[at][atom].inputs]
        elif (taken := members[at].get(atom)) in sources and taken not in live:
            live.add(taken)
            found = sources[taken]
        for each in found:
            if each not in met:
                met.add(each)
                pending.append(each)
    return {group: [(group, k) in live for k in range(group.count)] for group, _ in sources}


# Both passes, until nothing changes.


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
        if block is before or all(
            equation.primitive.blocks() == () for equation in block.equations
        ):
            break  # only where loops or choices have changed can there be more to find
    return block


def tidied(block: Block) -> Block:
    """A block that a transformation has made, before another one takes it.

    Tangents of what is computed twice, or for nothing, would be so too: without this, programs of
    derivatives of derivatives are several times as large.  What uses random keys stays as it is,
    so that a key that is used twice is found.
    """
    return block if uses_keys(block) else simplify_block(block)
