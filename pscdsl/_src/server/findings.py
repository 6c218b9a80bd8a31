"""Findings as an editor shows them, and the actions that it offers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types

from pscdsl._src.checker.selection import comments_of
from pscdsl._src.frontend.text.display import split_lines
from pscdsl._src.frontend.text.source import DIRECTIVE
from pscdsl._src.server.documents import Documents
from pscdsl._src.server.explanations import Explanations
from pscdsl._src.server.workspace import Checked
from pscdsl.typing.codes.performance import ValueUnused, WritesNothing
from pscdsl.typing.codes.projects import UnusedSuppression
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Fix, Severity, Span

FIX_ALL = "source.fixAll.pscdsl"
KINDS = (types.CodeActionKind.QuickFix, FIX_ALL)
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_UNNEEDED = (UnusedSuppression, ValueUnused, WritesNothing)
_IGNORED = re.compile(r"#\s*psc\s*:\s*ignore\s*\[[^\]]*(?=\])")


# Findings.


def shown(
    documents: Documents, explanations: Explanations, finding: Diagnostic
) -> types.Diagnostic:
    """Return a finding in the protocol's form."""
    place = Span(finding.span.path, 1, 1, 1, 1) if finding.span is NOWHERE else finding.span
    page = explanations.uri(type(finding))
    unneeded = isinstance(finding, _UNNEEDED)
    return types.Diagnostic(
        range=documents.range(place),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=None if page is None else types.CodeDescription(page),
        source="pscdsl",
        message=_message(finding),
        tags=[types.DiagnosticTag.Unnecessary] if unneeded else None,
        related_information=[*_related(documents, finding)] or None,
    )


def _message(finding: Diagnostic) -> str:
    lines = [" ".join(finding.message().split())]
    lines += [f"here: {label}"] if (label := finding.label()) else []
    lines += [f"note: where {finding.choice}"] if finding.choice else []
    advice = finding.advice()
    lines += [f"help: {advice.strip()}"] if advice else []
    return "\n".join(lines)


def _related(
    documents: Documents, finding: Diagnostic
) -> Iterator[types.DiagnosticRelatedInformation]:
    """Yield the other places of a finding, then the calls that led to it."""
    notes = [(label.span, label.text) for label in finding.labels]
    notes += [(call, "in this call") for call in finding.span.frames()[1:]]
    for span, text in notes:
        if span is not NOWHERE and not span.path.startswith("<"):
            location = types.Location(documents.uri(span.path), documents.range(span))
            said = " ".join(text.split()) or "see here"
            yield types.DiagnosticRelatedInformation(location, said)


# The actions for findings.


def actions(
    documents: Documents, checked: Checked, params: types.CodeActionParams
) -> Iterator[types.CodeAction]:
    """Yield the actions for a range: fixes that a check confirms, suppressions, and all fixes."""
    asked = params.context.only
    uri = params.text_document.uri
    span = documents.span(uri, params.range)
    if span is None:
        return
    if _wants(asked, types.CodeActionKind.QuickFix):
        here = _reported(documents, checked, span)
        yield from _quick(documents, uri, here, params.context.diagnostics)
    automatic = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
    if _wants(asked, FIX_ALL) and (asked or not automatic):
        text = documents.workspace.fixed(checked)
        if text is not None:
            edits = [_whole(documents, span.path, text)]
            yield types.CodeAction(
                "Make all safe fixes of pscdsl",
                kind=FIX_ALL,
                edit=types.WorkspaceEdit(changes={uri: edits}),
            )


def _wants(asked: Sequence[types.CodeActionKind | str] | None, kind: str) -> bool:
    """Return whether a kind of action, or one that includes it, is among those asked for."""
    kinds = [str(getattr(each, "value", each)) for each in asked or ()]
    return not kinds or any(kind == each or kind.startswith(f"{each}.") for each in kinds)


def _reported(documents: Documents, checked: Checked, asked: Span) -> list[Diagnostic]:
    """Return the findings on some lines; if there are fixes, only those confirmed by a check."""
    for confirmed in (False, True):
        found = documents.workspace.reported(checked, confirmed=confirmed)
        here = [each for each in found if _meets(each.span, asked)]
        if not any(each.fixes for each in here):
            break
    return here


def _meets(finding: Span, asked: Span) -> bool:
    """Return whether some line of a finding is among those that are asked for."""
    return (
        finding.path == asked.path
        and finding.line <= asked.end_line
        and asked.line <= finding.end_line
    )


def _quick(
    documents: Documents,
    uri: str,
    findings: Iterable[Diagnostic],
    known: Sequence[types.Diagnostic],
) -> Iterator[types.CodeAction]:
    suppressing: list[types.CodeAction] = []
    for finding in findings:
        range_ = documents.range(finding.span)
        same = [each for each in known if each.code == finding.code and each.range == range_]
        for number, fix in enumerate(finding.fixes):
            yield types.CodeAction(
                _title(fix),
                kind=types.CodeActionKind.QuickFix,
                diagnostics=same,
                is_preferred=(number == 0 and fix.applicability == "safe") or None,
                edit=_edit(documents, fix),
            )
        edit = _suppression(documents, finding)
        if edit is not None and finding.severity is not Severity.NOTE:
            suppressing.append(
                types.CodeAction(
                    f"Ignore {finding.code} here: `# psc: ignore[{finding.code}]`",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=same,
                    edit=types.WorkspaceEdit(changes={uri: [edit]}),
                )
            )
    yield from {each.title: each for each in suppressing}.values()


def _title(fix: Fix) -> str:
    message = fix.message[:1].upper() + fix.message[1:]
    return f"{message} ({fix.caveat})" if fix.caveat else message


def _edit(documents: Documents, fix: Fix) -> types.WorkspaceEdit:
    edits = [types.TextEdit(documents.range(each.span), each.text) for each in fix.edits]
    return types.WorkspaceEdit(changes={documents.uri(fix.path): edits})


def _suppression(documents: Documents, finding: Diagnostic) -> types.TextEdit | None:
    """Return the edit that ignores a finding at the end of its logical line."""
    path, row = finding.span.path, finding.span.line
    text = documents.workspace.text(path)
    lines = split_lines(text)
    _, logical = comments_of(text)
    last = next((end for start, end in logical if start <= row <= end), row)
    if last > len(lines):
        return None
    line = lines[last - 1]
    known = _IGNORED.search(line)
    if known is not None:
        column, new = known.end() + 1, f", {finding.code}"
    elif any(each["verb"] == "ignore" for each in DIRECTIVE.finditer(line)):
        return None  # it ignores all codes, or cannot be read
    else:
        column, new = len(line.rstrip()) + 1, f"  # psc: ignore[{finding.code}]"
    place = Span(path, last, column, last, column)
    return types.TextEdit(documents.range(place), new)


def _whole(documents: Documents, path: str, text: str) -> types.TextEdit:
    """Return the edit that replaces a text by another, as small as its lines allow."""
    old, new = documents.lines(path), split_lines(text)
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    first = min(first, len(old) - 1)
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    end = len(old) - last
    rows = new[first : len(new) - last]
    if end < len(old):
        span = Span(path, first + 1, 1, end + 1, 1)
        return types.TextEdit(documents.range(span), "".join(f"{row}\n" for row in rows))
    span = Span(path, first + 1, 1, end, len(old[-1]) + 1)
    return types.TextEdit(documents.range(span), "\n".join(rows))
