"""All warnings about a typed program."""

from __future__ import annotations

from pscdsl._src.analysis.warnings.indices import check_indices
from pscdsl._src.analysis.warnings.numerics import (
    check_bounds,
    check_equality,
    check_forms,
    check_hidden_nan,
)
from pscdsl._src.analysis.warnings.performance import (
    check_columns,
    check_constants,
    check_doubles,
    check_rows,
)
from pscdsl._src.analysis.warnings.programs import Program, SourceText, Wording, as_written
from pscdsl._src.ir.program import Function
from pscdsl.typing.diagnostics import Diagnostic, Span

CHECKS = (
    check_indices,
    check_hidden_nan,
    check_forms,
    check_equality,
    check_bounds,
    check_columns,
    check_constants,
    check_rows,
)


def warnings(function: Function, source: SourceText, *, declared: bool) -> list[Diagnostic]:
    """Warnings about a function, each kind once a place; `declared` if its result type is."""
    program, wording = Program(as_written(function)), Wording(source)
    found: dict[tuple[str, Span], Diagnostic] = {}
    for check in CHECKS if declared else (*CHECKS, check_doubles):
        for each in check(program, wording):
            found.setdefault((each.code, each.span), each)
    return list(found.values())
