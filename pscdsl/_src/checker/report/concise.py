"""One line a finding: `path:line:column: error[PSC301] message`; `[*]` marks what has a fix."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.checker.report.summary import ordered
from pscdsl._src.frontend.text.sources import printable, printable_path
from pscdsl.typing.diagnostics import Diagnostic


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """All findings, each on a line of its own, ordered by place."""
    return "".join(f"{_line(diagnostic)}\n" for diagnostic in ordered(diagnostics))


def _line(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    place = f"{printable_path(span.path)}:{span.line}:{span.column}"
    message = " ".join(diagnostic.message().split())
    mark = " [*]" if diagnostic.fixes else ""
    return printable(f"{place}: {diagnostic.severity.value}[{diagnostic.code}]{mark} {message}")
