"""Elaborates bodies: statements, expressions, calls."""
