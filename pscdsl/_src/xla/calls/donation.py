"""What to say of a call that reads memory which was given away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pscdsl._src.xla.calls import trees
from pscdsl._src.xla.runtime.boot import ArrayImpl


def explanation(
    error: Exception, kernel: str, values: Mapping[str, Any], donated: Collection[str]
) -> str | None:
    """Which argument of a call that failed has no memory; None if the failure is another one."""
    text = str(error)
    if "delete" not in text and "donat" not in text:
        return None
    owners: dict[int, str] = {}
    for name, value in values.items():
        for leaf in trees.flatten(value)[0]:
            if type(leaf) is not ArrayImpl:
                continue
            first = owners.setdefault(id(leaf), name)
            if leaf.is_deleted():
                return (
                    f"argument `{name}` of `{kernel}` was donated to an earlier call, or deleted: "
                    f"what its memory holds now is that call's result; use this, or pass a copy"
                )
            if first in donated or name in donated:
                if id(leaf) in owners and (first != name or _twice(leaf, value)):
                    return (
                        f"argument `{name}` of `{kernel}` is the same array as `{first}`, and its "
                        f"memory is donated: pass a copy of one of them"
                    )
    return None


def forget_donated(arguments: Any) -> None:
    """Have jaxlib know of arrays whose memory a call took, so that later calls ask us about them.

    Otherwise such a call would fail in C++, where nobody explains it.
    """
    for leaf in trees.flatten(arguments)[0]:
        if type(leaf) is ArrayImpl and leaf.is_deleted():
            leaf.delete()


def _twice(leaf: Any, value: Any) -> bool:
    """Whether a tree holds an array more than once."""
    return sum(each is leaf for each in trees.flatten(value)[0]) > 1
