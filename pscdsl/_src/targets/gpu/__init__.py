"""The rewriting and compilation of programs for NVIDIA GPUs, and the GPUs supported."""
