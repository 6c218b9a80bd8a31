"""Tests of `dialects`."""
