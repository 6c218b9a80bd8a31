"""Numbers between neighbours: quantiles and interpolation."""

import numpy as np

from jax._checks import axis_of
from jax.numpy._indexing import take


def _inexact(dtype):
    """Return the dtype of floats for a dtype."""
    return np.exp(np.zeros((), dtype)).dtype


def _quantile(a, q, axis, method, keepdims, squash):
    """Return quantiles, without the elements that are NaN if `squash`."""
    if isinstance(q, (list, tuple)):
        raise TypeError
    a = np.asarray(a)
    dtype = _inexact((np.zeros((), a.dtype) + q).dtype)
    q = np.asarray(q)
    if np.issubdtype(q.dtype, np.integer):
        raise TypeError
    if q.ndim > 1 or isinstance(axis, tuple) or np.issubdtype(dtype, np.complexfloating):
        raise NotImplementedError
    ones = (1,) * a.ndim
    a, along = (np.ravel(a), 0) if axis is None else (a, axis_of(axis, a.ndim))
    wide = np.float32 if np.finfo(dtype).bits < 32 else dtype
    a = np.moveaxis(a.astype(wide), along, 0)
    is_nan = np.isnan(a)
    if not squash:
        a = np.where(np.any(is_nan, axis=0), np.nan, a)
    last = (np.sum(~is_nan, axis=0) if squash else np.full(a.shape[1:], a.shape[0])) - 1
    last = last.astype(wide)
    place = np.reshape(q.astype(wide), (-1, *(1,) * (a.ndim - 1))) * last
    low, high = np.floor(place), np.ceil(place)
    share = place - low
    ordered = np.sort(a, axis=0)
    first, second = (
        np.take_along_axis(ordered, np.maximum(0, np.minimum(each, last)).astype(int), axis=0)
        for each in (low, high)
    )
    found = _between(first, second, share, method).astype(dtype)
    found = found if q.ndim else found[0]
    if not keepdims:
        return found
    if axis is None:
        return np.reshape(found, (*q.shape, *ones))
    return np.expand_dims(found, along + q.ndim)


def _between(first, second, share, method):
    """Return what is at a share of the way between neighbours."""
    if method == "linear":
        return first * (1 - share) + second * share
    if method == "lower":
        return first
    if method == "higher":
        return second
    if method == "nearest":
        return np.where(share <= 0.5, first, second)
    if method == "midpoint":
        return (first + second) * 0.5
    raise NotImplementedError


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """Return quantiles; an infinity beside a number makes NaN."""
    return _quantile(a, q, axis, method, keepdims, squash=False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """Return quantiles without the elements that are NaN."""
    return _quantile(a, q, axis, method, keepdims, squash=True)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """Return quantiles by percentages."""
    return _quantile(a, q / 100, axis, method, keepdims, squash=False)


def nanpercentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False
):
    """Return quantiles by percentages, without the elements that are NaN."""
    return _quantile(a, q / 100, axis, method, keepdims, squash=True)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Return a function between known points."""
    if period is not None or isinstance(left, str) or isinstance(right, str):
        raise NotImplementedError
    xp, fp = np.asarray(xp), np.asarray(fp)
    dtype = _inexact((np.zeros((), xp.dtype) + x).dtype)
    x, xp, fp = np.asarray(x).astype(dtype), xp.astype(dtype), fp.astype(_inexact(fp.dtype))
    fp = np.reshape(fp, xp.shape)
    place = np.searchsorted(xp, x, side="right")
    place = np.minimum(np.maximum(place, 1), xp.shape[0] - 1)
    start, below = take(xp, place - 1), take(fp, place - 1)
    width = take(xp, place) - start
    is_point = np.abs(width) <= np.finfo(dtype).eps ** 2
    slope = (x - start) / np.where(is_point, 1, width)
    found = np.where(is_point, below, below + slope * (take(fp, place) - below))
    found = np.where(x < xp[0], fp[0] if left is None else left, found)
    return np.where(x > xp[-1], fp[-1] if right is None else right, found)
