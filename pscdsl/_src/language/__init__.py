"""The elements of kernels' language: arrays, control flow, donation."""
