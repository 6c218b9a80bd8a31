"""Bits, uniform numbers, and what is computed from one uniform number each."""

import numpy as np

import pscdsl.random as draws
from jax._checks import inexact
from jax.numpy.linalg import cholesky
from pscdsl.special import erf as _erf
from pscdsl.special import erfinv as _erf_inv


def dtype_of(dtype, default=float):
    """Return a dtype as arrays have it."""
    return np.zeros((), default if dtype is None else dtype).dtype


def integer_of(dtype):
    """Return a dtype of integers as arrays have it."""
    dtype = dtype_of(dtype, int)
    if not np.issubdtype(dtype, np.integer):
        raise ValueError
    return dtype


def shape_of(shape, *operands):
    """Return the shape that is asked for, or that to which the operands broadcast."""
    if shape is None:
        return np.broadcast_arrays(*operands)[0].shape
    shape = tuple(shape) if isinstance(shape, list) else shape
    for each in operands:
        shape = np.broadcast_to(each, shape).shape
    return shape


def bits(key, shape=(), dtype=None):
    """Draw random bits."""
    return draws.bits(key, shape, dtype)


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    """Draw numbers between two bounds."""
    dtype = dtype_of(dtype)
    low, high = np.asarray(minval).astype(dtype), np.asarray(maxval).astype(dtype)
    shape = shape_of(shape, low, high)
    return np.maximum(low, draws.uniform(key, shape, dtype) * (high - low) + low)


def standard_normal(key, shape, dtype):
    """Draw real normal numbers."""
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))
    return np.asarray(np.sqrt(2), dtype) * _erf_inv(uniform(key, shape, dtype, low, 1))


def normal(key, shape=(), dtype=None):
    """Draw standard normal numbers."""
    dtype = dtype_of(dtype)
    if not np.issubdtype(dtype, np.complexfloating):
        return standard_normal(key, shape, dtype)
    keys = draws.split(key)
    real, imag = (standard_normal(keys[part], shape, np.float32) for part in range(2))
    return (real + 1j * imag) / np.asarray(np.sqrt(2), dtype)


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky"):
    """Draw normal vectors with means and covariances."""
    if method != "cholesky":
        raise NotImplementedError
    mean, cov = inexact(mean), inexact(cov)
    together = np.zeros((), mean.dtype) + np.zeros((), cov.dtype)
    mean, cov = mean.astype(together.dtype), cov.astype(together.dtype)
    size = mean.shape[-1]
    cov = np.reshape(cov, (*cov.shape[:-2], size, size))
    shape = shape_of(shape, mean[..., 0], cov[..., 0, 0])
    drawn = normal(key, (*shape, size), mean.dtype if dtype is None else dtype)
    return mean + np.squeeze(cholesky(cov) @ drawn[..., None], -1)


def truncated_normal(key, lower, upper, shape=None, dtype=None):
    """Draw normal numbers between two bounds."""
    dtype = dtype_of(dtype)
    root = np.asarray(np.sqrt(2), dtype)
    lower, upper = np.asarray(lower).astype(dtype), np.asarray(upper).astype(dtype)
    ends = _erf(lower / root), _erf(upper / root)
    found = root * _erf_inv(uniform(key, shape_of(shape, lower, upper), dtype, *ends))
    above = np.nextafter(lower, np.asarray(np.inf, dtype))
    below = np.nextafter(upper, np.asarray(-np.inf, dtype))
    return np.minimum(np.maximum(found, above), below)


def bernoulli(key, p=0.5, shape=None, mode="low"):
    """Draw truth values."""
    p = np.asarray(p)
    shape = shape_of(shape, p)
    if mode == "low":
        return uniform(key, shape, p.dtype) < p
    first, second = uniform(key, (2, *shape), p.dtype)
    return second * 2.0 ** -np.finfo(p.dtype).nmant < p - first


def rademacher(key, shape=(), dtype=None):
    """Draw -1 and 1."""
    dtype = dtype_of(dtype, int)
    return (2 * bernoulli(key, 0.5, shape).astype(dtype) - 1).astype(dtype)


def exponential(key, shape=(), dtype=None):
    """Draw from the exponential distribution."""
    return -np.log1p(-uniform(key, shape, dtype))


def laplace(key, shape=(), dtype=None):
    """Draw from the Laplace distribution."""
    dtype = dtype_of(dtype)
    low = np.asarray(-1.0 + np.finfo(dtype).epsneg, dtype)
    drawn = uniform(key, shape, dtype, low, 1.0)
    return np.sign(drawn) * np.log1p(-np.abs(drawn))


def logistic(key, shape=(), dtype=None):
    """Draw from the logistic distribution."""
    drawn = _positive(key, shape, dtype_of(dtype))
    return np.log(drawn) - np.log1p(-drawn)


def cauchy(key, shape=(), dtype=None):
    """Draw from the Cauchy distribution."""
    dtype = dtype_of(dtype)
    drawn = uniform(key, shape, dtype, np.asarray(np.finfo(dtype).eps, dtype), 1.0)
    return np.tan(np.asarray(np.pi, dtype) * (drawn - 0.5))


def gumbel(key, shape=(), dtype=None, mode=None):
    """Draw from the Gumbel distribution."""
    dtype = dtype_of(dtype)
    if mode is None or mode == "low":
        return -np.log(-np.log(_positive(key, shape, dtype)))
    if mode == "highest":
        raise NotImplementedError
    info = np.finfo(dtype)
    high, low = uniform(key, (2, *shape), dtype)
    finer = high + np.asarray(2.0**-info.nmant, dtype) * low + np.asarray(info.tiny, dtype)
    return -np.log(-np.log1p(-np.where(high >= 0.5, high, finer)))


def _positive(key, shape, dtype):
    """Draw numbers above 0 and below 1."""
    return uniform(key, shape, dtype, np.asarray(np.finfo(dtype).tiny, dtype), 1.0)


def pareto(key, b, shape=None, dtype=None):
    """Draw from the Pareto distribution."""
    dtype = dtype_of(dtype)
    b = np.asarray(b).astype(dtype)
    return np.exp(exponential(key, shape_of(shape, b), dtype) / b)


def lognormal(key, sigma=1.0, shape=None, dtype=None):
    """Draw numbers whose logarithms are normal."""
    dtype = dtype_of(dtype)
    sigma = np.asarray(sigma).astype(dtype)
    return np.exp(normal(key, shape_of(shape, sigma), dtype) * sigma)


def rayleigh(key, scale, shape=None, dtype=None):
    """Draw from the Rayleigh distribution."""
    dtype = dtype_of(dtype)
    scale = np.asarray(scale).astype(dtype)
    drawn = uniform(key, shape_of(shape, scale), dtype)
    return scale * np.sqrt(np.log(drawn) * -2)


def weibull_min(key, scale, concentration, shape=(), dtype=None):
    """Draw from the Weibull distribution."""
    drawn = uniform(key, shape, dtype)
    return np.power(-np.log1p(-drawn), 1.0 / concentration) * scale


def triangular(key, left, mode, right, shape=None, dtype=None):
    """Draw from the triangular distribution."""
    dtype = dtype_of(dtype)
    left, mode, right = (np.asarray(each).astype(dtype) for each in (left, mode, right))
    drawn = uniform(key, shape_of(shape, left, mode, right), dtype)
    width = right - left
    low = left + np.sqrt(drawn * width * (mode - left))
    high = right - np.sqrt((1 - drawn) * width * (right - mode))
    return np.where(drawn < (mode - left) / width, low, high)


def geometric(key, p, shape=None, dtype=None):
    """Draw from the geometric distribution."""
    p = inexact(p)
    drawn = uniform(key, shape_of(shape, p), p.dtype)
    drawn = np.where(drawn == 0, 1, drawn)
    whole = np.floor(np.log(drawn) / np.log1p(-p)) + 1
    return whole.astype(integer_of(dtype))
