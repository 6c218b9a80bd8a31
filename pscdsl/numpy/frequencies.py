"""The frequencies of a Fourier transform's elements, and the order that has 0 in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl.numpy.arguments import as_items
from pscdsl.numpy.axes import normalize_axes
from pscdsl.numpy.calling import of_arrays, require_number
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.openness import met
from pscdsl.numpy.shorthand import cast, joined, part, where
from pscdsl.numpy.sizes import as_count
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.shapes_manipulation import UnprovenSize, WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, Kind


@function("numpy.fft.fftfreq")
def fftfreq(here: Builder, n: Any, d: Any = 1.0) -> Value | Weak:
    """The frequencies of `fft` in cycles per unit of `d`: those from 0, then the negative ones."""
    name = "numpy.fft.fftfreq"
    count = _count(here, n, name)

    def places() -> Value:
        place = _counting(here, count)
        return where(e.less(place, here.size((count + 1) // 2, I32)), place, place - count)

    return _frequencies(here, name, places, count, d)


@function("numpy.fft.rfftfreq")
def rfftfreq(here: Builder, n: Any, d: Any = 1.0) -> Value | Weak:
    """The frequencies of `rfft`, in cycles per unit of `d`."""
    name = "numpy.fft.rfftfreq"
    count = _count(here, n, name)
    return _frequencies(here, name, lambda: _counting(here, count // 2 + 1), count, d)


def _count(here: Builder, n: Any, name: str) -> Size:
    count = as_count(n, name, here.facts)
    claim = Fact("<=", 1, count)
    if not here.facts.proves(claim):
        raise Failure(UnprovenSize.of(here.facts, f"a length in `{name}`", claim))
    return count


def _counting(here: Builder, size: Size) -> Value:
    return here.bind(Iota((size,), 0, I32), ())[0]


def _frequencies(here: Builder, name: str, places: Any, count: Size, d: Any) -> Value | Weak:
    require_number(d, name, "d")

    def build(values: Sequence[Value]) -> Value:
        require(name, values[0], REAL)
        spacing = to_inexact(values[0])
        if spacing.ndim:
            raise Failure(
                WrongNumberOfAxes(function=name, given=spacing.type, wanted="a number as `d`")
            )
        step = e.divide(1, e.multiply(spacing, here.size(count, spacing.dtype)))
        return e.multiply(cast(places(), spacing.dtype), step)  # type: ignore[no-any-return]

    return met(here, (d,), None, build, Kind.FLOAT)


@of_arrays("numpy.fft.fftshift", together=("x",))
def fftshift(x: Value, axes: Any = None) -> Value:
    """The element of frequency 0 moved to the middle, along all axes or some."""
    for axis in _axes(x, axes, "numpy.fft.fftshift"):
        size = x.shape[axis]
        x = _turned(x, axis, (size + 1) // 2)
    return x


@of_arrays("numpy.fft.ifftshift", together=("x",))
def ifftshift(x: Value, axes: Any = None) -> Value:
    """The inverse of `fftshift`."""
    for axis in _axes(x, axes, "numpy.fft.ifftshift"):
        x = _turned(x, axis, x.shape[axis] // 2)
    return x


def _axes(x: Value, axes: Any, name: str) -> tuple[int, ...]:
    return normalize_axes(None if axes is None else [*as_items(axes)], x.ndim, name)


def _turned(x: Value, axis: int, start: Size) -> Value:
    """The elements from a place on, then those before it."""
    return joined([part(x, axis, start, x.shape[axis]), part(x, axis, 0, start)], axis)
