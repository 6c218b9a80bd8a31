"""Python's numbers as arguments of calls."""

from __future__ import annotations

from typing import Final

NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))
"""The classes of Python's numbers."""
