"""Rendering of diagnostics: one file a format, each with a function `render` that returns text."""
