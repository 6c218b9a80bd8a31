"""Findings as workflow commands of GitHub Actions, which shows them beside the changed lines.

One line a finding: `::error file=a.py,line=8,endLine=8,col=12,endColumn=17,title=PSC301::message`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl._src.checker.report.summary import ordered
from pscdsl._src.frontend.text.cells import split_cell
from pscdsl._src.frontend.text.sources import display, printable, shown_path
from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.spans import NOWHERE

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """All findings, each a command, ordered by place."""
    return "".join(f"{_command(diagnostic)}\n" for diagnostic in ordered(diagnostics))


def _command(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    facts: dict[str, str | int] = {}
    file, cell = split_cell(shown_path(span.path))
    file = display(file).text
    if cell is not None:  # lines of a cell are not lines of the file
        facts = {"file": file.replace("\\", "/")}
    elif span is not NOWHERE:
        facts = {
            "file": file.replace("\\", "/"),
            "line": span.line,
            "endLine": max(span.line, span.end_line),
        }
        if span.end_line == span.line:  # columns are refused where there are several lines
            facts |= {"col": span.column, "endColumn": max(span.column, span.end_column)}
    facts["title"] = diagnostic.code
    properties = ",".join(f"{name}={escaped_property(str(v))}" for name, v in facts.items())
    text = " ".join(diagnostic.message().split())
    if cell is not None:
        text = f"cell {cell}, line {span.line}: {text}"
    if advice := diagnostic.advice():
        text += f"\nhelp: {advice.strip()}"
    return f"::{_COMMANDS[diagnostic.severity]} {properties}::{escaped(printable(text))}"


def escaped(text: str) -> str:
    """A message on one line, as the runner reads it back."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """The value of a property, in which `:` and `,` would end it."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")
