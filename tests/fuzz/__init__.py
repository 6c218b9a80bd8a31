"""Random well-typed programs, mutants of them, and what must hold of both."""
