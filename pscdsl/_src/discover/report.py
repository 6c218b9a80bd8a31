"""The report of a discovery: definitions to take over and obstacles, as text or JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pscdsl._src.checker.report.machine_readable import finding_object
from pscdsl._src.checker.report.terminal import render_one
from pscdsl._src.frontend.text.display import (
    Sources,
    printable,
    printable_json,
    printable_path,
    shown_path,
)

if TYPE_CHECKING:
    from pscdsl._src.discover.verdicts import Discovery, Verdict


# What every format of a discovery needs: which verdicts to show, and how many there are.


STATUSES = ("psc", "helper", "obstacle", "unknown")
_SHOWN = {
    "all": STATUSES,
    "psc": ("psc", "helper"),
    "obstacles": ("obstacle", "unknown"),
}


def selected(found: Discovery, select: str) -> list[Verdict]:
    """The verdicts to show, by place."""
    shown = [verdict for verdict in found.verdicts if verdict.status in _SHOWN[select]]
    return sorted(shown, key=lambda each: (each.path, each.line, each.column))


def counts(found: Discovery) -> dict[str, int]:
    """How many functions there are of each status."""
    statuses = Counter[str](verdict.status for verdict in found.verdicts)
    return {status: statuses[status] for status in STATUSES}


def first_obstacles(found: Discovery) -> dict[str, int]:
    """How many functions each code stops first, the most frequent in front."""
    codes = Counter(
        verdict.findings[0].code
        for verdict in found.verdicts
        if verdict.status in _SHOWN["obstacles"] and verdict.findings
    )
    return dict(sorted(codes.items(), key=lambda each: (-each[1], each[0])))


# A discovery as one JSON object, for tools.


def render_json(found: Discovery, select: str = "all") -> str:
    """The object `{"functions": […], "diagnostics": […], "summary": {…}}`."""
    document = {
        "functions": [_function(each) for each in selected(found, select)],
        "diagnostics": [finding_object(problem) for problem in found.problems],
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
    findings = [finding_object(finding) for finding in verdict.findings]
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


# A discovery for people: definitions to take over, and what stops the other functions.


_TITLES = {
    "psc": "is PSC",
    "helper": "is PSC as a helper: it takes a function",
    "obstacle": "is not PSC",
    "unknown": "cannot be judged",
}
_COLOURS = {"psc": "32", "helper": "32", "obstacle": "31", "unknown": "33"}


def render_text(found: Discovery, select: str = "all", *, colour: bool = False) -> str:
    """All verdicts with an empty line after each, then how many there are of each kind."""
    sources = Sources()
    blocks = [render_one(problem, sources, colour=colour) for problem in found.problems]
    blocks += ["\n".join(_verdict(v, sources, colour)) for v in selected(found, select)]
    body = "".join(f"{block}\n\n" for block in blocks)
    return body + "".join(f"{line}\n" for line in _summary(found))


def _verdict(verdict: Verdict, sources: Sources, colour: bool) -> Iterator[str]:
    title = _TITLES[verdict.status]
    if colour:
        title = f"\x1b[1;{_COLOURS[verdict.status]}m{title}\x1b[0m"
    place = f"{printable_path(verdict.path)}:{verdict.line}:{verdict.column}"
    yield printable(f"{place}: {verdict.name} ") + title
    if verdict.written is not None:
        yield from (f"    {printable(word)}" for word in verdict.written.definition.split("\n"))
        for each in verdict.also:
            yield printable(f"    # also {each}")
        for refused in verdict.refused:
            yield printable(f"    # not {refused}")
        for finding in verdict.findings:
            yield render_one(finding, sources, colour=colour)
        return
    for finding in verdict.findings[:1]:
        yield render_one(finding, sources, colour=colour)
    more = [each.code for each in verdict.findings[1:]]
    if more:
        yield f"   = note: {len(more)} more: {', '.join(dict.fromkeys(more))}"


def _summary(found: Discovery) -> Iterator[str]:
    total, numbers = len(found.verdicts), counts(found)
    files = f"{found.files} file{'' if found.files == 1 else 's'}"
    parts = [f"{numbers['psc']} PSC"]
    if numbers["helper"]:
        parts.append(f"{numbers['helper']} PSC as helpers")
    parts += [f"{numbers['obstacle']} not PSC", f"{numbers['unknown']} unknown"]
    functions = f"{total} function{'' if total == 1 else 's'}"
    yield f"{functions} in {files}: {', '.join(parts)}"
    obstacles = first_obstacles(found)
    if obstacles:
        yield "first obstacles: " + ", ".join(f"{code} {n}" for code, n in obstacles.items())
    left = [("kernel already", found.kernels), ("inside a class", found.methods)]
    texts = [f"{number} {what}" for what, number in left if number]
    if texts:
        yield f"not looked at: {', '.join(texts)}"
