"""The names of `jax.scipy.stats`."""
