"""Entries in a folder, bounded in bytes, shared by any number of processes.

An entry is one file: a seal, then the content.  The seal depends on the entry's name too, so that
what is damaged, cut off or put in another's place is no entry.  A file is read whole or not at all,
because it is written beside its place and then moved there.  Where nothing can be read or written
the store is empty; nothing here raises.

What is kept is machine code.  So a folder in which others can write is not used, only regular files
that nobody else can write to are read, and nothing is removed but what has the name of an entry.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pscdsl.paths import Folder, is_trusted, real

SUFFIX: Final = ".pscx"
MOST_BYTES: Final = 1 << 29
"""No entry is larger, whatever the limit is."""
_OWN: Final = re.compile(rf"(?P<entry>[0-9a-f]{{64}}){re.escape(SUFFIX)}|[0-9a-f]{{16}}\.part")
"""The names of what is written here."""
_UNFINISHED = 3600.0
"""Seconds after which a file that was never finished is removed."""
_BLOCK: Final = 4096
"""What a file takes of a disk is a multiple of this."""
_ROOM: Final = 0.9
"""How much of the limit is kept when entries have to go, so that they need not go each time."""
_SEAL: Final = 32

log: Final = logging.getLogger("pscdsl.compile")


class Store:
    """The entries in a folder, by names of 64 hexadecimal digits.

    Those that were not used for longest go first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def get(self, name: str) -> bytes | None:
        """The content of an entry; a damaged one is removed."""
        try:
            with self._opened() as folder:
                file = _file(name)
                if not is_trusted(folder.state(file)):
                    return None
                data = folder.read(file, MOST_BYTES)
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
        if _on_disk(_SEAL + len(content)) > min(self.limit, MOST_BYTES):
            return False
        try:
            with self._opened(make=True) as folder:
                folder.replace(_file(name), _seal(name, content) + content)
                with contextlib.suppress(OSError):
                    self._trim(folder)
        except (OSError, ValueError) as problem:
            log.debug("nothing can be kept in %s: %s", self.folder, problem)
            return False
        return True

    def remove(self, name: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError, ValueError), self._opened() as folder:
            folder.remove(_file(name))

    def names(self) -> list[str]:
        """The entries that are there."""
        with contextlib.suppress(OSError, ValueError), self._opened() as folder:
            found = map(_OWN.fullmatch, folder.names())
            return sorted(each["entry"] for each in found if each is not None and each["entry"])
        return []

    def _opened(self, *, make: bool = False) -> Folder:
        """The folder; an OSError if there is none in which only this user can write."""
        place = real(str(self.folder))
        if place is None:
            raise OSError("it cannot be found")
        folder = Folder(place, make=make)
        if not folder.is_private():
            folder.close()
            reason = "it is somebody else's, or others can write in it"
            log.info("%s is not used: %s", self.folder, reason)
            raise OSError(reason)
        return folder

    def _trim(self, folder: Folder) -> None:
        """Remove what is too much, and what another process has never finished."""
        entries = list(_entries(folder))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, file in sorted(entries):
            if total <= self.limit * _ROOM:
                break
            folder.remove(file)
            total -= size


def _entries(folder: Folder) -> Iterator[tuple[float, int, str]]:
    """When each entry was used last, the bytes it takes, and the name of its file."""
    now = time.time()
    for file in list(folder.names()):
        own = _OWN.fullmatch(file)
        state = folder.state(file) if own else None
        if own is None or state is None:  # a stranger's, or removed by another process
            continue
        if own["entry"]:
            yield state.st_mtime, _on_disk(state.st_size), file
        elif now - state.st_mtime > _UNFINISHED:
            folder.remove(file)


def _file(name: str) -> str:
    """The file of an entry; a ValueError if nothing can have this name."""
    file = f"{name}{SUFFIX}"
    if _OWN.fullmatch(file) is None:
        raise ValueError(f"not the name of an entry: {name!r}")
    return file


def _seal(name: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=_SEAL, key=name.encode()[:64]).digest()


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
