"""The names of `jax.scipy.special`."""

import numpy as np

from jax._checks import REAL as _REAL
from jax._checks import inexact as _inexact
from jax._checks import of_kinds as _of_kinds
from jax.numpy import max as _largest
from jax.numpy import sum as _sum
from pscdsl import stop_gradient as _stopped
from pscdsl.special import (
    beta,
    betainc,
    betaln,
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    expit,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
    kl_div,
    logit,
    multigammaln,
    polygamma,
    rel_entr,
    xlog1py,
    xlogy,
    zeta,
)
from pscdsl.special import log_ndtr as _log_ndtr
from pscdsl.special import ndtr as _ndtr
from pscdsl.special import ndtri as _ndtri


def ndtr(x: object):
    """Return the distribution function of the normal distribution."""
    return _ndtr(_of_kinds(x, _REAL))


def ndtri(p):
    """Return the inverse of the distribution function of the normal distribution."""
    return _ndtri(_of_kinds(p, _REAL))


def log_ndtr(x: object):
    """Return the logarithm of the distribution function of the normal distribution."""
    return _log_ndtr(_of_kinds(x, _REAL))


def _real(x):
    """Return an array of real floats."""
    return _of_kinds(_inexact(x), _REAL)


def i0(x):
    """Return the modified Bessel function of order 0."""
    x = np.abs(_real(x))
    return np.exp(x) * i0e(x)


def i1(x):
    """Return the modified Bessel function of order 1."""
    x = _real(x)
    return np.exp(np.abs(x)) * i1e(x)


def factorial(n, exact=False):
    """Return factorials, as floats."""
    n = np.asarray(n)
    return np.where(n < 0, 0, np.exp(gammaln(n + 1)))


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """Return the logarithm of a sum of exponentials."""
    a = _inexact(a)
    if b is not None:
        a, b = np.broadcast_arrays(a, np.asarray(b))
        where = (b != 0) if where is None else where & (b != 0)
    top = _largest(a, axis, where=where, initial=-np.inf, keepdims=True)
    top = _stopped(np.where(np.isfinite(top), top, 0))
    grown = np.exp(a - top)
    grown = grown if b is None else grown * b
    found = _sum(grown, axis, where=where, keepdims=keepdims)
    top = top if keepdims else np.squeeze(top, _squeezed(a, axis))
    if not return_sign:
        return np.log(found) + top
    return np.log(np.abs(found)) + top, np.sign(found)


def _squeezed(a, axis):
    """Return the axes over which a reduction goes."""
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def softmax(x, /, *, axis=None):
    """Return exponentials that sum to one."""
    grown = np.exp(x - _stopped(np.max(x, axis=axis, keepdims=True)))
    return grown / np.sum(grown, axis=axis, keepdims=True)


def log_softmax(x, /, *, axis=None):
    """Return the logarithm of exponentials that sum to one."""
    shifted = x - _stopped(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
