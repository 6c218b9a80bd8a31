"""Differences of neighbours."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.joining import concatenated
from pscdsl.numpy.shorthand import largest, least, part, raveled
from pscdsl.numpy.sizes import as_times
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL


@of_arrays("numpy.diff", together=("a", "prepend", "append"))
def diff(
    a: Value,
    n: int = 1,
    axis: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
) -> Value:
    """Each element's difference to the one before it, `n` times; of bools, whether they differ."""
    place = normalize_axis(axis, a.ndim, "numpy.diff")
    times = as_times(n, "numpy.diff")
    if times < 0:
        raise Failure(BadArguments(function="numpy.diff", problem=f"cannot be taken {times} times"))
    if times == 0:
        return a
    ends = [_end(x, a, place) for x in (prepend, append)]
    pieces = [x for x in (ends[0], a, ends[1]) if x is not None]
    a = concatenated("numpy.diff", pieces, place)
    for _ in range(times):
        a = _once(a, place)
    return a


def _end(x: Value | None, a: Value, axis: int) -> Value | None:
    if x is None or x.ndim:
        return x
    return broadcast_to(x, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


def _once(a: Value, axis: int) -> Value:
    facts, size = a.builder.facts, a.shape[axis]
    later = part(a, axis, least(facts, 1, size), size)
    earlier = part(a, axis, 0, largest(facts, size - 1, 0))
    result: Value = (e.bitwise_xor if a.dtype is BOOL else e.subtract)(later, earlier)
    return result


@of_arrays(
    "numpy.ediff1d",
    together=("ary", "to_end", "to_begin"),
    cast=("to_end", "to_begin"),
    keeps=("ary",),
)
def ediff1d(ary: Value, to_end: Any = None, to_begin: Any = None) -> Value:
    """Differences of neighbours along all elements, maybe with numbers before and after."""
    require("numpy.ediff1d", ary, "numeric")
    pieces = [to_begin, _once(raveled(ary), 0), to_end]
    return concatenated("numpy.ediff1d", [raveled(x) for x in pieces if x is not None], 0)
