"""Tests of `stdlib`."""
