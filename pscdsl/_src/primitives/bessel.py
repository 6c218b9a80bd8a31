"""Bessel functions of any order: J of integral orders, I and K of real ones.

K near 0 is N. M. Temme's series (Journal of Computational Physics 19, 1975), elsewhere the
trapezoidal rule on its integral (DLMF 10.32.9), both for an order of at most 1/2 and the next one,
from which the recurrence goes up.  I is its power series, or Hankel's far out (DLMF 10.25.2,
10.40.1).  J is its power series, J. C. P. Miller's backward recurrence, or the forward recurrence
from Hankel's series of orders 0 and 1 (DLMF 10.2.2, 10.74, 10.17.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import e, inf, nan, pi, tau
from math import sqrt as root
from typing import Final

from pscdsl._src.primitives.formulas import Arithmetic, Formula, Number, State, polynomial
from pscdsl._src.primitives.gamma import fraction, gamma, stirling

MOST_ORDER: Final = 99
"""The highest order that programs name."""
_HIGHEST: Final = 128
"""The highest order with a value: J and I have derivatives by the neighbouring orders."""


def _orders(m: Arithmetic, v: Number, known: Number) -> tuple[Number, Number]:
    """Return the order without sign, or 0 if out of range, and whether it is an odd integer."""
    order = m.where(known, m.absolute(v), 0.0)
    half = m.floor(order) / 2
    return order, m.floor(half) != half


def _is_order(m: Arithmetic, v: Number) -> Number:
    return m.absolute(v) <= float(_HIGHEST)


def _first_term(m: Arithmetic, order: Number, size: Number) -> Number:
    """`(x / 2)^v / gamma(v + 1)`."""
    half = size / 2
    if m.bits == 64:  # gamma of the highest order is finite, and so is the root of the power
        part = m.power(half, order / 2)
        return part / gamma(m, order + 1) * part
    few = order < 20
    near = m.power(half, m.where(few, order, 0.0)) / gamma(m, m.where(few, order, 0.0) + 1)
    large = m.where(few, 20.0, order)
    far = m.power(half * (e / large), large) / (m.sqrt(tau * large) * m.exp(stirling(m, large)))
    return m.where(few, near, far)


def _power_series(m: Arithmetic, order: Number, square: Number, most: float) -> Number:
    """The sum of `square^k / (k! (v + 1) ... (v + k))`."""

    def goes_on(state: State) -> Number:
        term, total, k = state
        return (m.absolute(term) > m.absolute(total) * (m.epsilon / 8)) & (k < most)

    def step(state: State) -> State:
        term, total, k = state
        term = term * (square / (k * (k + order)))
        return term, total + term, k + 1

    one = m.where(square == square, 1.0, 1.0)
    return m.repeat(goes_on, step, (one, one, one))[1]


# Modified Bessel functions of the second kind.


_INVERSE_GAMMA: Final = (
    1.0,
    0.5772156649015328606,
    -0.6558780715202538811,
    -0.04200263503409523553,
    0.1665386113822914895,
    -0.04219773455554433675,
    -0.009621971527876973562,
    0.007218943246663099542,
    -0.001165167591859065112,
    -0.0002152416741149509728,
    0.0001280502823881161862,
    -0.00002013485478078823866,
    -0.000001250493482142670657,
    0.000001133027231981695882,
    -2.056338416977607103e-7,
    6.116095104481415818e-9,
    5.002007644469222930e-9,
    -1.181274570487020145e-9,
    1.043426711691100510e-10,
    7.782263439905071254e-12,
    -3.696805618642205708e-12,
    5.100370287454475979e-13,
)
"""1 / gamma(1 + z), lowest power first."""
_TEMME_STEPS: Final = 22.0
_NODES: Final = 28.0
_SPACING: Final = 0.35
"""Nodes of the trapezoidal rule, over the root of x: the error is below exp(-39)."""


@Formula
def kv(m: Arithmetic, v: Number, x: Number) -> Number:
    """K; infinite at 0, NaN below."""
    known = _is_order(m, v) & (x > 0) & (x < inf)
    order, _ = _orders(m, v, known)
    steps = m.floor(order + 0.5)
    rest = order - steps
    near = known & (x <= 2)
    first, second = _temme(m, rest, m.where(near, x, 1.0))
    far_first, far_second = _by_nodes(m, rest, m.where(known & ~near, x, 2.0))
    given = m.where(known, x, 1.0)
    early = m.where(near, 0.0, m.where(given < 40, given, 40.0))  # else the recurrence overflows
    decay = m.exp(-early)
    first = m.where(near, first, decay * far_first)
    second = m.where(near, second, decay * far_second)

    def step(state: State) -> State:
        one, other, k = state
        goes = k <= steps
        above = one + 2 * (rest + k) / given * other
        return m.where(goes, other, one), m.where(goes, above, other), k + 1

    counted = m.where(known, 1.0, 1.0)
    scaled = m.repeat(lambda state: state[2] <= steps, step, (first, second, counted))[0]
    result = m.where(near, scaled, m.exp(early - given) * scaled)
    result = m.where(_is_order(m, v) & (x == 0), inf, m.where(known, result, nan))
    return m.where(_is_order(m, v) & (x == inf), 0.0, result)


def _temme(m: Arithmetic, rest: Number, x: Number) -> tuple[Number, Number]:
    """K of an order from -1/2 to 1/2, and of the next, for x up to 2."""
    square = rest * rest
    even = polynomial(square, _INVERSE_GAMMA[::2])
    odd = polynomial(square, _INVERSE_GAMMA[1::2])
    logarithm = m.log(2 / x)
    exponent = rest * logarithm
    growth, minus = m.power(x, -rest) * m.power(2.0, rest), m.expm1(exponent)
    small = m.absolute(exponent) < 0.5
    whole = m.absolute(exponent) < 1e-8
    twice = m.where(small, minus + minus / (minus + 1), growth - 1 / growth)
    sine = m.where(whole, 1.0, twice / 2 / m.where(whole, 1.0, exponent))
    angle = pi * m.where(m.absolute(rest) < 1e-9, 0.5, rest)
    scale = m.where(m.absolute(rest) < 1e-9, 1.0, angle / m.sin(angle))
    f = scale * ((even * sine * logarithm) - odd * (growth + 1 / growth) / 2)
    p = growth / 2 / (even + rest * odd)
    q = 1 / (2 * growth * (even - rest * odd))
    quarter = x * x / 4

    def step(state: State) -> State:
        f, p, q, c, first, second, k = state
        f = (k * f + p + q) / (k * k - square)
        c = c * (quarter / k)
        p, q = p / (k - rest), q / (k + rest)
        return f, p, q, c, first + c * f, second + c * (p - k * f), k + 1

    one = m.where(x == x, 1.0, 1.0)
    state = (f, p, q, one, f, p, one)
    found = m.repeat(lambda state: state[6] < _TEMME_STEPS, step, state)
    return found[4], found[5] * (2 / x)


def _by_nodes(m: Arithmetic, rest: Number, x: Number) -> tuple[Number, Number]:
    """exp(x) K of an order from -1/2 to 1/2, and of the next, for x from 2 on."""
    width = m.sqrt(x)
    spacing = _SPACING / width

    def step(state: State) -> State:
        first, second, k = state
        t = k * spacing
        minus = m.expm1(t / 2)
        growth = minus + 1
        sine = (minus + minus / growth) / 2 * width  # its square is half of x (cosh t - 1)
        weight = m.exp(-2 * sine * sine)
        power = m.exp(rest * t)
        next_power = power * growth * growth
        first = first + weight * (power + 1 / power) / 2
        return first, second + weight * (next_power + 1 / next_power) / 2, k + 1

    half, one = m.where(x == x, 0.5, 0.5), m.where(x == x, 1.0, 1.0)
    found = m.repeat(lambda state: state[2] < _NODES, step, (half, half, one))
    return found[0] * spacing, found[1] * spacing


# Modified Bessel functions of the first kind.


_LARGEST: Final = {32: 160.0, 64: 900.0}
"""The numbers beyond which the function is infinite, for all orders here."""
_FAR: Final = 25.0


@Formula
def iv(m: Arithmetic, v: Number, x: Number) -> Number:
    """I; NaN below 0 for an order that is no integer."""
    size = m.absolute(x)
    known = _is_order(m, v) & (size == size)
    order, odd = _orders(m, v, known)
    integral = m.floor(order) == order
    bound = m.where(order * order * 0.6 > _FAR, order * order * 0.6, _FAR)
    far = known & (size > bound)
    near_size = m.where(known & ~far & (size < _LARGEST[m.bits]), size, 0.0)
    series = _power_series(m, order, near_size * near_size / 4, 3000.0)
    near = _first_term(m, order, near_size) * series
    near = m.where(size < _LARGEST[m.bits], near, inf)
    far_size = m.where(far & (size < inf), size, 100.0 * _FAR * _FAR)
    growth = m.exp(far_size / 2)  # its square would overflow earlier than the function
    hankel = _hankel(m, m.where(far, order, 0.0), far_size)
    distant = growth * (growth * (hankel / (root(tau) * m.sqrt(far_size))))
    positive = m.where(far, m.where(size == inf, inf, distant), near)
    below = (v < 0) & ~integral
    reflected = m.where_any(
        known & below,
        lambda: positive + 2 / pi * m.sin(pi * _turned(m, order)) * kv(m, order, size),
        positive,
    )
    result = m.where((x < 0) & odd, -reflected, reflected)
    return m.where(known & (integral | (x >= 0)), result, nan)


def _turned(m: Arithmetic, order: Number) -> Number:
    """Return a number of half turns between -1 and 1 with the same sine."""
    nearest = order - fraction(m, order)
    is_odd = m.floor(nearest / 2) * 2 != nearest
    return m.where(is_odd, -fraction(m, order), fraction(m, order))


def _hankel(m: Arithmetic, order: Number, size: Number) -> Number:
    """Hankel's series in 1 / x, up to its smallest term."""
    square = 4 * order * order

    def goes_on(state: State) -> Number:
        term, total, k = state
        return (m.absolute(term) > m.absolute(total) * (m.epsilon / 8)) & (k < 40)

    def step(state: State) -> State:
        term, total, k = state
        odd = 2 * k - 1
        term = term * ((odd * odd - square) / (8 * k * size))
        return term, total + term, k + 1

    one = m.where(size == size, 1.0, 1.0)
    return m.repeat(goes_on, step, (one, one, one))[1]


# Bessel functions of the first kind, of integral orders.


def _phase_series(order: int, odd: bool) -> Sequence[float]:
    """The coefficients of x^-2k of P, or of x times Q."""
    found = [1.0]
    for k in range(1, 28):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    terms = found[1::2] if odd else found[::2]
    return [term * (-1) ** k for k, term in enumerate(terms)]


_PHASES: Final = {
    (order, odd): _phase_series(order, odd) for order in (0, 1) for odd in (False, True)
}
_RESCALED: Final = 1e12


@Formula
def jv(m: Arithmetic, v: Number, x: Number) -> Number:
    """J of an order that is an integer; NaN for others."""
    size = m.absolute(x)
    known = _is_order(m, v) & (m.floor(v) == v) & (size < inf)
    order, odd = _orders(m, v, known)
    bound = m.where(order > _FAR, order, _FAR)
    near = known & (size * size <= 4 * (order + 1))
    far = known & (size > bound)
    near_size = m.where(near, size, 0.0)
    series = _power_series(m, order, -(near_size * near_size) / 4, 40.0)
    result = _first_term(m, order, near_size) * series
    middle = _miller(m, order, bound, m.where(known & ~near & ~far, size, bound), known)
    distant = _forward(m, m.where(far, order, 0.0), m.where(far, size, _FAR))
    result = m.where(near, result, m.where(far, distant, middle))
    result = m.where(odd & ((x < 0) != (v < 0)), -result, result)
    result = m.where(_is_order(m, v) & (m.floor(v) == v) & (size == inf), 0.0, result)
    return m.where(known | ((size == inf) & (m.floor(v) == v) & _is_order(m, v)), result, nan)


def _miller(m: Arithmetic, order: Number, bound: Number, size: Number, known: Number) -> Number:
    """The recurrence down from an order that is high enough; its scale is that of the sum."""
    start = 2 * m.floor((bound + m.sqrt(60 * bound) + 10) / 2)

    def step(state: State) -> State:
        k, above, here, total, found = state
        goes = k > 0
        below = 2 * k / size * here - above
        even = m.floor(k / 2) * 2 != k  # the order of `below` is one less
        share = m.where(k == 1, below, m.where(even, 2 * below, 0.0))
        total = m.where(goes, total + share, total)
        found = m.where(goes & (k - 1 == order), below, found)
        above, here = m.where(goes, here, above), m.where(goes, below, here)
        scale = m.where(m.absolute(here) > _RESCALED, 1 / _RESCALED, 1.0)
        return m.where(goes, k - 1, k), above * scale, here * scale, total * scale, found * scale

    none = m.where(known, 0.0, 0.0)
    state = (m.where(known, start, 0.0), none, none + 1 / _RESCALED, none, none)
    _, _, _, total, found = m.repeat(lambda state: state[0] > 0, step, state)
    return found / m.where(total == 0, 1.0, total)


def _forward(m: Arithmetic, order: Number, size: Number) -> Number:
    """The recurrence up from the orders 0 and 1, where it is stable."""
    inverse = 1 / size
    square = inverse * inverse
    scale = m.sqrt(inverse) / root(pi)
    cosine, sine = m.cos(size), m.sin(size)
    together, apart = cosine + sine, sine - cosine
    first = polynomial(square, _PHASES[0, False]) * together
    first = scale * (first - polynomial(square, _PHASES[0, True]) * inverse * apart)
    second = polynomial(square, _PHASES[1, False]) * apart
    second = scale * (second + polynomial(square, _PHASES[1, True]) * inverse * together)

    def step(state: State) -> State:
        one, other, k = state
        goes = k <= order
        above = 2 * k / size * other - one
        return m.where(goes, other, one), m.where(goes, above, other), k + 1

    counted = m.where(size == size, 1.0, 1.0)
    return m.repeat(lambda state: state[2] <= order, step, (first, second, counted))[0]
