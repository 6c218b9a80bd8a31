"""Checks of arguments that JAX's functions make."""

import numpy as np

BOOL = (np.bool_,)
WHOLE = (np.integer,)
REAL = (np.floating,)
INEXACT = (np.floating, np.complexfloating)
COMPLEX = (np.complexfloating,)
NUMBER = (*WHOLE, *INEXACT)


def of_kinds(array, kinds):
    """Return an array whose dtype is of one of some kinds."""
    found = np.asarray(array)
    if not [kind for kind in kinds if np.issubdtype(found.dtype, kind)]:
        raise TypeError(f"does not accept dtype {found.dtype}")
    return found


def of_one_dtype(*arrays):
    """Return arrays that have one dtype."""
    found = [np.asarray(each) for each in arrays]
    for each in found:
        if each.dtype != found[0].dtype:
            raise TypeError("requires arguments to have the same dtypes")
    return found


def inexact(x):
    """Return an array of floats or complex numbers."""
    return np.asarray(x).astype(np.exp(np.zeros((), np.asarray(x).dtype)).dtype)


def axis_of(axis, ndim):
    """Return an axis of so many from the start."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def mask_of(where):
    """Return a mask; None if there is none."""
    if where is not None and np.asarray(where).dtype != bool:
        raise ValueError("where must be None or a boolean array")
    return where
