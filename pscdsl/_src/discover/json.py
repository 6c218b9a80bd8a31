"""A discovery as one JSON object, for tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pscdsl._src.checker.report.machine_readable import finding_object
from pscdsl._src.discover.summary import counts, first_obstacles, selected
from pscdsl._src.frontend.text.sources import printable_json, shown_path

if TYPE_CHECKING:
    from pscdsl._src.discover.functions import Verdict
    from pscdsl._src.discover.project import Discovery


def render(found: Discovery, select: str = "all") -> str:
    """The object `{"functions": […], "diagnostics": […], "summary": {…}}`."""
    document = {
        "functions": [_function(each) for each in selected(found, select)],
        "diagnostics": [finding_object(each) for each in found.problems],
        "summary": {
            "files": found.files,
            "functions": len(found.verdicts),
            **counts(found),
            "kernels": found.kernels,
            "methods": found.methods,
            "first_obstacles": first_obstacles(found),
        },
    }
    return printable_json(json.dumps(document, indent=2)) + "\n"


def _function(verdict: Verdict) -> dict[str, object]:
    written = verdict.written
    findings = [finding_object(each) for each in verdict.findings]
    return {
        "name": verdict.name,
        "path": shown_path(verdict.path),
        "line": verdict.line,
        "column": verdict.column,
        "status": verdict.status,
        "signature": None if written is None else written.signature,
        "definition": None if written is None else written.definition,
        "preconditions": [] if written is None else list(written.preconditions),
        "imports": [] if written is None else list(written.imports),
        "also": list(verdict.also),
        "refused_values": [
            {
                "parameter": each.parameter,
                "value": repr(each.value),
                "diagnostic": finding_object(each.finding),
            }
            for each in verdict.refused
        ],
        "obstacles": findings if written is None else [],
        "warnings": [] if written is None else findings,
    }
