"""Which precondition leaves out the choices for which a check fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl.typing.signatures import Choice


def exclusion(failing: Sequence[Choice], tried: Sequence[Choice]) -> str:
    """A lower bound of a length or static number that keeps some choices, and none that fails.

    In the words of the kernel: `len(xs) >= 1`; empty if there is none.
    """
    bounds: dict[str, int] = {}
    for choice in failing:
        for name, value in _numbers(choice):
            bounds[name] = max(bounds.get(name, value), value)
    kept = [dict(_numbers(choice)) for choice in tried]
    for name, greatest in bounds.items():
        if any(each[name] > greatest for each in kept):
            return f"{name} >= {greatest + 1}"
    return ""


def _numbers(choice: Choice) -> Iterator[tuple[str, int]]:
    """What a choice fixes that `assert` can bound."""
    yield from choice.lengths
    for name, static in choice.statics:
        if isinstance(static.value, int) and not isinstance(static.value, bool):
            yield name, static.value
