"""The names of `jax.dtypes`."""

from jax.numpy import result_type


def canonicalize_dtype(dtype):
    """Return the dtype in 32 bits."""
    return result_type(dtype)
