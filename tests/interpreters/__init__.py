"""Tests of `interpreters`."""
