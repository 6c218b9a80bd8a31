"""Special functions of elements, as tables of names.

Integers and bools are computed in the floating-point dtype that `inexact` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special as s
from pscdsl.numpy.shorthand import filled, where
from pscdsl.numpy.sizes import as_times
from pscdsl.special.declaring import floating, of_special
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure

LARGEST_FACTOR = 1e30
"""Factorials are multiplied by in steps, each of which fits every dtype."""

ONE: dict[str, tuple[str, Callable[[Value], Any]]] = {
    "erf": ("x", e.erf),
    "erfc": ("x", s.erfc),
    "erfcx": ("x", s.erfcx),
    "erfinv": ("y", s.erfinv),
    "erfcinv": ("y", s.erfcinv),
    "ndtr": ("x", s.ndtr),
    "log_ndtr": ("x", s.log_ndtr),
    "ndtri": ("y", s.ndtri),
    "gamma": ("z", s.gamma_function),
    "gammaln": ("x", s.gammaln),
    "digamma psi": ("z", s.digamma),
    "i0": ("x", s.i0),
    "i0e": ("x", s.i0e),
    "i1": ("x", s.i1),
    "i1e": ("x", s.i1e),
    "expit": ("x", e.logistic),
    "log_expit": ("x", s.log_expit),
    "logit": ("x", s.logit),
    "entr": ("x", s.entr),
}
"""Names, SciPy's name of the parameter, and what is computed."""
TWO: dict[str, tuple[str, Callable[[Value, Value], Any]]] = {
    "betaln": ("a b", s.betaln),
    "gammainc": ("a x", s.gammainc),
    "gammaincc": ("a x", s.gammaincc),
    "xlogy": ("x y", s.xlogy),
    "xlog1py": ("x y", s.xlog1py),
    "rel_entr": ("x y", s.rel_entr),
    "kl_div": ("x y", s.kl_div),
}
THREE: dict[str, Callable[[Value, Value, Value], Any]] = {
    "betainc": s.betainc,
    "betaincc": s.betaincc,
}


def _declare_one(names: str, function: Callable[[Value], Any]) -> None:
    first = names.split()[0]

    def body(x: Value, /) -> Any:
        return function(floating(first, x))

    of_special(*names.split(), together="x")(body)


def _declare_two(name: str, function: Callable[[Value, Value], Any]) -> None:
    def body(x1: Value, x2: Value, /) -> Any:
        return function(floating(name, x1), floating(name, x2))

    of_special(name, together="x1 x2")(body)


def _declare_three(name: str, function: Callable[[Value, Value, Value], Any]) -> None:
    def body(a: Value, b: Value, x: Value, /) -> Any:
        return function(*(floating(name, each) for each in (a, b, x)))

    of_special(name, together="a b x")(body)


for _names, (_, _one) in ONE.items():
    _declare_one(_names, _one)
for _name, (_, _two) in TWO.items():
    _declare_two(_name, _two)
for _name, _three in THREE.items():
    _declare_three(_name, _three)


@of_special("beta", together="a b")
def beta(a: Value, b: Value, /) -> Any:
    """The beta function; its sign is that of `gamma(a) * gamma(b) / gamma(a + b)`."""
    a, b = floating("beta", a), floating("beta", b)
    sign = e.multiply(e.multiply(_sign_of_gamma(a), _sign_of_gamma(b)), _sign_of_gamma(a + b))
    return e.multiply(sign, e.exp(s.betaln(a, b)))


def _sign_of_gamma(x: Value) -> Value:
    """1 or -1; the gamma function changes its sign at each pole."""
    odd = e.not_equal(e.remainder(e.floor(x), 2.0), 0)
    negative = e.bitwise_and(e.less(x, 0), odd)
    return where(negative, filled(x, -1.0), filled(x, 1.0))


@of_special("zeta", together="x q")
def zeta(x: Value, q: Value | None = None) -> Any:
    """Hurwitz's zeta function, or Riemann's; NaN for x below 1."""
    x = floating("zeta", x)
    return s.zeta(x, 1.0 if q is None else floating("zeta", q))


@of_special("polygamma", together="x")
def polygamma(n: Any, x: Value) -> Any:
    """The derivative of `digamma` of an order that is known while checking."""
    order = as_times(n, "pscdsl.special.polygamma")
    if order < 0:
        problem = f"takes an order from 0 on, not {order}"
        raise Failure(BadArguments(function="pscdsl.special.polygamma", problem=problem))
    x = floating("polygamma", x)
    if order == 0:
        return s.digamma(x)
    found: Value = s.zeta(float(order + 1), x)
    factor = 1.0 if order % 2 else -1.0
    for k in range(2, order + 1):
        if abs(factor) * k > LARGEST_FACTOR:
            found, factor = e.multiply(found, factor), 1.0
        factor *= k
    return found if factor == 1 else e.multiply(found, factor)


@of_special("multigammaln", together="a")
def multigammaln(a: Value, d: Any) -> Any:
    """The logarithm of the gamma function of several dimensions, whose number is static."""
    count = as_times(d, "pscdsl.special.multigammaln")
    if count < 1:
        problem = f"takes a dimension from 1 on, not {count}"
        raise Failure(BadArguments(function="pscdsl.special.multigammaln", problem=problem))
    a = floating("multigammaln", a)
    found: Value = s.gammaln(a)
    for j in range(1, count):
        found = e.add(found, s.gammaln(e.subtract(a, j / 2)))
    return e.add(found, count * (count - 1) / 4 * math.log(math.pi))
