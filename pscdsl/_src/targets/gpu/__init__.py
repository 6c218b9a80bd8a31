"""Programs for NVIDIA GPUs: what they are rewritten to, how they are compiled, and for which."""
