"""Matrices that a loop multiplies with, turned so that XLA's products are fast.

XLA's fast products on the CPU sum over the last axis of the first factor and the first axis of the
second; others take up to twice as long, or are not fast at all (see `unfit_first`).  A matrix that
is the same in every step is turned once before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.primitive import Types
from pscdsl._src.ir.program import Block, Equation, Var
from pscdsl._src.primitives.contractions import Axes, DotGeneral
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.shaping import Transpose
from pscdsl._src.targets.cpu.loops.capturing import Prepared, prepared
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.primitives import Barrier
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.dims import numbers

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

TURNED_FACTORS = Form(
    "turned_factors",
    "In loops a matrix is turned so that XLA multiplies it fast, before the loop if possible: "
    "0.06 of the time for 64x64 by 64x16 summed over the first axis of both.  So is a small one "
    "that is multiplied with vectors, so that multiples of its rows are added up: recurrent "
    "networks of 16 to 128 states take 0.7 to 0.9 of the time.",
)
SMALL_MATRIX = 1 << 14
"""So many elements at most."""
FEWEST_ROWS = 16
"""Of a matrix of 8x8, turning it costs 1.1 of the time; of 24x8 it gains 0.7."""
FEW_TERMS = 32
"""Sums of so many terms XLA unrolls where it would else loop over them slowly."""
MANY_STEPS = 100
"""So many steps make up for the time in which a matrix is turned for vectors."""


@TURNED_FACTORS.rewrite
def turned_before_scan(
    primitive: Scan, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A scan whose body multiplies with matrices that are turned before it."""
    steps = 0 if primitive.counted else primitive.length
    many = isinstance(steps, int) and steps >= MANY_STEPS
    found = with_turned_factors(primitive.body, primitive.captured, many_steps=many)
    if found is None:
        return None
    captured = primitive.captured + len(found.added)
    return found.around(replace(primitive, body=found.body, captured=captured), inputs, outputs, 0)


@TURNED_FACTORS.rewrite
def turned_before_while(
    primitive: While, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A loop with a condition whose body multiplies with matrices that are turned before it."""
    found = with_turned_factors(primitive.body, primitive.body_captured, many_steps=False)
    if found is None:
        return None
    captured = primitive.body_captured + len(found.added)
    loop = replace(primitive, body=found.body, body_captured=captured)
    return found.around(loop, inputs, outputs, primitive.cond_captured)


@TURNED_FACTORS.rewrite
def turned_in_loop(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A product in a loop whose first factor is turned in every step."""
    turned = here.in_loop and unfit_first(primitive, inputs)
    return defined(first_turned, primitive, inputs) if turned else None


def first_turned(dot: DotGeneral, operands: Sequence[Value]) -> Sequence[Value]:
    """The product; without the barrier XLA would fold the transpose into the contraction."""
    x, y = operands
    other, order = dot.with_factor(0, x.ndim, first=False)
    return (other(Barrier()(Transpose(order)(x)), y),)


def with_turned_factors(body: Block, captured: int, *, many_steps: bool) -> Prepared | None:
    """A loop's body whose first parameters it captures, and what has to be turned before."""
    held = set(body.params[:captured])
    turned: dict[tuple[Var, Axes], Equation] = {}
    equations = list(body.equations)
    for at, equation in enumerate(body.equations):
        dot = equation.primitive
        if not isinstance(dot, DotGeneral):
            continue
        types = tuple([atom.type for atom in equation.inputs])
        matrix = small_matrix(dot, types) if many_steps else None
        if matrix is None and not is_long(dot, types):
            continue
        factors = list(equation.inputs)
        for place, factor in enumerate(equation.inputs):
            if not isinstance(factor, Var) or factor not in held:
                continue
            new, order = dot.with_factor(place, factor.type.rank, place in (1, matrix))
            if order == tuple(range(len(order))):
                continue
            dot = new
            if (factor, order) not in turned:
                shape = tuple([factor.type.shape[axis] for axis in order])
                var = Var(factor.type.with_shape(shape), factor.hint)
                turned[factor, order] = Equation(Transpose(order), (factor,), (var,))
            factors[place] = turned[factor, order].outputs[0]
        equations[at] = Equation(dot, tuple(factors), equation.outputs, equation.span)
    return prepared(body, captured, equations, [[each] for each in turned.values()])


def is_long(dot: DotGeneral, inputs: Types) -> bool:
    """Whether a contraction is a product of matrices with more than a few terms in each sum."""
    left, right = inputs
    count = len(dot.contract[0])
    if dot.batched[0] or left.rank == count or right.rank == count:
        return False
    return prod(numbers(tuple([left.shape[axis] for axis in dot.contract[0]]))) > FEW_TERMS


def small_matrix(dot: DotGeneral, inputs: Types) -> int | None:
    """Which factor is a small matrix, multiplied with a vector, that is faster if summed over rows.

    XLA's products of f64 are not, nor those with fewer rows than a vector register has places.
    """
    ranks = [each.rank for each in inputs]
    if dot.batched[0] or len(dot.contract[0]) != 1 or sorted(ranks) != [1, 2]:
        return None
    matrix = inputs[place := ranks.index(2)]
    single = matrix.dtype.is_float and matrix.dtype.bits == 32
    shape = numbers(matrix.shape)
    small = prod(shape) <= SMALL_MATRIX and shape[1 - dot.contract[place][0]] >= FEWEST_ROWS
    return place if single and small else None


def unfit_first(dot: DotGeneral, inputs: Types) -> bool:
    """Whether XLA multiplies element by element, in a loop that becomes one native function.

    It does if sums of many terms are not over the last axes of the first factor: 64x64 by 64x16
    takes 58 us, 3.6 if the factor is turned before.
    """
    rank, count = inputs[0].rank, len(dot.contract[0])
    return dot.contract[0] != tuple(range(rank - count, rank)) and is_long(dot, inputs)
