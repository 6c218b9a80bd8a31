"""Integers, random orders and choices."""

import numpy as np

import pscdsl as psc
import pscdsl.random as draws
from jax._checks import axis_of, inexact
from jax.numpy._indexing import take
from jax.numpy._reductions import argsort, cumsum
from jax.random._uniform import gumbel, integer_of, shape_of, uniform

_ROUNDS = (1, 1625, 2642245)
"""Above each of these numbers of elements, one more round of sorting keeps them apart."""


def randint(key, shape, minval, maxval, dtype=None):
    """Draw integers below a bound."""
    dtype = integer_of(dtype)
    wide, info = dtype, np.iinfo(dtype)
    if info.bits < 32:
        wide = np.zeros((), np.int32).dtype
        minval = np.clip(np.asarray(minval).astype(wide), info.min, info.max)
        maxval = np.clip(np.asarray(maxval).astype(wide), info.min, info.max + 1)
    return _below(key, shape, _whole(minval), _whole(maxval), wide).astype(dtype)


def _whole(bound):
    """Return a bound as an integer."""
    bound = np.asarray(bound)
    return bound if np.issubdtype(bound.dtype, np.integer) else bound.astype(int)


def _clipped(bound, dtype):
    """Return a bound in a dtype, clipped to its range."""
    there, here = np.iinfo(dtype), np.iinfo(bound.dtype)
    return np.clip(bound, max(there.min, here.min), min(there.max, here.max)).astype(dtype)


def _below(key, shape, low, high, dtype):
    """Draw integers of 32 bits: the remainders of 64 random bits."""
    largest = np.iinfo(dtype).max
    beyond = high > largest if np.iinfo(high.dtype).max > largest else np.asarray(False)
    low, high = _clipped(low, dtype), _clipped(high, dtype)
    shape = shape_of(shape, low, high)
    keys = draws.split(key)
    upper, lower = (draws.bits(keys[part], shape, np.uint32) for part in range(2))
    span = np.where(high <= low, np.asarray(1, np.uint32), (high - low).astype(np.uint32))
    span = np.where(beyond & (high > low), span + 1, span)
    factor = _rest(np.asarray(1 << 16, np.uint32), span)
    factor = _rest(factor * factor, span)
    offset = _rest(_rest(upper, span) * factor + _rest(lower, span), span)
    return low + offset.astype(dtype)


def _rest(x, span):
    """Return a remainder; the number itself where it is one of all numbers."""
    return np.where(span == 0, x, np.remainder(x, np.maximum(span, 1)))


def _shuffled(key, x, axis):
    """Return the elements along an axis, each row in an order of its own."""

    def sorted_anew(step, state):
        key, x = state
        keys = draws.split(key)
        order = argsort(draws.bits(keys[1], x.shape, np.uint32), axis)
        return keys[0], np.take_along_axis(x, order, axis)

    rounds = sum((np.asarray(x.size) > bound).astype(np.int32) for bound in _ROUNDS)
    return psc.fori_loop(0, rounds, sorted_anew, (key, x))[1]


def permutation(key, x, axis=0, independent=False):
    """Return the rows in another order."""
    x = _rows(x)
    if x.ndim == 1 or independent:
        return _shuffled(key, x, axis)
    return take(x, _shuffled(key, np.arange(x.shape[axis]), 0), axis)


def _rows(a):
    """Return an array, of a number those below it."""
    return np.arange(a) if isinstance(a, int) else np.asarray(a)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Draw rows."""
    a, shape = _rows(a), tuple(shape)
    size = a.shape[axis]
    if p is None and not replace:
        mixed = np.moveaxis(permutation(key, a, axis), axis, 0)[: _count(shape)]
        return _shaped(np.moveaxis(mixed, 0, axis), shape, axis)
    if p is None:
        return take(a, randint(key, shape, 0, size), axis)
    p = inexact(p)
    if p.ndim != 1:
        raise ValueError
    p = np.reshape(p, (size,))
    if replace:
        sums = cumsum(p)
        reached = sums[-1] * (1 - uniform(key, shape, sums.dtype))
        return take(a, np.searchsorted(sums, reached).astype(int), axis)
    raised = gumbel(key, (size,), p.dtype, mode) + np.log(p)
    return take(a, np.reshape(argsort(raised, descending=True)[: _count(shape)], shape), axis)


def _count(shape):
    """Return the number of elements of a shape."""
    return np.zeros(shape).size


def _shaped(x, shape, axis):
    """Return an array whose axis is split into a shape."""
    axis = axis_of(axis, x.ndim)
    return np.reshape(x, (*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    """Draw places by the logarithms of their probabilities."""
    logits = np.asarray(logits)
    axis = axis_of(axis, logits.ndim)
    batch = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    shape = batch if shape is None else tuple(shape)
    extra = len(shape) - len(batch)
    prefix = shape[:extra]
    if replace:
        own = shape[extra:]
        sizes = (*prefix, *own[:axis], logits.shape[axis], *own[axis:])
        logits = np.broadcast_to(logits, sizes)
        return np.argmax(gumbel(key, sizes, logits.dtype, mode) + logits, axis + extra)
    raised = np.moveaxis(logits + gumbel(key, logits.shape, logits.dtype, mode), axis, 0)
    found = argsort(raised, axis=0, descending=True)[: _count(prefix)]
    return np.reshape(found, shape)
