"""The kernels of the examples beside the same functions in jax with jaxtyping, with mistakes.

`NAME_jax.py` are the functions in jax.  No test imports them, as jax is not installed for tests.
`python -m benchmarks.comparison` runs them, and prints what each checker says of each mistake.
"""
