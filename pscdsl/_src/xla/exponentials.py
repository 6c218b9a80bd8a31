"""Exponentials as XLA's approximations on CPUs leave them to LLVM, and what guards them.

Of NaN: they convert a number to an integer, which of NaN has no meaning in LLVM, and where LLVM
sees that an operand is NaN, as in `np.exp(x * np.nan)`, it leaves the whole result out.  A choice
between the operand and the result has a meaning for all of them.  It takes a tenth of the time of
an exponential, and no module needs it in which no constant is NaN.

Of large f32: the last step is a product of about 1 and a power of 2, of an operand that is cut to
88.8.  Rounded, that is infinite; but where it is added at once, by an instruction that rounds only
the sum, `np.exp(1000.0) - 3e38` is a finite number, and `x - np.exp(x)` of an infinite x is not
NaN.  A choice of infinity there goes where an exponential may be added to or subtracted from
something that is not a small constant.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pscdsl._src.xla.emit import context as c
from pscdsl.typing.dtypes import F32

EXPONENTIAL: Final = "stablehlo.exponential"
EXPONENTIALS: Final = frozenset(
    f"{EXPONENTIAL} stablehlo.exponential_minus_one stablehlo.logistic "
    "chlo.sinh chlo.cosh chlo.erfc".split()
)
"""The operations that are made of one; `power` is not."""
LARGEST: Final = 88.72283172607422
"""The f32 with the largest finite exponential in f32."""
SMALL: Final = 1e37
"""No sum of such a number and of what an exponential is before it is rounded becomes finite."""
MOST_USES: Final = 64
"""So many are looked at for one exponential."""
_SUMS: Final = frozenset({"stablehlo.add", "stablehlo.subtract"})
_RETURNS: Final = frozenset({"stablehlo.return", "func.return", "func.call"})
_MOVING: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs broadcast_in_dim concatenate dynamic_slice gather negate optimization_barrier "
    "pad reshape reverse select slice transpose".split()
)
"""Operations whose results are elements of operands but for the sign."""


def guard(module: Any, holds_nan: bool, holds_sums: bool) -> None:
    """Let exponentials be what they are of NaN, and infinite in sums, whatever LLVM does."""
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
    """Whether a number may be added at once, to what is not a small constant."""
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
    """Whether x is one number, maybe repeated, and not large."""
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
    """The other number where the operand is so beside the limit."""
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
