"""Derivatives of kernels, and checks of them."""
