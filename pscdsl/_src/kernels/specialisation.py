"""What a kernel is compiled for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from pscdsl._src.ir.program import Function
from pscdsl.typing.signatures import Choice
from pscdsl.typing.trees import paths

Key: TypeAlias = tuple[Choice, tuple[tuple[str, int], ...], tuple[int, ...], tuple[str, ...]]
"""What the signature leaves open, sizes, donated places, and parameters that are constants."""


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
