"""The results of checks: what was found in files and of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pscdsl._src.checker.selection import Examined, Suppression, silence, together
from pscdsl._src.frontend.text.display import in_order
from pscdsl._src.support.paths import resolved
from pscdsl.typing.diagnostics import Diagnostic, Span

Status = Literal["ok", "error", "unchecked"]


@dataclass(frozen=True)
class KernelReport:
    """What was found of one kernel."""

    name: str
    path: str
    line: int
    column: int
    status: Status
    signature: str
    examples: tuple[str, ...] = ()
    """For what it was checked by examples alone, in words."""
    loops: tuple[tuple[int, int, str], ...] = ()
    """What became of the loops in its file: line, column, and in words whether it is rolled."""


@dataclass(frozen=True)
class CheckResult:
    """What a check found."""

    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelReport, ...]
    files: int
    suppressed: tuple[Diagnostic, ...] = ()
    """What comments silence."""
    comments: tuple[Suppression, ...] = ()
    """The comments that silence findings; not applied yet to the findings of one module alone."""
    examined: Examined = field(default_factory=Examined)
    """What was looked at to its end."""
    of_jax: int = 0
    """How many functions that use jax belong to no kernel."""
    captured: tuple[str, ...] = ()
    """What the kernels that were checked now capture and something could write, by full names."""

    def checked(self) -> frozenset[str]:
        """The real paths of the files that were checked; not of those that cannot be read."""
        return frozenset(resolved(path) for path in self.examined.files)


def summary(results: Sequence[CheckResult]) -> CheckResult:
    """One result of several: comments are applied, and what is found twice is reported once."""
    comments = tuple(
        {comment.span: comment for result in results for comment in result.comments}.values()
    )
    examined = together(result.examined for result in results)
    silenced = silence((d for r in results for d in r.diagnostics), comments, examined)
    return CheckResult(
        _once(silenced.kept),
        tuple(kernel for result in results for kernel in result.kernels),
        sum(result.files for result in results),
        _once(silenced.suppressed),
        comments,
        examined,
        sum(result.of_jax for result in results),
        tuple(sorted({name for result in results for name in result.captured})),
    )


def _once(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings by place; those that several calls lead to, once."""
    unique: dict[tuple[str, Span, str], Diagnostic] = {}
    for diagnostic in diagnostics:
        unique.setdefault(
            (diagnostic.code, replace(diagnostic.span, call_site=None), diagnostic.message()),
            diagnostic,
        )
    return tuple(
        sorted(
            unique.values(),
            key=lambda d: (in_order(d.span.path), d.span.line, d.span.column, d.code),
        )
    )
