"""The exponential of a matrix, under the name that SciPy gives it."""

from __future__ import annotations

from math import log
from typing import Final

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.while_loop import While
from pscdsl.numpy import elementwise, linear_algebra
from pscdsl.numpy.calling import of_numbers
from pscdsl.numpy.products import matrix_product
from pscdsl.numpy.reductions import extremum, total
from pscdsl.numpy.shorthand import cast, filled, reshaped, where
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import C64, C128, F32, F64, I32, DType

# Scaling and squaring: N. J. Higham, "The scaling and squaring method for the matrix exponential
# revisited", SIAM Journal on Matrix Analysis and Applications 26 (2005) 1179-1193. The matrix is
# halved until its 1-norm is at most theta; there the diagonal Padé approximant of degree 13 (7 in
# single precision) has the accuracy of the dtype; then that is squared as often.


_DEGREE_13: Final = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_DEGREE_7: Final = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
"""The coefficients of the numerator: those of the denominator have the other sign where odd."""
_THETA: Final[dict[DType, float]] = {F32: 3.925724783138660, F64: 5.371920351148152}
"""Up to which 1-norm the approximant is as accurate as the dtype: table 2.3, and 3.925… by the same
analysis for single precision."""
_MOST: Final[dict[DType, int]] = {F32: 128, F64: 1024}
"""No finite norm has to be halved more often."""


@of_numbers("scipy.linalg.expm", together=("A",))
def expm(A: Value) -> Value:
    """The exponential of a square matrix, by scaling and squaring (Higham 2005)."""
    name = "scipy.linalg.expm"
    linear_algebra.require_square(name, A)
    if A.dtype not in (F32, F64, C64, C128):
        accepts = "f32, f64, c64 and c128"
        raise Failure(DtypeNotAccepted(function=name, given=A.type, accepts=accepts))
    if 0 in A.shape:
        return A
    halvings, scale = _halvings(A)
    factor = reshaped(cast(scale, A.dtype), (*scale.shape, 1, 1))
    halved = A * broadcast_to(factor, A.shape)
    return _squared(_approximant(halved), halvings)


def _halvings(a: Value) -> tuple[Value, Value]:
    """Return how often each matrix is halved, and the power of two that does it."""
    norm = extremum(total(e.absolute(a), (a.ndim - 2,)), "maximum", (a.ndim - 2,))
    precision = norm.dtype
    ratio = norm / _THETA[precision]
    larger = (ratio > 1.0) & e.is_finite(ratio)
    times = e.ceil(e.log(where(larger, ratio, filled(ratio, 1.0))) / log(2.0))
    count = cast(times, I32)
    ones = filled(ratio, 1.0)
    return count, elementwise.ldexp.apply(a.builder, (ones, -count), {})


def _approximant(a: Value) -> Value:
    """The diagonal Padé approximant, by powers of the square."""
    coefficients = _DEGREE_7 if a.dtype.real is F32 else _DEGREE_13
    one = m.identity(a.builder, a.shape, a.dtype)
    square = matrix_product(a, a)
    powers = [one, square, matrix_product(square, square)]
    powers.append(matrix_product(powers[2], square))

    def combined(first: int) -> Value:
        """The terms of every other degree: up to 6, and those above as a multiple of the sixth."""
        own = coefficients[first::2]
        low, high = own[:4], own[4:]
        found = _sum(powers, low)
        if high:
            found = found + matrix_product(powers[3], _sum(powers[1:], high))
        return found

    odd, even = matrix_product(a, combined(1)), combined(0)
    found: Value = linear_algebra.solve.apply(a.builder, (even - odd, even + odd), {})
    return found


def _sum(powers: list[Value], coefficients: tuple[float, ...]) -> Value:
    terms = [x * c for x, c in zip(powers, coefficients, strict=False)]
    result: Value = terms[0]
    for each in terms[1:]:
        result = result + each
    return result


def _squared(x: Value, times: Value) -> Value:
    """Each matrix squared as often as is said of it."""
    here = x.builder.program.current
    most = extremum(times, "maximum", tuple(range(times.ndim)))
    zero = here.literal(0, I32)
    with here.program.inside() as inner:
        power, step = inner.parameter(x.type), inner.parameter(zero.type)
        cond, by_cond = inner.finish((power, step), (e.less(step, most),))
    with here.program.inside() as inner:
        power, step = inner.parameter(x.type), inner.parameter(zero.type)
        going = broadcast_to(reshaped(e.less(step, times), (*times.shape, 1, 1)), x.shape)
        following = where(going, matrix_product(power, power), power)
        body, by_body = inner.finish((power, step), (following, step + 1))
    loop = While(cond, body, len(by_cond), len(by_body), _MOST[x.dtype.real])
    return here.bind(loop, (*by_cond, *by_body, x, zero))[0]
