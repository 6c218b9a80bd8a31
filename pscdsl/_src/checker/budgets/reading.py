"""The text of budgets: `flops <= 2*n*d*d, peak <= 8*n*d`, `gradient flops <= 3*n`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from pscdsl.typing.codes.limits_budgets import MalformedBudget
from pscdsl.typing.dims import DimSyntaxError, Size, parse
from pscdsl.typing.spans import Span

MEASURES = {
    "flops": "flops",
    "bytes": "bytes",
    "arguments": "arguments",
    "results": "results",
    "peak": "peak",
    "memory": "peak",
}
"""What can be bounded, and what `pscdsl cost` calls it."""

_COMPARISON = re.compile(r"==|!=|<=|>=|<|>|=|≤|≥")
_MEASURE = re.compile(r"\s*(?:(?P<of>[A-Za-z]\w*)\s+)?(?P<measure>[A-Za-z]\w*)\s*")
_TURNED: dict[str, Literal["<=", "<"]] = {">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Budget:
    """One bound."""

    measure: str
    """An attribute of `Cost`."""
    gradient: bool
    """Whether it is one for the gradient in the first parameter."""
    relation: Literal["<=", "<"]
    bound: Size
    text: str
    span: Span


def read_budgets(
    text: str, place: Callable[[int, int], Span]
) -> Iterator[Budget | MalformedBudget]:
    """The bounds in a text; `place` says where the characters between two offsets stand."""
    for start, end in _clauses(text):
        span = place(start, end)
        try:
            yield _read(text[start:end], span)
        except _Malformed as problem:
            yield MalformedBudget(reason=problem.reason, instead=problem.instead, span=span)


class _Malformed(Exception):
    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Where the parts between commas are, those within parentheses left out."""
    depth, start = 0, 0
    for place, character in enumerate(f"{text},"):
        depth += (character == "(") - (character == ")")
        if character == "," and (depth <= 0 or place == len(text)):
            part = text[start:place]
            lead = len(part) - len(part.lstrip())
            yield start + lead, start + max(lead, len(part.rstrip()))
            start = place + 1


def _read(clause: str, span: Span) -> Budget:
    found = list(_COMPARISON.finditer(clause))
    if len(found) != 1:
        raise _Malformed("`flops <= 2*n` is one comparison" if found else "it compares nothing")
    operator = found[0][0]
    left, right = clause[: found[0].start()], clause[found[0].end() :]
    if operator in _TURNED:
        left, right = right, left
    elif operator not in ("<=", "<"):
        raise _Malformed(f"a budget is an upper bound: `<=`, not `{operator}`")
    gradient, measure = _measured(left)
    try:
        bound = parse(right)
    except DimSyntaxError as error:
        raise _Malformed(f"`{right.strip()}` is no size: {error.message}") from None
    return Budget(measure, gradient, "<" if "=" not in operator else "<=", bound, clause, span)


def _measured(text: str) -> tuple[bool, str]:
    """Whether the gradient is meant, and which measure."""
    known = ", ".join(name for name in MEASURES if name != "memory")
    match = _MEASURE.fullmatch(text)
    if match is None:
        raise _Malformed(f"`{text.strip()}` is nothing that is counted", f"counted are: {known}")
    of, measure = match["of"], match["measure"]
    if of is not None and of != "gradient":
        raise _Malformed(f"`{of} {measure}` is nothing that is counted", "write `gradient flops`")
    if measure not in MEASURES:
        alike = get_close_matches(measure.lower(), MEASURES, 1)
        help_ = f"`{alike[0]}` is the nearest" if alike else f"counted are: {known}"
        raise _Malformed(f"`{measure}` is nothing that is counted", help_)
    return of is not None, MEASURES[measure]
