"""The calls of NumPy's and SciPy's own tests, replayed as kernels beside NumPy."""
