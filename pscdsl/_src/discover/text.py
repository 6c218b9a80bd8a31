"""A discovery for people: definitions to take over, and what stops the other functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pscdsl._src.checker.report.terminal import render_one
from pscdsl._src.discover.summary import counts, first_obstacles, selected
from pscdsl._src.frontend.text.sources import Sources, printable, printable_path

if TYPE_CHECKING:
    from pscdsl._src.discover.functions import Verdict
    from pscdsl._src.discover.project import Discovery

_TITLES = {
    "psc": "is PSC",
    "helper": "is PSC as a helper: it takes a function",
    "obstacle": "is not PSC",
    "unknown": "cannot be judged",
}
_COLOURS = {"psc": "32", "helper": "32", "obstacle": "31", "unknown": "33"}


def render(found: Discovery, select: str = "all", *, colour: bool = False) -> str:
    """All verdicts with an empty line after each, then how many there are of each kind."""
    sources = Sources()
    blocks = [render_one(each, sources, colour=colour) for each in found.problems]
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
        yield from (f"    {printable(each)}" for each in verdict.written.definition.split("\n"))
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
