"""Modules and their names: files, scopes, live modules."""
