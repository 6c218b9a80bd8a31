"""Kernels: from the decorated function to its executable."""
