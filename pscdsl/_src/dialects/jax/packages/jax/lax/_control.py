"""Control flow by functions."""

import numpy as np

import pscdsl as psc
from jax import tree


def cond(pred, true_fun, false_fun, *operands: object, operand: object = None, linear=None):
    """Return what one of two functions returns."""
    given = operands if operand is None else (operand,)
    if np.ndim(pred):
        raise TypeError("`pred` has to be a scalar")
    return psc.cond(np.asarray(pred) != 0, true_fun, false_fun, *given)


def switch(index, branches, *operands: object, operand: object = None):
    """Return what one of several functions returns."""
    given = operands if operand is None else (operand,)
    return psc.switch(index, branches, *given)


def scan(
    f, init: object, xs: object = None, length=None, reverse=False, unroll=1, _split_transpose=False
):
    """Return the last state, and the results of each step."""
    return psc.scan(f, init, xs, length=length, reverse=reverse)


def associative_scan(fn, elems: object, reverse=False, axis=0):
    """Return running combinations; the function combines arrays of several elements."""

    def of_single(left, right):
        several = [tree.map(lambda x: np.expand_dims(x, axis), each) for each in (left, right)]
        return tree.map(lambda x: np.squeeze(x, axis), fn(*several))

    return psc.associative_scan(of_single, elems, reverse=reverse, axis=axis)


def while_loop(cond_fun, body_fun, init_val: object):
    """Return the first state for which a condition does not hold."""

    def condition(state):
        going = np.asarray(cond_fun(state))
        if going.dtype != bool or going.ndim:
            raise TypeError("`cond_fun` has to return one bool")
        return going

    return psc.while_loop(condition, body_fun, init_val)


def fori_loop(lower, upper, body_fun, init_val: object, *, unroll=None):
    """Return the state after steps with a counter."""
    return psc.fori_loop(lower, upper, body_fun, init_val)


def map(f, xs: object, *, batch_size=None):
    """Return the results of a function for each row."""
    return psc.map(f, xs)
