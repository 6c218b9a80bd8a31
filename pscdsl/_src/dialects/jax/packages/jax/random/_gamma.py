"""Gamma and Poisson numbers, and what is made of them."""

import numpy as np

import pscdsl as psc
import pscdsl.random as draws
from jax.nn import softmax
from jax.random._uniform import dtype_of, integer_of, normal, shape_of, uniform
from pscdsl.special import digamma as _digamma
from pscdsl.special import gammaln as _gammaln


@psc.custom_jvp
def _gamma(key, alpha):
    """Draw one gamma number."""
    v, d, is_large, drawn = _accepted(key, alpha)
    return d * v * np.where(is_large, 1, np.power(drawn, 1 / alpha))


@psc.custom_jvp
def _loggamma(key, alpha):
    """Draw the logarithm of one gamma number."""
    v, d, is_large, drawn = _accepted(key, alpha)
    boost = np.log(drawn)
    boost = np.where(is_large | (boost == 0), 0, boost * (1 / alpha))
    return np.log(d) + np.log(v) + boost


@_gamma.defjvp
def _gamma_jvp(primals, tangents):
    """Return a number, and its derivative for the same share of the distribution."""
    drawn = _gamma(*primals)
    return drawn, tangents[1] * _slope(primals[1], drawn)


@_loggamma.defjvp
def _loggamma_jvp(primals, tangents):
    """Return a logarithm, and its derivative for the same share of the distribution."""
    found = _loggamma(*primals)
    drawn = np.maximum(np.exp(found), np.finfo(found.dtype).tiny)
    return found, tangents[1] * (_slope(primals[1], drawn) / drawn)


def _slope(a, x):
    """Return the derivative of a gamma number in the parameter: JAX's `random_gamma_grad`."""
    is_upper = (x > 1) & (x > a)
    a_upper, x_upper = np.where(is_upper, a, 1), np.where(is_upper, x, 2)
    a_lower, x_lower = np.where(is_upper, 1, a), np.where(is_upper, 0.5, x)
    found = np.where(is_upper, _upper_slope(a_upper, x_upper), _lower_slope(a_lower, x_lower))
    found = np.where(x == 0, 0, found)
    return np.where(np.isnan(a) | np.isnan(x) | (x < 0) | (a <= 0), np.nan, found)


def _lower_slope(a, x):
    """Return it by the power series of the lower incomplete gamma function."""
    eps = np.finfo(x.dtype).eps

    def condition(state):
        _, _, _, change, slope = state
        return np.abs(change / slope) > eps

    def body(state):
        r, term, total, change, slope = state
        r = r + 1
        change = change * (x / r) - term * x / (r * r)
        term = term * (x / r)
        return r, term, total + term, change, slope + change

    one, zero = np.ones((), x.dtype), np.zeros((), x.dtype)
    first = body((a, one, one, zero, zero))
    _, _, total, _, slope = psc.while_loop(condition, body, first)
    return -(slope + total * (np.log(x) - _digamma(a + 1))) * x / a


def _upper_slope(a, x):
    """Return it by the continued fraction of the upper incomplete gamma function."""
    eps = np.finfo(x.dtype).eps

    def condition(state):
        return (state[0] < 2000) & (state[-1] > eps)

    def body(state):
        c, total, slope, p2, q2, p1, q1, dp2, dq2, dp1, dq1, _ = state
        c = c + 1
        y, z = 1 - a + c, x + 2 - a + 2 * c
        p, q = p1 * z - p2 * y * c, q1 * z - q2 * y * c
        total = np.where(q == 0, total, p / np.where(q == 0, 1, q))
        dp = dp1 * z - p1 - dp2 * y * c + p2 * c
        dq = dq1 * z - q1 - dq2 * y * c + q2 * c
        later = np.where(q == 0, slope, (dp - total * dq) / np.where(q == 0, 1, q))
        changed = np.where(q == 0, 1, np.abs(later - slope))
        scale = np.where(np.abs(p) > 1 / eps, eps, 1)
        kept = [each * scale for each in (p1, q1, p, q, dp1, dq1, dp, dq)]
        return c, total, later, *kept, changed

    zero, one = np.zeros((), x.dtype), np.ones((), x.dtype)
    q1 = (x + 2 - a) * x
    total = (x + 1) / q1
    slope = total * x / q1
    first = (zero, total, slope, one, x, x + 1, q1, zero, zero, zero, -x, one)
    state = psc.while_loop(condition, body, first)
    return (state[2] + state[1] * (np.log(x) - _digamma(a))) * x


def _accepted(key, alpha):
    """Draw by the method of Marsaglia and Tsang."""
    dtype = alpha.dtype
    is_large = alpha >= 1
    d = np.where(is_large, alpha, alpha + 1) - np.asarray(1 / 3, dtype)
    c = np.asarray(1 / 3, dtype) / np.sqrt(d)

    def is_rejected(state):
        _, square, v, u = state
        is_slow = u >= 1 - np.asarray(0.0331, dtype) * (square * square)
        return is_slow & (np.log(u) >= square * 0.5 + d * (1 - v + np.log(v)))

    def propose(state):
        keys = draws.split(state[0], 3)

        def again(drawn):
            pair = draws.split(drawn[0])
            x = normal(pair[1], (), dtype)
            return pair[0], x, 1 + x * c

        first = (keys[1], np.zeros((), dtype), np.asarray(-1, dtype))
        _, x, v = psc.while_loop(lambda drawn: drawn[2] <= 0, again, first)
        return keys[0], x * x, v * v * v, uniform(keys[2], (), dtype)

    pair = draws.split(key)
    start = (pair[0], np.zeros((), dtype), np.ones((), dtype), np.asarray(2, dtype))
    v = psc.while_loop(is_rejected, propose, start)[2]
    return v, d, is_large, 1 - uniform(pair[1], (), dtype)


def _drawn(draw, key, a, shape, dtype):
    """Draw for each parameter, with a key of its own."""
    a = np.asarray(a).astype(dtype_of(dtype))
    shape = shape_of(shape, a)
    alphas = np.ravel(np.broadcast_to(a, shape))
    return np.reshape(psc.vmap(draw)(draws.split(key, alphas.shape), alphas), shape)


def gamma(key, a, shape=None, dtype=None):
    """Draw from the gamma distribution."""
    return _drawn(_gamma, key, a, shape, dtype)


def loggamma(key, a, shape=None, dtype=None):
    """Draw logarithms of gamma variates."""
    return _drawn(_loggamma, key, a, shape, dtype)


def beta(key, a, b, shape=None, dtype=None):
    """Draw from the beta distribution."""
    a, b = np.broadcast_arrays(a, b)
    shape = shape_of(shape, a)
    keys = draws.split(key)
    first, second = loggamma(keys[0], a, shape, dtype), loggamma(keys[1], b, shape, dtype)
    most = np.maximum(first, second)
    first, second = np.exp(first - most), np.exp(second - most)
    return first / (first + second)


def dirichlet(key, alpha, shape=None, dtype=None):
    """Draw from the Dirichlet distribution."""
    alpha = np.asarray(alpha)
    shape = alpha.shape[:-1] if shape is None else tuple(shape)
    return softmax(loggamma(key, alpha, (*shape, alpha.shape[-1]), dtype), -1)


def chisquare(key, df, shape=None, dtype=None):
    """Draw from the chi-squared distribution."""
    df = np.asarray(df).astype(dtype_of(dtype))
    return np.exp(loggamma(key, df / 2, shape, dtype)) * 2


def f(key, dfnum, dfden, shape=None, dtype=None):
    """Draw from the F distribution."""
    dfnum, dfden = np.broadcast_arrays(dfnum, dfden)
    shape = shape_of(shape, dfnum)
    dtype = dtype_of(dtype)
    keys = draws.split(key)
    above = chisquare(keys[1], dfnum, shape, dtype) / dfnum.astype(dtype)
    return above / (chisquare(keys[0], dfden, shape, dtype) / dfden.astype(dtype))


def t(key, df, shape=None, dtype=None):
    """Draw from Student's distribution."""
    df = np.asarray(df).astype(dtype_of(dtype))
    shape = shape_of(shape, df)
    keys = draws.split(key)
    drawn = gamma(keys[1], df / 2, shape, dtype)
    return normal(keys[0], shape, dtype) * np.sqrt(df / 2 / drawn)


def poisson(key, lam, shape=None, dtype=None):
    """Draw from the Poisson distribution."""
    lam = np.asarray(lam)
    shape = shape_of(shape, lam)
    lam = np.broadcast_to(lam, shape).astype(np.float32)
    dtype = integer_of(dtype)
    is_few = np.isnan(lam) | (lam < 10)
    few, many = _counted(key, np.where(is_few, lam, 0), np.where(is_few, 1e5, lam), dtype)
    return np.where(lam == 0, 0, np.where(is_few, few, many))


def _counted(key, small, large, dtype):
    """Draw Poisson numbers by Knuth's method, and by Hörmann's transformed rejection.

    Knuth's counts factors until their product is small; both draw from the same keys.
    """
    b = 0.931 + 2.53 * np.sqrt(large)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    within = 0.9277 - 3.6224 / (b - 2)

    def condition(state):
        step, _, product, _, accepted, _ = state
        return (np.any(product > -small) | np.any(~accepted)) & (step < np.iinfo(dtype).max)

    def body(state):
        step, count, product, found, accepted, key = state
        keys = draws.split(key, 3)
        first = uniform(keys[1], small.shape, np.float32)
        count = np.where(product > -small, count + 1, count)
        u = first - 0.5
        v = uniform(keys[2], small.shape, np.float32)
        near = 0.5 - np.abs(u)
        k = np.floor((2 * a / near + b) * u + large + 0.43)
        left = np.log(v * inverse_alpha / (a / (near * near) + b))
        right = k * np.log(large) - large - _gammaln(k + 1)
        is_quick = (near >= 0.07) & (v <= within)
        is_never = (k < 0) | ((near < 0.013) & (v > near))
        is_good = (is_quick | (~is_never & (left <= right))) & np.any(~accepted)
        found, accepted = np.where(is_good, k, found), accepted | is_good
        return step + 1, count, product + np.log(first), found, accepted, keys[0]

    nothing = np.zeros(small.shape, np.float32)
    start = (0, nothing.astype(dtype), nothing, nothing - 1, nothing > 0, key)
    _, count, _, found, _, _ = psc.while_loop(condition, body, start)
    return count - 1, found.astype(dtype)
