"""What the late part of a cut program is given: as little as it can do with.

What is cheap to compute from that which is there anyhow is computed again instead of being saved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pscdsl._src.ir import program as ir
from pscdsl._src.ir.program import Atom, Block, Equation, Var
from pscdsl.typing.dtypes import KEY

LONGEST = 6
"""How many equations are repeated at most for one value."""


def needed(block: Block) -> tuple[tuple[Equation, ...], set[Atom]]:
    """The equations that the results depend on, and all the atoms that these use."""
    used: set[Atom] = set(block.results)
    kept: list[Equation] = []
    for equation in reversed(block.equations):
        if not used.isdisjoint(equation.outputs):
            kept.append(equation)
            used.update(equation.inputs)
    return tuple(reversed(kept)), used


def without_cheap(
    early: Block, late: Block, saved: Mapping[Var, Var], free: Collection[Atom]
) -> tuple[Block, tuple[Var, ...]]:
    """The late part without dead and with cheap equations, and what is saved for it.

    `free` are the variables of the early part that are there anyhow.  The parameters for what is
    saved are not yet among those of the late part.
    """
    equations, used = needed(late)
    made = {var: each for each in early.equations for var in each.outputs}
    order: dict[Atom, int] = {var: place for place, var in enumerate((*early.params, *made))}
    wanted = {var for var, param in saved.items() if param in used}
    params: dict[Var, Var] = dict(saved)
    repeated: dict[Var, Equation] = {}
    for var in sorted(wanted, key=lambda each: order[each], reverse=True):
        if var in free:
            continue
        chain = _chain(var, made, wanted, free)
        if chain is None:
            continue
        wanted.discard(var)
        for equation in chain:  # from the last to the first: what it uses stands before it
            (output,) = equation.outputs
            if output in wanted or (output is not var and output in free):
                continue
            wanted.update(v for v in equation.inputs if isinstance(v, Var) and _kept(v, chain))
            for each in equation.inputs:
                if isinstance(each, Var):
                    params.setdefault(each, Var(each.type, each.hint))
            inputs = tuple([_late(each, params) for each in equation.inputs])
            again = Equation(equation.primitive, inputs, (params[output],), equation.span)
            repeated[output] = again
    kept = tuple(sorted(wanted, key=lambda each: order[each]))
    # What one value is computed from may have turned out to be saved for another.
    due = sorted(repeated.keys() - wanted, key=lambda each: order[each])
    first = [repeated[var] for var in due]
    own = tuple([params[var] for var in kept])
    return Block((*own, *late.params), (*first, *equations), late.results), kept


def _late(atom: Atom, params: Mapping[Var, Var]) -> Atom:
    return atom if isinstance(atom, ir.Literal) else params[atom]


def _kept(var: Var, chain: Sequence[Equation]) -> bool:
    return all(var not in each.outputs for each in chain)


def _chain(
    var: Var, made: Mapping[Var, Equation], wanted: Collection[Atom], free: Collection[Atom]
) -> list[Equation] | None:
    """The equations that make a variable of what is there, the last first; None if too dear."""
    chain: list[Equation] = []
    due: list[Atom] = [var]
    while due:
        atom = due.pop()
        if isinstance(atom, ir.Literal) or (atom is not var and (atom in wanted or atom in free)):
            continue
        equation = made.get(atom)
        if equation is None or not _is_cheap(equation) or len(chain) == LONGEST:
            return None
        if equation in chain:
            continue
        chain.append(equation)
        if equation.primitive.name != "broadcast":  # what it repeats takes less room
            due.extend(equation.inputs)
    return chain


def _is_cheap(equation: Equation) -> bool:
    if len(equation.outputs) != 1 or equation.outputs[0].type.dtype is KEY:
        return False
    return equation.primitive.is_cheap
