"""What kernels are written with: arrays, control flow, donation."""
