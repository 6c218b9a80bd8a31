"""The options with which XLA on CPUs computes what is written.

By default it rewrites arithmetic by laws that hold for real numbers alone, and gives sums with what
they are sums of, to a library that is wrong for some of them.  Each rule here says which modules
get which option; one that asks for fast math gets none.

`xla_disable_hlo_passes=algsimp`, all modules: else `a / b / c` is `a / (b * c)`, `x / 49` is
`x * (1 / 49)`, `x + c - c` is `x`, and so on.  `reshape-mover` with it: that pass puts a transpose
and its inverse behind each operation on transposed arrays and relies on the simplifier to take them
away, so without it a hundred copies are left of each.
`xla_allow_excess_precision=False`, modules with bf16: else what is rounded to it is not, where it
is converted, summed up or multiplied at once.
`xla_cpu_experimental_ynn_fusion_type`, modules that may sum up what they compute: see
Note [Sums of products].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.xla.emit import context as c
from pscdsl.typing.dtypes import BF16

EXCESS: Final = "xla_allow_excess_precision"
DISABLED: Final = "xla_disable_hlo_passes"
SIMPLIFIER: Final = "algsimp"
MOVER: Final = "reshape-mover"
LIBRARY: Final = "xla_cpu_experimental_ynn_fusion_type"
PRODUCTS_ALONE: Final = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"


def options(module: Any) -> Mapping[str, Any]:
    """The options for a module, which are a part of its key."""
    if c.is_fast(module):
        return {}
    found: dict[str, Any] = {DISABLED: f"{SIMPLIFIER},{MOVER}"}
    facts = _Facts(module)
    if facts.holds_bf16:
        found[EXCESS] = False
    if facts.may_sum_products():
        found[LIBRARY] = PRODUCTS_ALONE
    return found


# Note [Sums of products]
# XLA on CPUs hands to a library, YNNPACK: single products of matrices, convolutions, and reductions
# with the elementwise operations and products of matrices before them.  Of the last, a product of
# matrices in one is computed wrongly for many columns, and a product of elements, one of which is
# repeated, ends the process where there are seven axes or more.  Without reductions nothing of that
# is left, but those that have no product before them are up to three times slower.
#
# So a reduction keeps the library if all that it is computed from, back to parameters, constants
# and other reductions, has few axes and is elementwise, and none of that is a product: but squares,
# and products with one number.  What stands in other functions, loops and branches is not followed:
# if what is reduced comes from there, it counts as a product where the module has one.

MOST_AXES: Final = 5
"""More are never reduced by the library."""
_REDUCTIONS: Final = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})
_WHOLE: Final = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
"""Operations that sum up products."""
_PLAIN: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs add and bitcast_convert broadcast_in_dim cbrt ceil clamp compare complex "
    "concatenate constant convert cosine divide dynamic_slice dynamic_update_slice exponential "
    "exponential_minus_one floor gather imag iota is_finite log log_plus_one logistic maximum "
    "minimum multiply negate not or pad power real reduce reduce_precision remainder reshape "
    "reverse round_nearest_even rsqrt select shift_left shift_right_arithmetic "
    "shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose xor".split()
)
"""Operations that make no product of what they are given, but `multiply`, which is looked at."""


class _Facts:
    """What the rules ask of a module."""

    def __init__(self, module: Any) -> None:
        self.holds_bf16 = False
        self._holds_products = False
        self._reduced: list[Any] = []
        self._parameters = {*c.main(module).regions[0].blocks[0].arguments}
        module.operation.walk(self._visit)

    def _visit(self, operation: Any) -> Any:
        name = operation.name
        if name in _REDUCTIONS:
            self._reduced += operation.operands
        elif name in _WHOLE or (name == "stablehlo.multiply" and _is_product(operation)):
            self._holds_products = True
        elif name.startswith("chlo.") or name == "stablehlo.custom_call":
            self._holds_products = True
        self.holds_bf16 = self.holds_bf16 or any(map(_is_bf16, operation.results))
        return c.mlir.WalkResult.ADVANCE

    def may_sum_products(self) -> bool:
        """Whether a reduction may be one of products; see Note [Sums of products]."""
        if any(len(each.type.shape) > MOST_AXES for each in self._reduced):
            return True
        return bool(self._holds_products and self._reduced) and not self._are_plain()

    def _are_plain(self) -> bool:
        due, seen = list(self._reduced), set(self._reduced)
        while due:
            value = due.pop()
            if len(value.type.shape) > MOST_AXES:
                return False
            if value in self._parameters:
                continue
            made = value.owner
            name = getattr(made, "name", "")  # a parameter of a block has none
            if name not in _PLAIN or (name == "stablehlo.multiply" and _is_product(made)):
                return False
            if name in _REDUCTIONS:
                continue
            new = [operand for operand in made.operands if operand not in seen]
            seen.update(new)
            due += new
        return True


def _is_bf16(value: Any) -> bool:
    return c.facts(value.type).dtype is BF16


def _is_product(made: Any) -> bool:
    """Whether two arrays are multiplied, and not one with itself or a number."""
    x, y = made.operands
    return x != y and not _is_number(x) and not _is_number(y)


def _is_number(value: Any) -> bool:
    """Whether a value is one number, maybe repeated."""
    if not value.type.shape:
        return True
    made = value.owner
    name = getattr(made, "name", "")
    if name == "stablehlo.broadcast_in_dim":
        return not made.operands[0].type.shape
    if name != "stablehlo.constant" or c.facts(value.type).dtype.is_complex:
        return False  # what a complex constant holds, jaxlib does not say
    return bool(made.attributes["value"].is_splat)
