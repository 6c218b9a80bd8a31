"""A column beside a row: `[n 1]` and `[n]` make `[n n]`, of which all is reduced."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.analysis.warnings.wording import Wording
from pscdsl._src.ir.program import Atom, Equation, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Reshape
from pscdsl.typing.codes.numerics import ColumnMeetsRow
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size

_FAR = 8
"""How many equations back it is asked who made a column."""
_FUNCTIONS = (
    *(e.add, e.subtract, e.multiply, e.divide, e.maximum, e.minimum),
    *(e.equal, e.not_equal, e.less, e.less_equal, e.greater, e.greater_equal),
)
_NEW_AXES = ("Subscript", "expand_dims", "reshape", "atleast_2d", "column_stack")
"""What says that an axis of size 1 is wanted."""


def check_columns(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """Elementwise functions of a column and a row of the same size, whose result is reduced."""
    for at in program.made(*_FUNCTIONS):
        shape = at.outputs[0].type.shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1 or len(at.inputs) != 2:
            continue
        for position in (0, 1):
            column = _column(program, at.inputs[position], len(shape))
            row = _row(program, at.inputs[1 - position], len(shape))
            if column is None or row is None or _is_wanted(program, wording, column, _FAR):
                continue
            if _is_reduced(program, at.outputs[0], {len(shape) - 2, len(shape) - 1}):
                yield ColumnMeetsRow(
                    column=wording.operand(program, at, position),
                    row=wording.operand(program, at, 1 - position),
                    types=(str(column.type), str(row.type)),
                    result=str(at.outputs[0].type),
                    span=at.span,
                )


def _column(program: Program, atom: Atom, rank: int) -> Atom | None:
    """What has a last axis of size 1 that is repeated."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, Broadcast):
        return None
    if rank - 2 not in at.primitive.dims or rank - 1 in at.primitive.dims:
        return None
    inner = program.definition(at.inputs[0])
    if inner is None or not isinstance(inner.primitive, Reshape):
        return None
    found = inner.inputs[0]
    flat = at.inputs[0].type.shape
    return found if found.type.shape == (*flat, 1) else None


def _row(program: Program, atom: Atom, rank: int) -> Atom | None:
    """What has one axis less, and is repeated along the one before its last."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, Broadcast):
        return None
    dims: tuple[int, ...] = at.primitive.dims
    if rank - 1 not in dims or rank - 2 in dims:
        return None
    inner = program.definition(at.inputs[0])
    if inner is not None and isinstance(inner.primitive, Reshape):
        sizes: tuple[Size, ...] = inner.inputs[0].type.shape
        if len(sizes) > len(dims) and sizes[-1] == inner.outputs[0].type.shape[-1]:
            return None  # `[1 n]`: the row is wanted
    return at.inputs[0]


def _is_wanted(program: Program, wording: Wording, atom: Atom, depth: int) -> bool:
    """Whether somebody asked for a column: by an index with `None`, by `reshape`."""
    at = program.definition(atom)
    if at is None or not depth:
        return False
    if isinstance(at.primitive, Reshape) and wording.operation(at.span) in _NEW_AXES:
        return True
    if not isinstance(at.primitive, e.Elementwise | e.Convert | Broadcast | Reshape):
        return False
    return any(_is_wanted(program, wording, each, depth - 1) for each in at.inputs)


def _is_reduced(program: Program, var: Var, axes: set[int]) -> bool:
    """Whether all uses of a value reduce it along some axes, after elementwise functions."""
    users = program.uses.get(var, [])
    return (
        bool(users)
        and not program.is_result(var)
        and all(_reduces(program, each, axes) for each in users)
    )


def _reduces(program: Program, at: Equation, axes: set[int]) -> bool:
    if isinstance(at.primitive, Reduce):
        return axes <= {*at.primitive.axes}
    if isinstance(at.primitive, e.Elementwise | e.Convert | e.Select):
        return _is_reduced(program, at.outputs[0], axes)
    return False
