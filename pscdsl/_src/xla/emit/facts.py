"""Facts about values, inferred from the operations that compute them.

bounds     bounds of the elements
flushed    whether there are no subnormal numbers
effort     about how many operations an element takes
apart      functions that XLA compiles by themselves: it leaves their calls as they are
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Block, Literal
from pscdsl._src.xla.emit import context as c
from pscdsl.typing.dtypes import BF16, BOOL, F16, F64, KEY, DType

Bounds: TypeAlias = tuple[float, float]

MOST_OPERATIONS: Final = 48
"""The most operations that are examined for one value."""
MOST_ELEMENTS: Final = 1 << 12
"""The most elements of a constant that are examined."""
ANY: Final[Bounds] = (-math.inf, math.inf)
EQUAL: Final = "#stablehlo<comparison_direction EQ>"
_ROUNDED: Final = 2.0**-7
"""The largest relative rounding error of results: more than half a unit of bf16."""


def bounds(x: Any, told: Mapping[Any, Bounds]) -> Bounds:
    """Return bounds of the real elements of a value, infinite where none can be inferred.

    `told` has the bounds of values that cannot be inferred from their operations.
    """
    found: dict[Any, Bounds] = {}

    def of(value: Any) -> Bounds:
        known = found.get(value) or told.get(value)
        if known is None:
            dtype = c.facts(value.type).dtype
            known = _limits(dtype)
            found[value] = known  # if it is asked for again while its operands are
            if len(found) <= MOST_OPERATIONS and dtype is not KEY and not dtype.is_complex:
                found[value] = known = _fitting(_operation_bounds(value, of), dtype)
        return known

    return of(x)


def _limits(dtype: DType) -> Bounds:
    """Return the bounds of all elements that a dtype has."""
    if dtype is BOOL:
        return (0, 1)
    if not dtype.is_integer:
        return ANY
    info = np.iinfo(to_numpy(dtype))
    return (int(info.min), int(info.max))


def _fitting(given: Bounds, dtype: DType) -> Bounds:
    """Return bounds after rounding, unknown for integers that may wrap around."""
    low, high = given
    limits = _limits(dtype)
    if math.isnan(low) or math.isnan(high) or not limits[0] <= low <= high <= limits[1]:
        return limits
    return (-_outwards(-low, dtype), _outwards(high, dtype)) if dtype.is_float else given


def _outwards(bound: float, dtype: DType) -> float:
    """Return an upper bound of a number after rounding to a dtype, flushing or overflow."""
    tiny, most = {F16: (2.0**-14, 65000.0), F64: (2.0**-1022, 1e308)}.get(dtype, (2.0**-126, 3e38))
    if abs(bound) < tiny:
        return max(bound, 0.0) * 2
    bound += abs(bound) * _ROUNDED
    return bound if abs(bound) < most else math.copysign(math.inf, bound)


def _operation_bounds(value: Any, of: Callable[[Any], Bounds]) -> Bounds:
    made = value.owner
    name = getattr(made, "name", "").removeprefix("stablehlo.")  # a parameter of a block has none
    if name in FIXED:
        return FIXED[name]
    if name == "constant":
        return _constant_bounds(made)
    if name == "iota":
        return 0, max(0, value.type.shape[int(made.attributes["iota_dimension"])] - 1)
    if name in SAME:
        return of(made.operands[0])
    if name == "convert":
        return _convert_bounds(value, made.operands[0], of)
    if name == "select":
        return _union([of(_first_choice(made)), of(made.operands[2])])
    if name == "concatenate":
        return _union([of(operand) for operand in made.operands])
    if name == "clamp":
        low, x, high = map(of, made.operands)
        return BINARY["minimum"](BINARY["maximum"](x, low), high)
    if (unary := UNARY.get(name)) is not None:
        return unary(of(made.operands[0]))
    binary = BINARY.get(name)
    if binary is None or (binary is _quotients and c.facts(value.type).dtype.is_integer):
        return ANY
    return binary(*map(of, made.operands))


def _first_choice(select: Any) -> Any:
    """Return the first operand of a choice, or an operand that equals it wherever it is chosen."""
    predicate, first, _ = select.operands
    compare = predicate.owner
    if getattr(compare, "name", "") != "stablehlo.compare":  # the owner of a parameter has none
        return first
    x, limit = compare.operands
    equal = compare.attributes["comparison_direction"] == c.parsed(EQUAL)
    return limit if equal and x == first else first


def _constant_bounds(made: Any) -> Bounds:
    elements = made.attributes["value"]
    if elements.is_splat:
        number = float(elements.get_splat_value().value)
        return number, number
    if len(elements) > MOST_ELEMENTS:
        return ANY
    try:
        array = np.asarray(elements)
    except (TypeError, ValueError):  # a dtype that NumPy does not have
        return ANY
    if array.dtype.kind not in "iuf" or not array.size:
        return ANY
    return float(np.nanmin(array)), float(np.nanmax(array))


def _convert_bounds(value: Any, given: Any, of: Callable[[Any], Bounds]) -> Bounds:
    to, source = (c.facts(each.type).dtype for each in (value, given))
    if source.is_complex or (source.is_float and not to.is_float):  # NaN as an integer: any
        return ANY
    return of(given)


def _union(given: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in given), max(high for _, high in given)


def _products(x: Bounds, y: Bounds) -> Bounds:
    found = [a * b for a in x for b in y]
    return ANY if any(map(math.isnan, found)) else (min(found), max(found))


def _quotients(x: Bounds, y: Bounds) -> Bounds:
    if y[0] <= 0 <= y[1] or math.isinf(y[0]) or math.isinf(y[1]):
        return ANY
    return _products(x, (1 / y[1], 1 / y[0]))


def _absolute(x: Bounds) -> Bounds:
    size = max(abs(x[0]), abs(x[1]))
    return (0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))), size


def _exponential(x: Bounds) -> Bounds:
    low, high = (math.exp(min(each, 700.0)) for each in x)
    return low, high if x[1] < 700 else math.inf


def _root(x: Bounds) -> Bounds:
    return math.sqrt(max(x[0], 0.0)), math.sqrt(max(x[1], 0.0))


def _remainder(x: Bounds, y: Bounds) -> Bounds:
    most = _absolute(x)[1]  # of an integer by zero it is that itself
    if not y[0] <= 0 <= y[1]:
        most = min(most, _absolute(y)[1])
    return (0 if x[0] >= 0 else -most), (0 if x[1] <= 0 else most)


FIXED: Final[Mapping[str, Bounds]] = {
    **dict.fromkeys(("sine", "cosine", "tanh", "chlo.erf", "sign"), (-1.0, 1.0)),
    "logistic": (0.0, 1.0),
    "chlo.atan": (-1.6, 1.6),
    "chlo.asin": (-1.6, 1.6),
    "chlo.acos": (0.0, 3.2),
    "atan2": (-3.2, 3.2),
}
"""Operations whose results are bounded for all operands."""
SAME: Final = frozenset(
    "broadcast_in_dim reshape transpose slice reverse dynamic_slice gather reduce_precision "
    "optimization_barrier".split()
)
"""Operations whose elements are all elements of the first operand."""
UNARY: Final[Mapping[str, Callable[[Bounds], Bounds]]] = {
    "negate": lambda x: (-x[1], -x[0]),
    "abs": _absolute,
    "exponential": _exponential,
    "sqrt": _root,
    "floor": lambda x: (x[0] - 1, x[1]),
    "ceil": lambda x: (x[0], x[1] + 1),
    "round_nearest_even": lambda x: (x[0] - 1, x[1] + 1),
}
"""The bounds of results from those of operands."""
BINARY: Final[Mapping[str, Callable[[Bounds, Bounds], Bounds]]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _products,
    "divide": _quotients,
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "remainder": _remainder,
}
"""The bounds of results from those of two operands."""


_MOST_FOR_SUBNORMAL: Final = 16
"""The most operations that are examined for one value."""
_ARITHMETIC: Final = frozenset(
    f"stablehlo.{name}"
    for name in "add ceil cosine divide exponential floor iota logistic multiply power "
    "round_nearest_even rsqrt sqrt subtract".split()
)
_ALL_OPERANDS: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs clamp concatenate maximum minimum negate pad sine tan tanh".split()
)
"""Operations whose results come from arithmetic, or are elements of operands up to the sign."""
_FIRST_OPERAND: Final = frozenset(f"stablehlo.{name}" for name in SAME)


def flushed(x: Any) -> bool:
    """Return whether arithmetic has computed all elements; False if it takes long to find out."""
    due, seen = [x], {x}
    for _ in range(_MOST_FOR_SUBNORMAL):
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
        due += [operand for operand in operands if operand not in seen]
        seen.update(operands)
    return not due


def _has_the_same(given: DType, to: DType) -> bool:
    """Return whether a conversion keeps subnormal numbers, instead of normalising or flushing."""
    return given is to or BF16 in (given, to)


def _is_normal(made: Any) -> bool:
    """Return whether a constant is one number that is zero or normal in all dtypes."""
    elements = made.attributes["value"]
    if not elements.is_splat:
        return False
    size = abs(float(elements.get_splat_value().value))
    return size == 0 or size >= 2.0**-14 or size != size


_ATTRIBUTES: Final = "mhlo.frontend_attributes"
APART: Final = {_ATTRIBUTES: {"inlineable": "false"}}
"""XLA's word for calls of these."""


class EmittedFunction(NamedTuple):
    """A function that was emitted."""

    results: Sequence[Any]
    bounds: Sequence[Bounds]
    """Bounds of the results."""


def is_apart(operation: Any) -> bool:
    """Return whether an operation is a call of such a function."""
    is_call = getattr(operation, "name", "") == "func.call"  # the owner of a parameter has none
    return is_call and _ATTRIBUTES in operation.attributes


def content(block: Block, tensor: Callable[[Any], Hashable]) -> Hashable:
    """Return a key that is equal for blocks with the same computation and types."""
    numbers: dict[Any, int] = {}
    parts: list[Hashable] = []

    def number(atom: Any) -> Hashable:
        if isinstance(atom, Literal):
            return repr(atom.value), atom.type.dtype.name  # 0.0 equals -0.0
        return numbers[atom]

    for var in block.params:
        numbers[var] = len(numbers)
        parts.append(tensor(var.type))
    for equation in block.equations:
        parts += equation.primitive, *map(number, equation.inputs)
        for var in equation.outputs:
            numbers[var] = len(numbers)
            parts.append(tensor(var.type))
    return (*parts, *map(number, block.results))


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
"""The approximate number of processor operations; unlisted operations only move elements."""
_OF_CHLO: Final = 32


def weight(name: str) -> int | None:
    """About how many an operation of a name is; None if it does not go element by element."""
    if name.startswith("chlo."):
        return _OF_CHLO
    return _WEIGHTS.get(name)


_MOVING: Final = frozenset(
    f"stablehlo.{name}"
    for name in "concatenate dynamic_slice gather iota pad reverse slice transpose".split()
)
"""The operations that XLA computes with their readers, and that do not go element by element."""


def effort(x: Any, enough: int) -> int:
    """About how many operations an element takes; no more are looked for than `enough`."""
    found, due, seen = 0, [x], {x}
    while due and found < enough:
        made = due.pop().owner
        known = weight(getattr(made, "name", ""))  # a parameter of a block has none
        if known is not None:
            found += known
            operands = [operand for operand in made.operands if operand not in seen]
            seen.update(operands)
            due += operands
    return found


def is_flat(x: Any) -> bool:
    """Return whether XLA computes an array from numbers, and arrays with its elements in order."""
    due, seen = [x], {x}
    while due:
        made = due.pop().owner
        name = getattr(made, "name", "")  # a parameter of a block has none
        if name == "stablehlo.broadcast_in_dim":
            if made.operands[0].type.shape:
                return False
        elif name in _MOVING:
            return False
        elif weight(name) is not None:
            due += [operand for operand in made.operands if operand not in seen]
            seen.update(made.operands)
    return True
