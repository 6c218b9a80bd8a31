"""Matrices that a loop multiplies with in every step, made ready once before it.

XLA's fast products on the CPU sum over the last axis of the first factor and the first axis of the
second; others take up to twice as long, or are not fast at all (see `unfit_first`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.ir.primitive import H, Hlo
from pscdsl._src.ir.program import Block, Equation, Var
from pscdsl._src.primitives.contractions import (
    TURNED_FACTORS,
    Axes,
    DotGeneral,
    is_long,
    small_matrix,
)
from pscdsl._src.primitives.control.capturing import capturing
from pscdsl._src.primitives.shaping import Transpose
from pscdsl._src.targets.cpu.loops.symmetric_factors import with_symmetric_factors

MANY_STEPS = 100
"""So many steps make up for the time in which a matrix is turned for vectors."""


def with_ready_factors(
    hlo: Hlo, block: Block, captured: Sequence[H], steps: int | None = None
) -> tuple[Block, list[H]]:
    """A loop's body whose first parameters it captures, given these: with fewer, faster products.

    More is captured then; the parameters that were there keep their places.  The number of steps
    is given where it is known.
    """
    block, held = with_symmetric_factors(hlo, block, captured)
    return with_turned_factors(hlo, block, held, steps is not None and steps >= MANY_STEPS)


def with_turned_factors(
    hlo: Hlo, block: Block, captured: Sequence[H], many_steps: bool = False
) -> tuple[Block, list[H]]:
    """A loop's body whose first parameters it captures, given these: the same, with more of them.

    Those that were there keep their places.
    """
    if not hlo.uses(TURNED_FACTORS):
        return block, list(captured)
    values = dict(zip(block.params, captured, strict=False))
    turned: dict[tuple[Var, Axes], tuple[Var, H]] = {}
    equations = list(block.equations)
    for at, each in enumerate(block.equations):
        dot = each.primitive
        if not isinstance(dot, DotGeneral):
            continue
        types = tuple([atom.type for atom in each.inputs])
        matrix = small_matrix(hlo, dot, types) if many_steps else None
        if matrix is None and not is_long(hlo, dot, types):
            continue
        factors = list(each.inputs)
        for place, factor in enumerate(each.inputs):
            if not isinstance(factor, Var) or factor not in values:
                continue
            new, order = dot.with_factor(place, factor.type.rank, place in (1, matrix))
            if order == tuple(range(len(order))):
                continue
            dot = new
            if (factor, order) not in turned:
                shape = tuple([factor.type.shape[axis] for axis in order])
                var = Var(factor.type.with_shape(shape), factor.hint)
                given = [values[factor]], (factor.type,), (var.type,)
                turned[factor, order] = var, Transpose(order).lower(hlo, *given)[0]
            factors[place] = turned[factor, order][0]
        equations[at] = Equation(dot, tuple(factors), each.outputs, each.span)
    return capturing(block, captured, equations, turned.values())
