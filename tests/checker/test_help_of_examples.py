"""The help for the example of each code: whoever does what it says gets a program that is right.

What it says is done by hand here: a statement or expression in it takes the place of the one that
was found, an `assert` stands first.  Where that is not what the words mean, the reason is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.selection import all_kinds
from pscdsl.typing.diagnostics import Diagnostic, Severity
from tests.checker.test_fixes import fixed_example, text_of
from tests.typing.test_codes import example

KINDS = [kind for kind in all_kinds() if example(kind)]
MEANT = "the author alone knows what is meant: the message says what does not fit"
SIGNATURE = "the signature changes, and what calls it"
FUNCTION = "statements become a function, which needs names"
PLACE = "what is to be changed stands elsewhere"
RULE = "it says by which rule to choose"
SETTING = "it is about a comment or a setting, not about code"
ANSWER = "nothing is wrong: it answers what was asked"
REASONS = {
    MEANT: (
        "100 110 111 112 113 124 302 307 311 312 315 316 319 321 331 332 403 501 502 503 504 507 "
        "508 509 513 517 519 523 524 525 526 527 528 529"
    ),
    SIGNATURE: (
        "102 104 116 202 203 204 206 209 304 340 342 344 345 602 802 903 905 906 910 911 913 931"
    ),
    FUNCTION: (
        "101 106 107 108 109 114 208 512 518 520 521 522 601 603 604 705 706 801 804 805 901 914 "
        "952"
    ),
    PLACE: ("207 210 343 347 413 414 506 510 703 803 808 810 935"),
    RULE: ("310 335 411 511 514 515 516 713 806 900"),
    SETTING: ("916 920 921 922 926"),
    ANSWER: ("918"),
}
NOT_MECHANICAL = {f"PSC{code}": why for why, codes in REASONS.items() for code in codes.split()}
"""Kinds whose help is to be understood, and why it cannot be copied."""


def snippets(text: str) -> Iterator[str]:
    """The code in a help text: what stands in backquotes, or all of it."""
    yield from re.findall(r"`([^`]+)`", text)
    if "`" not in text:
        yield text.partition("; ")[0]
        yield text.partition(", ")[0]


def parsed(code: str) -> ast.stmt | None:
    """The one statement that a snippet is, if it is one."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return None
    return body[0] if len(body) == 1 else None


def followed(program: str, finding: Diagnostic) -> Iterator[str]:
    """The programs that come of what the help says."""
    lines, span = program.split("\n"), finding.span
    for code in snippets(finding.advice() or ""):
        statement = parsed(code)
        if statement is None or "…" in code or span.line != span.end_line:
            continue
        row = lines[span.line - 1]
        indent = row[: len(row) - len(row.lstrip())]
        before, after = lines[: span.line - 1], lines[span.line :]
        if isinstance(statement, ast.Assert):
            (place,) = [i for i, each in enumerate(lines) if each.startswith("def ")][-1:]
            yield "\n".join([*lines[: place + 1], f"    {code}", *lines[place + 1 :]])
        elif not isinstance(statement, ast.Expr):
            yield "\n".join([*before, indent + code, *after])
        yield "\n".join(
            [*before, row[: span.column - 1] + code + row[span.end_column - 1 :], *after]
        )


def errors(program: str) -> list[str]:
    found = check_source(program, "program.py").diagnostics
    return [each.code for each in found if each.severity is not Severity.NOTE]


def is_mended(kind: type[Diagnostic]) -> bool:
    """Whether a program is right that comes of the kind's example by its help, or by a fix."""
    program = example(kind)
    outcome = fixed_example(program)
    if outcome.contents:
        return not errors(text_of(outcome, program))
    found = check_source(program, "program.py").diagnostics
    return any(not errors(each) for one in found for each in followed(program, one))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_the_help_mends_the_example(kind: type[Diagnostic]) -> None:
    assert is_mended(kind) == (kind.code not in NOT_MECHANICAL)
