"""Exponentials of what is known to be NaN: XLA on CPUs gives what lay in memory before.

Its exponentials convert a number to an integer.  Of NaN that has no meaning in LLVM, and where LLVM
sees that an operand is NaN, as in `np.exp(x * np.nan)`, it leaves the whole result out.  A choice
between the operand and the result has a meaning for all of them.  It takes a tenth of the time of
an exponential, and no module needs it in which no constant is NaN.
"""

from __future__ import annotations

from typing import Any, Final

from pscdsl.xla import context as c

EXPONENTIALS: Final = frozenset(
    "stablehlo.exponential stablehlo.exponential_minus_one stablehlo.logistic "
    "chlo.sinh chlo.cosh chlo.erfc".split()
)
"""The operations that are made of one; `power` is not."""


def guard(module: Any) -> None:
    """Let exponentials of NaN be that NaN, whatever LLVM makes of them."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name in EXPONENTIALS:
            found.append(operation)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for each in found:
        _guard(each.operation)


def _guard(made: Any) -> None:
    x, result = made.operands[0], made.result
    known = c.facts(x.type)
    if known.dtype.is_complex:
        return
    create, place = c.mlir.Operation.create, made.location
    compare = {
        "comparison_direction": c.parsed("#stablehlo<comparison_direction NE>"),
        "compare_type": c.parsed("#stablehlo<comparison_type FLOAT>"),
    }
    truth = c.tensor("bool", known.shape)
    is_nan = create("stablehlo.compare", [truth], [x, x], compare, loc=place, ip=_after(made))
    chosen = create(
        "stablehlo.select",
        [x.type],
        [is_nan.result, x, result],
        loc=place,
        ip=_after(is_nan),
    )
    result.replace_all_uses_except(chosen.result, chosen)


def _after(made: Any) -> Any:
    return c.mlir.InsertionPoint.after(made)
