"""Modules for every room: paths, processes, tracebacks, tested versions."""
