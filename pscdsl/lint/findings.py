"""All warnings about a typed program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pscdsl.ir import Function
from pscdsl.lint.hidden_nan import check_hidden_nan
from pscdsl.lint.indices import check_indices
from pscdsl.lint.programs import Program
from pscdsl.lint.rounding import check_bounds, check_equality
from pscdsl.lint.stable_forms import check_forms
from pscdsl.lint.wording import Wording
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.spans import Span

CHECKS = (check_indices, check_hidden_nan, check_forms, check_equality, check_bounds)


def warnings(function: Function, lines: Mapping[str, Sequence[str]]) -> list[Diagnostic]:
    """Warnings about a function, each kind once a place; `lines` are those of its files."""
    program, wording = Program(function), Wording(lines)
    found: dict[tuple[str, Span], Diagnostic] = {}
    for check in CHECKS:
        for each in check(program, wording):
            found.setdefault((each.code, each.span), each)
    return list(found.values())
