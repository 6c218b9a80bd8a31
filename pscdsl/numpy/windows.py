"""Windows of signal processing, symmetric as in NumPy; open as floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.special import i0
from pscdsl.numpy.shorthand import largest
from pscdsl.numpy.sizes import as_count
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType, Kind


@function("numpy.hanning")
def hanning(here: Builder, M: Any) -> Weak:
    """The Hann window."""
    return _window(here, "numpy.hanning", M, lambda t: 0.5 + 0.5 * _cosine(t, 1))


@function("numpy.hamming")
def hamming(here: Builder, M: Any) -> Weak:
    """The Hamming window."""
    return _window(here, "numpy.hamming", M, lambda t: 0.54 + 0.46 * _cosine(t, 1))


@function("numpy.blackman")
def blackman(here: Builder, M: Any) -> Weak:
    """The Blackman window."""
    return _window(
        here,
        "numpy.blackman",
        M,
        lambda t: 0.42 + 0.5 * _cosine(t, 1) + 0.08 * _cosine(t, 2),
    )


@function("numpy.bartlett")
def bartlett(here: Builder, M: Any) -> Weak:
    """The triangular window that ends at zero."""
    return _window(here, "numpy.bartlett", M, lambda t: 1.0 - e.absolute(t))


@function("numpy.kaiser")
def kaiser(here: Builder, M: Any, beta: Any) -> Weak:
    """The Kaiser window, whose shape is a static number."""
    if not isinstance(beta, int | float) or isinstance(beta, bool):
        problem = "takes a number as `beta` that is known while checking"
        raise Failure(BadArguments(function="numpy.kaiser", problem=problem))

    def shape_of(t: Value) -> Any:
        inside = e.sqrt(e.multiply(e.subtract(1, t), e.add(1, t)))
        whole = i0(t.builder.literal(float(beta), t.dtype))
        return e.divide(i0(e.multiply(inside, float(beta))), whole)

    return _window(here, "numpy.kaiser", M, shape_of)


def _cosine(t: Value, times: int) -> Any:
    return e.cos(t * (math.pi * times))


def _window(here: Builder, name: str, size: Any, shape_of: Callable[[Value], Any]) -> Weak:
    """A function of the places, which run from -1 to 1."""
    count = as_count(size, name, here.facts)
    gaps = largest(here.facts, count - 1, 1)

    def at(dtype: DType) -> Value:
        place = here.bind(Iota((count,), 0, dtype), ())[0]
        centred = e.subtract(e.multiply(place, 2), count - 1)
        result: Value = shape_of(e.divide(centred, gaps))
        return result

    return Weak(here, Kind.FLOAT, (count,), at)
