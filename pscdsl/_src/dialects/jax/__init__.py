"""JAX programs as they are: random keys (`keys`) and purity under transformation (`purity`)."""

DIALECTS = ("auto", "jax", "psc")
"""Settings: the files that import jax are checked as JAX programs, all files are, or none is."""
