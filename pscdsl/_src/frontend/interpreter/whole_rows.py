"""Suggestions where `a[labels]` takes whole rows and `a[np.arange(n), labels]` would fit."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pscdsl._src.frontend.text.source import Source
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.program import Atom, Equation, Var
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl.typing.array_types import Shape

_MOST = 50
"""The number of steps back in the search for the origin of a value."""


def elements_meant(source: Source, values: Iterable[Value], wanted: Shape) -> str:
    """Return the suggestion for a value with whole rows, where one element of each would fit."""
    for value in values:
        for at in _elementwise_from(value):
            if _has_rows(at, wanted) and (text := _written(source, at)):
                return text
    return ""


def _elementwise_from(value: Value) -> Iterable[Equation]:
    """Yield the equations of the elementwise operands of a value, nearest first."""
    made = {output: at for at in value.builder.equations for output in at.outputs}
    waiting: list[Atom] = [value.atom]
    for _ in range(_MOST):
        atom = waiting.pop(0) if waiting else None
        at = made.get(atom) if isinstance(atom, Var) else None
        if at is not None:
            yield at
            if isinstance(at.primitive, Pointwise):
                waiting += at.inputs


def _has_rows(at: Equation, wanted: Shape) -> bool:
    """Return whether as many rows are selected as exist, where one element of each would fit."""
    if not isinstance(at.primitive, Gather) or at.primitive.axes != (0,) or at.primitive.batched:
        return False
    array, indices = (each.type.shape for each in at.inputs)
    rows = array[:1]
    return len(array) > 1 and indices == (*rows, 1) and wanted == (*rows, *array[2:])


def _written(source: Source, at: Equation) -> str:
    """Return the text of the source, and the suggested replacement."""
    span = at.span
    if span.path != source.path or span.line != span.end_line:
        return ""
    try:
        text = source.lines[span.line - 1][span.column - 1 : span.end_column - 1]
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    match node:
        case ast.Subscript(value=array, slice=ast.Name(id=index)):
            meant = f"{ast.unparse(array)}[np.arange(len({index})), {index}]"
            return f"`{text}` takes whole rows; `{meant}` takes one element of each row"
        case _:
            return ""
