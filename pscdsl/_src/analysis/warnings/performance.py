"""Large constants, double precision that nobody asked for, products of single rows."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.analysis.warnings.wording import Wording
from pscdsl._src.ir.program import Atom, Equation, Var
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Scan
from pscdsl._src.primitives.creation import Constant
from pscdsl.typing.codes.performance import LargeConstant, ProductOfRows, UnaskedDouble
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import C128, F64

LARGE = 1 << 20
"""The size in bytes from which on a constant is large."""


def check_constants(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """Large arrays that are part of the program."""
    for at in program.made(Constant):
        if isinstance(at.primitive, Constant) and len(at.primitive.data) >= LARGE:
            kind, size = str(at.outputs[0].type), len(at.primitive.data)
            yield LargeConstant(type=kind, size=size, span=at.span)


def check_doubles(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """Results in double precision; for functions that declare no result."""
    body = program.function.body
    if any(_is_double(param) for param in body.params):
        return
    for result in body.results:
        origin = _origin(program, result, set()) if _is_double(result) else None
        if origin is not None and not any(
            word in wording.text(origin.span) for word in ("64", "128", "double")
        ):
            text = wording.name(program, origin.outputs[0])
            yield UnaskedDouble(result=str(result.type), origin=text, span=origin.span)
            return


def _is_double(atom: Atom) -> bool:
    return atom.type.dtype is F64 or atom.type.dtype is C128


def _origin(program: Program, atom: Atom, seen: set[Atom]) -> Equation | None:
    """The equation that makes a double of something else, or of nothing."""
    at = program.definition(atom)
    if at is None or atom in seen:
        return None
    seen.add(atom)
    doubles = [each for each in at.inputs if _is_double(each)]
    variables = [each for each in doubles if isinstance(each, Var)]
    if not doubles and not at.primitive.blocks():
        return at
    return next(
        (found for each in variables if (found := _origin(program, each, seen)) is not None), None
    )


def check_rows(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """`psc.map` over products of one matrix with each row."""
    for at in program.made(Scan):
        primitive = at.primitive
        if not isinstance(primitive, Scan) or primitive.carried:
            continue
        arrays = at.inputs[primitive.captured :]
        rows = dict(zip(primitive.body.params[primitive.captured :], arrays, strict=True))
        matrices = frozenset(primitive.body.params[: primitive.captured])
        for inner in primitive.body.equations:
            product = inner.primitive
            if not isinstance(product, DotGeneral):
                continue
            left, right = inner.inputs
            (left_axes, right_axes) = product.contract
            for row, matrix, axes in ((left, right, right_axes), (right, left, left_axes)):
                if row in rows and matrix in matrices and _is_product(row, matrix):
                    yield ProductOfRows(
                        rows=wording.name(program, rows[row]),
                        matrix=wording.name(program, matrix),
                        axis=axes[0],
                        span=inner.span,
                    )


def _is_product(row: Atom, matrix: Atom) -> bool:
    return row.type.rank == 1 and matrix.type.rank == 2
