"""Which precondition leaves out the choices for which a check fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl.typing.signatures import Choice


def exclusion(failing: Sequence[Choice], right: Sequence[Choice]) -> str:
    """A lower bound of a length or static number that keeps choices in which all is right.

    None is kept of those that fail, and one that is right must be: else the bound mends nothing.

    In the words of the kernel: `len(xs) >= 1`; empty if there is none.
    """
    out = [dict(_numbers(choice)) for choice in failing]
    kept = [dict(_numbers(choice)) for choice in right]
    for name in out[0]:
        if all(name in each for each in out):
            bound = max(each[name] for each in out) + 1
            if any(each.get(name, 0) >= bound for each in kept):
                return f"{name} >= {bound}"
    return ""


def _numbers(choice: Choice) -> Iterator[tuple[str, int]]:
    """What a choice fixes that `assert` can bound."""
    for path, length in choice.lengths:
        yield f"len({path})", length
    for name, static in choice.statics:
        if isinstance(static.value, int) and not isinstance(static.value, bool):
            yield name, static.value
