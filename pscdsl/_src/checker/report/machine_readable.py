"""Findings for tools: JSON, SARIF, and workflow commands of GitHub Actions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from pscdsl._src.checker.report.summary import (
    CheckedKernel,
    Hidden,
    count,
    ordered,
    statistics,
    vouched,
)
from pscdsl._src.dialects.jax.unknown import Annotated, Inferred, UnknownCall, by_cause
from pscdsl._src.frontend.text.display import (
    Sources,
    display,
    printable,
    printable_json,
    shown_path,
    split_cell,
)
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Fix, Severity, Span

# Findings as one JSON object, for tools.


def render_json(
    diagnostics: Sequence[Diagnostic],
    kernels: Sequence[CheckedKernel] = (),
    files: int = 0,
    hidden: Hidden | None = None,
    of_jax: int = 0,
    unknown: Sequence[UnknownCall] = (),
    annotated: Sequence[Annotated] = (),
    inferred: Sequence[Inferred] = (),
    captured: Sequence[str] = (),
    *,
    counted: bool = False,
) -> str:
    """Return the object `{"diagnostics": […], "kernels": […], "summary": {…}}`.

    If `counted`, it also has `"statistics": […]`.
    """
    counts = count(diagnostics)
    statuses = [kernel.status for kernel in kernels]
    of_keys = [each for each in unknown if each.of == "keys"]
    document: dict[str, object] = {
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
            "of_jax": of_jax,
            "unseen": len(of_keys),
            "unseen_by_cause": dict(by_cause(of_keys)),
            "unseen_effects": len(unknown) - len(of_keys),
            "of_jax_with_shapes": len(annotated),
            "of_jax_right": sum(each.is_proven for each in annotated),
            "of_jax_right_with_chosen_types": sum(
                each.is_proven and bool(each.tried) for each in annotated
            ),
            "of_jax_right_but_for_libraries": sum(
                each.is_proven and bool(each.outside) for each in annotated
            ),
            "of_jax_not_followed": sum(bool(each.unknown) for each in annotated),
            "captured": list(captured),
        },
    }
    if inferred:
        document["inferred"] = [asdict(each) for each in inferred]
    if counted:
        document["statistics"] = [asdict(each) for each in statistics(diagnostics)]
    return printable_json(json.dumps(document, indent=2)) + "\n"


def finding_object(diagnostic: Diagnostic) -> dict[str, object]:
    """Return one finding as an object."""
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message(),
        "label": diagnostic.label() or None,
        "choice": diagnostic.choice or None,
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
    """Return the file; in a notebook also the number of the cell, in which lines are counted."""
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
        "loops": [
            {"line": line, "column": column, "text": text} for line, column, text in kernel.loops
        ],
    }


# Findings as workflow commands of GitHub Actions, which shows them beside the changed lines.
#
# One line a finding: `::error
# file=a.py,line=8,endLine=8,col=12,endColumn=17,title=PSC301::message`.


_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(diagnostics: Sequence[Diagnostic]) -> str:
    """Return all findings, each a command, ordered by place."""
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
    if label := diagnostic.label():
        text += f"\nhere: {' '.join(label.split())}"
    if diagnostic.choice:
        text += f"\nnote: where {diagnostic.choice}"
    if advice := diagnostic.advice():
        text += f"\nhelp: {advice.strip()}"
    return f"::{_COMMANDS[diagnostic.severity]} {properties}::{escaped(printable(text))}"


def escaped(text: str) -> str:
    """Return a message on one line, as the runner reads it back."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Return the value of a property, in which `:` and `,` would end it."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


# Findings as SARIF 2.1.0, the OASIS standard for results of static analysis.
#
# Columns count UTF-16 code units from 1, which is what readers of SARIF expect; the end column is
# the one after the last. Paths are relative to the current folder, `%SRCROOT%`, where they can be.


Object: TypeAlias = dict[str, Any]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "pscdslFinding/v1"
_FAMILIES = {
    "1": "language",
    "2": "purity",
    "3": "shapes",
    "4": "dtypes",
    "5": "control",
    "6": "keys",
    "7": "numerics",
    "8": "performance",
    "9": "limits",
}
_NOT_LOOKED_AT = (NotPython.code, InternalError.code)
_PROBLEM = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}


@dataclass(frozen=True, slots=True)
class SarifResult:
    """A finding, its fingerprint, and the reason if it is not reported."""

    finding: Diagnostic
    fingerprint: str = ""
    suppressed: str = ""
    """The kind of suppression: `inSource` for a comment, `external` for a baseline."""
    state: str = ""
    """With a baseline: `new` or `unchanged`."""


def render_sarif(
    results: Sequence[SarifResult],
    sources: Sources | None = None,
    *,
    version: str = "",
    exit_code: int = 0,
    kernels: Sequence[CheckedKernel] = (),
) -> str:
    """Return the log, with one run."""
    log = document(results, sources, version=version, exit_code=exit_code, kernels=kernels)
    return printable_json(json.dumps(log)) + "\n"


def document(
    results: Sequence[SarifResult],
    sources: Sources | None = None,
    *,
    version: str = "",
    exit_code: int = 0,
    kernels: Sequence[CheckedKernel] = (),
) -> Object:
    """Return the log as an object."""
    by_code = {result.finding.code: type(result.finding) for result in results}
    codes = sorted(by_code)
    places = _Places(sources or Sources())
    driver: Object = {"name": "pscdsl", "rules": [rule(by_code[code]) for code in codes]}
    if version:
        driver["version"] = version
    failed = any(result.finding.code == InternalError.code for result in results)
    invocation: Object = {
        "executionSuccessful": not failed,
        "exitCode": exit_code,
        "workingDirectory": {"uri": _folder()},
        "toolExecutionNotifications": [
            places.notification(result.finding)
            for result in results
            if result.finding.code in _NOT_LOOKED_AT
        ],
        "properties": {
            "kernelsTriedByExamples": {
                f"{shown_path(kernel.path)}:{kernel.name}": [*kernel.examples]
                for kernel in kernels
                if kernel.examples
            }
        },
    }
    run: Object = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": _folder()}},
        "invocations": [invocation],
        "results": [places.result(result, codes.index(result.finding.code)) for result in results],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def rule(kind: type[Diagnostic]) -> Object:
    """Return the rule of a class of diagnostics."""
    title, explanation = kind.title(), kind.explanation()
    _, _, rest = explanation.partition("\n")
    meaning = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return {
        "id": kind.code,
        "name": kind.__name__,
        "shortDescription": {"text": title},
        "fullDescription": {"text": meaning or title},
        "help": {"text": explanation, "markdown": f"# {kind.code}: {explanation}"},
        "defaultConfiguration": {"level": kind.severity.value},
        "properties": {
            "tags": [_FAMILIES.get(kind.code[3], "limits")],
            "problem.severity": _PROBLEM[kind.severity],
        },
    }


class _Places:
    """Places in files as SARIF writes them."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def result(self, result: SarifResult, rule: int) -> Object:
        """Return a finding with all of its places."""
        finding = result.finding
        found: Object = {
            "ruleId": finding.code,
            "ruleIndex": rule,
            "level": finding.severity.value,
            "message": {"text": _within_cell(finding.span) + _message(finding)},
            "locations": self._primary(finding),
        }
        related = list(self._related(finding))
        if related:
            found["relatedLocations"] = related
        if result.fingerprint:
            found["partialFingerprints"] = {_FINGERPRINT: result.fingerprint}
        if result.suppressed:
            found["suppressions"] = [{"kind": result.suppressed}]
        if result.state:
            found["baselineState"] = result.state
        if finding.choice:
            found["properties"] = {"choice": finding.choice}
        return found

    def notification(self, finding: Diagnostic) -> Object:
        """Return a notification of what prevented the check of a file or a kernel."""
        return {
            "descriptor": {"id": finding.code},
            "level": "error",
            "message": {"text": " ".join(finding.message().split())},
            "locations": self._primary(finding),
        }

    def _primary(self, finding: Diagnostic) -> list[Object]:
        if finding.span is NOWHERE:
            return []
        location = self._location(finding.span)
        if finding.kernel:
            location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
        return [location]

    def _related(self, finding: Diagnostic) -> Iterator[Object]:
        """Yield the other places of a finding, then the calls that led to it."""
        notes = [(label.span, label.text) for label in finding.labels]
        notes += [(call, "in this call") for call in finding.span.frames()[1:]]
        for number, (span, text) in enumerate(notes, 1):
            said = _within_cell(span) + (" ".join(text.split()) or "see here")
            yield {"id": number, **self._location(span), "message": {"text": said}}

    def _location(self, span: Span) -> Object:
        region: Object = {"startLine": max(span.line, 1), "startColumn": self._units(span, False)}
        if span.end_line > span.line:
            region["endLine"] = span.end_line
        if span.end_line > span.line or span.end_column >= span.column:
            region["endColumn"] = self._units(span, True)
        file, cell = split_cell(span.path)
        place: Object = {"artifactLocation": artifact(file)}
        if cell is None:  # lines of a cell are not lines of the file
            place["region"] = region
        return {"physicalLocation": place}

    def _units(self, span: Span, end: bool) -> int:
        """Return a column in UTF-16 code units."""
        line, column = (span.end_line, span.end_column) if end else (span.line, span.column)
        text = self._sources.line(span.path, line) or ""
        wide = sum(ord(character) > 0xFFFF for character in text[: max(column, 1) - 1])
        return max(column, 1) + wide


def artifact(path: str) -> Object:
    """Return the location of a file."""
    shown = shown_path(path)
    if os.path.isabs(shown):
        return {"uri": Path(shown).as_uri()}
    uri = quote(shown.replace(os.sep, "/").encode("utf-8", "surrogateescape"), safe="/")
    return {"uri": uri, "uriBaseId": _ROOT}


def _folder() -> str:
    return Path(os.path.realpath(os.curdir)).as_uri().rstrip("/") + "/"


def _within_cell(span: Span) -> str:
    """Return the place in a notebook as text, since SARIF has no cells."""
    cell = split_cell(span.path)[1]
    return "" if cell is None else f"cell {cell}, line {span.line}: "


def _message(finding: Diagnostic) -> str:
    """Return the problem and the advice."""
    lines = [" ".join(finding.message().split())]
    lines += [f"here: {finding.label()}"] if finding.label() else []
    advice = finding.advice()
    lines += [f"help: {advice.strip()}"] if advice else []
    return "\n".join(lines)
