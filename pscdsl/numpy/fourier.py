"""`np.fft`: Fourier transforms along some axes, cut or padded to lengths, in three normalisations.

Computed in the precision of the operand: f32 gives c64, f64 gives c128; half precisions and small
integers are taken as f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pscdsl._src.ir.builder import Builder, Value, Weak, weakened
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.language.results import Result, has_axes, new_if
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.fft import MOST_AXES, Fft, FftKind
from pscdsl._src.primitives.shaping import Iota, Pad
from pscdsl._src.primitives.special import i0
from pscdsl.numpy.calling import (
    as_count,
    as_items,
    as_operand,
    as_size,
    is_array,
    met,
    normalize_axes,
    normalize_axis,
    of_arrays,
    of_numbers,
    require_number,
)
from pscdsl.numpy.creation import array
from pscdsl.numpy.elementwise import REAL, conjugate, require, to_inexact
from pscdsl.numpy.shorthand import (
    cast,
    floats_of,
    joined,
    largest,
    least,
    part,
    simplified,
    transposed,
    where,
)
from pscdsl.typing.array_types import size_of
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import UnprovenSize, WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import I32, DType, Kind
from pscdsl.typing.python_containers import is_sequence

Lengths: TypeAlias = Sequence[Size | None]
Build: TypeAlias = Callable[[Value], Value]

EXPONENTS: Final = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""By which power of the number of elements a transform forward is divided; the inverse by what is
left of one."""


def _one_axis(function: str, kind: FftKind, summary: str) -> None:
    """Declare a transform along one axis."""
    name = f"numpy.fft.{function}"

    def body(here: Builder, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        def build(x: Value) -> Value:
            axes = (normalize_axis(axis, x.ndim, name),)
            return _transformed(name, kind, x, (_length(n, name),), axes, norm)

        return _applied(here, a, build, real=kind == "irfft")

    body.__doc__ = summary
    of_numbers(name, traced=("a",))(body)


def _several_axes(function: str, kind: FftKind, axes: tuple[int, ...] | None, summary: str) -> None:
    """Declare a transform along several axes, by default along these."""
    name, default = f"numpy.fft.{function}", axes

    def body(here: Builder, a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Any:
        def build(x: Value) -> Value:
            places, lengths = _places(name, x, s, axes)
            return _transformed(name, kind, x, lengths, places, norm)

        return _applied(here, a, build, real=kind == "irfft")

    body.__doc__ = summary
    always = kind in ("rfft", "irfft")  # along the last axis at least
    result = Result.NEW if always else new_if(_is_transformed)
    of_numbers(name, traced=("a",), result=result)(body)


def _is_transformed(given: Mapping[str, Any]) -> bool:
    """Return whether there is an axis: along none, an array is its own transform."""
    chosen = given.get("s"), given.get("axes")
    return has_axes(given.get("a")) and all(x is None or (is_sequence(x) and x) for x in chosen)


_one_axis("fft", "fft", "The discrete Fourier transform along an axis, cut or padded to `n`.")
_one_axis("ifft", "ifft", "The inverse of `fft`.")
_one_axis("rfft", "rfft", "The transform of real numbers: the first `n // 2 + 1` elements.")
_one_axis("irfft", "irfft", "The inverse of `rfft`: `n` real numbers, by default an even number.")
for _suffix, _axes in (("2", (-2, -1)), ("n", None)):
    _which = "the last two axes" if _axes else "all axes"
    _several_axes(f"fft{_suffix}", "fft", _axes, f"`fft` along several axes, by default {_which}.")
    _several_axes(f"ifft{_suffix}", "ifft", _axes, f"The inverse of `fft{_suffix}`.")
    _several_axes(
        f"rfft{_suffix}",
        "rfft",
        _axes,
        f"`rfft` along the last of several axes, `fft` along the others; by default {_which}.",
    )
    _several_axes(f"irfft{_suffix}", "irfft", _axes, f"The inverse of `rfft{_suffix}`.")


@of_numbers("numpy.fft.hfft", traced=("a",))
def hfft(here: Builder, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The transform, which is real, of numbers of which one half is the conjugate of the other."""
    name = "numpy.fft.hfft"

    def build(x: Value) -> Value:
        axes = (normalize_axis(axis, x.ndim, name),)
        half: Value = conjugate(x)
        return _transformed(name, "irfft", half, (_length(n, name),), axes, norm, forward=True)

    return _applied(here, a, build, real=True)


@of_numbers("numpy.fft.ihfft", traced=("a",))
def ihfft(here: Builder, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The inverse of `hfft`."""
    name = "numpy.fft.ihfft"

    def build(x: Value) -> Value:
        axes = (normalize_axis(axis, x.ndim, name),)
        half = _transformed(name, "rfft", x, (_length(n, name),), axes, norm, forward=False)
        result: Value = conjugate(half)
        return result

    return _applied(here, a, build, real=False)


def _applied(here: Builder, a: Any, build: Build, *, real: bool) -> Value | Weak:
    """A transform of an operand; of an open one it is open, real or complex."""
    x: Value | Weak = as_operand(here, a) if is_array(a) else array(here, a)
    if isinstance(x, Value):
        return build(x)
    given = x

    def at(dtype: DType) -> Value:
        wide = dtype.real if given.kind is not Kind.COMPLEX else dtype.complex
        return cast(build(given.at(wide)), dtype)

    return weakened(here, Kind.FLOAT if real else Kind.COMPLEX, at)


def _length(n: Any, name: str) -> Size | None:
    return None if n is None else as_size(n, name)


def _places(name: str, x: Value, s: Any, axes: Any) -> tuple[tuple[int, ...], Lengths]:
    """The axes, and the length along each; None stands for that of the array."""
    for each, what in ((s, "lengths"), (axes, "axes")):
        if each is not None and not is_sequence(each):
            problem = f"takes a tuple of {what}, not {describe(each)}"
            raise Failure(BadArguments(function=name, problem=problem))
    given = None if s is None else [_length(each, name) for each in as_items(s)]
    if axes is None and given is not None:
        axes = tuple(range(-len(given), 0))
    places = normalize_axes(None if axes is None else [*as_items(axes)], x.ndim, name)
    if not places:
        raise Failure(BadArguments(function=name, problem="takes one axis or more"))
    if given is None:
        return places, [None for _ in places]
    if len(given) != len(places):
        problem = f"takes as many lengths as axes, not {len(given)} and {len(places)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return places, [x.shape[a] if n == -1 else n for a, n in zip(places, given, strict=True)]


def _transformed(
    name: str,
    kind: FftKind,
    x: Value,
    lengths: Lengths,
    axes: tuple[int, ...],
    norm: Any,
    forward: bool | None = None,
) -> Value:
    """The transform along axes, the last of which is the one that has a half."""
    if norm not in EXPONENTS:
        problem = f"takes `norm` as 'backward', 'ortho' or 'forward', not {describe(norm)}"
        raise Failure(BadArguments(function=name, problem=problem))
    x = _prepared(name, kind, x)
    sizes: list[Size] = []
    for axis, length in zip(axes, lengths, strict=True):
        halved = kind == "irfft" and axis == axes[-1]
        own = x.shape[axis]
        size = length if length is not None else 2 * (own - 1) if halved else own
        if length is None and halved:
            _require(name, x, Fact("<=", 2, own))
        else:
            _require(name, x, Fact("<=", 1, size))
        x = _fitted(x, axis, size // 2 + 1 if halved else size)
        sizes.append(size)
    result = _by_groups(x, kind, axes, sizes[-1])
    forward = kind in ("fft", "rfft") if forward is None else forward
    wanted = EXPONENTS[norm] if forward else 1 - EXPONENTS[norm]
    done = 0 if kind in ("fft", "rfft") else 1
    return _scaled(result, size_of(tuple(sizes)), done - wanted)


def _prepared(name: str, kind: FftKind, x: Value) -> Value:
    """The operand in a dtype that can be transformed."""
    require(name, x, REAL if kind == "rfft" else "any")
    x = floats_of(x)
    wide, sites = x.dtype.complex, x.builder.program.sites(x)
    found = cast(x, wide.real if kind == "rfft" else wide)
    return found.builder.program.mark(found, sites)


def _require(name: str, x: Value, claim: Fact) -> None:
    facts = x.builder.facts
    if not facts.proves(claim):
        raise Failure(UnprovenSize.of(facts, f"a length in `{name}`", claim))


def _fitted(x: Value, axis: int, size: Size) -> Value:
    """The array cut to a length along an axis, or padded with zeros at its end."""
    facts, own = x.builder.facts, x.shape[axis]
    if facts.equal(own, size):
        return x
    kept = least(facts, own, size)
    x = part(x, axis, 0, kept)
    if facts.equal(kept, size):
        return x
    none: tuple[Size, ...] = (0,) * x.ndim
    high = (*none[:axis], simplified(facts, size - kept), *none[axis + 1 :])
    zero = x.builder.literal(0, x.dtype)
    return Pad(none, high, (0,) * x.ndim)(x, zero)


def _by_groups(x: Value, kind: FftKind, axes: tuple[int, ...], length: Size) -> Value:
    """The transform along any number of axes, a few at a time; the last axis with its group."""
    few, last = axes[:-MOST_AXES], axes[-MOST_AXES:]
    others: FftKind = "fft" if kind in ("fft", "rfft") else "ifft"
    groups = [few[i : i + MOST_AXES] for i in range(0, len(few), MOST_AXES)]
    if kind == "irfft":
        for group in groups:
            x = _grouped(x, Fft(others, len(group)), sorted(group))
        return _grouped(x, Fft(kind, len(last), length), (*sorted(last[:-1]), last[-1]))
    x = _grouped(x, Fft(kind, len(last)), (*sorted(last[:-1]), last[-1]))
    for group in groups:
        x = _grouped(x, Fft(others, len(group)), sorted(group))
    return x


def _grouped(x: Value, transform: Fft, axes: Sequence[int]) -> Value:
    """The transform along axes anywhere: they are moved to the end, and back."""
    order = [*(axis for axis in range(x.ndim) if axis not in axes), *axes]
    back = sorted(range(x.ndim), key=lambda place: order[place])
    return transposed(transform(transposed(x, order)), back)


def _scaled(x: Value, count: Size, exponent: float) -> Value:
    """An array times a power of a size."""
    if exponent == 0:
        return x
    here = x.builder
    if isinstance(count, int):
        return x * here.literal(float(count) ** exponent, x.dtype)
    number = here.size(count, x.dtype.real)
    factor: Value = number if abs(exponent) == 1 else e.sqrt(number)
    if exponent < 0:
        factor = 1 / factor
    return x * cast(factor, x.dtype)


# The frequencies of a Fourier transform's elements, and the order that has 0 in the middle.


@function("numpy.fft.fftfreq", result=Result.NEW)
def fftfreq(here: Builder, n: Any, d: Any = 1.0) -> Value | Weak:
    """The frequencies of `fft` in cycles per unit of `d`: those from 0, then the negative ones."""
    name = "numpy.fft.fftfreq"
    count = _count(here, n, name)

    def places() -> Value:
        place = _counting(here, count)
        return where(e.less(place, here.size((count + 1) // 2, I32)), place, place - count)

    return _frequencies(here, name, places, count, d)


@function("numpy.fft.rfftfreq", result=Result.NEW)
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
    if not isinstance(d, Value | Weak | Dim) and d == 0:
        raise Failure(BadArguments(function=name, problem="takes no spacing of 0"))

    def build(values: Sequence[Value]) -> Value:
        require(name, values[0], REAL)
        spacing = to_inexact(values[0])
        if spacing.ndim:
            raise Failure(
                WrongNumberOfAxes(function=name, given=spacing.type, wanted="a number as `d`")
            )
        step = 1 / (spacing * here.size(count, spacing.dtype))
        return cast(places(), spacing.dtype) * step

    return met(here, (d,), None, build, Kind.FLOAT)


@of_arrays("numpy.fft.fftshift", together=("x",), result=Result.NEW)
def fftshift(x: Value, axes: Any = None) -> Value:
    """The element of frequency 0 moved to the middle, along all axes or some."""
    for axis in _shifted_axes(x, axes, "numpy.fft.fftshift"):
        size = x.shape[axis]
        x = _turned(x, axis, (size + 1) // 2)
    return x


@of_arrays("numpy.fft.ifftshift", together=("x",), result=Result.NEW)
def ifftshift(x: Value, axes: Any = None) -> Value:
    """The inverse of `fftshift`."""
    for axis in _shifted_axes(x, axes, "numpy.fft.ifftshift"):
        x = _turned(x, axis, x.shape[axis] // 2)
    return x


def _shifted_axes(x: Value, axes: Any, name: str) -> tuple[int, ...]:
    if not x.ndim:
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted="one axis or more"))
    return normalize_axes(None if axes is None else [*as_items(axes)], x.ndim, name)


def _turned(x: Value, axis: int, start: Size) -> Value:
    """The elements from a place on, then those before it."""
    return joined([part(x, axis, start, x.shape[axis]), part(x, axis, 0, start)], axis)


# Windows of signal processing, symmetric as in NumPy; open as floats.


@function("numpy.hanning", result=Result.NEW)
def hanning(here: Builder, M: Any) -> Weak:
    """The Hann window."""
    return _window(here, "numpy.hanning", M, lambda t: 0.5 + 0.5 * _cosine(t, 1))


@function("numpy.hamming", result=Result.NEW)
def hamming(here: Builder, M: Any) -> Weak:
    """The Hamming window."""
    return _window(here, "numpy.hamming", M, lambda t: 0.54 + 0.46 * _cosine(t, 1))


@function("numpy.blackman", result=Result.NEW)
def blackman(here: Builder, M: Any) -> Weak:
    """The Blackman window."""
    return _window(
        here,
        "numpy.blackman",
        M,
        lambda t: 0.42 + 0.5 * _cosine(t, 1) + 0.08 * _cosine(t, 2),
    )


@function("numpy.bartlett", result=Result.NEW)
def bartlett(here: Builder, M: Any) -> Weak:
    """The triangular window that ends at zero."""
    return _window(here, "numpy.bartlett", M, lambda t: 1.0 - e.absolute(t))


@function("numpy.kaiser", result=Result.NEW)
def kaiser(here: Builder, M: Any, beta: Any) -> Weak:
    """The Kaiser window, whose shape is a static number."""
    if not isinstance(beta, int | float) or isinstance(beta, bool):
        problem = "takes a number as `beta` that is known while checking"
        raise Failure(BadArguments(function="numpy.kaiser", problem=problem))

    def shape_of(t: Value) -> Any:
        inside = e.sqrt((1 - t) * (1 + t))
        whole = i0(t.builder.literal(float(beta), t.dtype))
        return i0(inside * float(beta)) / whole

    return _window(here, "numpy.kaiser", M, shape_of)


def _cosine(t: Value, times: int) -> Any:
    return e.cos(t * (math.pi * times))


def _window(here: Builder, name: str, size: Any, shape_of: Callable[[Value], Any]) -> Weak:
    """A function of the places, which run from -1 to 1."""
    count = as_count(size, name, here.facts)
    gaps = largest(here.facts, count - 1, 1)

    def at(dtype: DType) -> Value:
        place = here.bind(Iota((count,), 0, dtype), ())[0]
        centred = place * 2 - (count - 1)
        result: Value = shape_of(centred / gaps)
        return result

    return Weak(here, Kind.FLOAT, (count,), at)
