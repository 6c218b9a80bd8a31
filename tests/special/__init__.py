"""Tests of `special`."""
