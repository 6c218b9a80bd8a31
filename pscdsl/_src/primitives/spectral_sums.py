"""Sums of a function over eigenvalues or singular values, differentiated as a whole.

By the chain rule such a sum has no second derivative where values are equal, for there each of
them has none.  Yet it is as smooth as the function: it does not depend on the choice of vectors.
So its tangent is that of a function of the matrix, whose derivatives are divided differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import nan, sqrt
from typing import TypeAlias

from pscdsl._src.interpreters.replay import closed, jvp_block, repeated, replay
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.primitive import Evaluation, NDArray, Types, WholeTangent
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.matrices import EPSILON, Composite
from pscdsl._src.primitives.pointwise import Pointwise, spread
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, at_most, same_sizes
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32

NO_FACTS = Assumptions()


# The function to sum: a block of scalars, the value first, then its other parameters.


def sums(block: Block, values: Var) -> Iterator[tuple[Equation, Block, tuple[Atom, ...]]]:
    """Yield the equations that sum a function over values along the last axis.

    Each with the function, and the scalars that this depends on.
    """
    steps: dict[Atom, Equation] = {}
    scalars: dict[Atom, Atom] = {}

    def is_part(atom: Atom) -> bool:
        return atom is values or atom in steps

    def is_scalar(atom: Atom) -> bool:
        return not scalars.get(atom, atom).type.shape and not atom.type.dtype.is_complex

    for equation in block.equations:
        primitive, inputs = equation.primitive, equation.inputs
        if isinstance(primitive, Broadcast) and not primitive.dims and not is_part(inputs[0]):
            scalars[equation.outputs[0]] = inputs[0]
        elif not any(map(is_part, inputs)):
            continue
        elif isinstance(primitive, Pointwise):
            if all(is_part(x) or is_scalar(x) for x in inputs):
                steps[equation.outputs[0]] = equation
        elif _adds_up(equation, values) and all(map(is_part, inputs)):
            if all(x.type.dtype is values.type.dtype for x in inputs):
                yield equation, *_function(equation, values, steps, scalars)


def _adds_up(equation: Equation, values: Var) -> bool:
    """Return whether elements, or products of two, are summed along the last axis, or along all."""
    primitive, last = equation.primitive, values.type.rank - 1
    if isinstance(primitive, Reduce):
        return primitive.kind == "sum" and last in primitive.axes
    return primitive == DotGeneral(((0,), (0,))) and last == 0


def _function(
    equation: Equation,
    values: Var,
    steps: Mapping[Atom, Equation],
    scalars: Mapping[Atom, Atom],
) -> tuple[Block, tuple[Atom, ...]]:
    needed: dict[Equation, None] = {}
    captured: dict[Atom, None] = {}
    due = list(equation.inputs)
    while due:
        atom = due.pop()
        if atom in steps:
            step = steps[atom]
            needed.pop(step, None)
            needed[step] = None  # after all that use it
            due.extend(step.inputs)
        elif atom is not values and not isinstance(scalars.get(atom, atom), Literal):
            captured[scalars.get(atom, atom)] = None

    def build(here: Builder, params: list[Value]) -> list[Value]:
        env = dict(zip((values, *captured), params, strict=True))

        def value(atom: Atom) -> Value:
            atom = scalars.get(atom, atom)
            return Value(here, atom) if isinstance(atom, Literal) else env[atom]

        for step in reversed(needed):
            env[step.outputs[0]] = here.bind(step.primitive, [value(x) for x in step.inputs])[0]
        results = [value(x) for x in equation.inputs]
        return [results[0] if len(results) == 1 else e.multiply(*results)]

    types = [ArrayType(values.type.dtype), *[atom.type for atom in captured]]
    return closed(NO_FACTS, types, build), tuple(captured)


@lru_cache(maxsize=1024)
def slope(function: Block, place: int = 0) -> Block:
    """Return the derivative of a function in one of its parameters."""
    active = tuple([index == place for index in range(len(function.params))])
    both, _ = jvp_block(NO_FACTS, function, active, (True,))

    def build(here: Builder, params: list[Value]) -> list[Value]:
        one = here.literal(1, params[place].dtype)
        return replay(here, both, [*params, one])[1:]

    return closed(NO_FACTS, function.in_types, build)


def applied(function: Block, x: Value, captured: Sequence[Value]) -> Value:
    """Apply the function to each element; its captures are scalars, or one for each matrix."""
    operands = [x, *[_along(each, x) for each in captured]]
    return spread(replay(x.builder, function, operands)[0], x.shape)


def _along(captured: Value, x: Value) -> Value:
    """Return a scalar, or an array with one for each matrix."""
    if not captured.ndim:
        return captured
    return Broadcast(x.shape, tuple(range(captured.ndim)))(captured)


# Functions of matrices.


@dataclass(frozen=True)
class MatrixFunction(Composite, name="matrix_function"):
    """`V @ diag(f(w)) @ V^H` of a Hermitian matrix; operands a, w and V, and f's other parameters.

    A function of the matrix: see Note [Factored operands].
    """

    function: Block = field(repr=False)

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, _, vectors, *_ = operands
        self.require_square(facts, a)
        if a != vectors:
            self.ill_typed(f"the vectors of {a} are {vectors}")
        return (a,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        from pscdsl._src.primitives.spectra import Eigh  # whose derivative this is

        a, _, _, *captured = operands
        return super().evaluate(here, a, *Eigh().evaluate(here, a), *captured)

    def define(self, *operands: Value) -> Sequence[Value]:
        _, values, vectors, *captured = operands
        scaled = m.times_diagonal(vectors, applied(self.function, values, captured))
        return (m.product(scaled, m.adjoint(vectors)),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # With M = V^H a' V it is V (D * M) V^H, D_ij the divided difference of f at w_i and w_j.
        (a, values, vectors, *captured), (tangent, _, _, *moved) = primals, tangents
        total = _by_captured(self, primals[:3], captured, moved)
        if tangent is not None:
            within = m.product(m.adjoint(vectors), m.product(m.hermitian(tangent), vectors))
            factor = m.cast(divided(self.function, values, captured), a.dtype)
            inside = m.product(vectors, factor * within)
            part = m.product(inside, m.adjoint(vectors))
            total = part if total is None else total + part
        return (total,)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return _batch(self, 3, operands, batched, size)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * inputs[0].shape[-1] * 2


@dataclass(frozen=True)
class SingularFunction(Composite, name="singular_function"):
    """`U @ diag(f(s)) @ V^H` of a matrix; operands a, U, s and V^H, and f's other parameters.

    A function of the matrix: see Note [Factored operands].  U and V^H are those of `Svd`.
    """

    function: Block = field(repr=False)

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        a, u, _, vh, *_ = operands
        self.require_matrix(a)
        if not same_sizes(facts, (u.shape[-2], vh.shape[-1]), a.shape[-2:]):
            self.ill_typed(f"the vectors of {a} are {u} and {vh}")
        return (a,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        from pscdsl._src.primitives.spectra import Svd

        a, _, _, _, *captured = operands
        return super().evaluate(here, a, *Svd().evaluate(here, a), *captured)

    def define(self, *operands: Value) -> Sequence[Value]:
        _, u, values, vh, *captured = operands
        return (m.product(m.times_diagonal(u, applied(self.function, values, captured)), vh),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        # The Hermitian part of M = U^H a' V is multiplied by divided differences, the rest by those
        # between s_i and -s_j, as the function is odd; so is the part outside of the spans.
        (a, u, values, vh, *captured), (tangent, _, _, _, *moved) = primals, tangents
        total = _by_captured(self, primals[:4], captured, moved)
        if tangent is None:
            return (total,)
        facts, (rows, columns) = a.builder.facts, a.shape[-2:]
        left, right = m.adjoint(u), m.adjoint(vh)
        beside = m.product(tangent, right)
        within = m.product(left, beside)
        other = m.adjoint(within)
        even, odd = m.halved(within + other), m.halved(within - other)
        near, across = divided_oddly(self.function, values, captured, (rows, columns))
        inside = e.multiply_absorbing(even, m.cast(near, a.dtype)) + e.multiply_absorbing(
            odd, m.cast(across, a.dtype)
        )
        parts = [m.product(m.product(u, inside), vh)]
        scale = m.diagonal(across)
        if not at_most(facts, rows, columns):
            outside = beside - m.product(u, within)
            scaled = e.multiply_absorbing(outside, m.in_rows(scale, outside))
            parts.append(m.product(scaled, vh))
        if not at_most(facts, columns, rows):
            outside = m.product(left, tangent) - m.product(within, vh)
            scaled = e.multiply_absorbing(outside, m.in_columns(scale, outside))
            parts.append(m.product(u, scaled))
        for part in parts:
            total = part if total is None else total + part
        return (total,)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return _batch(self, 4, operands, batched, size)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return size_of(inputs[0].shape) * inputs[2].shape[-1] * 2


def _by_captured(
    primitive: MatrixFunction | SingularFunction,
    factors: Sequence[Value],
    captured: Sequence[Value],
    moved: Sequence[Value | None],
) -> Value | None:
    """Return the tangent that comes from the function's captures."""
    total: Value | None = None
    for place, tangent in enumerate(moved, 1):
        if tangent is not None:
            found = primitive.__class__(slope(primitive.function, place))(*factors, *captured)
            part = found * m.cast(_along(tangent, found), found.dtype)
            total = part if total is None else total + part
    return total


def _batch(
    primitive: MatrixFunction | SingularFunction,
    count: int,
    operands: Sequence[Value],
    batched: Sequence[bool],
    size: Size,
) -> tuple[Sequence[Value], Sequence[bool]]:
    """Return the function over a batch of matrices; a captured scalar may stay a scalar."""
    whole = [
        x if many or (place >= count and not x.ndim) else repeated(x, size)
        for place, (x, many) in enumerate(zip(operands, batched, strict=True))
    ]
    return primitive.bind(*whole), (True,)


# Divided differences of a function, for each row and column of a matrix.


HALF_WIDTH = sqrt(3 / 5)
"""The outer node of the three-point rule of Gauss and Legendre, with weights 5, 8 and 5 over 18."""


def divided(function: Block, values: Value, captured: Sequence[Value]) -> Value:
    """`(f(x) - f(y)) / (x - y)` of each two values, and the derivative of equal ones.

    It is the mean of the derivative between them, by quadrature, where the quotient is no other
    within its rounding errors.
    """
    here, derivative, dtype = values.builder, slope(function), values.dtype
    x, y = _pairs(values)
    fx, fy = _pairs(applied(function, values, captured))
    gap = x - y
    middle, half = m.halved(x + y), gap * (HALF_WIDTH / 2)
    outer = [applied(derivative, end, captured) for end in (middle - half, middle + half)]
    inner = applied(derivative, middle, captured)
    mean = inner * (4 / 9) + e.add(*outer) * (5 / 18)
    same = e.equal(gap, 0)
    safe = Select()(same, here.literal(1, dtype), gap)
    quotient = (fx - fy) / safe
    size = e.absolute(fx) + e.absolute(fy)
    rounding = size * (4 * EPSILON[dtype]) / e.absolute(safe)
    near = e.less_equal(e.absolute(mean - quotient), rounding)
    return Select()(same | near, mean, quotient)


def divided_oddly(
    function: Block, values: Value, captured: Sequence[Value], sizes: tuple[Size, Size]
) -> tuple[Value, Value]:
    """Return the divided differences of an odd function at each x and y, and at each x and -y.

    The latter are `(f(x) + f(y)) / (x + y)`, at 0 the derivative.  Both are NaN at 0 if the
    function jumps there.
    """
    here, dtype, last = values.builder, values.dtype, values.ndim - 1
    x, y = _pairs(values)
    fx, fy = _pairs(applied(function, values, captured))
    total, zero = x + y, values * 0
    smooth, _ = _pairs(e.equal(applied(function, zero, captured), 0))
    derivative, _ = _pairs(applied(slope(function), zero, captured))
    rows, columns = (m.cast(here.size(size, I32), dtype) for size in sizes)
    bound = Reduce("maximum", (last,))(values) * EPSILON[dtype]
    bound = Broadcast(x.shape, tuple(range(last)))(bound * e.maximum(rows, columns))
    none = e.equal(total, 0)
    jumps = e.less_equal(total, bound) & ~smooth
    quotient = (fx + fy) / Select()(none, here.literal(1, dtype), total)
    unknown = here.literal(nan, dtype)
    across = Select()(jumps, unknown, Select()(none, derivative, quotient))
    return Select()(jumps, unknown, divided(function, values, captured)), across


def _pairs(v: Value) -> tuple[Value, Value]:
    """Return a vector along each column of a square matrix, and along each row."""
    rank, shape = v.ndim, (*v.shape, v.shape[-1])
    return Broadcast(shape, tuple(range(rank)))(v), Broadcast(shape, (*range(rank - 1), rank))(v)


# The rule for sums.


def whole_tangents(
    block: Block,
    equation: Equation,
    place: int,
    function_of: FunctionOf,
    read: Callable[[Value], Value] = lambda a: a,
) -> Mapping[Equation, WholeTangent]:
    """Return the tangents of sums over the values that an equation computes from a matrix.

    `read` gives the part of the matrix that the equation reads.
    """
    values = equation.outputs[place]
    return {
        each: WholeTangent(
            (equation.inputs[0], *captured), partial(_tangent, each, function, function_of, read)
        )
        for each, function, captured in sums(block, values)
    }


FunctionOf: TypeAlias = Callable[[Block, Value, Sequence[Value]], tuple[Value, Value]]
"""The values of a matrix, and a function of it."""


def _tangent(
    equation: Equation,
    function: Block,
    function_of: FunctionOf,
    read: Callable[[Value], Value],
    operands: Sequence[Value],
    tangents: Sequence[Value | None],
) -> Value | None:
    (a, *captured), (moved, *others) = operands, tangents
    axes = equation.primitive.axes if isinstance(equation.primitive, Reduce) else (0,)
    values, gradient = function_of(slope(function), a, captured)
    total: Value | None = None
    if moved is not None:
        change = m.real(m.conjugated(gradient) * read(moved))
        total = Reduce("sum", (*axes, a.ndim - 1))(change)
    for index, tangent in enumerate(others, 1):
        if tangent is not None:
            found = applied(slope(function, index), values, captured)
            part = Reduce("sum", axes)(found) * tangent
            total = part if total is None else total + part
    return total
