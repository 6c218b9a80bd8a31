"""Notebooks as source: the code cells of a document are one module.

Each cell is parsed on its own, so that a mistake in one is reported there.  What IPython adds to
Python (`%matplotlib inline`, `!ls`, `x?`) has no part in a kernel and is replaced, line by line, by
statements that do nothing.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

from pscdsl._src.frontend.text.display import Cell, NotANotebook, cell_path, code_cells
from pscdsl._src.frontend.text.source import Source, parsed
from pscdsl.typing.codes.projects import InvalidNotebook
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

_MAGIC = re.compile(r"\s*(?:[%!?]|[^#'\"]*\?\??\s*$)")
_ASSIGNED = re.compile(r"(\s*[\w\s,.]+=\s*)[%!]")
_PYTHON_CELLS = ("time", "timeit", "capture", "prun")
"""Cell magics whose cell is Python none the less."""
_UNKNOWN = "get_ipython()"
_MOST_MAGICS = 500


class NotebookSource(Source):
    """The text and tree of a notebook's cells, one below the other."""

    def __init__(self, path: str, cells: tuple[Cell, ...]) -> None:
        self._starts: list[int] = []
        self._numbers = [cell.number for cell in cells]
        rows: list[str] = []
        body: list[ast.stmt] = []
        problems: list[Diagnostic] = []
        for cell in cells:
            self._starts.append(len(rows) + 1)
            lines = cell.text.split("\n")
            try:
                body.extend(_statements(lines, cell_path(path, cell.number), len(rows)))
            except Failure as failure:
                problems.extend(failure.diagnostics)
            rows.extend(lines)
        if problems:
            raise Failure(*problems)
        super().__init__(path, "\n".join(rows), ast.Module(body, []))

    def locate(self, line: int) -> tuple[str, int]:
        """The cell of a line of the text, and the line in it."""
        index = bisect_right(self._starts, line) - 1
        if index < 0:
            return self.path, line
        return cell_path(self.path, self._numbers[index]), line - self._starts[index] + 1


def notebook(path: str, data: bytes) -> NotebookSource:
    """A notebook from its document; a Failure if it is none, or not Python."""
    try:
        cells = code_cells(data)
    except NotANotebook as error:
        span = Span(path, 1, 1, 1, 1)
        raise Failure(InvalidNotebook(reason=str(error), span=span)) from None
    return NotebookSource(path, cells)


def _statements(lines: list[str], path: str, offset: int) -> list[ast.stmt]:
    """The statements of a cell; what IPython adds is taken out of `lines`."""
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    head = lines[first].lstrip() if lines else ""
    if head.startswith("%%"):
        python = head[2:].split(maxsplit=1)[:1] in ([name] for name in _PYTHON_CELLS)
        lines[first : first + 1 if python else None] = [""] * (1 if python else len(lines) - first)
    for _ in range(_MOST_MAGICS):
        try:
            tree = parsed("\n".join(lines), path, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except Failure as failure:
            place = failure.diagnostics[0].span.line - 1
            if not 0 <= place < len(lines) or not _blank(lines, place):
                raise
            continue
        return ast.increment_lineno(tree, offset).body if offset else tree.body
    raise Failure(InvalidNotebook(reason="a cell has too many magics", span=Span(path, 1, 1, 1, 1)))


def _blank(lines: list[str], place: int) -> bool:
    """Replace a line that is IPython's, not Python's; whether it was one."""
    line = lines[place]
    indent = line[: len(line) - len(line.lstrip())]
    assigned = _ASSIGNED.match(line)
    if assigned:
        lines[place] = assigned[1] + _UNKNOWN
    elif _MAGIC.match(line):
        lines[place] = f"{indent}pass"
    else:
        return False
    return True
