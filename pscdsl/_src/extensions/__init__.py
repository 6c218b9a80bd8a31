"""Primitives, rules and trusted functions of users."""
