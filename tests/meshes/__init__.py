"""Tests of meshes: arrays and programs over several devices and processes."""
