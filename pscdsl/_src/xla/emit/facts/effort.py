"""How much is computed for an element of a value, by operations that go element by element."""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.xla.emit.facts.apart import is_apart

_WEIGHTS: Final = {
    "stablehlo.add": 1,
    "stablehlo.and": 1,
    "stablehlo.compare": 1,
    "stablehlo.maximum": 1,
    "stablehlo.minimum": 1,
    "stablehlo.multiply": 1,
    "stablehlo.or": 1,
    "stablehlo.select": 1,
    "stablehlo.subtract": 1,
    "stablehlo.xor": 1,
    "stablehlo.abs": 1,
    "stablehlo.bitcast_convert": 0,
    "stablehlo.ceil": 1,
    "stablehlo.clamp": 2,
    "stablehlo.convert": 1,
    "stablehlo.floor": 1,
    "stablehlo.is_finite": 1,
    "stablehlo.negate": 1,
    "stablehlo.not": 1,
    "stablehlo.reshape": 0,
    "stablehlo.round_nearest_even": 1,
    "stablehlo.shift_left": 1,
    "stablehlo.shift_right_arithmetic": 1,
    "stablehlo.shift_right_logical": 1,
    "stablehlo.sign": 2,
    "stablehlo.divide": 4,
    "stablehlo.rsqrt": 4,
    "stablehlo.sqrt": 4,
    "stablehlo.atan2": 32,
    "stablehlo.cbrt": 32,
    "stablehlo.cosine": 32,
    "stablehlo.exponential": 16,
    "stablehlo.exponential_minus_one": 32,
    "stablehlo.log": 16,
    "stablehlo.log_plus_one": 32,
    "stablehlo.logistic": 20,
    "stablehlo.power": 32,
    "stablehlo.remainder": 16,
    "stablehlo.sine": 32,
    "stablehlo.tan": 32,
    "stablehlo.tanh": 20,
}
"""About how many of the processor's operations; of what is not here, elements are there already."""
_OF_CHLO: Final = 32


def weight(name: str) -> int | None:
    """About how many an operation of a name is; None if it does not go element by element."""
    if name.startswith("chlo."):
        return _OF_CHLO
    return _WEIGHTS.get(name)


def effort(x: Any, enough: int) -> int:
    """About how many operations an element takes; no more are looked for than `enough`."""
    found, due, seen = 0, [x], {x}
    while due and found < enough:
        made = due.pop().owner
        known = weight(getattr(made, "name", ""))  # a parameter of a block has none
        if known is not None:
            found += known
            operands = [each for each in made.operands if each not in seen]
            seen.update(operands)
            due += operands
    return found


_STORED: Final = frozenset(
    f"stablehlo.{name}"
    for name in "case convolution custom_call dot_general fft optimization_barrier reduce sort "
    "triangular_solve while".split()
)
"""Operations whose results are in memory."""


def is_stored(x: Any) -> bool:
    """Whether elements are in memory, and not computed where they are read."""
    made = x.owner
    while getattr(made, "name", "") == "stablehlo.reshape":
        x = made.operands[0]
        made = x.owner
    if hasattr(made, "arguments"):  # a block; calls of other functions are inlined
        function = made.owner.attributes
        return "sym_name" in function and str(function["sym_name"]) == '"main"'
    return getattr(made, "name", "") in _STORED or is_apart(made)
