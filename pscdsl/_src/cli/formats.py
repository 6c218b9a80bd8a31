"""The outcome of a check in each format; a format is loaded only when it is the one asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pscdsl._src.checker.baseline import Fingerprints
from pscdsl._src.checker.report.summary import fixable, ordered, sentence
from pscdsl._src.checker.triage import Triage
from pscdsl._src.frontend.text.sources import Sources, printable, printable_path
from pscdsl.typing.diagnostics import Diagnostic

if TYPE_CHECKING:
    from pscdsl._src.checker.check import CheckResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check, what became of its findings, and the exit code."""

    result: CheckResult
    triage: Triage
    fingerprints: Fingerprints
    sources: Sources
    has_baseline: bool
    exit_code: int
    fixed: str = ""
    """How many findings were fixed, in words."""


def render(name: str, outcome: Outcome, *, types: bool, colour: bool, hide_suppressed: bool) -> str:
    """The report in the format of this name."""
    result, found = outcome.result, outcome.triage.reported
    hidden = outcome.triage.hidden()
    if name == "sarif":
        return _sarif(outcome, hide_suppressed)
    if name == "json":
        from pscdsl._src.checker.report import machine_readable

        return machine_readable.render_json(found, result.kernels, result.files, hidden)
    rows = _types(result) if types else ""
    if name == "concise":
        from pscdsl._src.checker.report import terminal

        return terminal.render_concise(found) + rows
    last = f"{sentence(found, result.kernels, result.files, hidden)}\n"
    if name == "github":
        from pscdsl._src.checker.report import machine_readable

        return machine_readable.render_github(found) + rows + last
    from pscdsl._src.checker.report import terminal

    notes = "".join(f"{note}\n" for note in (outcome.fixed, fixable(found)) if note)
    return terminal.render_text(found, outcome.sources, colour=colour) + rows + notes + last


def _sarif(outcome: Outcome, hide_suppressed: bool) -> str:
    """All findings in one order, so that those of equal fingerprints keep their numbers."""
    from pscdsl._src.checker.report import machine_readable
    from pscdsl._src.cli import version

    sorted_out = outcome.triage
    suppressed: dict[int, str] = {}
    for kind, group in (("inSource", sorted_out.suppressed), ("external", sorted_out.baselined)):
        suppressed |= {id(finding): kind for finding in group}

    def state(finding: Diagnostic) -> str:
        if not outcome.has_baseline:
            return ""
        return "unchanged" if suppressed.get(id(finding)) == "external" else "new"

    everything = ordered((*sorted_out.reported, *sorted_out.suppressed, *sorted_out.baselined))
    results = [
        machine_readable.Result(finding, print_, suppressed.get(id(finding), ""), state(finding))
        for finding, print_ in outcome.fingerprints.numbered(everything)
        if not (hide_suppressed and id(finding) in suppressed)
    ]
    return machine_readable.render_sarif(
        results,
        outcome.sources,
        version=version(),
        exit_code=outcome.exit_code,
        kernels=outcome.result.kernels,
    )


def _types(result: CheckResult) -> str:
    rows: list[str] = []
    for kernel in result.kernels:
        place = f"{printable_path(kernel.path)}:{kernel.line}:{kernel.column}"
        status = "" if kernel.status == "ok" else f"  [{kernel.status}]"
        rows.append(printable(f"{place}: {kernel.name}{kernel.signature}{status}") + "\n")
    return "".join(rows)
