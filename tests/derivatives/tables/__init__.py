"""Functions whose derivatives are compared with differences: one module a family."""
