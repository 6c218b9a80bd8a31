"""Sums with constants that may be zero: XLA takes `x + 0.0` for x, which it is not where x is -0.0.

It does so while it reads a module, whatever its options are: of a sum one of whose operands is a
constant, or folds to one, of zeros of either sign.  `c - (-x)` is the same number as `x + c`, for
all x and c, and no rule of XLA's is about it; LLVM makes one addition of it.
"""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.xla.emit import context as c

SUM: Final = "stablehlo.add"
DIFFERENCE: Final = "stablehlo.subtract"
_CONSTANT: Final = "stablehlo.constant"
_REPEATING: Final = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape"})


def keep(module: Any) -> None:
    """Write the sums that XLA may take for their first operand in a way that it does not."""
    known: set[Any] = set()  # what folds to constants
    found: list[tuple[Any, bool]] = []

    def visit(operation: Any) -> Any:
        name = operation.name
        operands = operation.operands
        if name == _CONSTANT:
            known.add(operation.result)
        elif name in (SUM, DIFFERENCE):
            x, y = operands
            if y in known and _may_be_zero(y):
                found.append((operation, False))
            elif name == SUM and x in known and _may_be_zero(x):
                found.append((operation, True))
            if x in known and y in known:
                known.add(operation.result)
        elif (
            len(operands) and operands[0] in known and all(operand in known for operand in operands)
        ):
            known.update(operation.results)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit, c.mlir.WalkOrder.PRE_ORDER)
    for made, swapped in found:
        _rewrite(made.operation, swapped)


def _may_be_zero(constant: Any) -> bool:
    """Whether XLA may see that what folds to a constant is zero, and of a dtype that has -0.0."""
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
        return bool(made.result != constant)  # a part of it may be the same everywhere
    return bool(elements.get_splat_value().value == 0)


def _rewrite(made: Any, swapped: bool) -> None:
    """`x + c` as `c - (-x)`, and `x - c` as `(-c) - (-x)`."""
    x, constant = reversed(made.operands) if swapped else made.operands
    if made.name == DIFFERENCE:
        constant = _negative(constant, made)
    operands = [constant, _negative(x, made)]
    other = c.mlir.Operation.create(
        DIFFERENCE, [made.result.type], operands, loc=made.location, ip=_before(made)
    )
    made.result.replace_all_uses_with(other.result)
    made.erase()


def _negative(x: Any, place: Any) -> Any:
    create = c.mlir.Operation.create
    return create("stablehlo.negate", [x.type], [x], loc=place.location, ip=_before(place)).result


def _before(made: Any) -> Any:
    return c.mlir.InsertionPoint(made)
