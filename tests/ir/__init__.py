"""Tests of `ir`."""
