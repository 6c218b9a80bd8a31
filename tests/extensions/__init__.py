"""Tests of `extensions`."""
