"""The names of `jax.flatten_util`."""

from pscdsl.tree import ravel as ravel_pytree
