"""Transformations of functions: derivatives, batches, what is saved for the way back."""
