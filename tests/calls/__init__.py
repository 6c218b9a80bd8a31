"""Tests of `calls`."""
