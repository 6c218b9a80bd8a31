"""Reductions, with the masks that JAX's functions take."""

import numpy as np

from jax._checks import axis_of, inexact, mask_of


def _masked(a, where, value):
    """Return an array with a value where a mask does not hold."""
    if mask_of(where) is None:
        return a
    return np.where(where, a, np.asarray(value, dtype=np.asarray(a).dtype))


def _axes(a, axis):
    """Return the axes as numbers that are not negative."""
    ndim = np.ndim(a)
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple([axis_of(each, ndim) for each in axes])


def _count(a, axis, keepdims, where):
    """Return the number of elements that a mask leaves."""
    return np.sum(np.broadcast_to(where, np.shape(a)), axis=axis, keepdims=keepdims)


def _start(initial, dtype):
    return {} if initial is None else {"initial": np.asarray(initial).astype(dtype)}


def _bounded(a, initial, where):
    """Return an array with its first extreme in place of what a mask leaves out, and that."""
    start = _start(initial, np.asarray(a).dtype)
    return (a if mask_of(where) is None else np.where(where, a, start["initial"])), start


def _converted(a, dtype, promote_integers):
    """Return an array in the dtype that its elements are combined in, and that dtype."""
    if not promote_integers and dtype is None:
        dtype = np.asarray(a).dtype
    if dtype is None:
        return a, None
    return np.asarray(a).astype(dtype), np.zeros((), dtype).dtype


def sum(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=False,
    initial=None,
    where=None,
    promote_integers=True,
):
    """Return the sum."""
    a = _masked(a, where, 0)
    a, dtype = _converted(a, dtype, promote_integers)
    total = np.sum(np.zeros((1,), np.asarray(a).dtype)).dtype if dtype is None else dtype
    return np.sum(a, axis=axis, dtype=dtype, keepdims=keepdims, **_start(initial, total))


def prod(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=False,
    initial=None,
    where=None,
    promote_integers=True,
):
    """Return the product."""
    a = _masked(a, where, 1)
    a, dtype = _converted(a, dtype, promote_integers)
    total = np.prod(np.zeros((1,), np.asarray(a).dtype)).dtype if dtype is None else dtype
    return np.prod(a, axis=axis, dtype=dtype, keepdims=keepdims, **_start(initial, total))


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the largest element; `where` needs `initial`."""
    a, start = _bounded(a, initial, where)
    return np.max(a, axis=axis, keepdims=keepdims, **start)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the least element; `where` needs `initial`."""
    a, start = _bounded(a, initial, where)
    return np.min(a, axis=axis, keepdims=keepdims, **start)


amax = max
amin = min


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Return whether all elements hold."""
    if mask_of(where) is not None:
        a = np.where(where, np.asarray(a) != 0, True)
    return np.all(a, axis=axis, keepdims=keepdims)


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Return whether an element holds."""
    if mask_of(where) is not None:
        a = np.where(where, np.asarray(a) != 0, False)
    return np.any(a, axis=axis, keepdims=keepdims)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Return the mean."""
    if dtype is not None:
        a = np.asarray(a).astype(dtype)
        if np.issubdtype(a.dtype, np.integer):
            total = np.sum(_masked(a, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
            count = _count(a, axis, keepdims, True if where is None else where).astype(dtype)
            return (np.sign(total) * (np.abs(total) // count)).astype(dtype)
    if where is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    total = np.sum(_masked(a, where, 0), axis=axis, keepdims=keepdims)
    quotient = total / _count(a, axis, keepdims, where)
    return quotient.astype(np.mean(np.zeros((1,), np.asarray(a).dtype)).dtype)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, correction=None):
    """Return the variance."""
    ddof = ddof if correction is None else correction
    if dtype is not None:
        a = np.asarray(a).astype(dtype)
    if where is None:
        return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims)
    away = np.abs(a - mean(a, axis, keepdims=True, where=where)) ** 2
    total = np.sum(_masked(away, where, 0), axis=axis, keepdims=keepdims)
    return (total / (_count(a, axis, keepdims, where) - ddof)).astype(away.dtype)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, correction=None):
    """Return the standard deviation."""
    return np.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, correction=correction))


def _running(a, dtype):
    """Return the dtype of a running sum: that of the array, but integers for truth values."""
    if dtype is not None:
        return np.zeros((), dtype).dtype
    own = np.asarray(a).dtype
    return np.sum(np.zeros((1,), bool)).dtype if own == bool else own


def cumsum(a, axis=None, dtype=None, out=None):
    """Return running sums, in the dtype of the array."""
    dtype = _running(a, dtype)
    return np.cumsum(np.asarray(a).astype(dtype), axis=axis, dtype=dtype)


def cumprod(a, axis=None, dtype=None, out=None):
    """Return running products, in the dtype of the array."""
    dtype = _running(a, dtype)
    return np.cumprod(np.asarray(a).astype(dtype), axis=axis, dtype=dtype)


def histogram(a, bins=10, range=None, weights=None, density=None):
    """Return the numbers of elements in each bin, as floats, and the edges."""
    counts, edges = np.histogram(a, bins, range, density, weights)
    return counts.astype(edges.dtype), edges


def sort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Return the elements in order; NaN is last."""
    found = np.sort(a, axis=axis)
    return np.flip(found, axis=0 if axis is None else axis) if descending else found


def argsort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Return the places of the elements in order; equal ones stay as they are."""
    if not descending:
        return np.argsort(a, axis=axis, stable=True)
    if axis is None:
        a, axis = np.ravel(a), 0
    last = np.shape(a)[axis] - 1
    places = np.argsort(np.flip(a, axis=axis), axis=axis, stable=True)
    return np.flip(last - places, axis=axis)


def bincount(x, weights=None, minlength=0, *, length=None):
    """Return how often each number occurs; negative ones count as 0."""
    x = np.asarray(x)
    x = np.maximum(x.astype(np.int32) if x.dtype == bool else x, 0)
    counts = np.bincount(x, None, minlength, length=length)
    if weights is None:
        return counts
    weights = np.asarray(weights)
    return np.zeros(counts.size, weights.dtype).at[x].add(weights)
