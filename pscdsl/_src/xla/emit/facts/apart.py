"""Functions that XLA compiles by themselves: it leaves their calls as they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from pscdsl._src.ir.program import Block, Literal
from pscdsl._src.xla.emit.facts.bounds import Bounds

_ATTRIBUTES: Final = "mhlo.frontend_attributes"
APART: Final = {_ATTRIBUTES: {"inlineable": "false"}}
"""XLA's word for calls of these."""


class Made(NamedTuple):
    """A function that was emitted."""

    operations: Iterable[Any]
    """The last one returns the results."""
    results: Sequence[Any]
    bounds: Sequence[Bounds]
    """Of the results."""
    module: Any
    """It keeps the operations alive."""


def is_apart(operation: Any) -> bool:
    """Whether it is the call of such a function."""
    is_call = getattr(operation, "name", "") == "func.call"  # the owner of a parameter has none
    return is_call and _ATTRIBUTES in operation.attributes


def content(block: Block, tensor: Callable[[Any], Hashable]) -> Hashable:
    """The same for blocks that compute the same of arrays of the same types, given by `tensor`."""
    numbers: dict[Any, int] = {}
    parts: list[Hashable] = []

    def number(atom: Any) -> Hashable:
        if isinstance(atom, Literal):
            return repr(atom.value), atom.type.dtype.name  # 0.0 equals -0.0
        return numbers[atom]

    for var in block.params:
        numbers[var] = len(numbers)
        parts.append(tensor(var.type))
    for equation in block.equations:
        parts += equation.primitive, *map(number, equation.inputs)
        for var in equation.outputs:
            numbers[var] = len(numbers)
            parts.append(tensor(var.type))
    return (*parts, *map(number, block.results))
