"""What a process finds of its kernels on disk."""
