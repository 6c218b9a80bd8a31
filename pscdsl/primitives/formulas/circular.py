"""Sine, cosine and tangent of single and half precision, of numbers of any size.

XLA on CPUs calls the C library for each element.  Here the number of half turns is a product with
1/pi in double precision, of which whole turns are left out: see Note [Windows].  What remains of a
turn has an error below 2^-54, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from pscdsl.forms import form
from pscdsl.primitive import H, Hlo, Types
from pscdsl.primitives.formulas.arithmetic import Emitted, Number, polynomial
from pscdsl.primitives.formulas.doubles import Doubles, emitted, pays
from pscdsl.typing.dtypes import F16, F32

CIRCULAR_IN_F64 = form(
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
_SMALL: Final = 2.0**-12
"""Below this sine and tangent are the number itself, also if that is -0 or subnormal."""
Finish: TypeAlias = Callable[[Doubles, Emitted, Emitted], Number]
Emit: TypeAlias = Callable[[Hlo, Sequence[H], Types, Types], H]

# Note [Windows]
# A number from 2^(23 + a) on is an integer times 2^a: a bit of 1/pi whose product with 2^a is a
# multiple of 2 adds whole turns, and is left out.  What is left of 1/pi is taken in three words, of
# 27, 28 and 53 bits: the products of the first two with 24 bits are exact, and so is the sum of the
# second one with what the first is off an integer.  So for each a of _WINDOWS there are three
# words, which do up to 2^(49 + a), and an element chooses its own by its size.


def _words(start: int) -> tuple[float, float, float]:
    left = _ONE_OVER_PI & ((2 << (_BITS - start)) - 1)
    found: list[float] = []
    for end in (start + 26, start + 54, start + 107):
        word = left >> (_BITS - end)
        left -= word << (_BITS - end)
        found.append(float(word) * 2.0**-end)
    first, second, third = found
    return first, second, third


_WORDS: Final = tuple([_words(start) for start in _WINDOWS])


def _reduced(d: Doubles, x: Emitted, windows: int, ahead: float) -> tuple[Emitted, Emitted]:
    """What is left of a number, in half turns and so many ahead, and how many are not."""
    size = d.single.absolute(x)
    later = [size >= 2.0 ** (23 + start) for start in _WINDOWS[1:windows]]
    words: list[Any] = list(_WORDS[0])
    for beyond, other in zip(later, _WORDS[1:], strict=False):
        words = [d.double.where(beyond, b, a) for a, b in zip(words, other, strict=True)]
    wide = d.wide(x)
    first = wide * words[0] + ahead if ahead else wide * words[0]
    turns = d.nearest(first)
    rest = (first - turns) + wide * words[1]
    more = d.nearest(rest)
    return (rest - more) + wide * words[2], turns + more


def _emit(name: str, finish: Finish, ahead: float) -> Emit:
    def emit(hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> H:
        (given,) = inputs
        single = given.dtype.is_float and given.dtype.bits <= 32
        if not single or not hlo.uses(CIRCULAR_IN_F64) or not pays(hlo, given):
            return hlo.unary(name, operands[0])
        d = Doubles(hlo, given)
        x = emitted(hlo.convert(operands[0], given.with_dtype(F32)), d.single)
        windows = 1 if given.dtype is F16 else len(_WINDOWS)
        result = finish(d, *_reduced(d, x, windows, ahead))
        if not ahead:
            result = d.single.where(d.single.absolute(x) < _SMALL, x, result)
        return hlo.convert(result.handle, given)

    return emit


def _sine(angle: Emitted) -> Number:
    """The sine of half turns, up to half of one."""
    return angle * polynomial(angle * angle, _SINE)


def _wave(d: Doubles, angle: Emitted, count: Emitted) -> Number:
    """The sine of an angle after so many half turns."""
    sign = d.shifted(d.low_bits(count), "shift_left", 63)
    bits = d.same_bits(_sine(angle), d.int64)
    turned = d.hlo.binary("xor", bits.handle, sign.handle)
    return d.narrow(d.same_bits(emitted(turned, d.int64), d.double))


def _slope(d: Doubles, angle: Emitted, count: Emitted) -> Number:
    """The tangent of an angle, whatever half turns come before it."""
    across = 0.5 - d.double.absolute(angle)
    return d.narrow(_sine(angle)) / d.narrow(_sine(across))


emit_sine: Final = _emit("sine", _wave, 0.0)
emit_cosine: Final = _emit("cosine", _wave, 0.5)
emit_tangent: Final = _emit("tan", _slope, 0.0)
