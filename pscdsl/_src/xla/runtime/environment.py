"""What the environment of the process says."""

from __future__ import annotations

import os
from collections.abc import Sequence


def word(variable: str, words: Sequence[str]) -> str:
    """One of these words, the first if nothing is said; a ValueError if it is none of them."""
    given = os.environ.get(variable, "").strip() or words[0]
    if given not in words:
        raise ValueError(f"{variable} is `{given}`; it can be {', '.join(words)}")
    return given
