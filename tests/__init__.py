"""Tests of pscdsl; the programs in `conformance/` are collected by `conftest.py`."""
