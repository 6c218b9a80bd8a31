"""Kernels as HTML: the signature, the findings, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.checker.report.terminal import render_concise, render_text
from pscdsl._src.cli.cost import ROWS, KernelCosts, amount, costs_of
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.notebook import markup
from pscdsl.typing.diagnostics import Diagnostic, Severity

_MOST = 5
"""The most findings that are shown on a line each."""


def html(kernel: Kernel[..., Any]) -> str:
    """Return a kernel, which is checked."""
    head, below = kernel.name, ""
    try:
        head = str(kernel.signature)
        findings = kernel.check()
        below = costs(costs_of(kernel, {}))
    except CheckError as error:
        findings = error.diagnostics
    title = f"<div>{markup.muted('kernel')} {markup.code(head)}</div>"
    return markup.box(title, found(findings), below)


def found(findings: Sequence[Diagnostic]) -> str:
    """Return findings on a line each, folded with the lines of the source."""
    if not findings:
        return f"<div>{markup.muted('no findings')}</div>"
    counts = Counter(each.severity for each in findings)
    parts = [f"{counts[each]} {each.value}{'s' * (counts[each] != 1)}" for each in Severity]
    words = ", ".join(part for part in parts if not part.startswith("0 "))
    lines = render_concise(findings[:_MOST]).rstrip()
    more = f"\n… {len(findings) - _MOST} more" if len(findings) > _MOST else ""
    full = markup.details(markup.text(words), markup.pre(render_text(findings).rstrip()))
    return markup.pre(lines + more) + full


def costs(known: KernelCosts) -> str:
    """Return a table of costs for each kind of choice."""
    made: list[str] = []
    for cost, choices in known.costs.items():
        if len(known.costs) > 1 or any(choices):
            where = " or ".join(each or "it is any other" for each in choices)
            made.append(f"<div>{markup.muted('where')} {markup.code(where)}</div>")
        made.append(markup.rows((row, amount(cost, row)) for row in ROWS))
        made += [
            f"<div>{markup.muted(f'one step is counted of the while_loop at {place}')}</div>"
            for place in cost.loops
        ]
    return "".join(made)
