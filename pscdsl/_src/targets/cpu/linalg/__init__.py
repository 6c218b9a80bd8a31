"""Forms of factorizations and solutions."""
