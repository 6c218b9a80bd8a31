"""Differences that DIFFERENCES.md has a row for: which row, and of which calls it speaks."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.replay.calls import Call, is_array, leaves
from tests.replay.judging import Difference

SUMS: Final = frozenset(
    "sum prod cumsum cumprod trace nansum nanprod nancumsum nancumprod cumulative_sum "
    "cumulative_prod reduce accumulate".split()
)
MEANS: Final = frozenset(
    "mean var std average median quantile percentile cov corrcoef nanmean nanvar nanstd nanmedian "
    "nanquantile nanpercentile gradient trapezoid histogram interp convolve correlate".split()
)
CASTS: Final = frozenset("array asarray asanyarray astype".split())
EMPTY: Final = frozenset("empty empty_like".split())
FACTORS: Final = frozenset(
    "solve inv tensorsolve tensorinv cholesky eigh eigvalsh svd svdvals pinv eig eigvals cond "
    "matrix_power lstsq qr det slogdet matrix_rank solve_triangular norm matrix_norm".split()
)
BY_LOGARITHM: Final = frozenset("beta gammainc gammaincc betainc betaincc".split())
OPEN: Final = {"float32": "float64", "int32": "int64", "complex64": "complex128"}


@dataclass(frozen=True)
class Row:
    """A row of the tables, named by words that no other row has, and what it explains."""

    words: str
    kinds: frozenset[str]
    """Kinds of differences."""
    speaks_of: Callable[[Call, Difference], bool]


ROWS: Final[list[Row]] = []


def row(words: str, *kinds: str) -> Callable[[Callable[[Call, Difference], bool]], None]:
    """Declare that a row explains the differences of some kinds that a function holds of."""
    return lambda speaks_of: ROWS.append(Row(words, frozenset(kinds), speaks_of))


def documented(call: Call, difference: Difference) -> str | None:
    """Return the row that documents a difference of a call."""
    for each in ROWS:
        if difference.kind in each.kinds and each.speaks_of(call, difference):
            return each.words
    return None


# What is asked of calls.


def short(call: Call) -> str:
    """Return the name without its module."""
    return call.name.rpartition(".")[2]


def operands(call: Call) -> list[Any]:
    """Return the arrays of a call, NumPy's scalars among them."""
    return [x for x in leaves([*call.args, *call.kwargs.values()]) if is_array(x)]


def dtypes(difference: Difference) -> tuple[str, str]:
    """Return the dtype of the result, and NumPy's."""
    return str(difference.found.dtype), str(difference.wanted.dtype)


def narrower(difference: Difference) -> bool:
    """Return whether the result has 32 bits in place of 64, of one kind."""
    found, wanted = dtypes(difference)
    return OPEN.get(found) == wanted or (found, wanted) == ("uint32", "uint64")


def in_32_bits(call: Call) -> bool:
    """Return whether floats are taken, none of them of more than 32 bits."""
    widths = [x.real.dtype.itemsize for x in operands(call) if x.dtype.kind in "fc"]
    return bool(widths) and max(widths) <= 4


def integers(call: Call) -> bool:
    """Return whether an array of integers or truth values is taken."""
    return any(x.dtype.kind in "biu" for x in operands(call))


def numbers(call: Call) -> Iterator[Any]:
    """Yield the floating-point and complex numbers of a call."""
    for x in leaves([*call.args, *call.kwargs.values()]):
        if is_array(x) and x.dtype.kind in "fc":
            yield from x.ravel()
        elif isinstance(x, float | complex):
            yield x


# The rows.


@row("dtype where nothing decides", "dtype")
def _(call: Call, difference: Difference) -> bool:
    return narrower(difference) and in_32_bits(call)


@row("dtype where nothing decides", "value")
def _(call: Call, difference: Difference) -> bool:
    """Numbers that 32 bits do not hold."""
    single = np.finfo(np.float32)
    sizes = np.abs([*numbers(call), *np.ravel(difference.wanted)]).astype(float)
    outside = (sizes > single.max) | ((sizes < single.tiny) & (sizes > 0))
    return narrower(difference) and in_32_bits(call) and bool(outside.any())


@row("on integers of 8 and 16 bits and bools", "dtype", "value")
def _(call: Call, difference: Difference) -> bool:
    found, wanted = dtypes(difference)
    return integers(call) and found == "float64" and wanted in ("float16", "float32")


@row("`empty`, `empty_like`", "value", "zero")
def _(call: Call, difference: Difference) -> bool:
    padding = short(call) == "pad" and "empty" in [*call.args[2:3], call.kwargs.get("mode")]
    return short(call) in EMPTY or padding


@row("floats out of range give the nearest integer", "value")
def _(call: Call, difference: Difference) -> bool:
    found, wanted = difference.found, difference.wanted
    if (
        short(call) not in ("array", "asarray", "asanyarray", "astype")
        or wanted.dtype.kind not in "iu"
    ):
        return False
    floats = np.array([float(np.real(x)) for x in numbers(call)])
    bounds = np.iinfo(wanted.dtype)
    inside = (floats > float(bounds.min) - 1) & (floats < float(bounds.max) + 1)
    return floats.size == found.size and not (found != wanted)[inside.reshape(found.shape)].any()


@row("floats out of range give the nearest integer", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in CASTS and "cannot convert float" in difference.detail


@row("of an integer scalar that the dtype does not hold", "raises")
def _(call: Call, difference: Difference) -> bool:
    overflows = "OverflowError" in difference.detail
    return short(call) in CASTS and overflows and bool(operands(call))


@row("`sort`, `argsort` without `kind=", "value")
def _(call: Call, difference: Difference) -> bool:
    if short(call) != "argsort":
        return False
    x = np.asarray(call.args[0])
    axis = call.kwargs.get("axis", call.args[1] if len(call.args) > 1 else -1)
    x, axis = (x.ravel(), -1) if axis is None else (x, axis)
    ours, theirs = (
        np.take_along_axis(x, places.astype(np.int64), axis)
        for places in (difference.found, difference.wanted)
    )
    return np.array_equal(ours, theirs, equal_nan=x.dtype.kind in "fc")


@row("subnormal numbers of `f32`", "value", "zero")
def _(call: Call, difference: Difference) -> bool:
    """Operands that are subnormal; or results, which are zeros of the same sign or subnormal."""
    found, wanted = difference.found, difference.wanted
    if found.dtype.kind not in "fc" or found.dtype.itemsize == 2:
        return False
    tiny = float(np.finfo(found.dtype).tiny)
    if any(0 < abs(part) < tiny for x in numbers(call) for part in (np.real(x), np.imag(x))):
        return True
    apart = np.abs(found - wanted) > 64 * np.finfo(found.dtype).eps * np.abs(wanted)
    small = (np.abs(wanted) < tiny) & (np.abs(found) < tiny)
    return bool(apart.any() and small[apart].all())


@row("computed in float64 where an end is a Python number", "value")
def _(call: Call, difference: Difference) -> bool:
    """Steps are off by a few roundings of the larger end, powers by one of the exponent."""
    name, found, wanted = short(call), difference.found, difference.wanted
    if name not in ("linspace", "logspace", "geomspace") or not np.isfinite(wanted).all():
        return False
    eps = float(np.finfo(found.dtype).eps) if found.dtype.kind in "fc" else 0.0
    size = np.abs(wanted)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(size > 0, size * (2 + np.abs(np.log(size))), size)
    scale = np.max(size, initial=0) if name == "linspace" else powers
    return bool((np.abs(found - wanted) <= 8 * eps * scale).all())


@row("`eig`, `eigvals` of real matrices", "dtype")
def _(call: Call, difference: Difference) -> bool:
    real = difference.wanted.dtype.kind == "f" and not (np.imag(difference.found) != 0).any()
    return short(call) in ("eig", "eigvals") and real


@row("`roots`", "dtype")
def _(call: Call, difference: Difference) -> bool:
    real = difference.wanted.dtype.kind == "f" and not (np.imag(difference.found) != 0).any()
    return short(call) == "roots" and real


@row("`nanargmax`, `nanargmin` of NaN only", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in ("nanargmax", "nanargmin") and "All-NaN slice" in difference.detail


@row("`histogram`, `digitize`, `searchsorted`, `interp`", "raises")
def _(call: Call, difference: Difference) -> bool:
    names = ("digitize", "histogram", "histogram2d", "histogram_bin_edges")
    return short(call) in names and "monotonic" in difference.detail


@row("`histogram`, `histogram2d` edges", "value")
def _(call: Call, difference: Difference) -> bool:
    """Edges, not counts: off by a few roundings of the larger end."""
    found, wanted = difference.found, difference.wanted
    if not short(call).startswith("histogram") or found.dtype.kind != "f":
        return False
    eps = float(np.finfo(found.dtype).eps)
    return bool((np.abs(found - wanted) <= 2 * eps * np.max(np.abs(wanted), initial=0)).all())


@row("or of a smallest and a largest element, that are NaN or infinite", "raises")
def _(call: Call, difference: Difference) -> bool:
    bad = "not finite" in difference.detail or "max must be larger" in difference.detail
    return short(call).startswith("histogram") and bad


@row("`digitize` with descending integers as bins", "value")
def _(call: Call, difference: Difference) -> bool:
    if short(call) != "digitize":
        return False
    bins = np.asarray(call.args[1])
    rounded = bins.astype(float)
    return bins.dtype.kind in "iu" and bins[0] > bins[-1] and rounded[0] == rounded[-1]


@row("with fewer numbers than bins", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call).startswith("histogram") and "Too many bins" in difference.detail


@row("`histogram(bins=…)` with edges", "dtype")
def _(call: Call, difference: Difference) -> bool:
    return short(call).startswith("histogram") and difference.found.dtype.kind == "f"


@row("`partition`, `argpartition`", "value")
def _(call: Call, difference: Difference) -> bool:
    if short(call) not in ("partition", "argpartition"):
        return False
    axis = call.kwargs.get("axis", call.args[2] if len(call.args) > 2 else -1)
    axis = -1 if axis is None else axis
    same = np.sort(difference.found, axis) == np.sort(difference.wanted, axis)
    return bool(same.all())


@row("`interp` beside infinite points", "value")
def _(call: Call, difference: Difference) -> bool:
    infinite = any(np.isinf(x) for x in numbers(Call(call.name, call.args[1:], call.kwargs)))
    return short(call) == "interp" and infinite and bool(np.isnan(difference.found).any())


@row("lists and such numbers beside floats", "dtype")
def _(call: Call, difference: Difference) -> bool:
    found, wanted = dtypes(difference)
    listed = any(isinstance(x, list | tuple) for x in [*call.args, *call.kwargs.values()])
    plain = any(not is_array(x) for x in leaves([*call.args, *call.kwargs.values()]))
    floats = difference.found.dtype.kind in "fc" and difference.wanted.dtype.kind in "fc"
    return listed and plain and floats and found != wanted


@row("functions of a Python number", "dtype")
def _(call: Call, difference: Difference) -> bool:
    given = [*call.args, *call.kwargs.values()]
    return not any(map(is_array, given)) and str(difference.found.dtype) in OPEN


@row("`power` of an integer to a computed negative exponent", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in ("power", "pow") and "negative integer powers" in difference.detail


@row("of negative zeros only", "zero")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in SUMS | {"dot", "matmul", "einsum", "inner", "vecdot", "tensordot"}


@row("with a computed `q` outside 0 to 1", "raises")
def _(call: Call, difference: Difference) -> bool:
    computed = any(map(is_array, [*call.args[1:2], call.kwargs.get("q")]))
    return short(call) in MEANS and computed and "must be in the range" in difference.detail


@row("`cov(fweights=…, aweights=…)` with a negative weight", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) == "cov" and "weights cannot be negative" in difference.detail


@row("`isin` | sorts or looks up", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) == "isin" and "exceed the maximum integer" in difference.detail


@row("of a singular matrix", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in FACTORS and "singular" in difference.detail.lower()


@row("signs of zeros in results", "zero")
def _(call: Call, difference: Difference) -> bool:
    return "linalg" in call.name and short(call) in FACTORS


@row("signs and phases of eigenvectors", "value")
def _(call: Call, difference: Difference) -> bool:
    found, wanted = difference.found, difference.wanted
    near = float(np.sqrt(np.finfo(found.dtype).eps)) if found.dtype.kind in "fc" else 0.0
    vectors = short(call) in ("eigh", "eig", "svd") and found.ndim > 1
    return vectors and np.allclose(np.abs(found), np.abs(wanted), rtol=near, atol=near)


@row("the residual is empty for a deficient rank", "shape")
def _(call: Call, difference: Difference) -> bool:
    return short(call) == "lstsq" and difference.wanted.shape == (0,)


@row("`zeta(x)`, x below 1", "value")
def _(call: Call, difference: Difference) -> bool:
    return short(call) == "zeta" and bool(np.isnan(difference.found).any())


@row("at least float64", "dtype")
def _(call: Call, difference: Difference) -> bool:
    return short(call) == "float_power"


@row("`cholesky` of what is not positive definite", "raises")
def _(call: Call, difference: Difference) -> bool:
    return short(call) in FACTORS and (
        "positive definite" in difference.detail
        or "converge" in difference.detail
        or "has a NaN entry" in difference.detail
    )


@row("| `check_finite` |", "raises")
def _(call: Call, difference: Difference) -> bool:
    return call.name.startswith("scipy.linalg.") and "infs or NaNs" in difference.detail


@row("`beta`, `gammainc`, `gammaincc`, `betainc`, `betaincc` far from 1", "value")
def _(call: Call, difference: Difference) -> bool:
    found, wanted = difference.found, difference.wanted
    if short(call) not in BY_LOGARITHM or found.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        most = 2 * np.abs(np.log(np.abs(wanted))) * float(np.finfo(found.dtype).eps)
        apart = np.abs(found - wanted) > most * np.abs(wanted)
    return bool(np.isfinite(found).all() and np.isfinite(wanted).all() and not apart.any())


@row("functions of complex numbers with a part that is infinite, NaN", "value", "zero")
def _(call: Call, difference: Difference) -> bool:
    if difference.wanted.dtype.kind != "c" and not any(
        isinstance(x, complex | np.complexfloating) for x in numbers(call)
    ):
        return False
    finite = all(np.isfinite(x) for x in numbers(call)) and np.isfinite(difference.wanted).all()
    zeros = any(part == 0 for x in numbers(call) for part in (np.real(x), np.imag(x)))
    return not finite or (difference.kind == "zero" and zeros)
