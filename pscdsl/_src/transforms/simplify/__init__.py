"""Smaller programs of the same meaning."""
