"""Entries in a folder, bounded in bytes, shared by any number of processes.

An entry is one file: a seal, then the content.  The seal depends on the entry's name too, so that
what is damaged, cut off or put in another's place is no entry.  A file is read whole or not at all,
because it is written beside its place and then moved there.  Where nothing can be read or written
the store is empty; nothing here raises.

What is kept is run.  The seal is no secret, so that a folder in which others can write is not used,
and of the entries only regular files which nobody else could have written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pscdsl.paths import Folder, resolved

SUFFIX: Final = ".pscx"
_UNFINISHED = 3600.0
"""Seconds after which a file that was never finished is removed."""
_BLOCK: Final = 4096
"""What a file takes of a disk is a multiple of this."""
_ROOM: Final = 0.9
"""How much of the limit is kept when entries have to go, so that they need not go each time."""
_SEAL: Final = 32
_LARGEST: Final = 1 << 30
"""Bytes of the largest entry that is written or read."""

log: Final = logging.getLogger("pscdsl.compile")


class Store:
    """The entries in a folder; those that were not used for longest go first."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    @cached_property
    def _place(self) -> str:
        return resolved(str(self.folder))

    def _opened(self, *, make: bool = False) -> Folder:
        """The folder, which has to be closed; an OSError or a ValueError if it cannot be used."""
        found = Folder(self._place, make=make)
        if not found.is_private():
            found.close()
            _warn(self._place)
            raise PermissionError(None, "others can write in it")
        return found

    def get(self, name: str) -> bytes | None:
        """The content of an entry; a damaged one is removed."""
        file = f"{name}{SUFFIX}"
        try:
            with self._opened() as folder:
                data = folder.read(file, _LARGEST, private=True)
                content = data[_SEAL:]
                if data[:_SEAL] != _seal(name, content):
                    log.info("%s is damaged, and removed", self.folder / file)
                    folder.remove(file)
                    return None
                folder.touch(file)  # used now
                return content
        except (OSError, ValueError):
            return None

    def put(self, name: str, content: bytes) -> bool:
        """Keep an entry, unless it is too large or there is no place; whether it is kept."""
        if _SEAL + len(content) > _LARGEST or _on_disk(_SEAL + len(content)) > self.limit:
            return False
        try:
            with self._opened(make=True) as folder:
                folder.replace(f"{name}{SUFFIX}", _seal(name, content) + content)
        except (OSError, ValueError) as problem:
            log.debug("nothing can be kept in %s: %s", self.folder, problem)
            return False
        with contextlib.suppress(OSError):
            self._trim()
        return True

    def remove(self, name: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError, ValueError), self._opened() as folder:
            folder.remove(f"{name}{SUFFIX}")

    def names(self) -> list[str]:
        """The entries that are there."""
        with contextlib.suppress(OSError, ValueError):
            return sorted(p.name[: -len(SUFFIX)] for p in self.folder.glob(f"*{SUFFIX}"))
        return []

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


@cache
def _warn(place: str) -> None:
    """Say once of a folder why it is not used."""
    log.warning(
        "%s is not used for compiled programs: it is another user's, or others can write in it; "
        "`chmod go-w` it, or name another one in $PSCDSL_CACHE",
        place,
    )


def _seal(name: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=_SEAL, key=name.encode()[:64]).digest()


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
