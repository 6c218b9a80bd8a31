"""The names of `jax.scipy`."""
