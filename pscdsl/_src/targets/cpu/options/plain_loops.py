"""Which programs XLA compiles by its older emitter of loops.

XLA on CPUs has two that make loops of fused operations.  The newer one, which goes through MLIR,
makes better code where several results share work, where a fusion reads moved elements, and inside
of loops; of a single result of elementwise operations both make the same code, and the older one
needs less time; but for some functions, and numbers of 64 bits, whose code it makes slower.
Where XLA makes several loops, one of which writes over what it reads, the older one's code takes
single elements, five times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.targets.cpu.options import wide
from pscdsl._src.targets.forms import Form, switched_off
from pscdsl._src.xla.depths import DEEPEST, Depths
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import is_apart
from pscdsl.typing.dtypes import F64

PLAIN_LOOPS = Form(
    "plain_loops",
    "Programs of elementwise operations with one result are compiled by XLA's older emitter of "
    "loops: 0.4 to 0.85 of the time to compile, and the same results in the same time.",
)
OPTION: Final = "xla_cpu_use_fusion_emitters"
ELEMENTWISE: Final = wide.VALIDATED | frozenset(
    f"stablehlo.{name}" for name in "cbrt clamp cosine power remainder sine tan".split()
)
"""What may occur, with real numbers of up to 32 bits."""


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    return {} if PLAIN_LOOPS.name in switched_off() or not fits(module) else {OPTION: False}


def fits(module: Any) -> bool:
    """Whether a module computes one array by elementwise operations, not in stages, nor deep."""
    _, outputs = c.boundary(module)
    if len(outputs) != 1 or not c.is_real(module):
        return False
    allowed = True

    def visit(operation: Any) -> Any:
        nonlocal allowed
        double = any(c.facts(x.type).dtype is F64 for x in operation.results)
        if operation.name in ELEMENTWISE and not double and not is_apart(operation):
            return c.mlir.WalkResult.ADVANCE
        allowed = False
        return c.mlir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return allowed and Depths(module).main <= DEEPEST
