"""The results of checks: findings in files and about kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pscdsl._src.checker.selection import Examined, Suppression, silence, together
from pscdsl._src.dialects.jax.unknown import Annotated, Inferred, UnknownCall
from pscdsl._src.frontend.text.display import in_order
from pscdsl._src.support.paths import resolved
from pscdsl.typing.diagnostics import Diagnostic, Span

Status = Literal["ok", "error", "unchecked"]


@dataclass(frozen=True)
class KernelReport:
    """The findings about one kernel."""

    name: str
    path: str
    line: int
    column: int
    status: Status
    signature: str
    examples: tuple[str, ...] = ()
    """The parts that were checked by examples alone, in words."""
    loops: tuple[tuple[int, int, str], ...] = ()
    """A sentence about each loop in its file: line, column, and in words whether it is rolled."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelReport, ...]
    files: int
    suppressed: tuple[Diagnostic, ...] = ()
    """The findings that comments silence."""
    comments: tuple[Suppression, ...] = ()
    """The comments that silence findings; not applied yet to the findings of one module alone."""
    examined: Examined = field(default_factory=Examined)
    """The files and functions that were checked completely."""
    of_jax: int = 0
    """The number of functions that use jax and belong to no kernel."""
    unknown_calls: tuple[UnknownCall, ...] = ()
    """The calls in JAX programs that cannot be followed: given a key, or while one is traced."""
    annotated: tuple[Annotated, ...] = ()
    """The functions in JAX programs whose annotations give shapes."""
    inferred: tuple[Inferred, ...] = ()
    """The functions in JAX programs for which types were looked for."""
    captured: tuple[str, ...] = ()
    """The full names of values that checked kernels capture and something could write."""

    def checked(self) -> frozenset[str]:
        """Return the real paths of the files that were checked, without unreadable ones."""
        return frozenset(resolved(path) for path in self.examined.files)


def summary(results: Sequence[CheckResult]) -> CheckResult:
    """Merge results: comments are applied, and findings that occur twice are reported once."""
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
        tuple(call for result in results for call in result.unknown_calls),
        tuple(each for result in results for each in result.annotated),
        tuple(each for result in results for each in result.inferred),
        captured=tuple(sorted({name for result in results for name in result.captured})),
    )


def _once(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the findings by place, without repetitions from several calls."""
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
