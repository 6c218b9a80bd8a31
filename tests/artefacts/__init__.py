"""Tests of `artefacts`."""
