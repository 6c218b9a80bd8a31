"""The objects that kernels capture, and the code that may change them."""
