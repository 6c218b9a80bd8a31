"""Tests of `primitives`."""
