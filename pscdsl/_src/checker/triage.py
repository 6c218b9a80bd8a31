"""Findings within the standard library, told where the user's code calls it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pscdsl._src.checker.baseline import Baseline, Entry, Fingerprints
from pscdsl._src.checker.report.summary import Hidden, ordered
from pscdsl._src.checker.selection import Selection
from pscdsl._src.support.paths import resolved
from pscdsl._src.support.tracebacks import LIBRARY
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.diagnostics import Diagnostic, Severity

_LIBRARY = os.path.join(LIBRARY, "")


def at_call(finding: Diagnostic) -> Diagnostic:
    """A finding at the call that led into the library; its own place becomes a note.

    What stands in other code stays where it is, as does what a check of the library itself finds.
    """
    inner, *calls = finding.span.frames()
    if calls and _in_library(inner.path):
        for call in calls:
            if not _in_library(call.path):
                return finding.relocated(call)
    return finding


@lru_cache(maxsize=1024)
def _in_library(path: str) -> bool:
    return resolved(path).startswith(_LIBRARY)


# What is reported of a check: the selected findings that no baseline knows.


@dataclass(frozen=True, slots=True)
class Triage:
    """The findings of a check, sorted by what becomes of them."""

    reported: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...] = ()
    """Silenced by comments."""
    baselined: tuple[Diagnostic, ...] = ()
    """Known from the baseline."""
    stale: tuple[Entry, ...] = ()
    """What the baseline knows, and what is found no more."""

    def fails(self, *, strict: bool) -> bool:
        """Whether the check fails: by an error; in strict mode by a warning or a missing proof."""
        failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return any(
            type(finding).severity in failing or (strict and isinstance(finding, KernelNotChecked))
            for finding in self.reported
        )

    def hidden(self) -> Hidden:
        """How many findings are not reported."""
        stale = sum(entry.count for entry in self.stale)
        return Hidden(len(self.suppressed), len(self.baselined), stale)


def triage(
    found: Iterable[Diagnostic],
    suppressed: Iterable[Diagnostic],
    selection: Selection,
    baseline: Baseline,
    checked: Collection[str],
    fingerprints: Fingerprints,
) -> Triage:
    """Sort what was found in the files that were checked (real paths)."""
    found, suppressed = map(at_call, found), map(at_call, suppressed)
    selected = [each for d in found if (each := selection.narrowed(d)) is not None]
    silenced = tuple(d for d in suppressed if selection.includes(d.code, d.span.path))
    if not baseline.entries:
        return Triage(tuple(selected), silenced)
    new, known, over = baseline.divide(ordered(selected), fingerprints)
    stale = [
        entry
        for entry in over
        if baseline.concerns(entry, checked)
        and selection.includes(entry.code, f"{baseline.root}/{entry.path}")
    ]
    return Triage(tuple(new), silenced, tuple(known), tuple(stale))
