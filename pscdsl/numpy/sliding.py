"""Convolution and correlation of two vectors."""

from __future__ import annotations

from pscdsl._src.ir.builder import Value
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.shaping import Pad
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.contraction import Labelled, contract
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.linear import conjugated
from pscdsl.numpy.reductions import require_elements
from pscdsl.numpy.searching import require_vector
from pscdsl.numpy.shorthand import (
    at_least,
    cast,
    iota,
    joined,
    part,
    reshaped,
    reversed_along,
    truth,
)
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_library import LongerUnknown
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32

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
        for pair in ((window_re, e.negative(window_im)), (window_im, window_re))
    ]
    slide = Convolution((1,), ((low, high),), (1,), (1,))
    result = slide(channels, joined(rows, 0))
    first, second = (reshaped(part(result, 1, i, i + 1), result.shape[2:]) for i in range(2))
    return e.make_complex(first, second)  # type: ignore[no-any-return]


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
    index: Value = e.add(starts, reshaped(iota(x, size), (1, size)))
    under = Gather((0,))(padded, reshaped(index, (count, size, 1)))
    result = contract((Labelled(under, ("i", "k")), Labelled(window, ("k",))), ("i",))
    return truth(result) if dtype is BOOL else result
