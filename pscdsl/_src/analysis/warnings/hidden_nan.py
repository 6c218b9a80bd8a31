"""`where` that takes a value from where a function is defined, but a gradient from where it is not.

The gradient of the operand that is not chosen is multiplied by zero, and zero times NaN is NaN.
A finding needs proof: the condition compares what the function is applied to, up to a sign, an
absolute value and constants, and where it chooses the function leaves out the points at which the
derivative is no number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias, cast

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.analysis.warnings.wording import Wording
from pscdsl._src.ir.program import Atom, Equation, Literal
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.shaping import Broadcast, Reshape, Transpose
from pscdsl.typing.codes.numerics_gradients import NanInGradient
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import BF16, F16, F64, DType

Region: TypeAlias = Callable[[float], bool]
"""A set of numbers."""

_FAR = 8
"""How many equations lie between `where` and the function at most."""


@dataclass(frozen=True)
class Partial:
    """A function whose derivative is no number everywhere."""

    operand: int
    """Which of the operands it is about."""
    regions: tuple[Region, ...]
    """Sets in which it is no number: any one left out by the condition will do."""
    edges: tuple[float, ...]
    """Where the sets begin and end."""
    safe: float
    """A number at which the derivative is finite."""
    name: str

    @property
    def is_point(self) -> bool:
        """Whether only single numbers are meant."""
        return len(self.regions) == 1 and all(map(self.regions[0], self.edges))


def _positive(name: str, safe: float = 1) -> Partial:
    return Partial(0, (lambda u: u < 0, lambda u: u <= 0), (0,), safe, name)


def _inside(name: str) -> Partial:
    return Partial(0, (lambda u: abs(u) > 1, lambda u: abs(u) >= 1), (-1, 1), 0, name)


_PARTIAL: dict[object, Partial] = {
    e.log: Partial(0, (lambda u: u == 0,), (0,), 1, "log"),
    e.log1p: Partial(0, (lambda u: u == -1,), (-1,), 0, "log1p"),
    e.sqrt: _positive("sqrt"),
    e.rsqrt: _positive("rsqrt"),
    e.cbrt: Partial(0, (lambda u: u == 0,), (0,), 1, "cbrt"),
    e.divide: Partial(1, (lambda u: u == 0,), (0,), 1, "the quotient"),
    e.asin: _inside("arcsin"),
    e.acos: _inside("arccos"),
    e.atanh: Partial(0, (lambda u: abs(u) == 1,), (-1, 1), 0, "arctanh"),
    e.acosh: Partial(0, (lambda u: abs(u) < 1, lambda u: abs(u) <= 1), (-1, 1), 2, "arccosh"),
}

_LARGEST: dict[DType, float] = {F16: 11.1, F64: 709.8, BF16: 88.8}
"""Beyond this exp is infinite; 88.8 for f32."""


def check_hidden_nan(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """Each `where` whose gradient can be NaN though its value is not."""
    for at in program.made(e.Select):
        if at.outputs[0].type.dtype.is_float:
            for holds, chosen in zip((True, False), at.inputs[1:], strict=True):
                conditions = list(_conditions(program, at.inputs[0], holds, 4))
                finding = _hidden(program, wording, at, conditions, chosen, holds)
                if finding is not None and wording.operation(at.span) == "where":
                    yield finding
                    break


@dataclass(frozen=True)
class Condition:
    """A comparison that holds where an operand of `where` is chosen."""

    relation: object
    left: Atom
    right: Atom


def _conditions(program: Program, atom: Atom, holds: bool, depth: int) -> Iterator[Condition]:
    at = program.definition(program.bare(atom))
    if at is None or not depth:
        return
    if at.primitive is e.invert:
        yield from _conditions(program, at.inputs[0], not holds, depth - 1)
    elif at.primitive is (e.bitwise_and if holds else e.bitwise_or):
        for each in at.inputs:
            yield from _conditions(program, each, holds, depth - 1)
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


def _hidden(
    program: Program,
    wording: Wording,
    where: Equation,
    conditions: Sequence[Condition],
    chosen: Atom,
    holds: bool,
) -> NanInGradient | None:
    if not conditions:
        return None
    for at in _computed(program, chosen, _FAR):
        partial = _partial(at)
        if partial is None:
            continue
        for operand in _operands(program, at.inputs[partial.operand], partial):
            for condition in conditions:
                region = _region(program, condition, operand)
                if region is None or not _hides(partial, *region):
                    continue
                # A single point beside the edge, as of `log(x + 1e-6)` for x > 0, is never met.
                moved = _affine(program, operand).offset != 0
                if not (partial.is_point and moved and region[1][0] not in partial.edges):
                    return _finding(program, wording, where, at, partial, holds)
    return None


def _operands(program: Program, operand: Atom, partial: Partial) -> Iterator[Atom]:
    """The operand, and where it matters whether it is 0, the factors of a product."""
    yield operand
    at = program.definition(program.bare(operand))
    if at is not None and at.primitive is e.multiply and partial.is_point and partial.edges == (0,):
        for factor in dict.fromkeys(at.inputs):
            yield from _operands(program, factor, partial)


def _computed(program: Program, atom: Atom, depth: int) -> Iterator[Equation]:
    """The equations by which an operand is computed, element by element."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, _PASSING):
        return
    yield at
    if depth:
        for each in at.inputs:
            yield from _computed(program, each, depth - 1)


_PASSING = e.Elementwise | e.Convert | e.Clamp | Broadcast | Reshape | Transpose


def _partial(at: Equation) -> Partial | None:
    dtype = at.outputs[0].type.dtype
    if not dtype.is_float:
        return None
    if at.primitive is e.exp or at.primitive is e.expm1:
        largest = _LARGEST.get(dtype, 88.8)
        return Partial(0, (lambda u: u > largest,), (largest,), 0, at.primitive.label)
    if at.primitive is e.power:
        exponent = at.inputs[1]
        if not isinstance(exponent, Literal):
            return Partial(0, (lambda u: u < 0,), (0,), 1, "power")
        value = exponent.value
        if isinstance(value, complex) or (float(value).is_integer() and value >= 1):
            return None
        if float(value).is_integer():
            return Partial(0, (lambda u: u == 0,), (0,), 1, "power")
        return _positive("power") if value < 1 else Partial(0, (lambda u: u < 0,), (0,), 1, "power")
    return _PARTIAL.get(at.primitive)


@dataclass(frozen=True)
class Affine:
    """`factor * base + offset`."""

    base: Atom
    factor: float
    offset: float


def _affine(program: Program, atom: Atom, depth: int = 4) -> Affine:
    atom = program.bare(atom)
    at = program.definition(atom)
    if at is None or not depth:
        return Affine(atom, 1, 0)
    if at.primitive is e.negative:
        inner = _affine(program, at.inputs[0], depth - 1)
        return Affine(inner.base, -inner.factor, -inner.offset)
    if at.primitive not in (e.add, e.subtract, e.multiply):
        return Affine(atom, 1, 0)
    left, right = at.inputs
    one, other = _number(program, left), _number(program, right)
    if other is not None:
        inner = _affine(program, left, depth - 1)
        if at.primitive is e.multiply:
            if other == 0:
                return Affine(atom, 1, 0)
            return Affine(inner.base, inner.factor * other, inner.offset * other)
        shift = other if at.primitive is e.add else -other
        return Affine(inner.base, inner.factor, inner.offset + shift)
    if one is not None and (at.primitive is not e.multiply or one != 0):
        inner = _affine(program, right, depth - 1)
        if at.primitive is e.multiply:
            return Affine(inner.base, inner.factor * one, inner.offset * one)
        sign = 1 if at.primitive is e.add else -1
        return Affine(inner.base, sign * inner.factor, sign * inner.offset + one)
    return Affine(atom, 1, 0)


def _number(program: Program, atom: Atom) -> float | None:
    atom = program.bare(atom)
    if isinstance(atom, Literal) and not isinstance(atom.value, complex):
        return float(atom.value) if abs(atom.value) < inf else None
    return None


def _region(
    program: Program, condition: Condition, operand: Atom
) -> tuple[Region, list[float]] | None:
    """Where a condition holds, as a set of values of the operand, and the edges of the set."""
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
        inside, absolute = Affine(base, 1, 0), False
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
    program: Program, condition: Condition, operand: Atom
) -> tuple[Region, list[float]] | None:
    """As `_region`, for the difference of two values that are compared."""
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


def _hides(partial: Partial, chosen: Region, edges: list[float]) -> bool:
    """Whether the function is no number only where it is not chosen, and there it is."""
    marks = sorted({*partial.edges, *edges})
    probes = [marks[0] - 1, *marks, marks[-1] + 1]
    probes += [(a + b) / 2 for a, b in pairwise(marks)]
    for region in partial.regions:
        bad = [u for u in probes if region(u)]
        if bad and not any(map(chosen, bad)):
            return True
    return False


def _finding(
    program: Program,
    wording: Wording,
    where: Equation,
    at: Equation,
    partial: Partial,
    holds: bool,
) -> NanInGradient:
    tree, inner = wording.expression(where.span), wording.expression(at.span)
    operand = wording.operand(program, at, partial.operand)
    condition = wording.name(program, where.inputs[0])
    rewrite = ""
    if isinstance(tree, ast.Call) and len(tree.args) == 3 and inner is not None:
        condition = ast.unparse(tree.args[0])
        rewrite = _rewritten(tree, inner, partial, holds)
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


def _rewritten(where: ast.Call, function: ast.expr, partial: Partial, holds: bool) -> str:
    """The whole expression with a safe operand; empty if the function does not stand in it."""
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
    branches = [cast("ast.expr", guard.visit(each)) for each in where.args[1:]]
    mended = ast.Call(where.func, [where.args[0], *branches], where.keywords)
    return ast.unparse(mended) if guard.done else ""
