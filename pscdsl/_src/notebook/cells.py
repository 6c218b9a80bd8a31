"""The check of a cell that has not run yet, as the last one of the notebook that ran so far.

The cells are checked as `pscdsl check` checks those of a file: nothing is run. A cell that was run
again counts once, where it ran last: statements whose names a later cell binds again are left out.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pscdsl._src.checker.baseline import Baseline, Fingerprints, triage
from pscdsl._src.checker.check import check_file, deep_stack
from pscdsl._src.checker.configuration import find_settings
from pscdsl._src.checker.report.terminal import render_text
from pscdsl._src.checker.results import summary
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.text.display import CodeCell, Sources, cell_path
from pscdsl._src.frontend.text.source import NotebookSource, targets
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity

_FILE = "cells-that-ran.ipynb"
"""The name of the notebook; it is no file."""
_PLACE = re.compile(re.escape(_FILE) + r":cell (\d+)")


@dataclass(frozen=True)
class CellFindings:
    """The findings in a cell."""

    diagnostics: Sequence[Diagnostic]
    texts: Mapping[str, str]
    """The texts of the cells, by their paths in findings."""

    @property
    def has_errors(self) -> bool:
        """Return whether the cell should not run."""
        return any(each.severity is Severity.ERROR for each in self.diagnostics)

    def text(self, *, colour: bool) -> str:
        """Return the findings with marked lines, whose places are in `In[3]`."""
        shown = render_text(self.diagnostics, Sources(self.texts), colour=colour)
        return _PLACE.sub(r"In[\1]", shown).rstrip()


def check_cell(ran: Sequence[CodeCell], cell: CodeCell, bound: Collection[str]) -> CellFindings:
    """Return the findings in a cell that follows those that ran; the names in `bound` exist."""
    cells = [*current(ran, cell, bound), cell]
    path = os.path.join(os.getcwd(), _FILE)
    files = files_below([path]).changed({path: _document(cells)})
    with deep_stack():
        result, _ = check_file(files, path)
    found = summary([result])
    shown = files.place(path)
    texts = {cell_path(shown, each.number): each.text for each in (*ran, cell)}
    selection = find_settings(os.getcwd()).selection()
    prints = Fingerprints(Sources(texts))
    sorted_out = triage(
        found.diagnostics, found.suppressed, selection, Baseline(), found.checked(), prints
    )
    here = cell_path(shown, cell.number)
    own = [
        each
        for each in sorted_out.reported
        if any(frame.path == here for frame in each.span.frames())
    ]
    return CellFindings(own, texts)


def current(ran: Sequence[CodeCell], cell: CodeCell, bound: Collection[str]) -> list[CodeCell]:
    """Return the cells that ran without the statements whose names later ones bind again."""
    later = {name for each in _statements(cell) for name in targets(each)}
    kept: list[CodeCell] = []
    for earlier in reversed(ran):
        lines = earlier.text.split("\n")
        statements = _statements(earlier)
        names = {name for each in statements for name in targets(each)}
        for each in statements:
            own = targets(each)
            is_gone = not any(name in bound for name in own)  # it failed, or was deleted
            if own and (is_gone or (_only_binds(each) and later.issuperset(own))):
                _blank(lines, each, statements)
        if statements:
            kept.append(CodeCell(earlier.number, "\n".join(lines)))
        later |= names
    return kept[::-1]


def _statements(cell: CodeCell) -> list[ast.stmt]:
    """Return the statements of a cell; none if it is not Python."""
    try:
        return NotebookSource(_FILE, (cell,)).tree.body
    except Failure:
        return []


def _only_binds(statement: ast.stmt) -> bool:
    """Return whether a statement binds names and stores nothing into arrays and objects."""
    match statement:
        case ast.Assign(targets=stored):
            inside = [part for target in stored for part in ast.walk(target)]
            return not any(isinstance(part, ast.Attribute | ast.Subscript) for part in inside)
        case ast.AnnAssign(target=ast.Name()):
            return True
        case ast.FunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return True
        case _:
            return False


def _blank(lines: list[str], statement: ast.stmt, others: Sequence[ast.stmt]) -> None:
    """Remove the lines of a statement, unless another one is on them."""
    first, last = _extent(statement)
    for other in others:
        if other is not statement and _extent(other)[0] <= last and first <= _extent(other)[1]:
            return
    lines[first - 1 : last] = [""] * (last - first + 1)


def _extent(statement: ast.stmt) -> tuple[int, int]:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return first, statement.end_lineno or statement.lineno


def _document(cells: Sequence[CodeCell]) -> bytes:
    """Return the notebook, with each cell at its number."""
    texts = {each.number: each.text for each in cells}
    listed = [
        {"cell_type": "code", "source": texts.get(number, "")}
        for number in range(1, max(texts) + 1)
    ]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": listed}).encode()
