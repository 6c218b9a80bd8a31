"""Collectives that are not needed at each step of a loop, which devices send once, before it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from pscdsl._src.interpreters.cut import needed
from pscdsl._src.interpreters.replay import replay
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var, acts
from pscdsl._src.primitives.collectives import SENDING
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role


def sent_before(
    here: Builder,
    layout: Layout,
    blocks: MutableMapping[Region, Block],
    operands: MutableMapping[Group, list[Value]],
) -> None:
    """Append the collectives of constants in a loop's blocks, whose results become constants."""
    for region in layout.run:
        constants = [each for each in region.takes if each.role is Role.CONSTANT and each.field]
        if region.nesting is not Nesting.LOOP or not constants:
            continue
        params = _params(region, blocks[region], operands)
        given = [var for group in constants for var in params[group]]
        sends, block = _sends(blocks[region], given)
        if not sends:
            continue
        group, made = constants[0], [var for each in sends for var in each.outputs]
        values = replay(here, block, [x for each in constants for x in operands[each]])
        for other in layout.regions:
            if group not in other.takes:
                continue
            own = made if other is region else [Var(x.type) for x in values]
            blocks[other] = _with_constants(other, blocks[other], operands, group, own)
        operands[group].extend(values)


def _params(
    region: Region, block: Block, operands: Mapping[Group, Sequence[Value]]
) -> dict[Group, Sequence[Var]]:
    """Return the parameters of a block by groups, of which some have got more members."""
    found: dict[Group, Sequence[Var]] = {}
    first = 0
    for group in region.takes:
        count = len(operands.get(group, range(group.count)))
        found[group] = block.params[first : first + count]
        first += count
    return found


def _sends(block: Block, constants: Sequence[Var]) -> tuple[list[Equation], Block]:
    """Return the collectives that need only constants, and the block that computes them."""
    known: set[Atom] = {*constants}
    found: list[Equation] = []
    sends: list[Equation] = []
    for equation in block.equations:
        if acts(equation) or not all(isinstance(x, Literal) or x in known for x in equation.inputs):
            continue
        known.update(equation.outputs)
        found.append(equation)
        if isinstance(equation.primitive, SENDING):
            sends.append(equation)
    results = tuple([var for each in sends for var in each.outputs])
    whole = Block(tuple(constants), tuple(found), results)
    return sends, Block(whole.params, needed(whole)[0], results)


def _with_constants(
    region: Region,
    block: Block,
    operands: Mapping[Group, Sequence[Value]],
    group: Group,
    made: Sequence[Var],
) -> Block:
    """Return a block with more parameters in a group, which it need not compute."""
    params = _params(region, block, operands)
    taken = [(*params[each], *(made if each is group else ())) for each in region.takes]
    left = [each for each in block.equations if {*made}.isdisjoint(each.outputs)]
    return Block(tuple([var for each in taken for var in each]), tuple(left), block.results)
