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
    """The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Examples:
        >>> psc.special.erf(np.array([0, 0.5, 1, 3]))
        array([0.    , 0.5205, 0.8427, 1.    ])
    """
    ...


@as_in_kernels
def erfc(x: Any, /) -> f32:
    """`1 - erf(x)`, with relative accuracy where that is small.

    Examples:
        >>> psc.special.erfc(np.array([0.0, 5.0, 10.0]))
        array([1.0000e+00, 1.5375e-12, 2.0885e-45])
    """
    ...


@as_in_kernels
def erfcx(x: Any, /) -> f32:
    """`exp(x^2) * erfc(x)`, which falls like 1/x.

    Examples:
        >>> psc.special.erfcx(np.array([0.0, 10.0, 100.0]))
        array([1.    , 0.0561, 0.0056])
    """
    ...


@as_in_kernels
def erfinv(y: Any, /) -> f32:
    """The number whose `erf` is y; infinite at -1 and 1, NaN beyond.

    Examples:
        >>> psc.special.erfinv(np.array([-1, 0, 0.5, 1]))
        array([  -inf, 0.    , 0.4769,    inf])
    """
    ...


@as_in_kernels
def erfcinv(y: Any, /) -> f32:
    """The number whose `erfc` is y; infinite at 0 and 2, NaN beyond.

    Examples:
        >>> psc.special.erfcinv(np.array([0.5, 1.5, 1e-100]))
        array([ 0.4769, -0.4769, 15.0656])
    """
    ...


@as_in_kernels
def ndtr(x: Any, /) -> f32:
    """The probability that a standard normal variable is below x.

    Examples:
        >>> psc.special.ndtr(np.array([-1.96, 0, 1.96]))
        array([0.025, 0.5  , 0.975])
    """
    ...


@as_in_kernels
def log_ndtr(x: Any, /) -> f32:
    """The logarithm of `ndtr`, also where that is 0 or 1 in this dtype.

    Examples:
        >>> psc.special.log_ndtr(np.array([-20.0, 0.0]))
        array([-203.9172,   -0.6931])
    """
    ...


@as_in_kernels
def ndtri(y: Any, /) -> f32:
    """The number below which a standard normal variable is with probability y.

    Examples:
        >>> psc.special.ndtri(np.array([0.025, 0.5, 0.975]))
        array([-1.96,  0.  ,  1.96])
    """
    ...


@as_in_kernels
def gamma(z: Any, /) -> f32:
    """The gamma function; NaN at its poles but 0.

    Examples:
        >>> psc.special.gamma(np.array([0.5, 1, 5]))
        array([ 1.7725,  1.    , 24.    ])
    """
    ...


@as_in_kernels
def gammaln(x: Any, /) -> f32:
    """The logarithm of the absolute value of the gamma function.

    Examples:
        >>> psc.special.gammaln(np.array([1.0, 10.0, 1000.0]))
        array([   0.    ,   12.8018, 5905.2204])
    """
    ...


@as_in_kernels
def digamma(z: Any, /) -> f32:
    """The derivative of `gammaln`.

    Examples:
        >>> psc.special.digamma(np.array([0.5, 1, 2]))
        array([-1.9635, -0.5772,  0.4228])
    """
    ...


@as_in_kernels
def psi(z: Any, /) -> f32:
    """The same as `digamma`.

    Examples:
        >>> psc.special.psi(np.array([0.5, 1, 2]))
        array([-1.9635, -0.5772,  0.4228])
    """
    ...


@as_in_kernels
def polygamma(n: Any, x: Any) -> f32:
    """The n-th derivative of `digamma`; n is static.

    Examples:
        >>> psc.special.polygamma(1, np.array([1.0, 2.0]))
        array([1.6449, 0.6449])
    """
    ...


@as_in_kernels
def jv(v: Any, z: Any, /) -> f32:
    """The Bessel function of the first kind; its order is a static integer, up to 99.

    Examples:
        >>> psc.special.jv(2, np.array([0.5, 5.0]))
        array([0.0306, 0.0466])
    """
    ...


@as_in_kernels
def jn(v: Any, z: Any, /) -> f32:
    """The same as `jv`.

    Examples:
        >>> psc.special.jn(2, np.array([0.5, 5.0]))
        array([0.0306, 0.0466])
    """
    ...


@as_in_kernels
def iv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the first kind; its order is static, up to 99.

    Examples:
        >>> psc.special.iv(2, np.array([0.5, 5.0]))
        array([ 0.0319, 17.5056])
    """
    ...


@as_in_kernels
def kv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the second kind; its order is static, up to 99.

    Examples:
        >>> psc.special.kv(2, np.array([0.5, 5.0]))
        array([7.5502e+00, 5.3089e-03])
    """
    ...


@as_in_kernels
def j0(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 0.

    Examples:
        >>> psc.special.j0(np.array([0, 1, 10]))
        array([ 1.    ,  0.7652, -0.2459])
    """
    ...


@as_in_kernels
def j1(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 1.

    Examples:
        >>> psc.special.j1(np.array([0, 1.8412, 10]))
        array([0.    , 0.5819, 0.0435])
    """
    ...


@as_in_kernels
def k0(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 0.

    Examples:
        >>> psc.special.k0(np.array([0.1, 1, 5]))
        array([2.4271, 0.421 , 0.0037])
    """
    ...


@as_in_kernels
def k1(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 1.

    Examples:
        >>> psc.special.k1(np.array([0.1, 1, 5]))
        array([9.8538e+00, 6.0191e-01, 4.0446e-03])
    """
    ...


@as_in_kernels
def factorial(n: Any, exact: bool = False, extend: Literal["zero"] = "zero") -> Any:
    """`gamma(n + 1)` in double precision, 0 of negative numbers; exact, of a static integer.

    Examples:
        >>> psc.special.factorial(np.array([0, 1, 5, -1]))
        array([  1.,   1., 120.,   0.])
        >>> psc.special.factorial(20, exact=True)
        2432902008176640000
    """
    ...


@as_in_kernels
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> f32:
    """Return how many ways there are to choose k of N things, 0 where there are none; not exact.

    Examples:
        >>> psc.special.comb(5, np.arange(6))
        array([ 1.,  5., 10., 10.,  5.,  1.])
        >>> psc.special.comb(3, 2, repetition=True)
        np.float64(6.0)
    """
    ...


@as_in_kernels
def multigammaln(a: Any, d: Any) -> f32:
    """The logarithm of the gamma function of d dimensions; d is static.

    Examples:
        >>> psc.special.multigammaln(np.array([1.5, 4.0]), 2)
        array([0.4516, 3.5651])
    """
    ...


@as_in_kernels
def zeta(x: Any, q: Any = None) -> f32:
    """Hurwitz's zeta function, the sum of (q + k)^-x over k from 0 on; Riemann's without q.

    Examples:
        >>> psc.special.zeta(np.array([2.0, 4.0]))
        array([1.6449, 1.0823])
        >>> psc.special.zeta(np.array([2.0]), 3.0)
        array([0.3949])
    """
    ...


@as_in_kernels
def beta(a: Any, b: Any, /) -> f32:
    """The beta function, of positive numbers.

    Examples:
        >>> psc.special.beta(np.array([1.0, 2.0]), 3.0)
        array([0.3333, 0.0833])
    """
    ...


@as_in_kernels
def betaln(a: Any, b: Any, /) -> f32:
    """The logarithm of the absolute value of the beta function.

    Examples:
        >>> psc.special.betaln(np.array([1.0, 1000.0]), 1000.0)
        array([   -6.9078, -1388.4826])
    """
    ...


@as_in_kernels
def betainc(a: Any, b: Any, x: Any, /) -> f32:
    """The regularized incomplete beta function; differentiable in x.

    Examples:
        >>> psc.special.betainc(2.0, 5.0, np.array([0, 0.2, 0.5, 1]))
        array([0.    , 0.3446, 0.8906, 1.    ])
    """
    ...


@as_in_kernels
def betaincc(a: Any, b: Any, x: Any, /) -> f32:
    """`1 - betainc(a, b, x)`.

    Examples:
        >>> psc.special.betaincc(2.0, 5.0, np.array([0, 0.2, 0.5, 1]))
        array([1.    , 0.6554, 0.1094, 0.    ])
    """
    ...


@as_in_kernels
def gammainc(a: Any, x: Any, /) -> f32:
    """The regularized lower incomplete gamma function; differentiable in x.

    Examples:
        >>> psc.special.gammainc(2.0, np.array([0.5, 2, 10]))
        array([0.0902, 0.594 , 0.9995])
    """
    ...


@as_in_kernels
def gammaincc(a: Any, x: Any, /) -> f32:
    """`1 - gammainc(a, x)`, with relative accuracy where that is small.

    Examples:
        >>> psc.special.gammaincc(2.0, np.array([0.5, 2.0, 100.0]))
        array([9.0980e-01, 4.0601e-01, 3.7573e-42])
    """
    ...


@as_in_kernels
def i0(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 0.

    Examples:
        >>> psc.special.i0(np.array([0.0, 1.0, 5.0]))
        array([ 1.    ,  1.2661, 27.2399])
    """
    ...


@as_in_kernels
def i0e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i0(x)`.

    Examples:
        >>> psc.special.i0e(np.array([0.0, 1.0, 1000.0]))
        array([1.    , 0.4658, 0.0126])
    """
    ...


@as_in_kernels
def i1(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 1.

    Examples:
        >>> psc.special.i1(np.array([0.0, 1.0, 5.0]))
        array([ 0.    ,  0.5652, 24.3356])
    """
    ...


@as_in_kernels
def i1e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i1(x)`.

    Examples:
        >>> psc.special.i1e(np.array([0.0, 1.0, 1000.0]))
        array([0.    , 0.2079, 0.0126])
    """
    ...


@as_in_kernels
def expit(x: Any, /) -> f32:
    """`1 / (1 + exp(-x))`, with relative accuracy in both tails.

    Examples:
        >>> psc.special.expit(np.array([-2, 0, 2.0]))
        array([0.1192, 0.5   , 0.8808])
    """
    ...


@as_in_kernels
def log_expit(x: Any, /) -> f32:
    """The logarithm of `expit`.

    Examples:
        >>> psc.special.log_expit(np.array([-100.0, 0.0, 2.0]))
        array([-100.    ,   -0.6931,   -0.1269])
    """
    ...


@as_in_kernels
def logit(x: Any, /) -> f32:
    """`log(x / (1 - x))`, with relative accuracy around 1/2.

    Examples:
        >>> psc.special.logit(np.array([0.1, 0.5, 1.0]))
        array([-2.1972,  0.    ,     inf])
    """
    ...


@as_in_kernels
def xlogy(x: Any, y: Any, /) -> f32:
    """`x * log(y)`, and 0 where x is 0.

    Examples:
        >>> psc.special.xlogy(np.array([0.0, 2.0]), np.array([0.0, 3.0]))
        array([0.    , 2.1972])
    """
    ...


@as_in_kernels
def xlog1py(x: Any, y: Any, /) -> f32:
    """`x * log1p(y)`, and 0 where x is 0.

    Examples:
        >>> psc.special.xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 3.0]))
        array([0.    , 2.7726])
    """
    ...


@as_in_kernels
def entr(x: Any, /) -> f32:
    """`-x * log(x)`: 0 at 0, -inf to the left.

    Examples:
        >>> psc.special.entr(np.array([0, 0.5, -1]))
        array([0.    , 0.3466,   -inf])
    """
    ...


@as_in_kernels
def rel_entr(x: Any, y: Any, /) -> f32:
    """`x * log(x / y)`: 0 where x is 0, infinite where one of them is no probability.

    Examples:
        >>> psc.special.rel_entr(np.array([0.0, 0.5]), np.array([0.3, 0.25]))
        array([0.    , 0.3466])
    """
    ...


@as_in_kernels
def kl_div(x: Any, y: Any, /) -> f32:
    """`x * log(x / y) - x + y`, without cancellation.

    Examples:
        >>> psc.special.kl_div(np.array([0.0, 0.5]), np.array([0.3, 0.25]))
        array([0.3   , 0.0966])
    """
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

    Examples:
        >>> psc.special.logsumexp(np.array([[1000.0], [1001.0]]), axis=0)
        array([1001.3133])
        >>> psc.special.logsumexp(np.array([[0.0, 1.0], [2.0, 3.0]]), axis=1)
        array([1.3133, 3.3133])
    """
    ...


@as_in_kernels
def softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`exp(x) / sum(exp(x))`, over all axes or some.

    Examples:
        >>> psc.special.softmax(np.array([[1.0, 2.0], [0.0, 1000.0]]), axis=1)
        array([[0.2689, 0.7311],
               [0.    , 1.    ]])
    """
    ...


@as_in_kernels
def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`log(softmax(x))`, also where that is 0 or 1 in this dtype.

    Examples:
        >>> psc.special.log_softmax(np.array([0.0, 1000.0]))
        array([-1000.,     0.])
    """
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
