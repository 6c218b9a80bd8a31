"""The names of `jax.experimental`."""
