"""Sine, cosine and tangent of single and half precision, of numbers of any size.

XLA on CPUs calls the C library for each element.  Here the number of half turns is a product with
1/pi in double precision, of which whole turns are left out: see Note [Windows].  What remains of a
turn has an error below 2^-54, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, Final, TypeAlias

from pscdsl._src.ir.hlo import TargetHlo
from pscdsl._src.ir.primitive import H, Types
from pscdsl._src.primitives.formulas.arithmetic import Emitted, Number, polynomial
from pscdsl._src.primitives.pointwise import Elementwise
from pscdsl._src.targets.cpu.functions.doubles import Doubles, emitted, pays
from pscdsl._src.targets.forms import Form, Translation
from pscdsl.typing.dtypes import F16, F32

CIRCULAR_IN_F64 = Form(
    "circular_in_f64",
    "Sine, cosine and tangent of f32, bf16 and f16 by a reduction and a polynomial in f64 instead "
    "of the C library's functions: 0.05 to 0.15 of the time for a million elements.",
)

_ONE_OVER_PI: Final = int("517cc1b727220a94fe13abe8fa9a6ee06db14acc9e21c820ff28b1d5", 16)
_BITS: Final = 224
"""1/pi is the integer times 2^-_BITS."""
_WINDOWS: Final = (0, 26, 52, 78)
_SINE: Final = (
    3.141592653479287,
    -5.167712751850278,
    2.5501628729295436,
    -0.5992468507755347,
    0.0820246106803553,
    -0.006985325866462522,
)
"""The sine of t half turns over t, as a polynomial of t^2: fitted by interpolation at Chebyshev's
points, for t up to 0.53; relative errors are below 6e-11."""
_SINE_OF_RADIANS: Final = (
    0.9999999999413413,
    -0.16666666384724016,
    0.008333311638528807,
    -0.00019835422099025583,
    2.6912728779140537e-06,
)
"""The same for x up to 1.02 instead of t; relative errors are below 8e-11."""
_NEAR: Final = 1.02
"""Up to this a sine needs fewer terms."""
_SMALL: Final = 2.0**-12
"""Below this sine and tangent are the number itself, also if that is -0 or subnormal."""
_DIRECT: Final = 1.6
"""Up to this a number is no more than half a half turn, or hardly."""
_SIMPLE: Final = 2.0**23
"""Up to this two words do: what is left of the second is too small."""
Reduced: TypeAlias = tuple[Emitted, Emitted | None]
Finish: TypeAlias = Callable[[Doubles, Emitted, Emitted | None], Number]

# Note [Windows]
# A number from 2^(23 + a) on is an integer times 2^a: a bit of 1/pi whose product with 2^a is a
# multiple of 2 adds whole turns, and is left out.  What is left of 1/pi is taken in three words, of
# 27, 28 and 53 bits: the products of the first two with 24 bits are exact, and so is the sum of the
# second one with what the first is off an integer.  So for each a of _WINDOWS there are three
# words, which do up to 2^(49 + a), and an element chooses its own by its size.


def _split(left: int, ends: Sequence[int]) -> list[float]:
    """The bits of a fraction up to each of these."""
    found: list[float] = []
    for end in ends:
        word = left >> (_BITS - end)
        left -= word << (_BITS - end)
        found.append(float(word) * 2.0**-end)
    return found


def _words(start: int) -> list[float]:
    left = _ONE_OVER_PI & ((2 << (_BITS - start)) - 1)
    return _split(left, (start + 26, start + 54, start + 107))


_WORDS: Final = tuple([_words(start) for start in _WINDOWS])
_SIMPLE_WORDS: Final = _split(_ONE_OVER_PI, (29, 82))


def _reduced(d: Doubles, x: Emitted, most: float, ahead: float) -> Reduced:
    """What is left of a number, in half turns and so many ahead, and how many are not.

    They are None if all numbers are so small that none are.
    """
    wide = d.wide(x)
    if most <= _DIRECT:
        angle = wide * (1 / pi)
        return (ahead - d.double.absolute(angle) if ahead else angle), None
    if most <= _SIMPLE:
        first = wide * _SIMPLE_WORDS[0] + ahead if ahead else wide * _SIMPLE_WORDS[0]
        turns = d.nearest(first)
        return (first - turns) + wide * _SIMPLE_WORDS[1], turns
    size = d.single.absolute(x)
    words: list[Any] = list(_WORDS[0])
    for start, other in zip(_WINDOWS[1:], _WORDS[1:], strict=True):
        beyond = size >= 2.0 ** (23 + start)
        words = [d.double.where(beyond, b, a) for a, b in zip(words, other, strict=True)]
    first = wide * words[0] + ahead if ahead else wide * words[0]
    turns = d.nearest(first)
    rest = (first - turns) + wide * words[1]
    more = d.nearest(rest)
    return (rest - more) + wide * words[2], turns + more


def _translation(finish: Finish, ahead: float) -> Translation:
    def translate(
        primitive: Elementwise,
        hlo: TargetHlo,
        operands: Sequence[H],
        inputs: Types,
        outputs: Types,
    ) -> Sequence[H] | None:
        (given,) = inputs
        single = given.dtype.is_float and given.dtype.bits <= 32
        if not single or not pays(hlo, given):
            return None
        d = Doubles(hlo, given)
        x = emitted(hlo.convert(operands[0], given.with_dtype(F32)), d.single)
        most = max(map(abs, hlo.bounds(operands[0])))
        if finish is _wave and not ahead and most <= _NEAR:
            result = d.narrow(_series(d.wide(x), _SINE_OF_RADIANS))
        else:
            result = finish(d, *_reduced(d, x, 65504.0 if given.dtype is F16 else most, ahead))
        # A sine without a reduction is right near zero, but for subnormal numbers.
        right = finish is _wave and most <= _DIRECT and hlo.flushed(operands[0])
        if not ahead and not right:
            result = d.single.where(d.single.absolute(x) < _SMALL, x, result)
        found = hlo.convert(result.handle, given)
        if finish is _wave:
            hlo.tell_bounds(found, -1.0, 1.0)
        return (found,)

    return CIRCULAR_IN_F64.translation(translate)


def _series(angle: Emitted, coefficients: Sequence[float] = _SINE) -> Number:
    """The sine of half turns, up to half of one, or of radians by other coefficients."""
    return angle * polynomial(angle * angle, coefficients)


def _wave(d: Doubles, angle: Emitted, count: Emitted | None) -> Number:
    """The sine of an angle after so many half turns."""
    if count is None:
        return d.narrow(_series(angle))
    sign = d.shifted(d.low_bits(count), "shift_left", 63)
    bits = d.same_bits(_series(angle), d.int64)
    turned = d.hlo.binary("xor", bits.handle, sign.handle)
    return d.narrow(d.same_bits(emitted(turned, d.int64), d.double))


def _slope(d: Doubles, angle: Emitted, count: Emitted | None) -> Number:
    """The tangent of an angle, whatever half turns come before it."""
    across = 0.5 - d.double.absolute(angle)
    return d.narrow(_series(angle)) / d.narrow(_series(across))


sine: Final = _translation(_wave, 0.0)
cosine: Final = _translation(_wave, 0.5)
tangent: Final = _translation(_slope, 0.0)
