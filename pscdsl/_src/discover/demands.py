"""What a finding asks of the sizes: facts with which it would not have been found.

Findings say it in words that are promises to users: the `assert` to add, and `n is not m`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pscdsl.typing.assumptions import Fact, parse_fact
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.shapes_signatures import UndecidedCondition
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import DimSyntaxError, Size, as_terms, parse

_ASSERT = re.compile(r"`assert ([^`]+)`")
_IS_NOT = re.compile(r"(?:^|: )([^:]+?) is not ([^:]+?)(?=$|, for instance|,? \()")
_ARRAY = re.compile(r"an array of type \w+\[(\S+)[^\]]*\]")


def demands(finding: Diagnostic) -> Iterator[Fact]:
    """The facts, any of which may mend the finding; equalities first."""
    seen: set[Fact] = set()
    direct = [*_equalities(finding), *_assertions(finding)]
    for fact in [simpler for each in direct for simpler in (*_divisible(each), each)]:
        if fact not in seen and fact.names():
            seen.add(fact)
            yield fact


def _equalities(finding: Diagnostic) -> Iterator[Fact]:
    for text in (finding.label(), finding.message()):
        for found in _IS_NOT.finditer(text):
            left, right = _size(found[1]), _size(found[2])
            if left is not None and right is not None:
                yield Fact("==", left, right)
    if isinstance(finding, WrongUnpacking):
        array = _ARRAY.search(finding.found)
        size = _size(array[1]) if array else None
        if size is not None:
            yield Fact("==", size, finding.expected)


def _assertions(finding: Diagnostic) -> Iterator[Fact]:
    for found in _ASSERT.finditer(finding.help() or ""):
        try:
            facts = parse_fact(found[1])
        except DimSyntaxError:
            continue
        yield from facts
        if isinstance(finding, UndecidedCondition):
            yield from (fact.negated() for fact in facts)


def _divisible(fact: Fact) -> Iterator[Fact]:
    """The divisions that would come out even: what an equation of quotients most often means."""
    if fact.relation != "==":
        return
    for size in (fact.left, fact.right):
        for monomial, _ in as_terms(size):
            for factor in monomial:
                if factor.kind == "//":
                    yield Fact("==", factor.args[0] % factor.args[1], 0)


def _size(text: str) -> Size | None:
    try:
        return parse(text.strip())
    except DimSyntaxError:
        return None
