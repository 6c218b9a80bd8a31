"""Kernels in jax, and jax's protocols."""
