"""Matrices that a loop multiplies with: turned, or added to their transposes, before it.

XLA's fast products on the CPU sum over the last axis of the first factor and the first axis of the
second; others take up to twice as long, or are not fast at all (see `unfit_first`).  A matrix that
is the same in every step is turned once before the loop.  Where both a matrix and its transpose
multiply one vector, `(A + A.T) @ v` is one product in place of two.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Final

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives.contractions import Axes, DotGeneral
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.elementwise import add, multiply
from pscdsl._src.primitives.shaping import Transpose
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.primitives import Barrier
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import F64

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Prepared:
    """The body of a loop that captures more, and what makes it of what was captured."""

    body: Block
    captured: Sequence[Var]
    """The parameters for what was captured; they are the first, and keep their places."""
    before: Sequence[Equation]
    """Their inputs are among the captured parameters, or are made before."""
    added: Sequence[Var]
    """What is captured as well, after them."""

    def around(self, loop: Primitive, inputs: Types, outputs: Types, first: int) -> Block:
        """The program that prepares the arrays and runs the loop with this body.

        It takes what the loop took; `first` is the place of what the body captured.
        """
        params = [Var(type_) for type_ in inputs]
        held = params[first : first + len(self.captured)]
        names: dict[Atom, Atom] = dict(zip(self.captured, held, strict=True))
        equations = [
            Equation(
                equation.primitive,
                tuple([names.get(atom, atom) for atom in equation.inputs]),
                equation.outputs,
                equation.span,
            )
            for equation in self.before
        ]
        last = first + len(self.captured)
        results = tuple([Var(type_) for type_ in outputs])
        operands = (*params[:last], *self.added, *params[last:])
        return Block(tuple(params), (*equations, Equation(loop, operands, results)), results)


def prepared(
    body: Block, captured: int, equations: Iterable[Equation], before: Iterable[Sequence[Equation]]
) -> Prepared | None:
    """A body with other equations, which take the last output of each row of those before.

    None if there are none before.
    """
    rows = tuple(before)
    if not rows:
        return None
    added = [row[-1].outputs[0] for row in rows]
    inside = [Var(var.type, var.hint) for var in added]
    names: dict[Atom, Atom] = dict(zip(added, inside, strict=True))
    params = (*body.params[:captured], *inside, *body.params[captured:])
    changed = [
        Equation(
            equation.primitive,
            tuple([names.get(atom, atom) for atom in equation.inputs]),
            equation.outputs,
            equation.span,
        )
        for equation in equations
    ]
    new = Block(params, tuple(changed), body.results)
    return Prepared(new, body.params[:captured], [var for row in rows for var in row], added)


TURNED_FACTORS = Form(
    "turned_factors",
    "In loops a matrix is turned so that XLA multiplies it fast, before the loop if possible: "
    "0.06 of the time for 64x64 by 64x16 summed over the first axis of both.  So is a small one "
    "that is multiplied with vectors, so that multiples of its rows are added up: recurrent "
    "networks of 16 to 128 states take 0.7 to 0.9 of the time.  Outside of loops the first factor "
    "of large products of f64 is: 500x500 of 600 terms in 0.55 of the time.",
)
SMALL_MATRIX = 1 << 14
"""So many elements at most."""
FEWEST_ROWS = 16
"""Of a matrix of 8x8, turning it costs 1.1 of the time; of 24x8 it gains 0.7."""
FEW_TERMS = 32
"""Sums of so many terms XLA unrolls where it would else loop over them slowly."""
FEWEST_COLUMNS = 32
"""Of each factor, for f64 outside of loops; ..."""
LEAST_OF_F64 = 1 << 12
"""... so many elements has the first one at least, ..."""
TALLEST = 16
"""... and at most so many times as many rows as the wider one has columns: turning takes long."""
MANY_STEPS = 100
"""So many steps make up for the time in which a matrix is turned for vectors."""


@TURNED_FACTORS.rewrite
def turned_before_scan(
    primitive: Scan, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A scan whose body multiplies with matrices that are turned before it."""
    steps = 0 if primitive.counted else primitive.length
    many = isinstance(steps, int) and steps >= MANY_STEPS
    turned = with_turned_factors(primitive.body, primitive.captured, many_steps=many)
    if turned is None:
        return None
    captured = primitive.captured + len(turned.added)
    return turned.around(
        replace(primitive, body=turned.body, captured=captured), inputs, outputs, 0
    )


@TURNED_FACTORS.rewrite
def turned_before_while(
    primitive: While, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A loop with a condition whose body multiplies with matrices that are turned before it."""
    turned = with_turned_factors(primitive.body, primitive.body_captured, many_steps=False)
    if turned is None:
        return None
    captured = primitive.body_captured + len(turned.added)
    loop = replace(primitive, body=turned.body, body_captured=captured)
    return turned.around(loop, inputs, outputs, primitive.cond_captured)


@TURNED_FACTORS.rewrite
def first_factor_turned(
    primitive: DotGeneral, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A product whose first factor is turned: in every step of a loop, or a large one in f64."""
    pays = here.in_loop or is_large_in_f64(inputs, outputs)
    turned = pays and unfit_first(primitive, inputs)
    return defined(first_turned, primitive, inputs) if turned else None


def is_large_in_f64(inputs: Types, outputs: Types) -> bool:
    """Whether products of f64 are large enough to turn a factor outside of loops.

    XLA's kernels for f64 read the first factor by rows: 600x500 by 600x500, summed over the rows
    of both, takes 5.8 ms, or 3.3 with the first factor turned.  Those for f32 do not mind.
    """
    if outputs[0].dtype is not F64 or any(array.rank != 2 for array in (*inputs, *outputs)):
        return False
    elements = prod(numbers(inputs[0].shape))
    rows, columns = numbers(outputs[0].shape)
    terms = elements // max(1, rows)
    fits = min(rows, columns) >= FEWEST_COLUMNS and terms <= TALLEST * max(rows, columns)
    return fits and elements >= LEAST_OF_F64


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
    return prepared(body, captured, equations, [[equation] for equation in turned.values()])


def is_long(dot: DotGeneral, inputs: Types) -> bool:
    """Whether a contraction is a product of matrices with more than a few terms in each sum."""
    left, right = inputs
    count = len(dot.contract[0])
    if dot.batched[0] or left.rank == count or right.rank == count:
        return False
    return prod(numbers(tuple([left.shape[axis] for axis in dot.contract[0]]))) > FEW_TERMS


def small_matrix(dot: DotGeneral, inputs: Types) -> int | None:
    """The factor that is a small matrix, if its product with a vector is faster as a sum over rows.

    XLA's products of f64 are not, nor those with fewer rows than a vector register has places.
    """
    ranks = [type_.rank for type_ in inputs]
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


SYMMETRIC_FACTORS = Form(
    "symmetric_factors",
    "In a loop the sum of the products of a vector with a matrix and with its transpose is one "
    "product, with the sum of the two made before it: 0.5 to 0.6 of the time.",
)
MOST_BYTES: Final = 1 << 21
"""Of the matrix: turning one that is not cached takes as long as many products with it."""


@dataclass(frozen=True)
class _Product:
    """A vector times a matrix along one of its axes, times a number."""

    vector: Var
    matrix: Var
    axis: int
    scale: Atom | None

    def completes(self, other: _Product) -> bool:
        """Whether the two are products with a matrix and with its transpose, and nothing else."""
        return (
            self.vector is other.vector
            and self.matrix is other.matrix
            and self.axis != other.axis
            and _same(self.scale, other.scale)
        )


@SYMMETRIC_FACTORS.rewrite
def symmetric_in_scan(
    primitive: Scan, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A scan whose body multiplies with sums of matrices and their transposes."""
    symmetric = with_symmetric_factors(primitive.body, primitive.captured)
    if symmetric is None:
        return None
    captured = primitive.captured + len(symmetric.added)
    return symmetric.around(
        replace(primitive, body=symmetric.body, captured=captured), inputs, outputs, 0
    )


@SYMMETRIC_FACTORS.rewrite
def symmetric_in_while(
    primitive: While, inputs: Types, outputs: Types, here: Context
) -> Block | None:
    """A loop with a condition whose body multiplies with such sums."""
    symmetric = with_symmetric_factors(primitive.body, primitive.body_captured)
    if symmetric is None:
        return None
    captured = primitive.body_captured + len(symmetric.added)
    loop = replace(primitive, body=symmetric.body, body_captured=captured)
    return symmetric.around(loop, inputs, outputs, primitive.cond_captured)


def with_symmetric_factors(body: Block, captured: int) -> Prepared | None:
    """A loop's body whose first parameters it captures, and the sums to be made before."""
    held = set(body.params[:captured])
    made = {output: equation for equation in body.equations for output in equation.outputs}
    sums: dict[Var, list[Equation]] = {}
    equations: list[Equation] = []
    for equation in body.equations:
        product = _sum(equation, made, held)
        if product is None:
            equations.append(equation)
            continue
        if product.matrix not in sums:
            sums[product.matrix] = _with_transpose(product.matrix)
        equations += _replaced(equation, product, sums[product.matrix][-1].outputs[0])
    return prepared(body, captured, equations, sums.values())


def _sum(each: Equation, made: Mapping[Var, Equation], held: Container[Atom]) -> _Product | None:
    """One of the two products that an equation adds up, if they complete each other."""
    if each.primitive is not add or len(each.inputs) != 2:
        return None
    first, second = (_product(atom, made, held) for atom in each.inputs)
    if first is None or second is None or not first.completes(second):
        return None
    type = first.matrix.type  # noqa: A001
    n, m = numbers(type.shape)
    return first if n == m > 1 and n * m * type.dtype.bits // 8 <= MOST_BYTES else None


def _product(atom: Atom, made: Mapping[Var, Equation], held: Container[Atom]) -> _Product | None:
    source, scale = _unscaled(atom, made)
    equation = made.get(source) if isinstance(source, Var) else None
    if equation is None or not isinstance(dot := equation.primitive, DotGeneral):
        return None
    if dot.batched != ((), ()) or dot.result is not None:
        return None
    places = [place for place, x in enumerate(equation.inputs) if x.type.rank == 2]
    if len(places) != 1 or len(dot.contract[0]) != 1:
        return None
    (place,) = places
    matrix = equation.inputs[place]
    if matrix not in held or not isinstance(matrix, Var) or not matrix.type.dtype.is_float:
        return None
    vector, inner = _unscaled(equation.inputs[1 - place], made)
    if not isinstance(vector, Var) or (scale is not None and inner is not None):
        return None
    return _Product(vector, matrix, dot.contract[place][0], inner if scale is None else scale)


def _unscaled(atom: Atom, made: Mapping[Var, Equation]) -> tuple[Atom, Atom | None]:
    """An atom without a factor of rank 0, and that factor."""
    equation = made.get(atom) if isinstance(atom, Var) else None
    if equation is None or equation.primitive is not multiply:
        return atom, None
    x, y = equation.inputs
    if y.type.rank == 0 < x.type.rank:
        return x, y
    return (y, x) if x.type.rank == 0 < y.type.rank else (atom, None)


def _same(x: Atom | None, y: Atom | None) -> bool:
    if isinstance(x, Literal) and isinstance(y, Literal):
        return x.type == y.type and repr(x.value) == repr(y.value)
    return x is y


def _with_transpose(matrix: Var) -> list[Equation]:
    """The sum of a matrix and its transpose."""
    turned, both = Var(matrix.type), Var(matrix.type)
    return [
        Equation(Transpose((1, 0)), (matrix,), (turned,)),
        Equation(add, (matrix, turned), (both,)),
    ]


def _replaced(each: Equation, found: _Product, both: Var) -> list[Equation]:
    """The equation of a sum, by one product."""
    dot = DotGeneral(((0,), (0,)))
    if found.scale is None:
        return [Equation(dot, (found.vector, both), each.outputs, each.span)]
    product = Var(ArrayType(both.type.dtype, (both.type.shape[1],)))
    return [
        Equation(dot, (found.vector, both), (product,), each.span),
        Equation(multiply, (product, found.scale), each.outputs, each.span),
    ]
