"""Patterns for paths: `*` and `?` within a name, `**` for folders, `[…]` for one character.

Each becomes an expression that takes the first place where what stands between two `*` fits, and
tries no other: that is enough, and the time grows with the length of the pattern times the path's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

LONGEST = 1_000
"""So many characters a pattern may have."""


class BadPattern(ValueError):
    """The pattern means nothing; the message says why."""


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a path with `/` between names, or a folder above it.

    A pattern without `/` means a name anywhere; any other is meant from the root on.
    """
    return compiled(pattern).match(path) is not None


@lru_cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression for a pattern; raises `BadPattern`."""
    if len(pattern) > LONGEST:
        raise BadPattern(f"is longer than {LONGEST} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    anywhere = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    if parts and parts[-1] == "**":
        return re.compile(f"{anywhere}{_folders(parts[:-1])}.*\\Z", re.DOTALL)
    return re.compile(f"{anywhere}{_folders(parts[:-1])}{_last(parts)}(?:/.*)?\\Z", re.DOTALL)


def _last(parts: list[str]) -> str:
    return _name(parts[-1]) if parts else ""


def _folders(parts: list[str]) -> str:
    """The expression for some folders, with the `/` after each."""
    first, *others = _between(parts, "**")
    body = "".join(f"{_name(part)}/" for part in first)
    for index, group in enumerate(others):
        names = "".join(f"{_name(part)}/" for part in group)
        last = index == len(others) - 1  # what follows it may fit only further on
        body += f"(?:[^/]+/)*{names}" if last else f"(?>(?:[^/]+/)*?{names})"
    return body


def _between(parts: list[str], mark: str) -> Iterator[list[str]]:
    group: list[str] = []
    for part in parts:
        if part == mark:
            yield group
            group = []
        else:
            group.append(part)
    yield group


def _name(part: str) -> str:
    """The expression for one name of a path."""
    first, *others = re.split(r"\*+", part)
    body = _plain(first)
    for index, piece in enumerate(others):
        last = index == len(others) - 1
        body += f"[^/]*{_plain(piece)}" if last else f"(?>[^/]*?{_plain(piece)})"
    return body


def _plain(text: str) -> str:
    """The expression for text without `*`."""
    pieces = re.split(r"(\?|\[!?[^\]/]+\])", text)
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: str) -> str:
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("[") and piece.endswith("]"):
        return _class(piece[1:-1])
    return re.escape(piece)


def _class(inside: str) -> str:
    """The expression for the characters between brackets; with `!` in front, for all others."""
    negated = len(inside) > 1 and inside.startswith("!")
    rest = inside[1:] if negated else inside
    ranges = ""
    while rest:
        first, last, rest = rest[0], rest[0], rest[1:]
        if len(rest) > 1 and rest[0] == "-":
            last, rest = rest[1], rest[2:]
        if last < first:
            raise BadPattern(f"has the range `{first}-{last}`, which is empty")
        ranges += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{'^' if negated else ''}{ranges}]"
