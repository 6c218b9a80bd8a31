"""The names of `flax`."""
