"""Calls and control flow: primitives that hold functions and blocks.

Blocks are closed, so what a block needs from outside is passed to it: captured operands come
first, and they are the same in every step of a loop.
"""

from pscdsl.primitives.control.associative_scan import AssociativeScan
from pscdsl.primitives.control.base import Control, block_cost, same_type, substitute_block
from pscdsl.primitives.control.call import Call, function_cost
from pscdsl.primitives.control.custom_derivatives import CustomJvp, CustomVjp
from pscdsl.primitives.control.groups import SMALL_GROUPS as SMALL_GROUPS  # a form
from pscdsl.primitives.control.implicit import Implicit, LinearSolve, Root
from pscdsl.primitives.control.map_reduce import MapReduce
from pscdsl.primitives.control.remat import Checkpoint
from pscdsl.primitives.control.scan import Scan
from pscdsl.primitives.control.stages import STAGES as STAGES  # likewise
from pscdsl.primitives.control.switch import Switch
from pscdsl.primitives.control.while_loop import While

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
