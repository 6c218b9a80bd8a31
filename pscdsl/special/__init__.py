"""Special functions, in kernels and on NumPy's arrays, under SciPy's names.

In kernels `scipy.special.gammaln` and the like mean the same.  All take real numbers, broadcast,
and are accurate to a few units in the last place in f32 and f64; half precisions are computed in
f32.  Derivatives in a, b and the order of a function are not there: they are refused.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from pscdsl._src.language.declarations import declaring
from pscdsl.arrays import f32

as_in_kernels = declaring(__name__, "pscdsl.special.outside")


@as_in_kernels
def erf(x: Any, /) -> f32:
    """The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    ...


@as_in_kernels
def erfc(x: Any, /) -> f32:
    """`1 - erf(x)`, with relative accuracy where that is small."""
    ...


@as_in_kernels
def erfcx(x: Any, /) -> f32:
    """`exp(x^2) * erfc(x)`, which falls like 1/x."""
    ...


@as_in_kernels
def erfinv(y: Any, /) -> f32:
    """The number whose `erf` is y; infinite at -1 and 1, NaN beyond."""
    ...


@as_in_kernels
def erfcinv(y: Any, /) -> f32:
    """The number whose `erfc` is y; infinite at 0 and 2, NaN beyond."""
    ...


@as_in_kernels
def ndtr(x: Any, /) -> f32:
    """The probability that a standard normal variable is below x."""
    ...


@as_in_kernels
def log_ndtr(x: Any, /) -> f32:
    """The logarithm of `ndtr`, also where that is 0 or 1 in this dtype."""
    ...


@as_in_kernels
def ndtri(y: Any, /) -> f32:
    """The number below which a standard normal variable is with probability y."""
    ...


@as_in_kernels
def gamma(z: Any, /) -> f32:
    """The gamma function; NaN at its poles but 0."""
    ...


@as_in_kernels
def gammaln(x: Any, /) -> f32:
    """The logarithm of the absolute value of the gamma function."""
    ...


@as_in_kernels
def digamma(z: Any, /) -> f32:
    """The derivative of `gammaln`."""
    ...


@as_in_kernels
def psi(z: Any, /) -> f32:
    """The same as `digamma`."""
    ...


@as_in_kernels
def polygamma(n: Any, x: Any) -> f32:
    """The n-th derivative of `digamma`; n is static."""
    ...


@as_in_kernels
def jv(v: Any, z: Any, /) -> f32:
    """The Bessel function of the first kind; its order is a static integer, up to 99."""
    ...


@as_in_kernels
def jn(v: Any, z: Any, /) -> f32:
    """The same as `jv`."""
    ...


@as_in_kernels
def iv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the first kind; its order is static, up to 99."""
    ...


@as_in_kernels
def kv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the second kind; its order is static, up to 99."""
    ...


@as_in_kernels
def j0(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 0."""
    ...


@as_in_kernels
def j1(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 1."""
    ...


@as_in_kernels
def k0(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 0."""
    ...


@as_in_kernels
def k1(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 1."""
    ...


@as_in_kernels
def factorial(n: Any, exact: bool = False, extend: Literal["zero"] = "zero") -> Any:
    """`gamma(n + 1)` in double precision, 0 of negative numbers; exact, of a static integer."""
    ...


@as_in_kernels
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> f32:
    """Return how many ways there are to choose k of N things, 0 where there are none; not exact."""
    ...


@as_in_kernels
def multigammaln(a: Any, d: Any) -> f32:
    """The logarithm of the gamma function of d dimensions; d is static."""
    ...


@as_in_kernels
def zeta(x: Any, q: Any = None) -> f32:
    """Hurwitz's zeta function, the sum of (q + k)^-x over k from 0 on; Riemann's without q."""
    ...


@as_in_kernels
def beta(a: Any, b: Any, /) -> f32:
    """The beta function, of positive numbers."""
    ...


@as_in_kernels
def betaln(a: Any, b: Any, /) -> f32:
    """The logarithm of the absolute value of the beta function."""
    ...


@as_in_kernels
def betainc(a: Any, b: Any, x: Any, /) -> f32:
    """The regularized incomplete beta function; differentiable in x."""
    ...


@as_in_kernels
def betaincc(a: Any, b: Any, x: Any, /) -> f32:
    """`1 - betainc(a, b, x)`."""
    ...


@as_in_kernels
def gammainc(a: Any, x: Any, /) -> f32:
    """The regularized lower incomplete gamma function; differentiable in x."""
    ...


@as_in_kernels
def gammaincc(a: Any, x: Any, /) -> f32:
    """`1 - gammainc(a, x)`, with relative accuracy where that is small."""
    ...


@as_in_kernels
def i0(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 0."""
    ...


@as_in_kernels
def i0e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i0(x)`."""
    ...


@as_in_kernels
def i1(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 1."""
    ...


@as_in_kernels
def i1e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i1(x)`."""
    ...


@as_in_kernels
def expit(x: Any, /) -> f32:
    """`1 / (1 + exp(-x))`, with relative accuracy in both tails."""
    ...


@as_in_kernels
def log_expit(x: Any, /) -> f32:
    """The logarithm of `expit`."""
    ...


@as_in_kernels
def logit(x: Any, /) -> f32:
    """`log(x / (1 - x))`, with relative accuracy around 1/2."""
    ...


@as_in_kernels
def xlogy(x: Any, y: Any, /) -> f32:
    """`x * log(y)`, and 0 where x is 0."""
    ...


@as_in_kernels
def xlog1py(x: Any, y: Any, /) -> f32:
    """`x * log1p(y)`, and 0 where x is 0."""
    ...


@as_in_kernels
def entr(x: Any, /) -> f32:
    """`-x * log(x)`: 0 at 0, -inf to the left."""
    ...


@as_in_kernels
def rel_entr(x: Any, y: Any, /) -> f32:
    """`x * log(x / y)`: 0 where x is 0, infinite where one of them is no probability."""
    ...


@as_in_kernels
def kl_div(x: Any, y: Any, /) -> f32:
    """`x * log(x / y) - x + y`, without cancellation."""
    ...


@overload
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
) -> f32: ...
@overload
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
) -> tuple[f32, f32]: ...
@as_in_kernels
def logsumexp(
    a: Any,
    axis: int | Sequence[int] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """`log(sum(b * exp(a)))` without overflow; of a negative sum NaN, or with its sign.

    Rows of -inf give -inf, with derivatives of 0.
    """
    ...


@as_in_kernels
def softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`exp(x) / sum(exp(x))`, over all axes or some."""
    ...


@as_in_kernels
def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`log(softmax(x))`, also where that is 0 or 1 in this dtype."""
    ...


__all__ = [
    "beta",
    "betainc",
    "betaincc",
    "betaln",
    "comb",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k1",
    "kl_div",
    "kv",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]
