"""The names of `chex`: claims that are taken to hold."""

from jax import Array


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
assert_scalar_in = _claim
assert_scalar_positive = _claim
assert_scalar_non_negative = _claim
