"""The common parts of all formats: the order of findings, their numbers, the checked kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pscdsl._src.dialects.jax.unknown import CAUSES, Annotated, Inferred, UnknownCall, by_cause
from pscdsl._src.frontend.text.display import in_order, shown_path
from pscdsl.typing.codes.limits import Vouched
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

    @property
    def examples(self) -> Sequence[str]:
        """The parts that were checked by examples alone, in words."""
        ...

    @property
    def loops(self) -> Sequence[tuple[int, int, str]]:
        """A sentence about each of its loops: line, column, and in words whether it is rolled."""
        ...


@dataclass(frozen=True, slots=True)
class Hidden:
    """The numbers of findings that are not reported, by reason."""

    suppressed: int = 0
    """Silenced by comments."""
    baselined: int = 0
    """Known from the baseline."""
    stale: int = 0
    """Entries of the baseline that are no longer found."""


def ordered(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings by place, those of one place by code."""
    return sorted(
        diagnostics,
        key=lambda d: (
            *in_order(shown_path(d.span.path)),
            *(d.span.line, d.span.column, d.code, d.message()),
        ),
    )


def count(diagnostics: Iterable[Diagnostic]) -> dict[Severity, int]:
    """Return the number of findings of each severity."""
    found = Counter(type(diagnostic).severity for diagnostic in diagnostics)
    return {severity: found[severity] for severity in Severity}


@dataclass(frozen=True, slots=True)
class CodeCount:
    """The number of findings with a code."""

    code: str
    name: str
    count: int
    fixable: int
    """The number of findings with a fix."""


def statistics(diagnostics: Iterable[Diagnostic]) -> list[CodeCount]:
    """Return the number of findings of each code, the most frequent first."""
    by_code: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        by_code.setdefault(diagnostic.code, []).append(diagnostic)
    counts = [
        CodeCount(code, found[0].slug(), len(found), sum(bool(each.fixes) for each in found))
        for code, found in by_code.items()
    ]
    return sorted(counts, key=lambda each: (-each.count, each.code))


def sentence(
    diagnostics: Sequence[Diagnostic],
    kernels: Sequence[CheckedKernel],
    files: int,
    hidden: Hidden | None = None,
    of_jax: int = 0,
    unknown: Sequence[UnknownCall] = (),
    annotated: Sequence[Annotated] = (),
    inferred: Sequence[Inferred] = (),
    captured: Sequence[str] = (),
) -> str:
    """Return the last lines of a check: findings, examples tried, values compared later."""
    counts = count(diagnostics)
    findings = ", ".join(_many(n, s.value) for s, n in counts.items() if n) or "no errors"
    unchecked = sum(kernel.status == "unchecked" for kernel in kernels)
    checked = f"{_many(len(kernels) - unchecked, 'kernel')} checked in {_many(files, 'file')}"
    aside = _aside(hidden or Hidden(), len(vouched(diagnostics)))
    missing = f", {unchecked} not checked" if unchecked else ""
    last = [f"{checked}{missing}: {findings}{aside}", *_tried(kernels)]
    if captured:
        names = ", ".join(f"`{name}`" for name in captured[:_MOST_CAPTURED])
        left = len(captured) - _MOST_CAPTURED
        more = f", {left} more" if left > 0 else ""
        last.append(f"compared when kernels run: {names}{more}")
    if of_jax:
        uses = "uses jax was" if of_jax == 1 else "use jax were"
        looked_at = f"{_many(of_jax, 'function')} that {uses} checked for keys and purity"
        last.append(looked_at)
    for of, words in (("keys", "with keys"), ("effects", "in traced functions")):
        calls = [each for each in unknown if each.of == of]
        causes = ", ".join(f"{number} of {CAUSES[cause]}" for cause, number in by_cause(calls))
        if calls:
            counted = f"{_many(len(calls), 'call')} {words} not followed"
            last.append(f"{counted} (`--show-unknown`): {causes}")
    if annotated:
        last.append(_shapes(annotated))
    if inferred:
        last.append(_typings(inferred))
    return "\n".join(last)


def _shapes(annotated: Sequence[Annotated]) -> str:
    """Return the line about the functions in JAX programs whose annotations give shapes."""
    proven = sum(each.is_proven for each in annotated)
    wrong = sum(each.is_wrong for each in annotated)
    unknown = len(annotated) - proven - wrong
    chosen = sum(each.is_proven and bool(each.tried) for each in annotated)
    outside = sum(each.is_proven and bool(each.outside) for each in annotated)
    asides = [
        f"{chosen} with types that we chose" if chosen else "",
        f"{outside} but for calls of other libraries" if outside else "",
    ]
    aside = f" ({', '.join(filter(None, asides))}: `--show-types`)" if chosen or outside else ""
    parts = [
        f"{proven} right for every size{aside}" if proven else "",
        f"{wrong} wrong" if wrong else "",
        f"{unknown} not followed (`--show-unknown`)" if unknown else "",
    ]
    counted = _many(len(annotated), "function")
    return f"{counted} of jax with shapes: {', '.join(filter(None, parts))}"


def _typings(inferred: Sequence[Inferred]) -> str:
    """Return the line about the functions in JAX programs for which types were looked for."""
    unknown = sum(bool(each.unknown) for each in inferred)
    found = len(inferred) - unknown
    parts = [
        f"{found} right for every size of some typing (`--show-types`)" if found else "",
        f"{unknown} not followed (`--show-unknown`)" if unknown else "",
    ]
    counted = _many(len(inferred), "other function")
    return f"{counted} of jax: {', '.join(filter(None, parts))}"


_MOST_EXAMPLES = 6
"""The most kinds of examples that are named one by one."""
_MOST_CAPTURED = 10
"""The most captured names that are shown."""


def _tried(kernels: Sequence[CheckedKernel]) -> list[str]:
    """Return a line with the examples that kernels were tried with; no line if there are none."""
    tried: dict[str, list[str]] = {}
    for kernel in kernels:
        for example in kernel.examples:
            tried.setdefault(example, []).append(kernel.name)
    parts = [
        f"{text} ({f'`{names[0]}`' if len(names) == 1 else f'{len(names)} kernels'})"
        for text, names in tried.items()
    ]
    if len(parts) > _MOST_EXAMPLES:
        parts[_MOST_EXAMPLES:] = [f"{len(parts) - _MOST_EXAMPLES} more (`--show-types`)"]
    return [f"tried by examples: {'; '.join(parts)}"] if parts else []


def vouched(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Return the functions that kernels call and that their author has declared pure."""
    messages = {
        diagnostic.message() for diagnostic in diagnostics if diagnostic.code == Vouched.code
    }
    return sorted(message.split("`")[1] for message in messages)


def _aside(hidden: Hidden, trusted: int) -> str:
    """Return the rest about the findings, in parentheses."""
    parts: list[str] = []
    if trusted:
        parts.append(f"{_many(trusted, 'function')} vouched for")
    if hidden.suppressed:
        parts.append(f"{hidden.suppressed} suppressed")
    if hidden.baselined:
        parts.append(f"{hidden.baselined} in the baseline")
    if hidden.stale:
        are = "is" if hidden.stale == 1 else "are"
        parts.append(f"{hidden.stale} of the baseline {are} found no more")
    return f" ({', '.join(parts)})" if parts else ""


def fixable(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the number of findings that can be fixed, and the options; empty if none can."""
    kinds = [
        {fix.applicability for fix in diagnostic.fixes}
        for diagnostic in diagnostics
        if diagnostic.fixes
    ]
    safe = sum("safe" in kind for kind in kinds)
    unsafe = len(kinds) - safe
    if not kinds:
        return ""
    if not safe:
        return f"{unsafe} fixable with `--fix --unsafe-fixes`"
    more = f", {unsafe} more with `--fix --unsafe-fixes`" if unsafe else ""
    return f"{safe} fixable with `--fix`{more}"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
