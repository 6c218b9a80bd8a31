"""Special functions, in kernels and on NumPy's arrays, under SciPy's names.

In kernels `scipy.special.gammaln` and the like mean the same.  All take real numbers, broadcast,
and are accurate to a few units in the last place in f32 and f64; half precisions are computed in
f32.  Derivatives in a, b and the order of a function are not there: they are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, overload

import numpy as np

from pscdsl._src.ir.builder import Program, Value, Weak
from pscdsl._src.ir.numpy_dtypes import from_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.support.tracebacks import public
from pscdsl.arrays import Array, f32
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_tuple

# What the functions compute outside of kernels: their NumPy meanings.


def _apply(function: str, *args: Any, **kwargs: Any) -> Any:
    """A function of this package; numbers alone are taken as NumPy's, in double precision."""
    import_module("pscdsl.special.functions")
    meaning = MEANINGS[f"pscdsl.special.{function}"]
    assert isinstance(meaning, Meaning)
    program = Program(Assumptions())
    here = program.current
    params: list[Value] = []
    operands: list[Any] = []
    alone = not any(
        isinstance(x, np.ndarray | np.generic | Array) for x in (*args, *kwargs.values())
    )

    def given(name: str, x: Any) -> Any:
        if name not in meaning.together or x is None:
            return x
        if isinstance(x, bool | int | float) and not alone:
            return x
        array = np.asarray(x)
        operands.append(array)
        params.append(here.parameter(ArrayType(from_numpy(array.dtype), array.shape)))
        return params[-1]

    names = list(meaning.signature.parameters)
    values = [given(name, x) for name, x in zip(names, args, strict=False)] + [*args[len(names) :]]
    try:
        result = meaning.apply(here, values, {name: given(name, x) for name, x in kwargs.items()})
    except Failure as failure:
        raise TypeError("; ".join(each.message() for each in failure.diagnostics)) from None
    if isinstance(result, int):
        return result  # which is exact
    several: tuple[Any, ...] = result if is_tuple(result) else (result,)
    built = [each.default() if isinstance(each, Weak) else each for each in several]
    block, _ = here.finish(params, built)
    found = evaluate(Function(function, (), program.facts, block), {}, operands)
    arrays = tuple([each if each.ndim else each[()] for each in found])
    return arrays if is_tuple(result) else arrays[0]


@public
def erf(x: Any, /) -> f32:
    """The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    found: f32 = _apply("erf", x)
    return found


@public
def erfc(x: Any, /) -> f32:
    """`1 - erf(x)`, with relative accuracy where that is small."""
    found: f32 = _apply("erfc", x)
    return found


@public
def erfcx(x: Any, /) -> f32:
    """`exp(x^2) * erfc(x)`, which falls like 1/x."""
    found: f32 = _apply("erfcx", x)
    return found


@public
def erfinv(y: Any, /) -> f32:
    """The number whose `erf` is y; infinite at -1 and 1, NaN beyond."""
    found: f32 = _apply("erfinv", y)
    return found


@public
def erfcinv(y: Any, /) -> f32:
    """The number whose `erfc` is y; infinite at 0 and 2, NaN beyond."""
    found: f32 = _apply("erfcinv", y)
    return found


@public
def ndtr(x: Any, /) -> f32:
    """The probability that a standard normal variable is below x."""
    found: f32 = _apply("ndtr", x)
    return found


@public
def log_ndtr(x: Any, /) -> f32:
    """The logarithm of `ndtr`, also where that is 0 or 1 in this dtype."""
    found: f32 = _apply("log_ndtr", x)
    return found


@public
def ndtri(y: Any, /) -> f32:
    """The number below which a standard normal variable is with probability y."""
    found: f32 = _apply("ndtri", y)
    return found


@public
def gamma(z: Any, /) -> f32:
    """The gamma function; NaN at its poles but 0."""
    found: f32 = _apply("gamma", z)
    return found


@public
def gammaln(x: Any, /) -> f32:
    """The logarithm of the absolute value of the gamma function."""
    found: f32 = _apply("gammaln", x)
    return found


@public
def digamma(z: Any, /) -> f32:
    """The derivative of `gammaln`."""
    found: f32 = _apply("digamma", z)
    return found


@public
def psi(z: Any, /) -> f32:
    """The same as `digamma`."""
    found: f32 = _apply("psi", z)
    return found


@public
def polygamma(n: Any, x: Any) -> f32:
    """The n-th derivative of `digamma`; n is static."""
    found: f32 = _apply("polygamma", n, x)
    return found


@public
def jv(v: Any, z: Any, /) -> f32:
    """The Bessel function of the first kind; its order is a static integer, up to 99."""
    found: f32 = _apply("jv", v, z)
    return found


@public
def jn(v: Any, z: Any, /) -> f32:
    """The same as `jv`."""
    found: f32 = _apply("jn", v, z)
    return found


@public
def iv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the first kind; its order is static, up to 99."""
    found: f32 = _apply("iv", v, z)
    return found


@public
def kv(v: Any, z: Any, /) -> f32:
    """The modified Bessel function of the second kind; its order is static, up to 99."""
    found: f32 = _apply("kv", v, z)
    return found


@public
def j0(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 0."""
    found: f32 = _apply("j0", x)
    return found


@public
def j1(x: Any, /) -> f32:
    """The Bessel function of the first kind, of order 1."""
    found: f32 = _apply("j1", x)
    return found


@public
def k0(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 0."""
    found: f32 = _apply("k0", x)
    return found


@public
def k1(x: Any, /) -> f32:
    """The modified Bessel function of the second kind, of order 1."""
    found: f32 = _apply("k1", x)
    return found


@public
def factorial(n: Any, exact: bool = False, extend: Literal["zero"] = "zero") -> Any:
    """`gamma(n + 1)` in double precision, 0 of negative numbers; exact, of a static integer."""
    return _apply("factorial", n, exact, extend)


@public
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> f32:
    """How many ways there are to choose k of N things, 0 where there are none; not exact."""
    found: f32 = _apply("comb", N, k, exact=exact, repetition=repetition)
    return found


@public
def multigammaln(a: Any, d: Any) -> f32:
    """The logarithm of the gamma function of d dimensions; d is static."""
    found: f32 = _apply("multigammaln", a, d)
    return found


@public
def zeta(x: Any, q: Any = None) -> f32:
    """Hurwitz's zeta function, the sum of (q + k)^-x over k from 0 on; Riemann's without q."""
    found: f32 = _apply("zeta", x, q)
    return found


@public
def beta(a: Any, b: Any, /) -> f32:
    """The beta function, of positive numbers."""
    found: f32 = _apply("beta", a, b)
    return found


@public
def betaln(a: Any, b: Any, /) -> f32:
    """The logarithm of the absolute value of the beta function."""
    found: f32 = _apply("betaln", a, b)
    return found


@public
def betainc(a: Any, b: Any, x: Any, /) -> f32:
    """The regularized incomplete beta function; differentiable in x."""
    found: f32 = _apply("betainc", a, b, x)
    return found


@public
def betaincc(a: Any, b: Any, x: Any, /) -> f32:
    """`1 - betainc(a, b, x)`."""
    found: f32 = _apply("betaincc", a, b, x)
    return found


@public
def gammainc(a: Any, x: Any, /) -> f32:
    """The regularized lower incomplete gamma function; differentiable in x."""
    found: f32 = _apply("gammainc", a, x)
    return found


@public
def gammaincc(a: Any, x: Any, /) -> f32:
    """`1 - gammainc(a, x)`, with relative accuracy where that is small."""
    found: f32 = _apply("gammaincc", a, x)
    return found


@public
def i0(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 0."""
    found: f32 = _apply("i0", x)
    return found


@public
def i0e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i0(x)`."""
    found: f32 = _apply("i0e", x)
    return found


@public
def i1(x: Any, /) -> f32:
    """The modified Bessel function of the first kind of order 1."""
    found: f32 = _apply("i1", x)
    return found


@public
def i1e(x: Any, /) -> f32:
    """`exp(-abs(x)) * i1(x)`."""
    found: f32 = _apply("i1e", x)
    return found


@public
def expit(x: Any, /) -> f32:
    """`1 / (1 + exp(-x))`, with relative accuracy in both tails."""
    found: f32 = _apply("expit", x)
    return found


@public
def log_expit(x: Any, /) -> f32:
    """The logarithm of `expit`."""
    found: f32 = _apply("log_expit", x)
    return found


@public
def logit(x: Any, /) -> f32:
    """`log(x / (1 - x))`, with relative accuracy around 1/2."""
    found: f32 = _apply("logit", x)
    return found


@public
def xlogy(x: Any, y: Any, /) -> f32:
    """`x * log(y)`, and 0 where x is 0."""
    found: f32 = _apply("xlogy", x, y)
    return found


@public
def xlog1py(x: Any, y: Any, /) -> f32:
    """`x * log1p(y)`, and 0 where x is 0."""
    found: f32 = _apply("xlog1py", x, y)
    return found


@public
def entr(x: Any, /) -> f32:
    """`-x * log(x)`: 0 at 0, -inf to the left."""
    found: f32 = _apply("entr", x)
    return found


@public
def rel_entr(x: Any, y: Any, /) -> f32:
    """`x * log(x / y)`: 0 where x is 0, infinite where one of them is no probability."""
    found: f32 = _apply("rel_entr", x, y)
    return found


@public
def kl_div(x: Any, y: Any, /) -> f32:
    """`x * log(x / y) - x + y`, without cancellation."""
    found: f32 = _apply("kl_div", x, y)
    return found


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
@public
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
    return _apply("logsumexp", a, axis, b, keepdims, return_sign)


@public
def softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`exp(x) / sum(exp(x))`, over all axes or some."""
    found: f32 = _apply("softmax", x, axis)
    return found


@public
def log_softmax(x: Any, axis: int | Sequence[int] | None = None) -> f32:
    """`log(softmax(x))`, also where that is 0 or 1 in this dtype."""
    found: f32 = _apply("log_softmax", x, axis)
    return found


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
