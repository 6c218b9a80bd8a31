"""Entries in a folder, bounded in bytes, shared by any number of processes.

An entry is one file: a seal, then the content.  The seal depends on the entry's name too, so that
what is damaged, cut off or put in another's place is no entry.  A file is read whole or not at all,
because it is written beside its place and then moved there.  Where nothing can be read or written
the store is empty; nothing here raises.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pscdsl.caching.writing import replace

SUFFIX: Final = ".pscx"
_UNFINISHED = 3600.0
"""Seconds after which a file that was never finished is removed."""
_BLOCK: Final = 4096
"""What a file takes of a disk is a multiple of this."""
_ROOM: Final = 0.9
"""How much of the limit is kept when entries have to go, so that they need not go each time."""
_SEAL: Final = 32

log: Final = logging.getLogger("pscdsl.compile")


class Store:
    """The entries in a folder; those that were not used for longest go first."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def get(self, name: str) -> bytes | None:
        """The content of an entry; a damaged one is removed."""
        path = self._path(name)
        try:
            data = path.read_bytes()
        except (OSError, ValueError):
            return None
        content = data[_SEAL:]
        if data[:_SEAL] != _seal(name, content):
            log.info("%s is damaged, and removed", path)
            self.remove(name)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return content

    def put(self, name: str, content: bytes) -> bool:
        """Keep an entry, unless it is too large or there is no place; whether it is kept."""
        if _on_disk(_SEAL + len(content)) > self.limit:
            return False
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._path(name), _seal(name, content) + content)
        except (OSError, ValueError) as problem:
            log.debug("nothing can be kept in %s: %s", self.folder, problem)
            return False
        with contextlib.suppress(OSError):
            self._trim()
        return True

    def remove(self, name: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError, ValueError):
            self._path(name).unlink()

    def names(self) -> list[str]:
        """The entries that are there."""
        with contextlib.suppress(OSError, ValueError):
            return sorted(p.name[: -len(SUFFIX)] for p in self.folder.glob(f"*{SUFFIX}"))
        return []

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"

    def _trim(self) -> None:
        """Remove what is too much, and what another process has never finished."""
        entries = list(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            if total <= self.limit * _ROOM:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """When each entry was used last, the bytes it takes, and its path."""
        now = time.time()
        with os.scandir(self.folder) as found:
            for each in found:
                with contextlib.suppress(OSError):  # another process may have removed it
                    state = each.stat()
                    if each.name.endswith(SUFFIX):
                        yield state.st_mtime, _on_disk(state.st_size), each.path
                    elif each.name.endswith(".part") and now - state.st_mtime > _UNFINISHED:
                        os.unlink(each.path)


def _seal(name: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=_SEAL, key=name.encode()[:64]).digest()


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
