"""Checking whole projects: what was found before is kept on disk, what is new is shared out."""
