"""Tests of `plugins`."""
