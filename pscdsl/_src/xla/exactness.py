"""XLA's options and emitted operations that keep arithmetic on CPUs as written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pscdsl._src.xla.emit import context as c
from pscdsl.typing.dtypes import BF16, F32

# The options with which XLA on CPUs keeps arithmetic as written.
#
# By default it rewrites arithmetic by laws that hold only for real numbers, and gives sums, with
# the computation of their terms, to a library that is wrong for some of them. Each rule here says
# which modules get which option; a module that asks for fast math gets none.
#
# `xla_disable_hlo_passes=algsimp`, all modules: otherwise `a / b / c` is `a / (b * c)`, `x / 49` is
# `x * (1 / 49)`, `x + c - c` is `x`, and so on. `reshape-mover` with it: that pass puts a transpose
# and its inverse after each operation on transposed arrays and relies on the simplifier to remove
# them, so without the simplifier a hundred copies are left of each.
#
# `xla_allow_excess_precision=False`, modules with bf16: otherwise XLA omits the rounding to bf16 of
# numbers that are then converted, summed or multiplied.
#
# `xla_cpu_experimental_ynn_fusion_type`, modules that may sum computed terms: see Note [Sums of
# products].


EXCESS: Final = "xla_allow_excess_precision"
DISABLED: Final = "xla_disable_hlo_passes"
SIMPLIFIER: Final = "algsimp"
MOVER: Final = "reshape-mover"
LIBRARY: Final = "xla_cpu_experimental_ynn_fusion_type"
PRODUCTS_ALONE: Final = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"


def options(module: Any) -> Mapping[str, Any]:
    """Return the options for a module, which are a part of its key."""
    if c.is_fast(module):
        return {}
    found: dict[str, Any] = {DISABLED: f"{SIMPLIFIER},{MOVER}"}
    facts = _OperationFacts(module)
    if facts.holds_bf16:
        found[EXCESS] = False
    if facts.may_sum_products():
        found[LIBRARY] = PRODUCTS_ALONE
    return found


def may_sum_products(module: Any) -> bool:
    """Return whether a module gets no library for its reductions."""
    return _OperationFacts(module).may_sum_products()


# Note [Sums of products]
# XLA on CPUs hands to a library, YNNPACK: single products of matrices, convolutions, and reductions
# with the elementwise operations and products of matrices before them. In such a reduction, a
# product of matrices is computed wrongly for many columns, and a product of elements, one of which
# is repeated, ends the process where there are seven axes or more. Without reductions these errors
# do not occur, but reductions that have no product before them are up to three times slower.
#
# So a reduction keeps the library if its whole computation, back to parameters, constants and other
# reductions, has few axes and is elementwise, without products other than squares, and products
# with one number. Other functions, loops and branches are not followed: an operand from there
# counts as a product if the module has one.

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
    "minimum multiply negate not optimization_barrier or pad power real reduce reduce_precision "
    "remainder reshape reverse round_nearest_even rsqrt select shift_left shift_right_arithmetic "
    "shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose xor".split()
)
"""Operations that multiply no operands, besides `multiply`, which is examined."""


class _OperationFacts:
    """The facts about a module that the rules need."""

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
        """Return whether a reduction may sum products; see Note [Sums of products]."""
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
    """Return whether two different arrays are multiplied, neither of them one number."""
    x, y = made.operands
    return x != y and not _is_number(x) and not _is_number(y)


def _is_number(value: Any) -> bool:
    """Return whether a value is one number, maybe repeated."""
    if not value.type.shape:
        return True
    made = value.owner
    name = getattr(made, "name", "")
    if name == "stablehlo.broadcast_in_dim":
        return not made.operands[0].type.shape
    if name != "stablehlo.constant" or c.facts(value.type).dtype.is_complex:
        return False  # jaxlib does not show complex constants
    return bool(made.attributes["value"].is_splat)


# Exponentials as XLA's approximations on CPUs leave them to LLVM, and their guards.
#
# NaN: they convert a number to an integer, which has no meaning for NaN in LLVM, and where LLVM
# sees that an operand is NaN, as in `np.exp(x * np.nan)`, it omits the whole result. A choice
# between the operand and the result has a meaning for all numbers. It takes a tenth of the time of
# an exponential, and only modules with a constant NaN need it.
#
# Large f32: the last step is a product of about 1 and a power of 2, of an operand clamped to 88.8.
# Rounded, that is infinite; but where it is added by an instruction that rounds only the sum,
# `np.exp(1000.0) - 3e38` is a finite number, and `x - np.exp(x)` of an infinite x is not NaN. A
# choice of infinity is added where an exponential may be added to or subtracted from something
# other than a small constant.


EXPONENTIAL: Final = "stablehlo.exponential"
EXPONENTIALS: Final = frozenset(
    f"{EXPONENTIAL} stablehlo.exponential_minus_one stablehlo.logistic "
    "chlo.sinh chlo.cosh chlo.erfc".split()
)
"""The operations that are made of one; `power` is not."""
LARGEST: Final = 88.72283172607422
"""The f32 with the largest finite exponential in f32."""
SMALL: Final = 1e37
"""No sum of a number below this and an unrounded exponential becomes finite."""
MOST_USES: Final = 64
"""The most uses that are examined for one exponential."""
_SUMS: Final = frozenset({"stablehlo.add", "stablehlo.subtract"})
_RETURNS: Final = frozenset({"stablehlo.return", "func.return", "func.call"})
_MOVING: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs broadcast_in_dim concatenate dynamic_slice gather negate optimization_barrier "
    "pad reshape reverse select slice transpose".split()
)
"""Operations whose results are elements of operands up to the sign."""


def guard(module: Any, holds_nan: bool, holds_sums: bool) -> None:
    """Make exponentials NaN of NaN, and infinite in sums, whatever LLVM does."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name in EXPONENTIALS:
            found.append(operation)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for each in found:
        made = each.operation
        known = c.facts(made.result.type)
        if known.dtype.is_complex:
            continue
        if holds_sums and known.dtype is F32 and each.name == EXPONENTIAL and _is_added(made):
            infinity, limit = (_number(x, known.shape, made) for x in (float("inf"), LARGEST))
            _choose(made, "GT", limit, infinity)
        if holds_nan:
            _choose(made, "NE", made.operands[0], made.operands[0])


def _is_added(made: Any) -> bool:
    """Return whether a number may be added unrounded to something other than a small constant."""
    due, seen = [made.result], 0
    while due:
        value = due.pop()
        for use in value.uses:
            seen += 1
            user = use.owner
            name = user.name
            if seen > MOST_USES:
                return True
            if name in _SUMS:
                if not _is_small(user.operands[1 - use.operand_number]):
                    return True
            elif name in _RETURNS:
                if name != "func.return" or not _is_main(user.parent):
                    return True
            elif name in _MOVING:
                due += user.results
    return False


def _is_main(function: Any) -> bool:
    return bool(function.attributes["sym_name"].value == "main")


def _is_small(x: Any) -> bool:
    """Return whether x is one number, maybe repeated, and not large."""
    made = x.owner
    while getattr(made, "name", "") == "stablehlo.broadcast_in_dim":
        made = made.operands[0].owner
    if getattr(made, "name", "") != "stablehlo.constant":
        return False
    elements = made.attributes["value"]
    return bool(elements.is_splat and abs(elements.get_splat_value().value) <= SMALL)


def _number(value: float, shape: tuple[int, ...], made: Any) -> Any:
    attributes = {"value": c.dense(np.asarray(value, np.float32), F32.name, shape)}
    kind = c.tensor(F32.name, shape)
    create = c.mlir.Operation.create
    at = c.mlir.InsertionPoint(made)
    return create("stablehlo.constant", [kind], [], attributes, loc=made.location, ip=at).result


def _choose(made: Any, direction: str, limit: Any, instead: Any) -> None:
    """Replace the result by `instead` where the operand compares so with the limit."""
    x, result = made.operands[0], made.result
    create, place = c.mlir.Operation.create, made.location
    compare = {
        "comparison_direction": c.parsed(f"#stablehlo<comparison_direction {direction}>"),
        "compare_type": c.parsed("#stablehlo<comparison_type FLOAT>"),
    }
    truth = c.tensor("bool", c.facts(x.type).shape)
    holds = create("stablehlo.compare", [truth], [x, limit], compare, loc=place, ip=_after(made))
    chosen = create(
        "stablehlo.select",
        [x.type],
        [holds.result, instead, result],
        loc=place,
        ip=_after(holds),
    )
    result.replace_all_uses_except(chosen.result, chosen)


def _after(made: Any) -> Any:
    return c.mlir.InsertionPoint.after(made)


# Sums with constants that may be zero: XLA takes `x + 0.0` for x, which is wrong where x is -0.0.
#
# It does so while it reads a module, with any options, in a sum with an operand that is a constant
# zero of either sign, or folds to one: correctly for `x + -0.0` and for `x - 0.0`. `c - (-x)` is
# the same number as `x + c`, for all x and c, and no rule of XLA's concerns it; LLVM makes one
# addition of it. More may fold than constants of constants: selections from them, by a predicate
# that folds, and operations on integers and truth values with one operand twice (`mask ^ mask`), or
# with one that decides the result (`i & 0`).


SUM: Final = "stablehlo.add"
DIFFERENCE: Final = "stablehlo.subtract"
_CONSTANT: Final = "stablehlo.constant"
_REPEATING: Final = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape"})
_READING: Final = frozenset({"stablehlo.dynamic_slice", "stablehlo.gather"})
"""Operations that fold if their array does, for any indices."""
_DECIDING: Final = frozenset(
    f"stablehlo.{name}" for name in "and complex maximum minimum multiply or remainder".split()
)
"""Operations on integers, and `complex`, that may fold in a part where one operand does."""


def keep(module: Any) -> None:
    """Write the sums that XLA may take for their first operand in a way that it does not."""
    known: set[Any] = set()  # values that may fold to constants
    found: list[tuple[Any, bool, bool]] = []

    def visit(operation: Any) -> Any:
        name = operation.name
        if name == _CONSTANT:
            known.add(operation.result)
            return c.mlir.WalkResult.ADVANCE
        operands = operation.operands
        if name in (SUM, DIFFERENCE):
            x, y = operands
            if y in known and _may_be_zero(y, 1.0 if name == SUM else -1.0):
                both = x in known and (_may_be_zero(x, 1.0) or _may_be_zero(x, -1.0))
                found.append((operation, False, both))
            elif name == SUM and x in known and _may_be_zero(x, 1.0):
                found.append((operation, True, False))
        if len(operands) and _may_fold(operation, known):
            known.update(operation.results)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit, c.mlir.WalkOrder.PRE_ORDER)
    for made, swapped, both in found:
        _rewrite(made.operation, swapped, both)


def _may_fold(operation: Any, known: set[Any]) -> bool:
    """Return whether an operation with these operands may fold to a constant."""
    name, operands = operation.name, operation.operands
    folds = [operand in known for operand in operands]
    if all(folds):
        return True
    if name == "stablehlo.select":
        return folds[1] and folds[2] if not folds[0] else folds[1] or folds[2]
    if name in _READING:
        return folds[0]
    if name == "stablehlo.dynamic_update_slice":
        return folds[0] and folds[1]
    if not name.startswith("stablehlo.") or len(operation.results) != 1:
        return False
    dtype = c.facts(operation.result.type).dtype
    if dtype.is_float:
        return False
    twice = len(operands) == 2 and operands[0] == operands[1]
    return (twice and not dtype.is_complex) or (name in _DECIDING and any(folds))


def _may_be_zero(constant: Any, sign: float) -> bool:
    """Return whether XLA may recognise a folded constant as a zero of this sign, or complex."""
    dtype = c.facts(constant.type).dtype
    if not dtype.is_float:
        return dtype.is_complex
    made = constant.owner
    while made.name in _REPEATING:
        made = made.operands[0].owner
    if made.name != _CONSTANT:
        return True
    elements = made.attributes["value"]
    if not elements.is_splat:
        return bool(made.result != constant)  # a part of it may be one number
    value = elements.get_splat_value().value
    return bool(value == 0) and math.copysign(1, value) == sign


def _rewrite(made: Any, swapped: bool, both: bool) -> None:
    """`x + c` as `c - (-x)`, and `x - c` as `(-c) - (-x)`; `both` may be zeros."""
    create = c.mlir.Operation.create
    x, constant = reversed(made.operands) if swapped else made.operands
    if both:  # XLA takes the barrier away after it has read the module
        name = "stablehlo.optimization_barrier"
        x = create(name, [x.type], [x], loc=made.location, ip=_before(made)).result
    if made.name == DIFFERENCE:
        constant = _negative(constant, made)
    operands = [constant, _negative(x, made)]
    kind = [made.result.type]
    other = create(DIFFERENCE, kind, operands, loc=made.location, ip=_before(made))
    made.result.replace_all_uses_with(other.result)
    made.erase()


def _negative(x: Any, place: Any) -> Any:
    create = c.mlir.Operation.create
    return create("stablehlo.negate", [x.type], [x], loc=place.location, ip=_before(place)).result


def _before(made: Any) -> Any:
    return c.mlir.InsertionPoint(made)
