"""Running sums, products and extrema."""

from __future__ import annotations

from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives.reductions import Accumulation, Cumulative, identity
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.reductions import accumulated, without_nan
from pscdsl.numpy.shorthand import filled, joined, raveled
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType


def running(
    a: Value, kind: Accumulation, axis: int | None, dtype: DType | None, name: str
) -> Value:
    """Each element combined with all before it; without an axis, of all in a row."""
    x = accumulated(a, dtype, name)
    if axis is None:
        return Cumulative(kind, 0)(raveled(x))
    return Cumulative(kind, normalize_axis(axis, a.ndim, name))(x)


@of_numbers("numpy.cumsum", together=("a",))
def cumsum(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running sum; bool and small integers are summed in 32 bits."""
    return running(a, "sum", axis, dtype, "numpy.cumsum")


@of_numbers("numpy.cumprod", together=("a",))
def cumprod(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running product; bool and small integers are multiplied in 32 bits."""
    return running(a, "product", axis, dtype, "numpy.cumprod")


@of_numbers("numpy.nancumsum", together=("a",))
def nancumsum(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running sum of what is not NaN."""
    return running(without_nan(a, 0), "sum", axis, dtype, "numpy.nancumsum")


@of_numbers("numpy.nancumprod", together=("a",))
def nancumprod(a: Value, axis: int | None = None, dtype: DType | None = None) -> Value:
    """The running product of what is not NaN."""
    return running(without_nan(a, 1), "product", axis, dtype, "numpy.nancumprod")


@of_numbers("numpy.cumulative_sum", together=("x",))
def cumulative_sum(
    x: Value,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Value:
    """The running sum, also with the 0 from which it starts."""
    return _standard(x, "sum", axis, dtype, include_initial, "numpy.cumulative_sum")


@of_numbers("numpy.cumulative_prod", together=("x",))
def cumulative_prod(
    x: Value,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Value:
    """The running product, also with the 1 from which it starts."""
    return _standard(x, "product", axis, dtype, include_initial, "numpy.cumulative_prod")


def _standard(
    x: Value,
    kind: Accumulation,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
    name: str,
) -> Value:
    if axis is None and x.ndim != 1:
        raise Failure(BadArguments(function=name, problem="needs an `axis` unless x has just one"))
    place = normalize_axis(0 if axis is None else axis, x.ndim, name)
    result = running(x, kind, place, dtype, name)
    if not include_initial:
        return result
    shape = (*x.shape[:place], 1, *x.shape[place + 1 :])
    start = filled(result, 0 if kind == "sum" else identity(kind, result.dtype), shape)
    return joined((start, result), place)
