"""Findings as one JSON object, for tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pscdsl._src.checker.report.summary import CheckedKernel, Hidden, count, ordered, vouched
from pscdsl._src.frontend.text.cells import split_cell
from pscdsl._src.frontend.text.sources import printable_json, shown_path
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.fixes import Fix


def render(
    diagnostics: Sequence[Diagnostic],
    kernels: Sequence[CheckedKernel] = (),
    files: int = 0,
    hidden: Hidden | None = None,
) -> str:
    """The object `{"diagnostics": […], "kernels": […], "summary": {…}}`."""
    counts = count(diagnostics)
    statuses = [kernel.status for kernel in kernels]
    document = {
        "diagnostics": [finding_object(diagnostic) for diagnostic in ordered(diagnostics)],
        "kernels": [_kernel(kernel) for kernel in kernels],
        "summary": {
            "files": files,
            "kernels": len(kernels),
            "ok": statuses.count("ok"),
            "unchecked": statuses.count("unchecked"),
            **{f"{severity.value}s": number for severity, number in counts.items()},
            **asdict(hidden or Hidden()),
            "vouched": vouched(diagnostics),
        },
    }
    return printable_json(json.dumps(document, indent=2)) + "\n"


def finding_object(diagnostic: Diagnostic) -> dict[str, object]:
    """One finding as an object."""
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message(),
        **_place(span.path),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "help": diagnostic.advice(),
        "kernel": diagnostic.kernel or None,
        "fix": _fix(diagnostic.fixes[0]) if diagnostic.fixes else None,
    }


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability,
        "message": fix.message,
        "edits": [
            {
                "path": shown_path(edit.span.path),
                "line": edit.span.line,
                "column": edit.span.column,
                "end_line": edit.span.end_line,
                "end_column": edit.span.end_column,
                "text": edit.text,
            }
            for edit in fix.edits
        ],
    }


def _place(path: str) -> dict[str, object]:
    """The file; in a notebook also the number of the cell, in which the lines are counted."""
    file, cell = split_cell(shown_path(path))
    return {"path": file} if cell is None else {"path": file, "cell": cell}


def _kernel(kernel: CheckedKernel) -> dict[str, object]:
    return {
        "name": kernel.name,
        **_place(kernel.path),
        "line": kernel.line,
        "column": kernel.column,
        "status": kernel.status,
        "signature": kernel.signature,
        "examples": [*kernel.examples],
    }
