"""Making fixes: as many as fit together, checked again, until none is left that helps.

Nothing is written here: texts go in, texts come out. A fix is made only if the check of the changed
text confirms it:

* the text still parses, the finding is gone, and no error is in the replacement, unless that error
  can be fixed in turn;
* with an unsafe fix, no other error has appeared anywhere, unless it was hidden and can be fixed in
  turn: callers of a function that now has a precondition lack it, another name is unknown.

A value that was unknown, because its name was, hid all findings that it now has. A safe fix keeps
the meaning, so an error elsewhere that appears with it existed before, hidden behind the finding
that was fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pscdsl._src.checker.check import check_file, deep_stack
from pscdsl._src.checker.results import CheckResult, summary
from pscdsl._src.frontend.fixes.place import Encoded, Replacement, Text, moved, replaced, written
from pscdsl._src.frontend.modules.files import Files, module_name
from pscdsl._src.frontend.text.display import shown_path, split_lines
from pscdsl._src.frontend.text.source import STANDARD_INPUT
from pscdsl._src.support.paths import resolved
from pscdsl.typing.codes.element_types import DtypesDiffer
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute
from pscdsl.typing.codes.limits import (
    KernelNotChecked,
    NotSupported,
    UnknownFunction,
    UnknownValue,
)
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_of_arguments import InnerSizesDiffer
from pscdsl.typing.diagnostics import Diagnostic, Failure, Fix, Severity

MAX_ATTEMPTS = 200
"""The most checks of files before the rest is left for another run."""
MOST_TO_CONFIRM = 20
"""The most checks of a file to find out which of its fixes help."""


@dataclass(frozen=True)
class CandidateFix:
    """A fix of a finding, ready to be made."""

    finding: Diagnostic
    fix: Fix
    path: str
    """The resolved path of the file."""
    replacements: tuple[Replacement, ...]

    def key(self, text: Text) -> tuple[str, ...]:
        """Return a key that recognises a refused fix, wherever it has moved to."""
        line, _ = text.place(self.replacements[-1].start)
        row = split_lines(text.text)[line - 1]
        return (self.path, self.finding.code, self.finding.message(), self.fix.message, row)


@dataclass(frozen=True)
class Fixed:
    """The result of fixing."""

    contents: Mapping[str, bytes]
    """The files that changed, by real path."""
    made: tuple[CandidateFix, ...]
    result: CheckResult
    """The findings afterwards."""
    complete: bool
    """Whether nothing was left because of the bound on attempts."""


@dataclass
class _FilesState:
    """The files as they are so far, and the findings in each."""

    files: Files
    texts: dict[str, Text]
    results: dict[str, CheckResult]
    made: tuple[CandidateFix, ...] = ()
    broken: frozenset[str] = frozenset()
    """Files that would not be programs any more."""

    @cached_property
    def result(self) -> CheckResult:
        """The findings in all files."""
        return summary(list(self.results.values()))


Wanted = Callable[[Sequence[Diagnostic], Mapping[str, str]], Sequence[Diagnostic]]
"""Selects the findings to fix; it takes the texts that have changed, by path as shown."""


def fix_all(
    files: Files, may_change: Iterable[str], wanted: Wanted, *, unsafe: bool = False
) -> Fixed:
    """Make the fixes of the findings that are wanted, in the files that may change."""
    return _Run(files, may_change, wanted, unsafe).fixed()


def fix_file(files: Files, path: str, result: CheckResult, wanted: Wanted) -> Fixed:
    """Make the safe fixes of a file's findings, by checks of this file alone."""
    return _Run(files, (path,), wanted, False, {path: result}).fixed()


def with_confirmed(files: Files, path: str, result: CheckResult) -> CheckResult:
    """Return the findings in a file, with only those fixes that a check confirms."""
    asked = {_said(finding) for finding in result.diagnostics if finding.fixes}
    if not asked:
        return result

    def wanted(found: Sequence[Diagnostic], _: Mapping[str, str]) -> list[Diagnostic]:
        return [finding for finding in found if _said(finding) in asked]

    run = _Run(files, (path,), wanted, True, {path: result})
    made = {id(each.finding) for each in run.fixed().made}
    complete = run.attempts < run.most
    return replace(
        result,
        diagnostics=tuple(
            finding
            if not finding.fixes or id(finding) in made
            else finding.replaced(fixes=run.unrefused(finding, run.before) if complete else ())
            for finding in result.diagnostics
        ),
    )


def _said(finding: Diagnostic) -> tuple[str, str]:
    return finding.code, finding.message()


class _Run:
    """Rounds of fixes; with `alone`, the results of the only files that are checked."""

    def __init__(
        self,
        files: Files,
        may_change: Iterable[str],
        wanted: Wanted,
        unsafe: bool,
        alone: Mapping[str, CheckResult] | None = None,
    ) -> None:
        self.wanted = wanted
        self.alone = alone is not None
        self.most = MOST_TO_CONFIRM if self.alone else MAX_ATTEMPTS
        self.unsafe = unsafe
        self.attempts = 0
        self.refused: set[tuple[str, ...]] = set()
        self.encoded = dict(_readable(files, may_change))
        self.before = {path: Text(each.text) for path, each in self.encoded.items()}
        results = check_each(files, files.given) if alone is None else {**alone}
        self.state = _FilesState(files, self.before, results)

    def fixed(self) -> Fixed:
        """Make fixes in rounds; retry refused ones once, if a round was successful."""
        fruitful = False
        while self.attempts < self.most:
            candidates = self._candidates()
            if candidates:
                fruitful |= self._attempt(candidates)
            elif fruitful and self.refused and not self.alone:
                self.refused.clear()  # a fix that did not help before may help now
                fruitful = False
            else:
                break
        state, complete = self.state, self.attempts < self.most
        contents = {path: state.files.data(path) for path in self._changed()}
        result = state.result
        if complete:  # a fix that is still refused is no fix
            left = [
                each.replaced(fixes=self.unrefused(each, state.texts))
                for each in result.diagnostics
            ]
            result = replace(result, diagnostics=tuple(left))
        return Fixed(contents, state.made, result, complete)

    def _changed(self) -> list[str]:
        return [path for path, each in self.before.items() if each is not self.state.texts[path]]

    def _candidates(self) -> list[CandidateFix]:
        """Return for each finding its first fix that was not refused, if it does not meet another.

        Fixes that define a missing name go first, and alone: more findings appear once it has a
        value.
        """
        found: list[CandidateFix] = []
        changed = {shown_path(p): self.state.texts[p].text for p in self._changed()}
        for finding in self.wanted(self.state.result.diagnostics, changed):
            each = next(self._possible(finding), None)
            if each is None:
                continue
            found = [other for other in found if not _implies(each, other)]
            if not any(_meet(each, other) for other in found):
                found.append(each)
        return [each for each in found if isinstance(each.finding, _VALUELESS)] or found

    def _possible(self, finding: Diagnostic) -> Iterator[CandidateFix]:
        for fix in finding.fixes:
            each = self._candidate(finding, fix, self.state.texts)
            if each is not None and each.key(self.state.texts[each.path]) not in self.refused:
                yield each

    def _candidate(
        self, finding: Diagnostic, fix: Fix, texts: Mapping[str, Text]
    ) -> CandidateFix | None:
        """Return a fix that may be made, of a finding in these texts."""
        path = resolved(fix.path)
        text = texts.get(path)
        if text is None or not self._allowed(fix):
            return None
        return CandidateFix(finding, fix, path, text.replacements(fix.edits))

    def unrefused(self, finding: Diagnostic, texts: Mapping[str, Text]) -> tuple[Fix, ...]:
        """Return the fixes of a finding that were not tried in vain; its row may have changed."""
        in_vain = {key[:-1] for key in self.refused}
        found = [(fix, self._candidate(finding, fix, texts)) for fix in finding.fixes]
        return tuple(
            fix
            for fix, each in found
            if each is None or each.key(texts[each.path])[:-1] not in in_vain
        )

    def _allowed(self, fix: Fix) -> bool:
        return self.unsafe or fix.applicability == "safe"

    def _attempt(self, candidates: Sequence[CandidateFix]) -> bool:
        """Make fixes together, without those that do not help; whether any was made."""
        self.attempts += 1
        after = self._with(candidates)
        bad = [candidate for candidate in candidates if candidate.path in after.broken]
        if not after.broken:
            bad = [
                candidate
                for candidate in candidates
                if not self._helps(candidate, candidates, after)
            ]
        if not bad and self._makes_no_errors(candidates, after):
            self.state = after
            return True
        if not bad and len(candidates) > 1:  # which of them it is will be seen
            return self._attempt(candidates[: len(candidates) // 2])
        self.refused.update(each.key(self.state.texts[each.path]) for each in bad or candidates)
        rest = [candidate for candidate in candidates if candidate not in bad]
        if bad and rest and self.attempts < self.most:
            return self._attempt(rest)
        return False

    def _with(self, candidates: Sequence[CandidateFix]) -> _FilesState:
        """Return the files with fixes made, and their findings."""
        texts, results = dict(self.state.texts), dict(self.state.results)
        contents: dict[str, bytes] = {}
        broken: set[str] = set()
        for path, replacements in _by_path(candidates).items():
            texts[path] = Text(replaced(texts[path].text, replacements))
            try:
                contents[path] = self.encoded[path].bytes(texts[path].text)
            except UnicodeEncodeError:
                broken.add(path)
        files = self.state.files.changed(contents)
        for path in contents:
            try:
                files.source(path)
            except Failure:
                broken.add(path)
        if not broken:
            changed = set(contents) if self.alone else _dependents(set(contents), files)
            results.update(check_each(files, changed))
        made = (*self.state.made, *candidates)
        return _FilesState(files, texts, results, made, frozenset(broken))

    def _helps(self, each: CandidateFix, all_: Sequence[CandidateFix], after: _FilesState) -> bool:
        """Return whether the finding is gone, and no error is in the replacement."""
        done = _by_path(all_)[each.path]
        text = after.texts[each.path]
        own = [written(done)[done.index(r)] for r in each.replacements]
        span = each.finding.span
        still = None
        if resolved(span.path) == each.path:
            before = self.state.texts[each.path]
            still = text.place(moved(before.offset(span.line, span.column), done))
        elif span.path:
            still = (span.line, span.column)
        for other in after.result.diagnostics:
            place = (other.span.line, other.span.column)
            same = other.code == each.finding.code and other.message() == each.finding.message()
            if same and other.span.path == span.path and place == still:
                return False
            mended_next = any(self._allowed(fix) for fix in other.fixes)
            if other.severity is not Severity.ERROR or mended_next:
                continue
            if isinstance(each.finding, _VALUELESS) and not isinstance(other, _OF_CALLS):
                continue
            if other.span.path == each.fix.path:
                offset = text.offset(*place)
                if any(start <= offset < max(end, start + 1) for start, end in own):
                    return False
        return True

    def _makes_no_errors(self, candidates: Sequence[CandidateFix], after: _FilesState) -> bool:
        """Return whether the unsafe fixes cause no other error."""
        unsafe = [candidate for candidate in candidates if candidate.fix.applicability == "unsafe"]
        if not unsafe or all(isinstance(each.finding, _VALUELESS) for each in unsafe):
            return True
        lenient = all(_asks(each.finding) for each in unsafe)
        before = _errors(self.state.result.diagnostics, lenient)
        gone = _errors(
            {id(candidate.finding): candidate.finding for candidate in candidates}.values(), lenient
        )
        return _errors(after.result.diagnostics, lenient) <= before - gone


def check_each(files: Files, paths: Iterable[str]) -> dict[str, CheckResult]:
    """Return the findings in files, by real path."""
    with deep_stack():
        return {path: check_file(files, path)[0] for path in paths}


def _errors(findings: Iterable[Diagnostic], lenient: bool) -> int:
    """Return the number of errors; if lenient, without those that a fix may reveal."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    return sum(not (lenient and _asks(error)) for error in errors)


_VALUELESS = (KernelNotChecked, UnknownFunction, UnknownValue)
"""Findings about values that are unknown until they are fixed; these hide other findings."""
_OF_CALLS = (BadArguments, NotSupported)
"""Findings that may mean that the name of the function is wrong."""
_HIDE_OTHERS = (
    DtypesDiffer,
    InnerSizesDiffer,
    NoSuchAttribute,
    ShapesDoNotBroadcast,
    *_VALUELESS,
)
"""Findings that may hide others with fixes."""


def _asks(finding: Diagnostic) -> bool:
    """Return whether a finding may appear when another is fixed, and can then be fixed, too.

    This holds for preconditions, which callers may lack, too, and for values unknown until then.
    """
    return bool(finding.fixes) and (
        isinstance(finding, _HIDE_OTHERS) or finding.assertion() is not None
    )


def _meet(one: CandidateFix, other: CandidateFix) -> bool:
    return one.path == other.path and any(
        a.meets(b) for a in one.replacements for b in other.replacements
    )


_LEAST = re.compile(r"assert (.+) >= (\d+)")


def _implies(one: CandidateFix, other: CandidateFix) -> bool:
    """Return whether a fix asserts a larger bound of the same size at the same place."""
    bounds = [_LEAST.fullmatch(each.finding.assertion() or "") for each in (one, other)]
    first, second = bounds
    if first is None or second is None or one.path != other.path or first[1] != second[1]:
        return False
    same_place = one.replacements[0].start == other.replacements[0].start
    return same_place and int(first[2]) > int(second[2])


def _by_path(candidates: Iterable[CandidateFix]) -> dict[str, list[Replacement]]:
    """Return all replacements of each file in the order of their places, each once."""
    found: dict[str, set[Replacement]] = {}
    for candidate in candidates:
        found.setdefault(candidate.path, set()).update(candidate.replacements)
    return {path: sorted(each) for path, each in found.items()}


def _readable(files: Files, paths: Iterable[str]) -> Iterator[tuple[str, Encoded]]:
    """Yield the files that can be written back unchanged; the check reports the others."""
    for path in paths:
        try:
            fits = path.endswith((".py", STANDARD_INPUT))
            found = Encoded.of(files.data(path)) if fits else None
        except Failure:
            continue
        if found is not None:
            yield path, found


def _dependents(changed: set[str], files: Files) -> set[str]:
    """Return files, and all given ones whose text names the module of one of them, and so on."""
    found, waiting = set(changed), list(changed)
    while waiting:
        name = module_name(waiting.pop())[0].rpartition(".")[2]
        others = set(files.mentioning(name)) & set(files.given) - found
        found |= others
        waiting.extend(others)
    return found
