"""What every format needs: the order of findings, how many there are, what was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from pscdsl.report.sources import shown_path
from pscdsl.typing.diagnostics import Diagnostic, Severity


class CheckedKernel(Protocol):
    """One kernel of a check, as the front end reports it."""

    @property
    def name(self) -> str:
        """The name of the function."""
        ...

    @property
    def path(self) -> str:
        """The file that defines it."""
        ...

    @property
    def line(self) -> int:
        """The line of its `def`."""
        ...

    @property
    def column(self) -> int:
        """The column of its `def`."""
        ...

    @property
    def status(self) -> str:
        """One of `ok`, `error`, `unchecked`."""
        ...

    @property
    def signature(self) -> str:
        """Its type as text."""
        ...


def ordered(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings by place, those of one place by code."""
    return sorted(
        diagnostics,
        key=lambda d: (shown_path(d.span.path), d.span.line, d.span.column, d.code, d.message()),
    )


def count(diagnostics: Iterable[Diagnostic]) -> dict[Severity, int]:
    """How many findings there are of each severity."""
    found = Counter(type(diagnostic).severity for diagnostic in diagnostics)
    return {severity: found[severity] for severity in Severity}


def sentence(
    diagnostics: Sequence[Diagnostic], kernels: Sequence[CheckedKernel], files: int
) -> str:
    """The last line of a check for people."""
    counts = count(diagnostics)
    findings = ", ".join(_many(n, s.value) for s, n in counts.items() if n) or "no errors"
    unchecked = sum(kernel.status == "unchecked" for kernel in kernels)
    checked = f"{_many(len(kernels) - unchecked, 'kernel')} checked in {_many(files, 'file')}"
    return f"{checked}{f', {unchecked} not checked' if unchecked else ''}: {findings}"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
