"""The meanings of codes: pages that findings link to, and summaries."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from pscdsl._src.checker.selection import all_kinds
from pscdsl.typing.diagnostics import Diagnostic

CODE = re.compile(r"\bPSC\d{3}\b")


class Explanations:
    """Pages about codes: those of a site, or files that are written while the server runs."""

    def __init__(self, site: str = "") -> None:
        self.site = site.rstrip("/")

    @cached_property
    def _folder(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory(prefix="pscdsl-codes-", ignore_cleanup_errors=True)

    def uri(self, kind: type[Diagnostic]) -> str | None:
        """Return the URI of the page about a kind of finding."""
        if self.site:
            return f"{self.site}/reference/codes/{kind.code}/"
        try:
            path = Path(self._folder.name, f"{kind.code}.md")
            if not path.exists():
                path.write_text(page(kind), encoding="utf-8")
        except OSError:  # there is no room, or no folder for such files
            return None
        return path.as_uri()


def kind_of(code: str) -> type[Diagnostic] | None:
    """Return the kind of finding with a code."""
    return next((kind for kind in all_kinds() if kind.code == code.upper()), None)


def page(kind: type[Diagnostic]) -> str:
    """Return the output of `pscdsl explain`."""
    return f"# {kind.code}: {kind.explanation()}\n"


def first_paragraph(kind: type[Diagnostic]) -> str:
    """Return the title of a code and the first paragraph of its explanation."""
    title, _, rest = kind.explanation().partition("\n\n")
    head = f"**{kind.code}**: {title}"
    paragraph = rest.partition("\n\n")[0]
    return head if paragraph.startswith("#") else f"{head}\n\n{paragraph}"
