"""What kernels see of their surroundings, and who else may change it."""
