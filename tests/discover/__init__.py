"""Tests of `discover`."""
