"""Functions of elements."""

from enum import Enum

import numpy as np

import pscdsl as psc


class Precision(Enum):
    """The precision of products."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def clamp(min, x, max):
    """Return the elements between two bounds; at these, gradients are 0."""
    bounded = np.minimum(np.maximum(x, min), max)
    return np.where((x > min) & (x < max), x, psc.stop_gradient(bounded))


def convert_element_type(operand, new_dtype):
    """Return the elements in another dtype."""
    return np.asarray(operand).astype(new_dtype)


def div(x, y):
    """Return quotients; those of integers are cut off."""
    x, y = np.broadcast_arrays(x, y)
    if not np.issubdtype(x.dtype, np.integer):
        return np.divide(x, y)
    rest = np.remainder(x, y)
    one = ((rest != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.floor_divide(x, y) + one


def integer_pow(x, y):
    """Return powers with an integer that is known."""
    return np.power(x, y)


def round(x, rounding_method=0):
    """Return the nearest whole numbers; halves go away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def rsqrt(x):
    """Return the inverse of the square root."""
    return 1 / np.sqrt(x)


def select(pred, on_true, on_false):
    """Return elements of two arrays."""
    return np.where(pred, on_true, on_false)


def select_n(which, *cases):
    """Return elements of several arrays."""
    found = cases[0]
    for number, case in enumerate(cases):
        if number:
            found = np.where(np.asarray(which) == number, case, found)
    return found
