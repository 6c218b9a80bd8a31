"""Which values have no subnormal numbers: XLA on CPUs makes zeros of those that arithmetic gives.

What is not arithmetic, such as a choice or a minimum, gives those of its operands.
"""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts.bounds import SAME
from pscdsl.typing.dtypes import BF16, DType

MOST_OPERATIONS: Final = 16
"""So many operations are looked at for one value."""
_ARITHMETIC: Final = frozenset(
    f"stablehlo.{name}"
    for name in "add ceil cosine divide exponential floor iota logistic multiply power "
    "round_nearest_even rsqrt sqrt subtract".split()
)
_ALL_OPERANDS: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs clamp concatenate maximum minimum negate pad sine tan tanh".split()
)
"""Operations whose results are those of arithmetic, or elements of operands but for the sign."""
_FIRST_OPERAND: Final = frozenset(f"stablehlo.{name}" for name in SAME)


def flushed(x: Any) -> bool:
    """Whether arithmetic has made all elements of a value; False also if it takes long to see."""
    due, seen = [x], {x}
    for _ in range(MOST_OPERATIONS):
        if not due:
            return True
        made = due.pop().owner
        name = getattr(made, "name", "")  # a parameter of a block has none
        if name in _ARITHMETIC:
            continue
        if name == "stablehlo.convert":
            given = made.operands[0]
            if _has_the_same(c.facts(given.type).dtype, c.facts(made.result.type).dtype):
                due.append(given)
            continue
        if name in _ALL_OPERANDS:
            operands = list(made.operands)
        elif name == "stablehlo.select":
            operands = list(made.operands)[1:]
        elif name in _FIRST_OPERAND:
            operands = [made.operands[0]]
        elif name == "stablehlo.constant" and _is_normal(made):
            continue
        else:
            return False
        due += [each for each in operands if each not in seen]
        seen.update(operands)
    return not due


def _has_the_same(given: DType, to: DType) -> bool:
    """Whether a conversion keeps subnormal numbers, instead of giving normal ones or zero."""
    return given is to or BF16 in (given, to)


def _is_normal(made: Any) -> bool:
    """Whether a constant is one number, and that zero or normal in all dtypes."""
    elements = made.attributes["value"]
    if not elements.is_splat:
        return False
    size = abs(float(elements.get_splat_value().value))
    return size == 0 or size >= 2.0**-14 or size != size
