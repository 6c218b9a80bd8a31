"""Sine, cosine and tangent of single and half precision, of numbers of any size.

XLA on CPUs calls the C library for each element.  Here the number of quarter turns is a product
with 2/pi in double precision, of which whole turns are left out: see Note [Windows].  What remains
of a turn has an error below 2^-50, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, Final, TypeAlias

from pscdsl.forms import form
from pscdsl.primitive import H, Hlo, Types
from pscdsl.primitives.formulas.arithmetic import Emitted, Number
from pscdsl.primitives.formulas.doubles import Doubles, emitted, pays, series
from pscdsl.typing.dtypes import F16, F32

CIRCULAR_IN_F64 = form(
    "circular_in_f64",
    "Sine, cosine and tangent of f32, bf16 and f16 by a reduction and a polynomial in f64 instead "
    "of the C library's functions: 0.1 to 0.2 of the time for a million elements.",
)

_TWO_OVER_PI: Final = int("a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163ab", 16)
_BITS: Final = 224
"""2/pi is the integer times 2^-_BITS."""
_WINDOWS: Final = (0, 26, 52, 78)
# Fitted by interpolation at Chebyshev's points, for z = x^2 up to (pi/4)^2; relative errors are
# below 5e-12.
_SINE: Final = (
    0.9999999999956704,
    -0.16666666631574967,
    0.008333328780935453,
    -0.0001983920176005606,
    2.7173415485385247e-06,
)
_COSINE: Final = (
    0.9999999999999436,
    -0.49999999999347294,
    0.04166666654357687,
    -0.0013888880382441245,
    2.47989271242767e-05,
    -2.717334647725152e-07,
)
_SMALL: Final = 2.0**-12
"""Below this sine and tangent are the number itself, also if that is -0 or subnormal."""
Finish: TypeAlias = Callable[[Doubles, Emitted, Emitted, Emitted], Number]
Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]

# Note [Windows]
# A number from 2^(23 + a) on is an integer times 2^a: a bit of 2/pi whose product with 2^a is a
# multiple of 4 adds whole turns, and is left out.  What is left of 2/pi is taken in three words:
# two of 29 bits, whose products with 24 bits are exact, and the rest.  So for each a of _WINDOWS
# there are three words, and an element chooses its own by its size.


def _words(start: int) -> tuple[float, float, float]:
    left = _TWO_OVER_PI & ((4 << (_BITS - start)) - 1)
    found: list[float] = []
    for end in (start + 27, start + 56, start + 108):
        word = left >> (_BITS - end)
        left -= word << (_BITS - end)
        found.append(float(word) * 2.0**-end)
    first = found[0] - 4 if found[0] >= 2 else found[0]  # so that products stay below 2^51
    return first, found[1], found[2]


_WORDS: Final = tuple([_words(start) for start in _WINDOWS])


def _reduced(d: Doubles, x: Emitted, windows: int) -> tuple[Emitted, Emitted]:
    """What is left of a number after quarter turns, and their number, modulo 4, as an i32."""
    size = d.single.absolute(x)
    later = [size >= 2.0 ** (23 + start) for start in _WINDOWS[1:windows]]
    words: list[Any] = list(_WORDS[0])
    for beyond, other in zip(later, _WORDS[1:], strict=False):
        words = [d.double.where(beyond, b, a) for a, b in zip(words, other, strict=True)]
    wide = d.wide(x)
    first, second = wide * words[0], wide * words[1]
    turns, more = d.nearest(first), d.nearest(second)
    rest = (first - turns) + (second - more)
    carry = d.nearest(rest)
    angle = ((rest - carry) + wide * words[2]) * (pi / 2)
    count = d.low_bits((turns + more) + carry)
    return angle, Emitted(d.int32, d.hlo.convert(count.handle, d.int32.type))


def _emit(name: str, finish: Finish, quarters: int, odd: bool) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        (given,) = inputs
        single = given.dtype.is_float and given.dtype.bits <= 32
        if not single or not hlo.uses(CIRCULAR_IN_F64) or not pays(hlo, given):
            return hlo.unary(name, operands[0])
        d = Doubles(hlo, given)
        x = emitted(hlo.convert(operands[0], given.with_dtype(F32)), d.single)
        angle, count = _reduced(d, x, 1 if given.dtype is F16 else len(_WINDOWS))
        square = angle * angle
        sine, cosine = angle * series(square, _SINE), series(square, _COSINE)
        result = finish(d, sine, cosine, count + quarters if quarters else count)
        if odd:
            result = d.single.where(d.single.absolute(x) < _SMALL, x, result)
        return hlo.convert(result.handle, given)

    return emit


def _wave(d: Doubles, sine: Emitted, cosine: Emitted, count: Emitted) -> Number:
    """The sine of an angle after so many quarter turns."""
    value = d.narrow(d.double.where(d.masked(count, 1) != 0, cosine, sine))
    negative = d.masked(count, 2) != 0
    return d.single.where(negative, -value, value)


def _slope(d: Doubles, sine: Emitted, cosine: Emitted, count: Emitted) -> Number:
    """The tangent of an angle after so many quarter turns."""
    turned = d.masked(count, 1) != 0
    above = d.narrow(d.double.where(turned, cosine, sine))
    below = d.narrow(d.double.where(turned, -sine, cosine))
    return above / below


emit_sine: Final = _emit("sine", _wave, 0, odd=True)
emit_cosine: Final = _emit("cosine", _wave, 1, odd=False)
emit_tangent: Final = _emit("tan", _slope, 0, odd=True)
