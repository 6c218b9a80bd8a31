"""The names of `chex`: claims that are taken to hold."""

import numpy as np
from jax import Array

import pscdsl as psc


def _claim(*args, **kwargs):
    """Claim something of arrays, without effect."""


assert_rank = _claim
assert_shape = _claim
assert_equal_shape = _claim
assert_type = _claim
assert_equal = _claim
assert_scalar = _claim
assert_axis_dimension = _claim
assert_equal_rank = _claim
assert_trees_all_close = _claim
assert_trees_all_equal = _claim
assert_trees_all_equal_shapes = _claim
assert_tree_all_finite = _claim
assert_is_divisible = _claim
assert_is_broadcastable = _claim
assert_equal_shape_prefix = _claim
assert_equal_shape_suffix = _claim


def assert_scalar_in(x, min_, max_, included=True):
    """Claim that a number is between two others."""
    low, high = (x >= min_, x <= max_) if included else (x > min_, x < max_)
    psc.check(np.logical_and(low, high))


def assert_scalar_positive(x):
    """Claim that a number is above zero."""
    psc.check(np.asarray(x) > 0)


def assert_scalar_non_negative(x):
    """Claim that a number is not below zero."""
    psc.check(np.asarray(x) >= 0)
