"""What kernels and loaded kernels share: arguments, choices, errors."""
