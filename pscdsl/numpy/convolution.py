"""Convolutions, correlations and pooling: windows that slide over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import Reduction, identity
from pscdsl._src.primitives.shaping import Pad
from pscdsl._src.primitives.windows import Convolution, Padding, ReduceWindow
from pscdsl.numpy.calling import as_count, as_integer, as_size, of_numbers
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.products import Labelled, conjugated, contract
from pscdsl.numpy.reductions import require_elements, wide_integers
from pscdsl.numpy.shorthand import (
    at_least,
    cast,
    filled,
    iota,
    joined,
    largest,
    least,
    listed,
    part,
    reshaped,
    reversed_along,
    spread,
    truth,
)
from pscdsl.numpy.sorting import require_same_length, require_vector
from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import NotDivisible, UnprovenSize, WrongNumberOfAxes, instance
from pscdsl.typing.codes.shapes_of_arguments import LongerUnknown, TooFewElements
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

# Convolution and correlation of two vectors.


MODES = ("full", "same", "valid")


@of_numbers("numpy.convolve", together=("a", "v"))
def convolve(a: Value, v: Value, mode: str = "full") -> Value:
    """The discrete convolution of two vectors; both must be known to have elements."""
    _check("numpy.convolve", a, v, mode)
    if mode != "full" and _shorter("numpy.convolve", a, v):
        a, v = v, a
    return _slid(a, reversed_along(v, 0), mode)


@of_numbers("numpy.correlate", together=("a", "v"))
def correlate(a: Value, v: Value, mode: str = "valid") -> Value:
    """The correlation of two vectors, the second conjugated."""
    _check("numpy.correlate", a, v, mode)
    if mode != "full" and _shorter("numpy.correlate", a, v):
        return reversed_along(conjugated(_slid(v, conjugated(a), mode)), 0)
    return _slid(a, conjugated(v), mode)


def _check(name: str, a: Value, v: Value, mode: str) -> None:
    if mode not in MODES:
        raise Failure(BadArguments(function=name, problem=f"has no mode {describe(mode)}"))
    for x in (a, v):
        require(name, x, "any")
        require_vector(x, name, "vectors")
        require_elements(x, (0,), name)


def _shorter(name: str, a: Value, v: Value) -> bool:
    """Whether the first is the shorter one; a Failure where that differs from size to size."""
    facts = a.builder.facts
    if at_least(facts, a.shape[0], v.shape[0]):
        return False
    if at_least(facts, v.shape[0], a.shape[0]):
        return True
    raise Failure(LongerUnknown(function=name, left=a.shape[0], right=v.shape[0]))


def _slid(x: Value, window: Value, mode: str) -> Value:
    """Products of the window with what is under it, summed, as it slides along x."""
    size = window.shape[0]
    low: Size = 0
    high: Size = 0
    if mode == "full":
        low = high = size - 1
    elif mode == "same":
        low, high = size // 2, size - 1 - size // 2
    if x.dtype.is_complex:
        return _complex(x, window, low, high)
    if not x.dtype.is_float:
        return _integers(x, window, low, high)
    slide = Convolution((1,), ((low, high),), (1,), (1,))
    result = slide(reshaped(x, (1, 1, x.shape[0])), reshaped(window, (1, 1, size)))
    return reshaped(result, result.shape[2:])


def _complex(x: Value, window: Value, low: Size, high: Size) -> Value:
    """Both parts of x with both parts of the window, as channels of one convolution."""
    size, width = x.shape[0], window.shape[0]
    parts = [(e.real(z), e.imag(z)) for z in (x, window)]
    (re, im), (window_re, window_im) = parts
    channels = joined([reshaped(z, (1, 1, size)) for z in (re, im)], 1)
    rows = [
        joined([reshaped(z, (1, 1, width)) for z in pair], 1)
        for pair in ((window_re, -window_im), (window_im, window_re))
    ]
    slide = Convolution((1,), ((low, high),), (1,), (1,))
    result = slide(channels, joined(rows, 0))
    first, second = (reshaped(part(result, 1, i, i + 1), result.shape[2:]) for i in range(2))
    return e.make_complex(first, second)


def _integers(x: Value, window: Value, low: Size, high: Size) -> Value:
    """Every position of the window laid out: accelerators convolve no integers."""
    dtype = x.dtype
    if dtype is BOOL:
        x, window = cast(x, I32), cast(window, I32)
    zero = x.builder.program.current.literal(0, x.dtype)
    padded = x if low == 0 and high == 0 else Pad((low,), (high,), (0,))(x, zero)
    size = window.shape[0]
    count = padded.shape[0] - size + 1
    starts = reshaped(iota(x, count), (count, 1))
    index: Value = starts + reshaped(iota(x, size), (1, size))
    under = Gather((0,))(padded, reshaped(index, (count, size, 1)))
    result = contract((Labelled(under, ("i", "k")), Labelled(window, ("k",))), ("i",))
    return truth(result) if dtype is BOOL else result


# Windows that slide over the last axes of an array: convolutions and pooling.
#
# Arrays are [batch, channels, *spatial], kernels [outputs, channels / groups, *spatial]; a kernel
# is not flipped. Padding is "valid" (none), "same" (as many results as elements, divided by the
# stride and rounded up), or a pair of sizes for each axis.


KINDS: dict[str, Reduction] = {
    "sum": "sum",
    "prod": "product",
    "max": "maximum",
    "min": "minimum",
}


def _refuse(name: str, problem: str) -> NoReturn:
    raise Failure(BadArguments(function=name, problem=problem))


def _each(x: Any, count: int, name: str, what: str) -> tuple[int, ...]:
    """A positive integer for each axis, or one for all."""
    items = listed(x) or (x,) * count
    found = tuple([as_integer(item, name) for item in items])
    if len(found) != count or min((1, *found)) < 1:
        _refuse(name, f"takes `{what}` as a positive integer or {count} of them, not {describe(x)}")
    return found


def _groups(facts: Assumptions, x: Any, name: str) -> Size:
    """A positive number of groups."""
    size = as_size(x, name)
    if isinstance(size, int) and size < 1:
        _refuse(name, f"takes `groups` as a positive integer, not {describe(x)}")
    if not at_least(facts, size, 1):
        raise Failure(UnprovenSize.of(facts, f"the groups of `{name}`", Fact("<=", 1, size)))
    return size


def _extents(windows: Sequence[Size], dilation: Sequence[int]) -> Shape:
    """Return how far windows reach, from the first element to the last."""
    return tuple([(w - 1) * d + 1 for w, d in zip(windows, dilation, strict=True)])


def _padding(
    facts: Assumptions,
    padding: Any,
    shape: Sequence[Size],
    extents: Sequence[Size],
    strides: Sequence[int],
    name: str,
) -> Padding:
    if padding == "valid":
        return tuple([(0, 0)] * len(shape))
    if padding == "same":
        parts = zip(shape, extents, strides, strict=True)
        return tuple([_same(facts, size, extent, stride) for size, extent, stride in parts])
    given = listed(padding)
    if given is None or len(given) != len(shape):
        _refuse(
            name, f"takes a padding 'same', 'valid' or {len(shape)} pairs, not {describe(padding)}"
        )
    pairs: list[tuple[Size, Size]] = []
    for each in given:
        pair = listed(each)
        if pair is None or len(pair) != 2:
            _refuse(name, f"takes a pair of sizes as the padding of an axis, not {describe(each)}")
        pairs.append((as_size(pair[0], name), as_size(pair[1], name)))
    return tuple(pairs)


def _same(facts: Assumptions, size: Size, extent: Size, stride: int) -> tuple[Size, Size]:
    """Padding before and after; less than zero after, where strides go over the last elements."""
    count = (size + (stride - 1)) // stride
    total = (count - 1) * stride + extent - size
    low = total // 2 if at_least(facts, extent, stride) else largest(facts, total, 0) // 2
    return low, total - low


def _require_fit(
    x: Value,
    first: int,
    extents: Sequence[Size],
    padding: Padding,
    what: str,
    name: str,
) -> None:
    facts = x.builder.facts
    for axis, (extent, (low, high)) in enumerate(zip(extents, padding, strict=True), first):
        padded = x.shape[axis] + low + high
        if not at_least(facts, padded, extent):
            why = instance(facts, Fact("<=", extent, padded))
            raise Failure(
                TooFewElements(
                    function=name, given=x.type, size=padded, needed=extent, what=what, why=why
                )
            )


def _check_kernel(x: Value, kernel: Value, groups: Size, name: str) -> None:
    require(name, x, "floating")
    if x.ndim < 3:
        wanted = "an array with batch, channel and spatial axes"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))
    if kernel.ndim != x.ndim:
        wanted = f"a kernel with {x.ndim} axes"
        raise Failure(WrongNumberOfAxes(function=name, given=kernel.type, wanted=wanted))
    facts, taken = x.builder.facts, kernel.shape[1] * groups
    what = "the channels that the kernel takes"
    require_same_length(x, (x.shape[1], taken), name, "the channels", what)
    if not facts.equal(kernel.shape[0] % groups, 0):
        raise Failure(NotDivisible.of(facts, name, kernel.shape[0], groups))
    for size in kernel.shape[2:]:
        if not at_least(facts, size, 1):
            _refuse(name, f"takes a kernel with elements, not {kernel.type}")


@of_numbers("pscdsl.conv", together=("x", "kernel"))
def conv(x: Value, kernel: Value, strides: Any, padding: Any, dilation: Any, groups: Size) -> Value:
    """The kernel slid over x: [n c *spatial] and [o c/groups *spatial] to [n o *spatial]."""
    groups = _groups(x.builder.facts, groups, "pscdsl.conv")
    _check_kernel(x, kernel, groups, "pscdsl.conv")
    count = x.ndim - 2
    step = _each(strides, count, "pscdsl.conv", "strides")
    spacing = _each(dilation, count, "pscdsl.conv", "dilation")
    extents = _extents(kernel.shape[2:], spacing)
    pads = _padding(x.builder.facts, padding, x.shape[2:], extents, step, "pscdsl.conv")
    _require_fit(x, 2, extents, pads, "the kernel", "pscdsl.conv")
    return Convolution(step, pads, (1,) * count, spacing, groups)(x, kernel)


@of_numbers("pscdsl.conv_transpose", together=("x", "kernel"))
def conv_transpose(
    x: Value, kernel: Value, strides: Any, padding: Any, dilation: Any, groups: Size
) -> Value:
    """The kernel slid over x with `stride - 1` zeros between its elements.

    With padding "same" there are `stride` results for each element, with "valid" all where the
    kernel meets an element.
    """
    name = "pscdsl.conv_transpose"
    groups = _groups(x.builder.facts, groups, name)
    _check_kernel(x, kernel, groups, name)
    facts, count = x.builder.facts, x.ndim - 2
    step = _each(strides, count, name, "strides")
    spacing = _each(dilation, count, name, "dilation")
    extents = _extents(kernel.shape[2:], spacing)
    pads: list[tuple[Size, Size]] = []
    for extent, stride in zip(extents, step, strict=True):
        if padding == "same":
            total = extent + (stride - 2)
            low = least(facts, (total + 1) // 2, extent - 1)
            pads.append((low, total - low))
        else:
            pads.append((extent - 1, largest(facts, extent, stride) - 1))
    chosen = tuple(pads)
    if padding not in ("same", "valid"):
        chosen = _padding(facts, padding, x.shape[2:], extents, step, name)
    return Convolution((1,) * count, chosen, step, spacing, groups)(x, kernel)


def _pooled(
    x: Value,
    kind: Reduction,
    window: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    count: int,
    name: str,
) -> Value:
    """Windows over the last `count` axes, combined."""
    facts, first = x.builder.facts, x.ndim - count
    items = listed(window) or (window,) * count
    sizes = tuple([as_count(item, name, facts) for item in items])
    if len(sizes) != count or not all(at_least(facts, size, 1) for size in sizes):
        _refuse(name, f"takes a window of {count} positive sizes, not {describe(window)}")
    step = _each(sizes if strides is None else strides, count, name, "strides")
    spacing = _each(dilation, count, name, "dilation")
    extents = _extents(sizes, spacing)
    pads = _padding(facts, padding, x.shape[first:], extents, step, name)
    _require_fit(x, first, extents, pads, "the window", name)
    one = (1,) * first
    none: Padding = ((0, 0),) * first
    if not all(at_least(facts, size, 0) for pair in pads for size in pair):
        neutral = filled(x, identity(kind, x.dtype), ())
        low, high = zip(*none, *pads, strict=True)
        x, pads = Pad(low, high, (0,) * x.ndim)(x, neutral), ((0, 0),) * count
    dense = (1,) * x.ndim
    return ReduceWindow(kind, one + sizes, one + step, none + pads, one + spacing, dense)(x)


def _spatial(x: Value, name: str) -> int:
    if x.ndim < 3:
        wanted = "an array with batch, channel and spatial axes"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))
    return x.ndim - 2


@of_numbers("pscdsl.max_pool", together=("x",))
def max_pool(x: Value, window: Any, strides: Any, padding: Any, dilation: Any) -> Value:
    """The largest in each window over the spatial axes; strides are the window unless given."""
    require("pscdsl.max_pool", x, REAL)
    count = _spatial(x, "pscdsl.max_pool")
    return _pooled(x, "maximum", window, strides, padding, dilation, count, "pscdsl.max_pool")


@of_numbers("pscdsl.avg_pool", together=("x",))
def avg_pool(
    x: Value, window: Any, strides: Any, padding: Any, dilation: Any, count_padding: bool
) -> Value:
    """The mean of each window over the spatial axes, of what is not padding unless so asked."""
    count = _spatial(x, "pscdsl.avg_pool")
    require("pscdsl.avg_pool", x, "numeric")
    x = to_inexact(x)
    arguments = (window, strides, padding, dilation, count, "pscdsl.avg_pool")
    sums = _pooled(x, "sum", *arguments)
    if count_padding or padding == "valid":
        number: Size = 1
        for item in listed(window) or (window,) * count:
            number = number * item
        return sums / number
    ones = filled(x, 1, (1, 1, *x.shape[2:]))
    numbers = _pooled(ones, "sum", *arguments)
    shared = spread(reshaped(numbers, numbers.shape[2:]), sums.shape, range(2, sums.ndim))
    return sums / shared


@of_numbers("pscdsl.reduce_window", together=("x",))
def reduce_window(
    x: Value, kind: str, window: Any, strides: Any, padding: Any, dilation: Any
) -> Value:
    """The "sum", "prod", "max" or "min" of windows over the last axes, as many as it has sizes."""
    name = "pscdsl.reduce_window"
    if kind not in KINDS:
        _refuse(name, f"has no kind {describe(kind)}; there are {', '.join(KINDS)}")
    sizes = listed(window)
    count = x.ndim if sizes is None else len(sizes)
    if count > x.ndim:
        wanted = f"an array with {count} axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))
    if kind in ("sum", "prod"):
        x = wide_integers(x)
    else:
        require(name, x, REAL)
    return _pooled(x, KINDS[kind], window, strides, padding, dilation, count, name)
