"""The common parts of kernels and loaded kernels: arguments, choices, errors."""
