"""Rewrites and options for CPUs."""
