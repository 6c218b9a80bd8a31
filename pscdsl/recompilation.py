"""Why a kernel was compiled again: what of its arguments differs from those of an earlier time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pscdsl.ir import Function
from pscdsl.typing.signatures import Choice
from pscdsl.typing.trees import paths

if TYPE_CHECKING:
    from pscdsl.executables import Key

MANY: Final = 10
"""How often a kernel is compiled before this is warned of."""
_SHOWN: Final = 3
"""How many arguments, or values of one part, are listed."""

log: Final = logging.getLogger("pscdsl.compile")


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for: what its signature leaves open, and the sizes."""

    program: Function
    choice: Choice
    sizes: Mapping[str, int]
    donate: tuple[int, ...] = ()
    """The places of the arrays whose memory may be reused."""
    left_out: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """The parameters with a number for their default: whether this is a constant of the program."""

    @property
    def key(self) -> Key:
        """What it is among those of a kernel."""
        sizes = tuple([(name, self.sizes[name]) for name in self.program.dims])
        constants = tuple([name for name, left in self.left_out.items() if left])
        return self.choice, sizes, self.donate, constants

    @cached_property
    def parts(self) -> dict[str, str]:
        """Everything that is fixed here, by what it is called."""
        choice = self.choice
        found = {f"size {name}": str(size) for name, size in self.sizes.items()}
        found |= {f"dtype {name}": str(dtype) for name, dtype in choice.dtypes}
        found |= {f"rank of {name}": str(rank) for name, rank in choice.ranks}
        found |= {f"length of `{path}`": str(length) for path, length in choice.lengths}
        found |= {f"keys of `{path}`": ", ".join(keys) for path, keys in choice.keys}
        found |= {f"static `{path}`": repr(static.value) for path, static in choice.statics}
        found |= {f"`{path}`": "given" if given else "None" for path, given in choice.given}
        names = self.left_out.items()
        return found | {f"`{name}`": "its default" if left else "given" for name, left in names}

    @cached_property
    def arguments(self) -> dict[str, str]:
        """The type of each array, by its path."""
        leaves = [leaf for name, tree in self.program.parameters for leaf in paths(tree, name)]
        return {path: str(each.substitute(dict(self.sizes))) for path, each in leaves}


class Reasons:
    """The variants of one kernel, told of as they come."""

    def __init__(self) -> None:
        self._known: list[Variant] = []
        self._compiled: list[Variant] = []
        self._warned = False

    def tell(self, variant: Variant, source: str, seconds: float) -> None:
        """Log where a variant came from and why it was wanted; warn once if there are many."""
        name = variant.program.name
        if log.isEnabledFor(logging.INFO):
            did = "compiled" if source == "compiled" else "loaded from disk"
            log.info("`%s` was %s in %.2f s: %s", name, did, seconds, self._why(variant))
        self._known.append(variant)
        if source == "compiled":
            self._compiled.append(variant)
        if len(self._compiled) >= MANY and not self._warned:
            self._warned = True
            advice = _advice(self._compiled)
            log.warning("`%s` was compiled %d times%s", name, len(self._compiled), advice)

    def _why(self, variant: Variant) -> str:
        if not self._known:
            return _listed([f"{part} is {value}" for part, value in variant.parts.items()], "")
        before = min(  # the latest of those that differ least
            reversed(self._known), key=lambda old: len(_changes(old.parts, variant.parts))
        )
        changes = _changes(before.parts, variant.parts)
        moved = _changes(before.arguments, variant.arguments)
        arguments = [f"`{path}` {change}" for path, change in moved.items()]
        told = "; ".join(f"{part} {change}" for part, change in changes.items())
        return told + (f" ({_listed(arguments, 'arguments')})" if arguments else "")


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """What differs, as `from → to`."""
    every = [*new, *[part for part in old if part not in new]]
    return {
        part: f"{old.get(part, 'nothing')} → {new.get(part, 'nothing')}"
        for part in every
        if old.get(part) != new.get(part)
    }


def _listed(items: list[str], what: str) -> str:
    more = f" and {len(items) - _SHOWN} more {what}".rstrip() if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more or "the first time"


def _advice(variants: list[Variant]) -> str:
    """What takes most values, and what to do about it."""
    values: dict[str, dict[str, None]] = {}
    for each in variants:
        for part, value in each.parts.items():
            values.setdefault(part, {})[value] = None
    part = max(values, key=lambda each: len(values[each]), default="")
    if not part or len(values[part]) == 1:
        return ""
    taken = list(values[part])
    few = ", ".join(taken[:_SHOWN]) + (", …" if len(taken) > _SHOWN else "")
    told = f", for {len(taken)} values of {part} ({few}): "
    if part.startswith("size "):
        return told + "pad to a few sizes, or compile ahead by `psc.compile_all`"
    if part.startswith("static "):
        return told + "if these are many, let it be an array"
    return told + "each of them is another program"
