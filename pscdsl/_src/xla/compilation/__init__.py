"""Compiles modules, and finds them on disk."""
