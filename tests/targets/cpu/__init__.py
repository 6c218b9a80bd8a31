"""Tests of `cpu`."""
