"""The names of `equinox`."""

import numpy as np
from jax import Array as _Array
from jax import grad as _grad
from jax import value_and_grad as _value_and_grad

import pscdsl as psc
from equinox import internal


def filter_jit(fun=None, *, donate="none", **options):
    """Return the function: what is compiled computes the same."""
    return _same if fun is None else fun


def _same(fun):
    return fun


def filter_grad(fun=None, *, has_aux=False):
    """Return the gradient with respect to the first argument."""
    if fun is None:
        return lambda function: _grad(function, has_aux=has_aux)
    return _grad(fun, has_aux=has_aux)


def filter_value_and_grad(fun=None, *, has_aux=False):
    """Return the value, and the gradient with respect to the first argument."""
    if fun is None:
        return lambda function: _value_and_grad(function, has_aux=has_aux)
    return _value_and_grad(fun, has_aux=has_aux)


def is_array(element):
    """Return whether this is an array of JAX."""
    return isinstance(element, _Array)


def is_inexact_array(element):
    """Return whether this is an array of floats."""
    return isinstance(element, _Array) and bool(np.issubdtype(element.dtype, np.inexact))


def error_if(x, pred, msg, *, on_error="default"):
    """Return the first argument; the program fails where a condition holds."""
    psc.check(np.logical_not(np.any(pred)))
    return x
