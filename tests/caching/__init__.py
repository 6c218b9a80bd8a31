"""Tests of `caching`."""
