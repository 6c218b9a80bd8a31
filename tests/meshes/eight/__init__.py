"""Tests that run in a process with eight devices."""
