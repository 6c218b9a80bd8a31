"""Files as bytes: read once, regular files only, within bounds."""

from __future__ import annotations

import os
import stat

from pscdsl.typing.codes.limits_projects import FileNotRead
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.spans import Span

MAX_SOURCE = 4_000_000
"""Larger programs are refused: no kernel file is that long."""
MAX_NOTEBOOK = 32_000_000
"""Notebooks hold pictures too."""
_CHUNK = 1 << 20


def limit(path: str) -> int:
    """How many bytes a file may have."""
    return MAX_NOTEBOOK if path.endswith(".ipynb") else MAX_SOURCE


def read_bytes(path: str, shown: str) -> bytes:
    """The content of a file at one moment; a Failure if there is none of reasonable size.

    Whatever is said of a file is said of these bytes: it is not read again if it changes.
    """
    try:
        # A pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise _failure(shown, _reason(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _failure(shown, "it is not a regular file")
        return _all(descriptor, limit(path), shown)
    except OSError as error:
        raise _failure(shown, _reason(error)) from None
    finally:
        os.close(descriptor)


def _all(descriptor: int, most: int, shown: str) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
        total += len(chunk)
        if total > most:  # counted here: a file that grows has no size
            raise _failure(shown, f"it is larger than {most} bytes")
    return b"".join(chunks)


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return str(text)[:1].lower() + str(text)[1:]


def _failure(shown: str, reason: str) -> Failure:
    return Failure(FileNotRead(reason=reason, span=Span(shown, 1, 1, 1, 1)))
