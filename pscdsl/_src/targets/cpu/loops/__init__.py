"""Forms of loops."""
