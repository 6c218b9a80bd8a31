"""Tests of `tree`."""
