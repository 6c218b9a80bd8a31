"""Compiled-ahead kernels as files: what is in them, and how it is written down and read."""
