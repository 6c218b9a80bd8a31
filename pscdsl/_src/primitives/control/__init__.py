"""Calls and control flow: primitives that hold functions and blocks.

Blocks are closed, so what a block needs from outside is passed to it: captured operands come
first, and they are the same in every step of a loop.
"""

from pscdsl._src.primitives.control.associative_scan import AssociativeScan
from pscdsl._src.primitives.control.base import (
    Call,
    Control,
    block_cost,
    function_cost,
    same_type,
    substitute_block,
)
from pscdsl._src.primitives.control.custom_derivatives import CustomJvp, CustomVjp
from pscdsl._src.primitives.control.implicit import Implicit, LinearSolve, Root
from pscdsl._src.primitives.control.map_reduce import MapReduce
from pscdsl._src.primitives.control.remat import Checkpoint
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.switch import Switch
from pscdsl._src.primitives.control.while_loop import While

__all__ = [
    "AssociativeScan",
    "Call",
    "Checkpoint",
    "Control",
    "CustomJvp",
    "CustomVjp",
    "Implicit",
    "LinearSolve",
    "MapReduce",
    "Root",
    "Scan",
    "Switch",
    "While",
    "block_cost",
    "function_cost",
    "same_type",
    "substitute_block",
]
