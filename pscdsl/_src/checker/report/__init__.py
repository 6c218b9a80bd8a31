"""Rendering of diagnostics: one file a format, each with a function `render` that returns text."""

from typing import Final

FORMATS: Final = ("text", "concise", "json", "sarif", "github")
