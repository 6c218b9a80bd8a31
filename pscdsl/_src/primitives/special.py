"""Special functions under SciPy's names, one line each in the table of elementwise primitives.

Meaning and translation come from one formula (`formulas`).  The derivatives in the order of a
function, or in the parameters of a distribution, are no such functions: they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from math import sqrt as root
from typing import TYPE_CHECKING, Any, TypeAlias

from pscdsl._src.primitives import bessel, exponentials, gamma
from pscdsl._src.primitives.elementwise import (
    Select,
    absolute,
    bitwise_or,
    equal,
    exp,
    kink,
    log,
    logistic,
    multiply_absorbing,
    power,
    sign,
)
from pscdsl._src.primitives.formulas import Formula
from pscdsl._src.primitives.pointwise import BinaryRule, Elementwise, LinearIn, Rule, UnaryRule
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


TernaryRule: TypeAlias = "Callable[[Value, Value, Value, Value, Value], Any]"
SPECIAL: list[Elementwise] = []
"""All of them."""


def of_one(name: str, formula: Formula, flops: int, derivative: UnaryRule) -> Elementwise:
    """A function of a real number, with its derivative."""
    return _make(name, formula, flops, (derivative,))


def of_two(name: str, formula: Formula, flops: int, *derivative: BinaryRule) -> Elementwise:
    """A function of two real numbers, with a derivative in each."""
    return _make(name, formula, flops, derivative)


def of_three(name: str, formula: Formula, flops: int, *derivative: TernaryRule) -> Elementwise:
    """A function of three real numbers, with a derivative in each."""
    return _make(name, formula, flops, derivative)


def _make(name: str, formula: Formula, flops: int, derivative: tuple[Rule, ...]) -> Elementwise:
    made = Elementwise(
        name,
        len(derivative),
        "floating",
        formula.meaning,
        formula.emit,
        flops=flops,
        derivative=derivative,
    )
    SPECIAL.append(made)
    return made


def _refuse_slope(name: str, operand: str) -> Rule:
    """Return the rule that refuses a derivative in an operand."""

    def refuse(*_: Value) -> Any:
        raise Failure(NoRule(primitive=name, rule=f"a derivative in `{operand}`"))

    return refuse


def _quotient(x: Value, y: Value, zero: Value, at_zero: float) -> Value:
    """The quotient, but a number where `zero` is 0, there without a derivative."""
    there = equal(zero, 0)
    one, value = x.builder.literal(1.0, x.dtype), x.builder.literal(at_zero, x.dtype)
    result: Value = x / Select()(there, one, y)
    return Select()(there, value, result)


# The error function's complement and inverses, and the normal distribution.
erfc: Elementwise = of_one(
    "erfc", exponentials.erfc, 60, lambda t, y, x: t * (-2 / root(pi) * exp(-(x * x)))
)
erfcx: Elementwise = of_one(
    "erfcx", exponentials.erfcx, 60, lambda t, y, x: t * (2 * (x * y) - 2 / root(pi))
)
erfinv: Elementwise = of_one(
    "erfinv", exponentials.erfinv, 60, lambda t, y, x: t * (root(pi) / 2 * exp(y * y))
)
erfcinv: Elementwise = of_one(
    "erfcinv", exponentials.erfcinv, 60, lambda t, y, x: t * (-root(pi) / 2 * exp(y * y))
)
ndtr: Elementwise = of_one(
    "ndtr", exponentials.ndtr, 60, lambda t, y, x: t * (root(0.5 / pi) * exp(x * x * -0.5))
)
log_ndtr: Elementwise = of_one(
    "log_ndtr",
    exponentials.log_ndtr,
    100,
    lambda t, y, x: t * (root(2 / pi) / erfcx(-root(0.5) * x)),
)
ndtri: Elementwise = of_one(
    "ndtri", exponentials.ndtri, 60, lambda t, y, p: t * (root(2 * pi) * exp(y * y * 0.5))
)

# The gamma function and its relatives.
gammaln: Elementwise = of_one("gammaln", gamma.gammaln, 80, lambda t, y, x: t * digamma(x))
digamma: Elementwise = of_one("digamma", gamma.digamma, 80, lambda t, y, x: t * zeta(2.0, x))
gamma_function: Elementwise = of_one("gamma", gamma.gamma, 80, lambda t, y, x: t * (y * digamma(x)))
zeta: Elementwise = of_two(
    "zeta",
    gamma.zeta,
    200,
    _refuse_slope("zeta", "x"),
    lambda t, y, s, q: t * -(s * zeta(s + 1, q)),
)
betaln: Elementwise = of_two(
    "betaln",
    gamma.betaln,
    200,
    lambda t, y, a, b: t * (digamma(a) - digamma(a + b)),
    lambda t, y, a, b: t * (digamma(b) - digamma(a + b)),
)
gammainc: Elementwise = of_two(
    "gammainc",
    gamma.gammainc,
    1000,
    _refuse_slope("gammainc", "a"),
    lambda t, y, a, x: t * _gamma_density(a, x),
)
gammaincc: Elementwise = of_two(
    "gammaincc",
    gamma.gammaincc,
    1000,
    _refuse_slope("gammaincc", "a"),
    lambda t, y, a, x: t * -_gamma_density(a, x),
)
betainc: Elementwise = of_three(
    "betainc",
    gamma.betainc,
    1000,
    _refuse_slope("betainc", "a"),
    _refuse_slope("betainc", "b"),
    lambda t, y, a, b, x: t * _beta_density(a, b, x),
)
betaincc: Elementwise = of_three(
    "betaincc",
    gamma.betaincc,
    1000,
    _refuse_slope("betaincc", "a"),
    _refuse_slope("betaincc", "b"),
    lambda t, y, a, b, x: t * -_beta_density(a, b, x),
)


# Densities are exponentials of sums, but where they end: there they are products of powers, which
# have derivatives.


def _gamma_density(a: Value, x: Value) -> Value:
    end, one = equal(x, 0), x.builder.literal(1.0, x.dtype)
    inside, there = Select()(end, one, x), Select()(end, x, one)
    scale = gammaln(a)
    density = exp(xlogy(a - 1, inside) - inside - scale)
    return Select()(end, power(there, a - 1) * exp(-there - scale), density)


def _beta_density(a: Value, b: Value, x: Value) -> Value:
    end, half = bitwise_or(equal(x, 0), equal(x, 1)), x.builder.literal(0.5, x.dtype)
    inside, there = Select()(end, half, x), Select()(end, x, half)
    scale = betaln(a, b)
    density = exp(xlogy(a - 1, inside) + xlog1py(b - 1, -inside) - scale)
    ends = power(there, a - 1) * power(1 - there, b - 1) * exp(-scale)
    return Select()(end, ends, density)


# Modified Bessel functions.
i0: Elementwise = of_one("i0", gamma.i0, 100, lambda t, y, x: t * i1(x))
i0e: Elementwise = of_one(
    "i0e", gamma.i0e, 100, lambda t, y, x: t * (i1e(x) - (sign(x) + kink(x)) * y)
)
i1: Elementwise = of_one("i1", gamma.i1, 100, lambda t, y, x: t * (i0(x) - _quotient(y, x, x, 0.5)))
i1e: Elementwise = of_one(
    "i1e",
    gamma.i1e,
    100,
    lambda t, y, x: t * (i0e(x) - (sign(x) + kink(x)) * y - _quotient(y, x, x, 0.5)),
)

# Bessel functions of any order.
jv: Elementwise = of_two(
    "jv",
    bessel.jv,
    2000,
    _refuse_slope("jv", "v"),
    lambda t, y, v, x: t * ((jv(v - 1, x) - jv(v + 1, x)) * 0.5),
)
iv: Elementwise = of_two(
    "iv",
    bessel.iv,
    2000,
    _refuse_slope("iv", "v"),
    lambda t, y, v, x: t * (iv(v - 1, x) * 0.5 + iv(v + 1, x) * 0.5),  # the sum may overflow
)
kv: Elementwise = of_two(
    "kv",
    bessel.kv,
    2000,
    _refuse_slope("kv", "v"),
    lambda t, y, v, x: t * _slope_of_k(y, absolute(v), x),
)


def _slope_of_k(y: Value, order: Value, x: Value) -> Value:
    """The slope by lower orders, which neither overflow early nor leave the orders that K has."""
    by_order = multiply_absorbing(_quotient(order, x, order, 0.0), y)
    return -(kv(order - 1, x) + by_order)


# Probabilities and their logarithms.
logit: Elementwise = of_one("logit", exponentials.logit, 20, lambda t, y, p: t / (p * (1 - p)))
log_expit: Elementwise = of_one(
    "log_expit", exponentials.log_expit, 20, lambda t, y, x: t * logistic(-x)
)
xlogy: Elementwise = of_two(
    "xlogy",
    exponentials.xlogy,
    10,
    LinearIn(lambda t, xs: xlogy(t, xs[1])),
    lambda t, z, x, y: t * _quotient(x, y, x, 0.0),
)
xlog1py: Elementwise = of_two(
    "xlog1py",
    exponentials.xlog1py,
    20,
    LinearIn(lambda t, xs: xlog1py(t, xs[1])),
    lambda t, z, x, y: t * _quotient(x, 1 + y, x, 0.0),
)
entr: Elementwise = of_one("entr", exponentials.entr, 10, lambda t, y, x: t * -(log(x) + 1))
rel_entr: Elementwise = of_two(
    "rel_entr",
    exponentials.rel_entr,
    30,
    lambda t, z, x, y: t * (log(x / y) + 1),
    lambda t, z, x, y: t * -_quotient(x, y, x, 0.0),
)
kl_div: Elementwise = of_two(
    "kl_div",
    exponentials.kl_div,
    40,
    lambda t, z, x, y: t * log(x / y),
    lambda t, z, x, y: t * (1 - _quotient(x, y, x, 0.0)),
)
