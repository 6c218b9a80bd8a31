"""Tests of `numpy`."""
