"""Which precondition leaves out the choices for which a check fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl.typing.signatures import Choice


def exclusion(failing: Sequence[Choice], tried: Sequence[Choice]) -> str:
    """A lower bound of a length or static number that keeps some choices, and none that fails.

    In the words of the kernel: `len(xs) >= 1`; empty if there is none.
    """
    out = [dict(_numbers(choice)) for choice in failing]
    all_tried = [dict(_numbers(choice)) for choice in tried]
    for name in out[0]:
        if all(name in each for each in out):
            bound = max(each[name] for each in out) + 1
            if any(each.get(name, 0) >= bound for each in all_tried):
                return f"{name} >= {bound}"
    return ""


def _numbers(choice: Choice) -> Iterator[tuple[str, int]]:
    """What a choice fixes that `assert` can bound."""
    for path, length in choice.lengths:
        yield f"len({path})", length
    for name, static in choice.statics:
        if isinstance(static.value, int) and not isinstance(static.value, bool):
            yield name, static.value
