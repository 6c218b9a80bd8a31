"""Tests of `random`."""
