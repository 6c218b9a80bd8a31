"""Compiled-ahead kernels as files: their contents, and the forms of reading and writing."""
