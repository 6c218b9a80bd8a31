"""Special functions of elements, and sums of exponentials along axes without overflow."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pscdsl.special
from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.numpy_dtypes import finfo
from pscdsl._src.language.meanings import Meaning, describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special as s
from pscdsl._src.primitives.bessel import MOST_ORDER
from pscdsl._src.primitives.custom_derivatives import StopGradient, Values, with_own_tangents
from pscdsl._src.primitives.gamma import FURTHEST_POLE
from pscdsl._src.primitives.reductions import ExponentialSum, Largest
from pscdsl.numpy.calling import (
    Axes,
    as_operand,
    as_times,
    in_dtype,
    normalize_axes,
    of_numbers,
)
from pscdsl.numpy.elementwise import REAL, require, to_inexact
from pscdsl.numpy.reductions import extremum, finished, reduced_shape, require_elements, total
from pscdsl.numpy.shorthand import cast, filled, is_nan, reshaped, where, wide
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, F16, F64
from pscdsl.typing.python_containers import is_scalar

# How functions of this package get their meanings: under SciPy's name too, which means the same.


def of_special(
    *names: str, together: str = "", traced: str = ""
) -> Callable[[Callable[..., Any]], Meaning]:
    """Give a meaning as `of_numbers` does; the parameters `together` come to one dtype."""
    both = [f"{module}.special.{name}" for module in ("pscdsl", "scipy") for name in names]
    return of_numbers(*both, together=together.split(), traced=traced.split())


def floating(name: str, x: Value) -> Value:
    """An operand in floating point; complex numbers are refused."""
    require(f"pscdsl.special.{name}", x, REAL)
    return to_inexact(x)


# Special functions of elements, as a table of names.
#
# Integers and bools are computed in the floating-point dtype that `inexact` names.


def with_positive_zeros(
    function: Callable[..., Value], there: Callable[[Value, Any], Value]
) -> Callable[..., Any]:
    """A function whose zeros are 0.0, as SciPy's, where its first operand is so beside 0."""

    def body(*operands: Value) -> Any:
        result = function(*operands)
        chosen = there(operands[0], 0)
        return result + where(chosen, filled(result, 0.0, ()), filled(result, -0.0, ()))

    return body


def with_negative_zeros(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose zeros are -0.0, as SciPy's."""

    def body(*operands: Value) -> Any:
        return -(0.0 - function(*operands))

    return body


_LARGEST_FACTORS = {F16: 1e4}
"""The largest number by which a step multiplies in a dtype, if it is not 1e30."""

OF_ELEMENTS: dict[str, Callable[..., Any]] = {
    "erf": e.erf,
    "erfc": s.erfc,
    "erfcx": s.erfcx,
    "erfinv": with_positive_zeros(s.erfinv, e.equal),
    "erfcinv": with_negative_zeros(s.erfcinv),
    "ndtr": s.ndtr,
    "log_ndtr": s.log_ndtr,
    "ndtri": s.ndtri,
    "gamma": s.gamma_function,
    "gammaln": s.gammaln,
    "digamma psi": s.digamma,
    "i0": s.i0,
    "i0e": s.i0e,
    "i1": with_positive_zeros(s.i1, e.equal),
    "i1e": with_positive_zeros(s.i1e, e.equal),
    "expit": e.logistic,
    "log_expit": with_negative_zeros(s.log_expit),
    "logit": s.logit,
    "entr": s.entr,
    "betaln": s.betaln,
    "gammainc": s.gammainc,
    "gammaincc": s.gammaincc,
    "xlogy": s.xlogy,
    "xlog1py": s.xlog1py,
    "rel_entr": s.rel_entr,
    "kl_div": with_positive_zeros(s.kl_div, e.greater),
    "betainc": s.betainc,
    "betaincc": s.betaincc,
}
"""Names, and what is computed of the elements of all operands."""


def _give(names: str, function: Callable[..., Any]) -> None:
    first = names.split()[0]

    def body(*operands: Value) -> Any:
        return function(*(floating(first, each) for each in operands))

    operands = inspect.signature(getattr(pscdsl.special, first)).parameters
    of_special(*names.split(), together=" ".join(operands))(body)


for _names, _function in OF_ELEMENTS.items():
    _give(_names, _function)


@of_special("beta", together="a b")
def _beta(a: Value, b: Value, /) -> Any:
    # The sign is that of `gamma(a) * gamma(b) / gamma(a + b)`.  At a pole in a it is that of
    # `(-1) ** b` where b is whole and 1 - a - b positive, else 1, as in SciPy.
    a, b = floating("beta", a), floating("beta", b)
    shape = broadcast_shapes(a.builder.facts, a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    sign = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    of_a, of_b = ((x <= 0) & e.equal(e.floor(x), x) for x in (a, b))
    pole, other = where(of_a, a, b), where(of_a, b, a)
    odd = e.equal(e.remainder(other, 2.0), 1)
    turns = odd & (1 - pole - other > 0)
    turns = turns & e.greater_equal(pole, FURTHEST_POLE)
    at_pole = where(turns, filled(a, -1.0), filled(a, 1.0))
    sign = where(of_a | of_b, at_pole, sign)
    return sign * e.exp(s.betaln(a, b))


def _sign_of_gamma(x: Value) -> Value:
    """1 or -1; the gamma function changes its sign at each pole, where it is 1 itself."""
    whole = e.floor(x)
    odd = e.not_equal(e.remainder(whole, 2.0), 0) & e.not_equal(whole, x)
    negative = (x < 0) & odd
    return where(negative, filled(x, -1.0), filled(x, 1.0))


@of_special("zeta", together="x q")
def _zeta(x: Value, q: Value | None) -> Any:
    x = floating("zeta", x)
    return s.zeta(x, 1.0 if q is None else floating("zeta", q))


@of_special("polygamma", together="x")
def _polygamma(n: Any, x: Value) -> Any:
    order = as_times(n, "pscdsl.special.polygamma")
    if order < 0:
        problem = f"takes an order from 0 on, not {order}"
        raise Failure(BadArguments(function="pscdsl.special.polygamma", problem=problem))
    x = floating("polygamma", x)
    if order == 0:
        return s.digamma(x)
    found: Value = s.zeta(float(order + 1), x)
    factor = 1.0 if order % 2 else -1.0
    largest = _LARGEST_FACTORS.get(found.dtype, 1e30)
    for k in range(2, order + 1):
        if abs(factor) * k > largest:
            found, factor = found * factor, 1.0
        factor *= k
    return found if factor == 1 else found * factor


def _order(name: str, v: Any) -> float:
    """An order of a Bessel function that is known while checking."""
    full, rule = f"pscdsl.special.{name}", "an integer" if name == "jv" else "a number"
    known: Any = v.item() if is_scalar(v) else v
    if isinstance(known, Value | Weak) or isinstance(known, bool | complex):
        known = None
    whole = isinstance(known, int) or (isinstance(known, float) and known.is_integer())
    if not isinstance(known, int | float) or (name == "jv" and not whole):
        problem = f"takes an order that is {rule} known while checking, not {describe(v)}"
        raise Failure(BadArguments(function=full, problem=problem))
    if not abs(known) <= MOST_ORDER:
        problem = f"takes orders up to {MOST_ORDER} here, not {describe(v)}"
        raise Failure(BadArguments(function=full, problem=problem))
    return float(known)


def _give_bessel(names: str, primitive: Callable[[Value, Value], Any]) -> None:
    name = names.split()[0]

    def body(v: Any, z: Value, /) -> Any:
        order, x = _order(name, v), floating(name, z)
        return primitive(x.builder.literal(order, x.dtype), x)

    of_special(*names.split(), together="z")(body)


_give_bessel("jv jn", s.jv)
_give_bessel("iv", s.iv)
_give_bessel("kv", s.kv)


def _give_of_order(name: str, primitive: Callable[[Value, Value], Any], order: float) -> None:
    def body(x: Value, /) -> Any:
        given = floating(name, x)
        return primitive(given.builder.literal(order, given.dtype), given)

    of_special(name, together="x")(body)


_OF_ORDER = (("j0", s.jv, 0.0), ("j1", s.jv, 1.0), ("k0", s.kv, 0.0), ("k1", s.kv, 1.0))
for _name, _two, _number in _OF_ORDER:
    _give_of_order(_name, _two, _number)


@of_special("factorial", traced="n")
def _factorial(here: Builder, n: Any, exact: Any, extend: Any) -> Any:
    name = "pscdsl.special.factorial"
    if extend != "zero" or not isinstance(exact, bool):
        problem = "takes True or False as `exact`, and no `extend` but 'zero' here"
        raise Failure(BadArguments(function=name, problem=problem))
    known = n.item() if isinstance(n, np.integer) else n
    if isinstance(known, int) and not isinstance(known, bool):
        if exact and known > LARGEST_FACTORIAL:
            raise Failure(TooLarge(what=f"the factorial of {known}"))
        if exact:
            return math.factorial(known) if known >= 0 else 0
        value = 0.0 if known < 0 else math.inf
        if 0 <= known <= LARGEST_FACTORIAL:
            value = float(math.factorial(known))
        return here.constant(np.float64(value))
    x = as_operand(here, n)
    x = x.default() if isinstance(x, Weak) else x
    if x.dtype is BOOL:
        raise Failure(DtypeNotAccepted(function=name, given=x.type, accepts="integers and floats"))
    require(name, x, REAL)
    if 0 in x.shape:  # SciPy returns what is empty unchanged
        return x
    if exact:
        raise Failure(BadArguments(function=name, problem="is exact of known integers alone"))
    x = in_dtype(here, x, F64)
    result = s.gamma_function(x + 1.0)
    return where(x < 0, filled(result, 0.0, result.shape), result)


@of_special("comb", together="N k")
def _comb(N: Value, k: Value, *, exact: Any, repetition: Any) -> Value:
    name = "pscdsl.special.comb"
    if exact is not False or not isinstance(repetition, bool):
        problem = "takes True or False as `repetition`, and no `exact` but False"
        instead = "`math.comb(N, k)` is exact, of known integers"
        raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    n, chosen = floating("comb", N), floating("comb", k)
    shape = broadcast_shapes(n.builder.facts, n.shape, chosen.shape)
    n, chosen = broadcast_to(n, shape), broadcast_to(chosen, shape)
    if repetition:
        n = where(e.equal(chosen, 0), n, n + chosen - 1.0)
    some = (chosen >= 0) & e.less_equal(chosen, n)
    n, chosen = (where(some, x, filled(x, 0.0)) for x in (n, chosen))
    found = _binomial(n, chosen)
    return where(some, found, filled(found, 0.0))


def _binomial(n: Value, k: Value) -> Value:
    """The binomial coefficient for 0 <= k <= n; of integers the nearest one, while it is exact."""
    log = s.betaln(n - k + 1.0, k + 1.0) + e.log1p(n)
    found: Value = e.exp(-log)
    whole = e.equal(e.floor(n), n) & e.equal(e.floor(k), k)
    # Of larger numbers the error of the logarithm is more than a half.
    exact = whole & e.less(found, 0.001 / float(finfo(found.dtype).eps))
    nearest = StopGradient()(e.round_even(found) - found)
    found = found + where(exact, nearest, filled(found, 0.0))
    return found


LARGEST_FACTORIAL = 170
"""The largest whose factorial is no infinity in double precision."""


@of_special("multigammaln", together="a")
def _multigammaln(a: Value, d: Any) -> Any:
    count = as_times(d, "pscdsl.special.multigammaln")
    if count < 1:
        problem = f"takes a dimension from 1 on, not {count}"
        raise Failure(BadArguments(function="pscdsl.special.multigammaln", problem=problem))
    a = floating("multigammaln", a)
    found: Value = s.gammaln(a)
    for j in range(1, count):
        found = found + s.gammaln(a - j / 2)
    return found + count * (count - 1) / 4 * math.log(math.pi)


# Sums of exponentials along axes, and what they are divided by, without overflow.


@of_special("logsumexp", together="a b")
def _logsumexp(a: Value, axis: Axes, b: Value | None, keepdims: bool, return_sign: bool) -> Any:
    # Terms of -inf, or with weight 0, do not count; neither they nor rows of them spoil
    # derivatives.
    name = "logsumexp"
    x = floating(name, a)
    weights = None if b is None else floating(name, b)
    dtype = x.dtype
    x = cast(x, wide(dtype))
    if weights is not None:
        weights = cast(weights, x.dtype)
        x, weights = (broadcast_to(v, _joint(x, weights)) for v in (x, weights))
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    if weights is None:
        result = _log_of_sum(x, axes)
        sign = filled(result, 1.0)
    else:
        unweighted = e.equal(weights, 0)
        largest, shift = _shift(where(unweighted, filled(x, -math.inf), x), axes)
        # A term without weight is finite: it adds nothing, but its weight has a derivative.
        size = x - shift
        most = math.log(float(finfo(x.dtype).max)) - 1
        ends = unweighted & ~e.less(size, most)
        terms = e.exp(where(ends, filled(size, most), size))
        sums = total(weights * terms, axes, keepdims=True)
        sign = e.sign(sums)
        # The logarithm of a sum of nothing, which is not used, does not spoil derivatives.
        nothing = e.equal(largest, -math.inf)
        sums = where(nothing, filled(sums, 1.0), sums)
        result = e.log(e.absolute(sums) if return_sign else sums) + shift
        result = where(nothing, largest, result)
    shape = reduced_shape(x.shape, axes, keepdims)
    result = cast(reshaped(result, shape), dtype)
    return (result, cast(reshaped(sign, shape), dtype)) if return_sign else result


@of_special("softmax", together="x")
def _softmax(x: Value, axis: Axes) -> Value:
    wider, axes = _prepared("softmax", x, axis)
    shift = finished(_largest(wider, axes), wider.shape, axes, keepdims=True)

    def value(size: Value) -> Value:
        terms = e.exp(size)
        return terms / total(terms, axes, keepdims=True)

    def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
        shares = ruled(*given)
        moves = shares * tangents[0]
        return shares, moves - shares * total(moves, axes, keepdims=True)

    ruled = partial(with_own_tangents, "softmax", value, rule)
    shares = ruled(wider - shift)
    return cast(shares, floating("softmax", x).dtype)


@of_special("log_softmax", together="x")
def _log_softmax(x: Value, axis: Axes) -> Value:
    wider, axes = _prepared("log_softmax", x, axis)
    _, shift, above = _sums(wider, axes)
    # Rows of nothing but -inf do not spoil derivatives.
    above = where(e.equal(above, -1), filled(above, 0.0), above)
    shift, size = (finished(v, wider.shape, axes, keepdims=True) for v in (shift, e.log1p(above)))
    return cast(wider - shift - size, floating("log_softmax", x).dtype)


def _prepared(name: str, x: Value, axis: Axes) -> tuple[Value, tuple[int, ...]]:
    x = floating(name, x)
    axes = normalize_axes(axis, x.ndim, f"pscdsl.special.{name}")
    require_elements(x, axes, f"pscdsl.special.{name}")
    return cast(x, wide(x.dtype)), axes


def _joint(x: Value, y: Value) -> Any:
    return broadcast_shapes(x.builder.facts, x.shape, y.shape)


def _shift(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """The largest elements along axes, and the same where they are finite, else 0; constants."""
    largest = StopGradient()(extremum(x, "maximum", axes, keepdims=True))
    return largest, where(e.is_finite(largest), largest, filled(largest, 0.0))


def _largest(x: Value, axes: tuple[int, ...]) -> Value:
    """The largest elements along axes, if there is no NaN; constants."""
    return Largest(axes)(StopGradient()(x))


def _sums(
    x: Value, axes: tuple[int, ...], *, beside_shift: bool = False
) -> tuple[Value, Value, Value]:
    """The largest numbers, what they shift by, and by how much sums of exponentials are above 1.

    A NaN is seen in the sums alone.
    """
    largest = _largest(x, axes)
    shift = where(e.is_finite(largest), largest, filled(largest, 0.0))
    return largest, shift, ExponentialSum(axes, beside_shift)(x, shift)


def _log_of_sum(x: Value, axes: tuple[int, ...]) -> Value:
    """The logarithm of the sum of exponentials: exact also if it is small."""
    largest, _, above = _sums(x, axes, beside_shift=True)

    def value(above: Value, largest: Value) -> Value:
        counts = e.is_finite(largest)
        nothing = filled(above, 0.0)
        # A sum of infinities, or of nothing, is not used.
        result = e.log1p(where(counts, above, nothing)) + where(counts, largest, nothing)
        return where(counts, result, where(is_nan(above), above, largest))

    def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
        above, largest = given
        # Nor does it spoil derivatives, but NaN does.
        counts = e.is_finite(largest) | is_nan(above)
        sums = where(counts, above + 1.0, filled(above, math.inf))
        return ruled(*given), 1.0 / sums * tangents[0]

    ruled = partial(with_own_tangents, "logsumexp", value, rule)
    return ruled(above, largest)
