"""Trees of arrays in kernels: arguments, results, traversals."""
