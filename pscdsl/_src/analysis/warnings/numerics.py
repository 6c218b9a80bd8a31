"""Numerics: NaNs in gradients, comparisons after rounding, formulas with a stable form."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias, cast

import numpy as np

from pscdsl._src.analysis.warnings.programs import LiveProgram, Wording
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Atom, Equation, Literal
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.custom_derivatives import CustomJvp
from pscdsl._src.primitives.reductions import Cumulative, Reduce
from pscdsl._src.primitives.shaping import Broadcast, Constant, Iota, Reshape, SizeValue, Transpose
from pscdsl._src.primitives.windows import Convolution
from pscdsl.typing.codes.numerics import (
    ComputedFloatsCompared,
    EpsilonIsLost,
    ExpMinusOne,
    LogOfOnePlus,
    LogOfSigmoid,
    LogOfSoftmax,
    LogOfSumOfExponentials,
    MomentsCancel,
    NanInGradient,
    SoftmaxOverflows,
)
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import BF16, F16, F64, DType

# `where` that takes a value from where a function is defined, but a gradient from where it is not.
#
# The gradient of the operand that is not chosen is multiplied by zero, and zero times NaN is NaN. A
# finding needs proof: the condition compares the function's argument, up to a sign, an absolute
# value and constants, and the region where it chooses the function excludes the points at which the
# derivative is no number.


Region: TypeAlias = Callable[[float], bool]
"""A set of numbers."""

_FAR = 8
"""The most equations between `where` and the function."""


@dataclass(frozen=True)
class PartialFunction:
    """A function whose derivative is undefined or infinite in some regions."""

    operand: int
    """The index of the operand in question."""
    regions: tuple[Region, ...]
    """Sets in which the derivative is no number; a condition that excludes any one suffices."""
    edges: tuple[float, ...]
    """The boundary points of the sets."""
    safe: float
    """A number at which the derivative is finite."""
    name: str

    @property
    def is_point(self) -> bool:
        """Return whether the sets are single numbers."""
        return len(self.regions) == 1 and all(map(self.regions[0], self.edges))


def _positive(name: str, safe: float = 1) -> PartialFunction:
    return PartialFunction(0, (lambda u: u < 0, lambda u: u <= 0), (0,), safe, name)


def _inside(name: str) -> PartialFunction:
    return PartialFunction(0, (lambda u: abs(u) > 1, lambda u: abs(u) >= 1), (-1, 1), 0, name)


_PARTIAL: dict[object, PartialFunction] = {
    e.log: PartialFunction(0, (lambda u: u == 0,), (0,), 1, "log"),
    e.log1p: PartialFunction(0, (lambda u: u == -1,), (-1,), 0, "log1p"),
    e.sqrt: _positive("sqrt"),
    e.rsqrt: _positive("rsqrt"),
    e.cbrt: PartialFunction(0, (lambda u: u == 0,), (0,), 1, "cbrt"),
    e.divide: PartialFunction(1, (lambda u: u == 0,), (0,), 1, "the quotient"),
    e.asin: _inside("arcsin"),
    e.acos: _inside("arccos"),
    e.atanh: PartialFunction(0, (lambda u: abs(u) == 1,), (-1, 1), 0, "arctanh"),
    e.acosh: PartialFunction(
        0, (lambda u: abs(u) < 1, lambda u: abs(u) <= 1), (-1, 1), 2, "arccosh"
    ),
}

_LARGEST: dict[DType, float] = {F16: 11.1, F64: 709.8, BF16: 88.8}
"""Beyond this exp is infinite; 88.8 for f32."""


def check_hidden_nan(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Report each `where` whose gradient can be NaN though its value is not."""
    for at in program.made(e.Select):
        if at.outputs[0].type.dtype.is_float:
            for holds, chosen in zip((True, False), at.inputs[1:], strict=True):
                conditions = list(_conditions(program, at.inputs[0], holds, 4))
                finding = _find_hidden(program, wording, at, conditions, chosen, holds)
                if finding is not None and wording.operation(at.span) == "where":
                    yield finding
                    break


@dataclass(frozen=True)
class Condition:
    """A comparison that holds where an operand of `where` is chosen."""

    relation: object
    left: Atom
    right: Atom


def _conditions(program: LiveProgram, atom: Atom, holds: bool, depth: int) -> Iterator[Condition]:
    at = program.definition(program.bare(atom))
    if at is None or not depth:
        return
    if at.primitive is e.invert:
        yield from _conditions(program, at.inputs[0], not holds, depth - 1)
    elif at.primitive is (e.bitwise_and if holds else e.bitwise_or):
        for operand in at.inputs:
            yield from _conditions(program, operand, holds, depth - 1)
    elif at.primitive in _RELATIONS:
        relation = at.primitive if holds else _OPPOSITE[at.primitive]
        yield Condition(relation, at.inputs[0], at.inputs[1])


_RELATIONS: dict[object, Callable[[float, float], bool]] = {
    e.less: lambda a, b: a < b,
    e.less_equal: lambda a, b: a <= b,
    e.greater: lambda a, b: a > b,
    e.greater_equal: lambda a, b: a >= b,
    e.equal: lambda a, b: a == b,
    e.not_equal: lambda a, b: a != b,
}
_OPPOSITE: dict[object, object] = {
    e.less: e.greater_equal,
    e.less_equal: e.greater,
    e.greater: e.less_equal,
    e.greater_equal: e.less,
    e.equal: e.not_equal,
    e.not_equal: e.equal,
}
_SWAPPED: dict[object, object] = {
    e.less: e.greater,
    e.less_equal: e.greater_equal,
    e.greater: e.less,
    e.greater_equal: e.less_equal,
    e.equal: e.equal,
    e.not_equal: e.not_equal,
}


def _find_hidden(
    program: LiveProgram,
    wording: Wording,
    where: Equation,
    conditions: Sequence[Condition],
    chosen: Atom,
    holds: bool,
) -> NanInGradient | None:
    if not conditions:
        return None
    for at in _computing(program, chosen, _FAR):
        partial = _partial(at)
        if partial is None:
            continue
        for operand in _operands(program, at.inputs[partial.operand], partial):
            for condition in conditions:
                region = _region(program, condition, operand)
                if region is None or not _hides(partial, *region):
                    continue
                # A single point near the edge, as in `log(x + 1e-6)` for x > 0, never occurs.
                moved = _affine(program, operand).offset != 0
                if not (partial.is_point and moved and region[1][0] not in partial.edges):
                    return _finding(program, wording, where, at, partial, holds)
    return None


def _operands(program: LiveProgram, operand: Atom, partial: PartialFunction) -> Iterator[Atom]:
    """Yield the operand, and where it matters whether it is 0, the factors of a product."""
    yield operand
    at = program.definition(program.bare(operand))
    if at is not None and at.primitive is e.multiply and partial.is_point and partial.edges == (0,):
        for factor in dict.fromkeys(at.inputs):
            yield from _operands(program, factor, partial)


def _computing(program: LiveProgram, atom: Atom, depth: int) -> Iterator[Equation]:
    """Yield the equations by which an operand is computed, element by element."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, _PASSING):
        return
    yield at
    if depth:
        for operand in at.inputs:
            yield from _computing(program, operand, depth - 1)


_PASSING = e.Elementwise | e.Convert | e.Clamp | Broadcast | Reshape | Transpose


def _partial(at: Equation) -> PartialFunction | None:
    dtype = at.outputs[0].type.dtype
    if not dtype.is_float:
        return None
    if at.primitive is e.exp or at.primitive is e.expm1:
        largest = _LARGEST.get(dtype, 88.8)
        return PartialFunction(0, (lambda u: u > largest,), (largest,), 0, at.primitive.label)
    if at.primitive is e.power:
        exponent = at.inputs[1]
        if not isinstance(exponent, Literal):
            return PartialFunction(0, (lambda u: u < 0,), (0,), 1, "power")
        value = exponent.value
        if isinstance(value, complex) or (float(value).is_integer() and value >= 1):
            return None
        if float(value).is_integer():
            return PartialFunction(0, (lambda u: u == 0,), (0,), 1, "power")
        return (
            _positive("power")
            if value < 1
            else PartialFunction(0, (lambda u: u < 0,), (0,), 1, "power")
        )
    return _PARTIAL.get(at.primitive)


@dataclass(frozen=True)
class AffineForm:
    """`factor * base + offset`."""

    base: Atom
    factor: float
    offset: float


def _affine(program: LiveProgram, atom: Atom, depth: int = 4) -> AffineForm:
    atom = program.bare(atom)
    at = program.definition(atom)
    if at is None or not depth:
        return AffineForm(atom, 1, 0)
    if at.primitive is e.negative:
        inner = _affine(program, at.inputs[0], depth - 1)
        return AffineForm(inner.base, -inner.factor, -inner.offset)
    if at.primitive not in (e.add, e.subtract, e.multiply):
        return AffineForm(atom, 1, 0)
    left, right = at.inputs
    one, other = _number(program, left), _number(program, right)
    if other is not None:
        inner = _affine(program, left, depth - 1)
        if at.primitive is e.multiply:
            if other == 0:
                return AffineForm(atom, 1, 0)
            return AffineForm(inner.base, inner.factor * other, inner.offset * other)
        shift = other if at.primitive is e.add else -other
        return AffineForm(inner.base, inner.factor, inner.offset + shift)
    if one is not None and (at.primitive is not e.multiply or one != 0):
        inner = _affine(program, right, depth - 1)
        if at.primitive is e.multiply:
            return AffineForm(inner.base, inner.factor * one, inner.offset * one)
        sign = 1 if at.primitive is e.add else -1
        return AffineForm(inner.base, sign * inner.factor, sign * inner.offset + one)
    return AffineForm(atom, 1, 0)


def _number(program: LiveProgram, atom: Atom) -> float | None:
    atom = program.bare(atom)
    if isinstance(atom, Literal) and not isinstance(atom.value, complex):
        return float(atom.value) if abs(atom.value) < inf else None
    return None


def _region(
    program: LiveProgram, condition: Condition, operand: Atom
) -> tuple[Region, list[float]] | None:
    """Return the values of the operand for which a condition holds, and the edges of this set."""
    relation, left = condition.relation, condition.left
    bound = _number(program, condition.right)
    if bound is None:
        relation, left = _SWAPPED[relation], condition.right
        bound = _number(program, condition.left)
        if bound is None:
            return _region_of_difference(program, condition, operand)
    level, related = bound, _RELATIONS[relation]
    own = _affine(program, operand)
    compared = _affine(program, left)
    inner = program.definition(compared.base)
    absolute = inner is not None and inner.primitive is e.absolute
    base = compared.base
    if inner is not None and absolute and not program.alike(base, own.base):
        inside = _affine(program, inner.inputs[0])
        if not program.alike(inside.base, own.base):
            return None
    elif program.alike(base, own.base):
        inside, absolute = AffineForm(base, 1, 0), False
    else:
        return None

    def holds(u: float) -> bool:
        value = inside.factor * ((u - own.offset) / own.factor) + inside.offset
        value = abs(value) if absolute else value
        return related(compared.factor * value + compared.offset, level)

    edge = (level - compared.offset) / compared.factor
    edges = [
        own.factor * ((each - inside.offset) / inside.factor) + own.offset
        for each in ((edge, -edge) if absolute else (edge,))
    ]
    return holds, edges


def _region_of_difference(
    program: LiveProgram, condition: Condition, operand: Atom
) -> tuple[Region, list[float]] | None:
    """Like `_region`, for the difference of two values that are compared."""
    relation = _RELATIONS[condition.relation]
    at = program.definition(program.bare(operand))
    if at is None or at.primitive is not e.subtract:
        return None
    left, right = at.inputs
    if program.alike(left, condition.left) and program.alike(right, condition.right):
        return lambda u: relation(u, 0), [0]
    if program.alike(left, condition.right) and program.alike(right, condition.left):
        return lambda u: relation(-u, 0), [0]
    return None


def _hides(partial: PartialFunction, chosen: Region, edges: list[float]) -> bool:
    """Return whether the derivative is no number somewhere, but nowhere that is chosen."""
    marks = sorted({*partial.edges, *edges})
    probes = [marks[0] - 1, *marks, marks[-1] + 1]
    probes += [(a + b) / 2 for a, b in pairwise(marks)]
    for region in partial.regions:
        bad = [u for u in probes if region(u)]
        if bad and not any(map(chosen, bad)):
            return True
    return False


def _finding(
    program: LiveProgram,
    wording: Wording,
    where: Equation,
    at: Equation,
    partial: PartialFunction,
    holds: bool,
) -> NanInGradient:
    tree, inner = wording.expression(where.span), wording.expression(at.span)
    operand = wording.operand(program, at, partial.operand)
    condition = wording.name(program, where.inputs[0])
    rewrite = ""
    if isinstance(tree, ast.Call) and len(tree.args) == 3 and inner is not None:
        condition = ast.unparse(tree.args[0])
        rewrite = _rewrite(tree, inner, partial, holds)
    safe = f"{partial.safe:g}"
    return NanInGradient(
        function=partial.name,
        condition=condition,
        holds=holds,
        operand=operand,
        safe=safe,
        rewrite=rewrite,
        span=where.span,
    )


def _rewrite(where: ast.Call, function: ast.expr, partial: PartialFunction, holds: bool) -> str:
    """Return the whole expression with a safe operand; empty if it lacks the function."""
    wanted = ast.dump(function)
    safe: ast.expr = ast.Constant(int(partial.safe))

    def guarded(operand: ast.expr) -> ast.expr:
        chosen = [operand, safe] if holds else [safe, operand]
        return ast.Call(where.func, [where.args[0], *chosen], [])

    class Guard(ast.NodeTransformer):
        done = False

        def visit(self, node: ast.AST) -> ast.AST:
            if self.done or ast.dump(node) != wanted:
                return super().generic_visit(node)
            if isinstance(node, ast.Call) and node.args:
                node.args[0] = guarded(node.args[0])
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                node.right = guarded(node.right)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                node.left = guarded(node.left)
            else:
                return node
            self.done = True
            return node

    guard = Guard()
    branches = [cast("ast.expr", guard.visit(argument)) for argument in where.args[1:]]
    mended = ast.Call(where.func, [where.args[0], *branches], where.keywords)
    return ast.unparse(mended) if guard.done else ""


# Floats compared for equality after rounding, and bounds that rounding takes away.


_FAR_BACK = 12
"""The number of equations that a value is followed back."""

_EXACT = (
    e.negative,
    e.absolute,
    e.sign,
    e.maximum,
    e.minimum,
    e.floor,
    e.ceil,
    e.round_even,
    e.truncate,
    e.copysign,
    e.real,
    e.imag,
    e.conjugate,
    e.make_complex,
    e.nextafter,
)
"""Functions whose results are not rounded."""


def check_equality(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """`==` and `!=` of floats that were rounded in different ways."""
    for at in program.made(e.equal, e.not_equal):
        left, right = at.inputs
        if not left.type.dtype.is_inexact:
            continue
        origins = [set(_origins(program, each, _FAR_BACK)) for each in (left, right)]
        if not origins[0].isdisjoint(origins[1]):
            continue
        rounded = [any(_is_rounded(program, each) for each in each_side) for each_side in origins]
        literal = next((x for x in map(program.bare, at.inputs) if isinstance(x, Literal)), None)
        if not any(rounded) or (literal is not None and _is_held(literal)):
            continue
        sign = "==" if at.primitive is e.equal else "!="
        if wording.operation(at.span) in ("Eq", "NotEq", "equal", "not_equal"):
            yield ComputedFloatsCompared(
                left=wording.name(program, left),
                right=wording.name(program, right),
                sign=sign,
                span=at.span,
            )


def _origins(program: LiveProgram, atom: Atom, depth: int) -> Iterator[Atom]:
    """Yield the origins of elements before moves, choices and rounding to integers."""
    atom = program.bare(atom)
    at = program.definition(atom)
    if at is None or not depth or _rounds(at.primitive):
        yield atom
        return
    if at.primitive.blocks():
        yield atom
        return
    operands = at.inputs
    if isinstance(at.primitive, e.Select):
        operands = operands[1:]
    operands = tuple(x for x in operands if x.type.dtype is atom.type.dtype) or operands
    if not operands:
        yield atom
    for operand in operands:
        yield from _origins(program, operand, depth - 1)


def _rounds(primitive: object) -> bool:
    if isinstance(primitive, e.Elementwise):
        return primitive not in _EXACT
    if isinstance(primitive, Reduce | Cumulative):
        return primitive.kind not in ("maximum", "minimum")
    if isinstance(primitive, e.Convert):
        return False
    return isinstance(primitive, DotGeneral | Convolution)


def _is_rounded(program: LiveProgram, origin: Atom) -> bool:
    """Return whether it results from float arithmetic; False for unknown operations."""
    at = program.definition(origin)
    if at is None or not _rounds(at.primitive):
        return False
    return not all(_is_integral(program, operand, 4) for operand in at.inputs)


def _is_integral(program: LiveProgram, atom: Atom, depth: int) -> bool:
    """Return whether a float is certainly a whole number, whose sums and products are exact."""
    atom = program.bare(atom)
    if isinstance(atom, Literal):
        return not isinstance(atom.value, complex) and float(atom.value).is_integer()
    at = program.definition(atom)
    if at is None:
        return False
    primitive = at.primitive
    if isinstance(primitive, e.Convert):
        return not at.inputs[0].type.dtype.is_inexact
    if isinstance(primitive, SizeValue | Iota) or primitive in (e.floor, e.ceil, e.round_even):
        return True
    if isinstance(primitive, Constant):
        values = primitive.array()
        return bool(np.all(values == np.rint(values.astype(np.float64))))
    whole = primitive in (e.add, e.subtract, e.multiply, e.negative) or isinstance(
        primitive, Reduce
    )
    return bool(depth and whole) and all(
        _is_integral(program, operand, depth - 1) for operand in at.inputs
    )


def _is_held(literal: Literal) -> bool:
    """Return whether a dtype holds a number exactly."""
    value, dtype = literal.value, literal.type.dtype
    return bool(np.asarray(value).astype(to_numpy(dtype)).astype(np.complex128) == value)


def check_bounds(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Report bounds that are 0 or 1 once they are rounded."""
    for at in program.made(e.maximum, e.minimum, e.Clamp):
        for atom in at.inputs:
            bound = program.bare(atom)
            if isinstance(bound, Literal) and bound.type.dtype.is_float:
                finding = _find_lost(bound.value, bound.type.dtype)
                if finding is not None:
                    yield finding.at(at.span)


def _find_lost(value: object, dtype: DType) -> EpsilonIsLost | None:
    if not isinstance(value, float) or value.is_integer():
        return None
    rounded = float(np.asarray(value).astype(to_numpy(dtype)))
    if rounded not in (0, 1, -1):
        return None
    smallest = {"f64": "1.2e-16", "f32": "6e-8", "f16": "5e-4", "bf16": "4e-3"}
    if not rounded:
        smallest = {"f64": "5e-324", "f32": "1.2e-38", "f16": "6e-8", "bf16": "1.2e-38"}
    return EpsilonIsLost(
        value=f"{value:.17g}",
        rounded=f"{rounded:g}",
        dtype=str(dtype),
        smallest=smallest[dtype.name],
    )


# Formulas with a form that neither overflows nor cancels: logarithms, exponentials, variances.


_GUARDS = (e.absolute, e.minimum, e.maximum)
_DEPTH = 6
"""The number of equations that are searched for a guard against overflow."""

WRITTEN: dict[e.Elementwise, tuple[str, ...]] = {
    e.log: ("log",),
    e.log1p: ("log1p",),
    e.subtract: ("Sub", "subtract"),
    e.add: ("Add", "add"),
    e.divide: ("Div", "divide", "true_divide"),
}
"""The texts of the operations; those inside of library functions are not the user's."""


def check_forms(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Report the formulas that have a better form."""
    for function, names in WRITTEN.items():
        for at in program.made(function):
            if at.outputs[0].type.dtype.is_inexact:
                finding = _unstable(program, wording, at)
                if finding is not None and wording.operation(at.span) in names:
                    yield finding.at(at.span)


def _unstable(program: LiveProgram, wording: Wording, at: Equation) -> Diagnostic | None:
    if at.primitive is e.log:
        return _of_log(program, wording, at)
    if at.primitive is e.log1p:
        power = _power(program, at.inputs[0])
        if power is not None and not _is_guarded(program, power.inputs[0]):
            return LogOfSumOfExponentials(
                rewrite=_logaddexp(wording.operand(program, power, 0), "0")
            )
        return None
    if at.primitive is e.divide:
        return _of_quotient(program, wording, at)
    found = _exp_minus_one(program, wording, at)
    return found or (_variance(program, wording, at) if at.primitive is e.subtract else None)


def _is_one(program: LiveProgram, atom: Atom, value: float = 1) -> bool:
    atom = program.bare(atom)
    return isinstance(atom, Literal) and atom.value == value


def _power(program: LiveProgram, atom: Atom) -> Equation | None:
    """Return the equation of `exp(x)`, if it is one."""
    at = program.made_by(atom)
    return at if at is not None and at.primitive is e.exp else None


def _is_guarded(program: LiveProgram, atom: Atom) -> bool:
    """Return whether the exponential of an atom is guarded against overflow."""
    for at in program.ancestors(atom, _DEPTH):
        primitive = at.primitive
        if primitive in _GUARDS or isinstance(primitive, e.Clamp | e.Select | Cumulative):
            return True
        if isinstance(primitive, Reduce) and primitive.kind in ("maximum", "minimum"):
            return True
        if primitive.blocks():
            return True  # it cannot be told
    return False


def _of_log(program: LiveProgram, wording: Wording, at: Equation) -> Diagnostic | None:
    inner = program.made_by(at.inputs[0])
    if inner is None:
        return None
    if inner.primitive is e.divide:
        upper, lower = inner.inputs
        terms = _sum_operand(program, lower)
        if terms is not None and program.alike(upper, terms) and _power(program, upper):
            return LogOfSoftmax()
        return LogOfSigmoid() if _is_sigmoid(program, inner) else None
    if inner.primitive is e.logistic:
        return LogOfSigmoid()
    if isinstance(inner.primitive, CustomJvp) and inner.primitive.function == "softmax":
        return LogOfSoftmax()
    if isinstance(inner.primitive, Reduce) and inner.primitive.kind == "sum":
        power = _power(program, inner.inputs[0])
        if power is None or _is_guarded(program, power.inputs[0]):
            return None
        x = wording.operand(program, power, 0) or "x"
        return LogOfSumOfExponentials(
            rewrite=f"`top = np.max({x})`, then `top + np.log(np.sum(np.exp({x} - top)))`, both "
            "along the axis of the sum; `psc.special.logsumexp` does it"
        )
    if inner.primitive is e.add or inner.primitive is e.subtract:
        return _of_log_sum(program, wording, inner)
    return None


def _of_log_sum(program: LiveProgram, wording: Wording, inner: Equation) -> Diagnostic | None:
    left, right = inner.inputs
    if inner.primitive is e.add:
        powers = [_power(program, each) for each in (left, right)]
        one = [_is_one(program, each) for each in (left, right)]
        if all(p is not None or is_one for p, is_one in zip(powers, one, strict=True)):
            if any(p is not None and not _is_guarded(program, p.inputs[0]) for p in powers):
                names = ["0" if p is None else wording.operand(program, p, 0) for p in powers]
                return LogOfSumOfExponentials(rewrite=_logaddexp(*names))
    if inner.primitive is e.subtract:
        if not _is_one(program, left):
            return None
        return LogOfOnePlus(operand=wording.operand(program, inner, 1), negated=True)
    for position, (other, one_side) in enumerate(((left, right), (right, left))):
        if _is_one(program, one_side) and not _is_whole(program, other):
            operand = wording.operand(program, inner, position)
            return LogOfOnePlus(operand=operand, negated=False)
    return None


def _is_whole(program: LiveProgram, atom: Atom) -> bool:
    """Return whether it is an integer, to which 1 can be added without loss."""
    at = program.definition(program.bare(atom))
    if at is None:
        return False
    if isinstance(at.primitive, e.Convert):
        return not at.inputs[0].type.dtype.is_inexact
    return isinstance(at.primitive, SizeValue)


def _logaddexp(left: str, right: str) -> str:
    return f"`np.logaddexp({left or 'a'}, {right or 'b'})`"


def _sum_operand(program: LiveProgram, atom: Atom) -> Atom | None:
    """Return the `x` of `sum(x)`."""
    at = program.made_by(atom)
    if at is None or not isinstance(at.primitive, Reduce) or at.primitive.kind != "sum":
        return None
    return at.inputs[0]


def _is_sigmoid(program: LiveProgram, quotient: Equation) -> bool:
    """`1 / (1 + exp(a))`, or `exp(a) / (1 + exp(b))`."""
    upper, lower = quotient.inputs
    below = program.made_by(lower)
    if below is None or below.primitive is not e.add:
        return False
    if not (_is_one(program, upper) or _power(program, upper)):
        return False
    left, right = below.inputs
    return any(
        _is_one(program, one) and _power(program, other) is not None
        for one, other in ((left, right), (right, left))
    )


def _of_quotient(program: LiveProgram, wording: Wording, at: Equation) -> Diagnostic | None:
    upper, lower = at.inputs
    terms = _sum_operand(program, lower)
    if terms is None or not program.alike(upper, terms):
        return None
    power = _power(program, upper)
    if power is None or _is_guarded(program, power.inputs[0]):
        return None
    return SoftmaxOverflows(operand=wording.operand(program, power, 0))


def _exp_minus_one(program: LiveProgram, wording: Wording, at: Equation) -> Diagnostic | None:
    """`exp(x) - 1`, `a * exp(x) - a`, and those with another sign."""
    left, right = at.inputs
    one = -1 if at.primitive is e.add else 1
    for power_side, other, negated in (
        (left, right, False),
        (right, left, at.primitive is not e.add),
    ):
        power = _power(program, power_side)
        if power is not None and _is_one(program, other, one):
            operand = wording.operand(program, power, 0)
            return ExpMinusOne(operand=operand, factor="", negated=negated)
        product = program.definition(program.bare(power_side))
        if at.primitive is e.add or product is None or product.primitive is not e.multiply:
            continue
        for position in (0, 1):
            power = _power(program, product.inputs[1 - position])
            if power is not None and program.alike(product.inputs[position], other):
                return ExpMinusOne(
                    operand=wording.operand(program, power, 0),
                    factor=wording.operand(program, product, position),
                    negated=negated,
                )
    return None


def _variance(program: LiveProgram, wording: Wording, at: Equation) -> Diagnostic | None:
    """`mean(x * x) - mean(x) * mean(x)`."""
    first, second = (_mean(program, at.inputs[0]), program.definition(program.bare(at.inputs[1])))
    if first is None or second is None or second.primitive is not e.multiply:
        return None
    square = program.definition(program.bare(first))
    one, other = second.inputs
    mean = _mean(program, one)
    if square is None or square.primitive is not e.multiply or mean is None:
        return None
    if not program.alike(one, other) or not all(program.alike(x, mean) for x in square.inputs):
        return None
    return MomentsCancel(operand=wording.name(program, mean))


def _mean(program: LiveProgram, atom: Atom) -> Atom | None:
    """Return the `x` of `sum(x) / n`, or of `sum(x) * (1 / n)`."""
    at = program.definition(program.bare(atom))
    if at is None or at.primitive not in (e.divide, e.multiply):
        return None
    upper, count = at.inputs
    counted = program.definition(program.bare(count))
    if counted is not None and not isinstance(counted.primitive, SizeValue):
        return None
    return _sum_operand(program, upper)
