"""The options with which XLA on CPUs computes what is written.

By itself it rewrites arithmetic by laws that hold for real numbers alone, and hands sums, with what
they are sums of, to a library that is wrong for some of them.  Each rule here says which modules get
which option, and why; all rules but for `fast_math` are for every module that is compiled.

| option | modules | without it |
|---|---|---|
| `algsimp` off | all | `a / b / c` is `a / (b * c)`, `x / 49` is `x * (1 / 49)`, `x + c - c` is `x` |
| the library takes single products of matrices alone | those that may sum up what is computed | \
sums over products of matrices are wrong from column 16384 on, and seven axes end the process |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl.xla import context as c

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
