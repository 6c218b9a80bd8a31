"""Files that are written at once."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file at once: whoever reads it finds the old content or the new; or an OSError.

    `mode` says who may read and write it, less what the umask forbids.
    """
    temporary = path.parent / f"{secrets.token_hex(8)}.part"
    descriptor = os.open(temporary, _NEW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
