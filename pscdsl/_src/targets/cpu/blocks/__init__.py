"""Forms of whole blocks."""
