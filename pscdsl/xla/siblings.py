"""Which programs XLA computes all results of in one loop.

By itself XLA on CPUs makes a loop for each result, which reads all arrays that it needs, so that
large ones come from memory once for each.  It can make one loop of several, but then it also keeps
in memory what results have in common instead of computing it for each of them, which takes up to
three times as long.  So this is for results that have nothing in common but what they read, and
not for those that read different arrays: a loop that goes through many at a time gains nothing.
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
MOST: Final = 16
"""Large arrays that are read or written."""


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    if SIBLINGS_TOGETHER.name in switched_off() or not are_large(module):
        return {}
    return {OPTION: "true"} if c.is_real(module) and gains(module) else {}


def are_large(module: Any) -> bool:
    """Whether there are several results, of one shape, which has enough elements."""
    _, outputs = c.boundary(module)
    shapes = {c.facts(each).shape for each in outputs}
    return len(outputs) > 1 and len(shapes) == 1 and prod(shapes.pop()) >= FEWEST


def gains(module: Any) -> bool:
    """Whether each result shares no operation with another one, but a large array that it reads."""
    large = _large(module)
    reads = [each & large for each in made_of(module)]
    shared = [any(one & other for other in reads if other is not one) for one in reads]
    return bool(reads) and all(shared) and len(reads) + len(set[Any]().union(*reads)) <= MOST


def made_of(module: Any) -> list[set[Any]]:
    """The parameters that each result is made of, by cheap operations on elements of its own.

    Empty if some are made otherwise.
    """
    *operations, end = c.main(module).regions[0].blocks[0].operations
    if any(each.name not in CHEAP for each in operations):
        return []
    found: list[set[Any]] = []
    reached: set[Any] = set()
    for result in end.operands:
        own: set[Any] = set()
        read: set[Any] = set()
        left = [result]
        while left:
            value = left.pop()
            if value in reached:
                return []
            if (parameters := _read(value)) is not None:
                read |= parameters
            elif value not in own:
                own.add(value)
                left += value.owner.operands
        if not own:
            return []
        reached |= own
        found.append(read)
    return found


def _large(module: Any) -> set[Any]:
    """The parameters with as many elements as such results."""
    given = c.main(module).regions[0].blocks[0].arguments
    return {each for each in given if prod(c.facts(each.type).shape) >= FEWEST}


def _read(value: Any) -> set[Any] | None:
    """The parameter that a value has its elements from, if any; None if operations make it."""
    owner = value.owner  # of a parameter it is a block
    if isinstance(owner, c.mlir.Block):
        return {value}
    found = [_read(each) for each in owner.operands] if owner.name in LEAVES else [None]
    return None if None in found else set[Any]().union(*filter(None, found))
