"""Tests of `xla`."""
