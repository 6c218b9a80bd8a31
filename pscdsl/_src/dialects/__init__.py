"""Checks of programs that are written for other libraries, from their source alone."""
