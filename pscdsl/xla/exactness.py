"""The options with which XLA on CPUs computes what is written.

By itself it rewrites arithmetic by laws that hold for real numbers alone, and hands sums, with what
they are sums of, to a library that is wrong for some of them.  Each rule here says which modules
get which option; one that asks for fast math gets none.

`xla_disable_hlo_passes=algsimp`, all modules: else `a / b / c` is `a / (b * c)`, `x / 49` is
`x * (1 / 49)`, `x + c - c` is `x`, and so on.
`xla_allow_excess_precision=False`, modules with bf16: else what is rounded to it is not, where it
is converted, summed up or multiplied at once.
`xla_cpu_experimental_ynn_fusion_type`, modules that may sum up what they compute: see
Note [Sums of products].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl.xla import context as c

EXCESS: Final = "xla_allow_excess_precision"
DISABLED: Final = "xla_disable_hlo_passes"
SIMPLIFIER: Final = "algsimp"
LIBRARY: Final = "xla_cpu_experimental_ynn_fusion_type"
"""What XLA hands to the library YNNPACK."""
PRODUCTS_ALONE: Final = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    found = {DISABLED: SIMPLIFIER}
    if may_sum_products(module):
        found[LIBRARY] = PRODUCTS_ALONE
    return found


_PRODUCTS: Final = frozenset({"stablehlo.dot_general", "stablehlo.multiply"})


def may_sum_products(module: Any) -> bool:
    """Whether a module has both a reduction and a product."""
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        if operation.name == "stablehlo.reduce":
            found.add("reduction")
        elif operation.name in _PRODUCTS:
            found.add("product")
        return c.mlir.WalkResult.INTERRUPT if len(found) == 2 else c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return len(found) == 2
