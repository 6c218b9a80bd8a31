"""Tests of `checker`."""
