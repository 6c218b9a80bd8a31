"""Forms of matrix products."""
