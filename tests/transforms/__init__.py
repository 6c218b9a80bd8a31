"""Tests of `transforms`."""
