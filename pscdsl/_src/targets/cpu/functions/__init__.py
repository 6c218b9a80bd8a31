"""Functions of elements that XLA leaves to the C library, by polynomials."""
