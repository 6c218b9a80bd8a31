"""Floats compared for equality after rounding, and bounds that rounding takes away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.analysis.warnings.wording import Wording
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Atom, Literal
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.creation import Constant, Iota, SizeValue
from pscdsl._src.primitives.reductions import Cumulative, Reduce
from pscdsl.typing.codes.numerics_cancellation import ComputedFloatsCompared, EpsilonIsLost
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import DType

_FAR = 12
"""How many equations back a value is followed."""

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


def check_equality(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """`==` and `!=` of floats that were rounded in different ways."""
    for at in program.made(e.equal, e.not_equal):
        left, right = at.inputs
        if not left.type.dtype.is_inexact:
            continue
        origins = [set(_origins(program, each, _FAR)) for each in (left, right)]
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


def _origins(program: Program, atom: Atom, depth: int) -> Iterator[Atom]:
    """What the elements were before they were only moved, chosen or rounded to integers."""
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
    for each in operands:
        yield from _origins(program, each, depth - 1)


def _rounds(primitive: object) -> bool:
    if isinstance(primitive, e.Elementwise):
        return primitive not in _EXACT
    if isinstance(primitive, Reduce | Cumulative):
        return primitive.kind not in ("maximum", "minimum")
    if isinstance(primitive, e.Convert):
        return False
    return isinstance(primitive, DotGeneral | Convolution)


def _is_rounded(program: Program, origin: Atom) -> bool:
    """Whether it is the result of arithmetic on floats; with unknown operations, not."""
    at = program.definition(origin)
    if at is None or not _rounds(at.primitive):
        return False
    return not all(_is_integral(program, each, 4) for each in at.inputs)


def _is_integral(program: Program, atom: Atom, depth: int) -> bool:
    """Whether a float is known to be a whole number, whose sums and products are exact."""
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
        _is_integral(program, each, depth - 1) for each in at.inputs
    )


def _is_held(literal: Literal) -> bool:
    """Whether a dtype holds a number exactly."""
    value, dtype = literal.value, literal.type.dtype
    return bool(np.asarray(value).astype(to_numpy(dtype)).astype(np.complex128) == value)


def check_bounds(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """Bounds that are 0 or 1 once they are rounded."""
    for at in program.made(e.maximum, e.minimum, e.Clamp):
        for atom in at.inputs:
            bound = program.bare(atom)
            if isinstance(bound, Literal) and bound.type.dtype.is_float:
                finding = _lost(bound.value, bound.type.dtype)
                if finding is not None:
                    yield finding.at(at.span)


def _lost(value: object, dtype: DType) -> EpsilonIsLost | None:
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
