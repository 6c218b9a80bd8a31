"""Tests of `frontend`."""
