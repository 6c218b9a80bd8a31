"""Plain NumPy programs beside NumPy, Numba and jax."""
