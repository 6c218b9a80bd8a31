"""Between which numbers the elements of a value lie, from the operations that compute it.

So that a rule may leave out what only other numbers need: the sine of a hyperbolic tangent is one
of small numbers.  NaN may always occur besides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.xla.emit import context as c
from pscdsl.typing.dtypes import BOOL, F16, F64, KEY, DType

Bounds: TypeAlias = tuple[float, float]

MOST_OPERATIONS: Final = 48
"""So many operations are looked at for one value."""
MOST_ELEMENTS: Final = 1 << 12
"""Of a constant that is looked at."""
ANY: Final[Bounds] = (-math.inf, math.inf)
_ROUNDED: Final = 2.0**-7
"""What results are rounded by at most, as a part of them: more than half a unit of bf16."""


def bounds(x: Any, told: Mapping[Any, Bounds]) -> Bounds:
    """Bounds of the real elements of a value, infinite where none are seen.

    `told` has those of values that nobody sees from their operations.
    """
    found: dict[Any, Bounds] = {}

    def of(value: Any) -> Bounds:
        known = found.get(value) or told.get(value)
        if known is None:
            dtype = c.facts(value.type).dtype
            known = _limits(dtype)
            found[value] = known  # if it is asked for again while its operands are
            if len(found) <= MOST_OPERATIONS and dtype is not KEY and not dtype.is_complex:
                found[value] = known = _fitting(_of_operation(value, of), dtype)
        return known

    return of(x)


def _limits(dtype: DType) -> Bounds:
    """Of all elements that a dtype has."""
    if dtype is BOOL:
        return (0, 1)
    if not dtype.is_integer:
        return ANY
    info = np.iinfo(to_numpy(dtype))
    return (int(info.min), int(info.max))


def _fitting(given: Bounds, dtype: DType) -> Bounds:
    """Bounds after rounding, where nothing is known of integers that may wrap around."""
    low, high = given
    limits = _limits(dtype)
    if math.isnan(low) or math.isnan(high) or not limits[0] <= low <= high <= limits[1]:
        return limits
    return (-_outwards(-low, dtype), _outwards(high, dtype)) if dtype.is_float else given


def _outwards(bound: float, dtype: DType) -> float:
    """An upper bound of what is rounded to a dtype, flushed to zero, or infinite."""
    tiny, most = {F16: (2.0**-14, 65000.0), F64: (2.0**-1022, 1e308)}.get(dtype, (2.0**-126, 3e38))
    if abs(bound) < tiny:
        return max(bound, 0.0) * 2
    bound += abs(bound) * _ROUNDED
    return bound if abs(bound) < most else math.copysign(math.inf, bound)


def _of_operation(value: Any, of: Callable[[Any], Bounds]) -> Bounds:
    made = value.owner
    name = getattr(made, "name", "").removeprefix("stablehlo.")  # a parameter of a block has none
    if name in FIXED:
        return FIXED[name]
    if name == "constant":
        return _of_constant(made)
    if name == "iota":
        return 0, max(0, value.type.shape[int(made.attributes["iota_dimension"])] - 1)
    if name in SAME:
        return of(made.operands[0])
    if name == "convert":
        return _of_convert(value, made.operands[0], of)
    if name == "select":
        return _union([of(each) for each in list(made.operands)[1:]])
    if name == "concatenate":
        return _union([of(each) for each in made.operands])
    if name == "clamp":
        low, x, high = map(of, made.operands)
        return BINARY["minimum"](BINARY["maximum"](x, low), high)
    if (unary := UNARY.get(name)) is not None:
        return unary(of(made.operands[0]))
    binary = BINARY.get(name)
    if binary is None or (binary is _quotients and c.facts(value.type).dtype.is_integer):
        return ANY
    return binary(*map(of, made.operands))


def _of_constant(made: Any) -> Bounds:
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


def _of_convert(value: Any, given: Any, of: Callable[[Any], Bounds]) -> Bounds:
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
"""Operations whose results are bounded whatever they are given."""
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
"""The same of two operands."""
