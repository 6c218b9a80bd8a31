"""Pieces of HTML: escaped, with styles in place, readable on light and dark pages, no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_LINE = "rgba(128,128,128,.35)"
_MUTED = "opacity:.7"
_MOST = 200_000
"""The most characters of one text."""


def text(value: object) -> str:
    """Return a text as HTML."""
    return escape(str(value).encode("utf-8", "replace").decode())


def muted(value: object) -> str:
    """Return a text of less importance."""
    return f'<span style="{_MUTED}">{text(value)}</span>'


def code(value: object) -> str:
    """Return a text in code's font, on one line."""
    return f'<code style="background:none;color:inherit;padding:0">{text(value)}</code>'


def pre(value: object) -> str:
    """Return lines as they are; of a very long text, the beginning."""
    shown = str(value)
    rest = "" if len(shown) <= _MOST else f"\n… {len(shown) - _MOST:,} more characters"
    style = "margin:.3em 0;white-space:pre;overflow-x:auto;background:none;color:inherit"
    return f'<pre style="{style}">{text(shown[:_MOST] + rest)}</pre>'


def details(summary: str, content: str, *, opened: bool = False) -> str:
    """Return content below a line of HTML that folds it."""
    inner = f'<div style="margin-left:1.2em">{content}</div>'
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{inner}</details>"


def rows(pairs: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values."""
    style = "border:none;background:none;text-align:left;padding:.1em 1em .1em 0"
    cells = "".join(
        f'<tr style="background:none"><td style="{style}">{muted(name)}</td>'
        f'<td style="{style}">{code(value)}</td></tr>'
        for name, value in pairs
    )
    return f'<table style="border:none;margin:.3em 0;font-size:inherit">{cells}</table>'


def box(*parts: str) -> str:
    """Return the HTML of one value."""
    style = f"border-left:3px solid {_LINE};padding-left:.8em;overflow-x:auto"
    return f'<div style="{style}">{"".join(parts)}</div>'
