"""Files as bytes: read once, regular files only, within bounds, by no link."""

from __future__ import annotations

from pscdsl._src.support import paths
from pscdsl.typing.codes.projects import FileNotRead
from pscdsl.typing.diagnostics import Failure, Span

MAX_SOURCE = 4_000_000
"""Larger programs are refused: no kernel file is that long."""
MAX_NOTEBOOK = 32_000_000
"""Notebooks hold pictures too."""


def limit(path: str) -> int:
    """How many bytes a file may have."""
    return MAX_NOTEBOOK if path.endswith(".ipynb") else MAX_SOURCE


def read_bytes(path: str, shown: str) -> bytes:
    """The content of a file at one moment; a Failure if there is none of reasonable size.

    The path is a resolved one: where it was decided that it may be read, there were no links on it.
    Whatever is said of a file is said of these bytes: it is not read again if it changes.
    """
    try:
        return paths.read(path, limit(path))
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        reason = reason[:1].lower() + reason[1:]
        raise Failure(FileNotRead(reason=reason, span=Span(shown, 1, 1, 1, 1))) from None
