"""Patterns for paths: `*` and `?` within a name, `**` for folders, `[…]` for one character."""

from __future__ import annotations

import re
from functools import lru_cache


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a path with `/` between names, or a folder above it.

    A pattern without `/` means a name anywhere; any other is meant from the root on.
    """
    return _compiled(pattern).match(path) is not None


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    anywhere = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    body = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            body += ".*" if last else "(?:[^/]+/)*"
        else:
            body += _name(part) + ("" if last else "/")
    return re.compile(f"{anywhere}{body}(?:/.*)?\\Z", re.DOTALL)


def _name(part: str) -> str:
    """The expression for one name of a path."""
    pieces = re.split(r"(\*+|\?|\[!?[^\]/]+\])", part)
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: str) -> str:
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("[") and piece.endswith("]"):
        negated = piece.startswith("[!")
        inside = piece[2 if negated else 1 : -1].replace("\\", r"\\").replace("[", r"\[")
        inside = inside.replace("^", r"\^").replace("&", r"\&").replace("~", r"\~")
        return f"[{'^/' if negated else ''}{inside.replace('|', chr(92) + '|')}]"
    return re.escape(piece)
