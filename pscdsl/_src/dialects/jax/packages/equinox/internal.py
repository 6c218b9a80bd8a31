"""The names of `equinox.internal`."""

import numpy as np

import pscdsl as psc


def error_if(x, pred, msg, *, on_error="default"):
    """Return the first argument; the program fails where a condition holds."""
    psc.check(np.logical_not(np.any(pred)))
    return x


def nondifferentiable(x, *, name=None, msg=None):
    """Return the tree, which has no derivatives."""
    return x


def nondifferentiable_backward(x, name=None, msg=None, symbolic=True):
    """Return the tree, which has no derivatives in reverse mode."""
    return x


def nonbatchable(x, *, name=None, allow_constant_across_batch=False):
    """Return the tree, which cannot be in a batch."""
    return x
