"""Functions of elements that differ from NumPy's."""

import numpy as np

from pscdsl.special import i0e


def modf(x, /, out=None):
    """Return the fractional and the whole part; of infinities the first is NaN."""
    _, whole = np.modf(x)
    return np.asarray(x).astype(whole.dtype) - whole, whole


def reciprocal(x, /):
    """Return the inverse, of integers as a float."""
    return np.divide(1, x)


def i0(x):
    """Return the modified Bessel function of order 0; NaN at infinities."""
    x = np.abs(x)
    return np.exp(x) * i0e(x)


def array_equiv(a1: object, a2: object):
    """Return whether two arrays are equal once broadcast; False if they do not broadcast."""
    for one, other in zip(np.shape(a1)[::-1], np.shape(a2)[::-1]):
        if one != other and one != 1 and other != 1:
            return np.asarray(False)
    return np.array_equiv(a1, a2)
