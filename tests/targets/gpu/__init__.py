"""Tests of `gpu`."""
