"""Tests of `typing`."""
