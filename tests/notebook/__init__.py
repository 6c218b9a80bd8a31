"""Tests of `notebook`."""
