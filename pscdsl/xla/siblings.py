"""Which programs XLA computes all results of in one loop.

By itself XLA on CPUs makes a loop for each result, which reads all arrays that it needs, so that
large ones come from memory once for each.  It can make one loop of several, but then it also keeps
in memory what results have in common instead of computing it for each of them, which takes up to
three times as long.  So this is for results that have nothing in common but what they read.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

from pscdsl.forms import form, switched_off
from pscdsl.xla import context as c

SIBLINGS_TOGETHER = form(
    "siblings_together",
    "Large results that are computed from the same arrays are computed in one loop instead of one "
    "for each: 0.4 to 0.95 of the time from 256k elements on.",
)
OPTION: Final = "xla_cpu_use_multi_output_fusion"
LEAVES: Final = frozenset(
    f"stablehlo.{name}" for name in "broadcast_in_dim constant reshape".split()
)
"""Of parameters and constants, these may be had in common."""
CHEAP: Final = LEAVES | frozenset(
    f"stablehlo.{name}"
    for name in "abs add and clamp compare convert divide maximum minimum multiply negate not or "
    "select sqrt subtract xor".split()
)
"""What results may be made of: of functions that take longer one loop gains little."""
FEWEST: Final = 1 << 18
"""Elements of a result: fewer stay in the caches between loops, and loops run at the same time."""


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    fits = SIBLINGS_TOGETHER.name not in switched_off() and are_large(module) and are_apart(module)
    return {OPTION: "true"} if fits else {}


def are_large(module: Any) -> bool:
    """Whether there are several results, of one shape, which has enough elements."""
    inputs, outputs = c.boundary(module)
    known = [c.facts(each) for each in outputs]
    if len(known) < 2 or any(c.facts(each).dtype.is_complex for each in (*inputs, *outputs)):
        return False
    shapes = {each.shape for each in known}
    return len(shapes) == 1 and prod(shapes.pop()) >= FEWEST


def are_apart(module: Any) -> bool:
    """Whether each result is made of cheap operations on elements of its own."""
    *operations, end = c.main(module).regions[0].blocks[0].operations
    if any(each.name not in CHEAP for each in operations):
        return False
    reached: set[Any] = set()
    for result in end.operands:
        own: set[Any] = set()
        left = [result]
        while left:
            value = left.pop()
            if value in reached:
                return False
            if value not in own and not _is_leaf(value):
                own.add(value)
                left += value.owner.operands
        if not own:
            return False
        reached |= own
    return True


def _is_leaf(value: Any) -> bool:
    """Whether a value is a parameter or a constant, or has the elements of one."""
    owner = value.owner  # of a parameter it is a block
    if isinstance(owner, c.mlir.Block):
        return True
    return owner.name in LEAVES and all(_is_leaf(each) for each in owner.operands)
