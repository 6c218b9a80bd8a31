"""Files that are kept between processes: their folders, the user's key, and a bounded store.

PSCDSL_CACHE=off              nothing is stored
PSCDSL_CACHE=/path            in this folder; otherwise in the user's folder for caches
PSCDSL_CACHE_LIMIT=500M       at most this many bytes: a number, or one with K, M, G or T
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pscdsl._src.support.paths import Folder, inside_any, is_secret, real, resolved

# The environment's settings of where compiled programs are stored, and how many.


FOLDER_VARIABLE: Final = "PSCDSL_CACHE"
LIMIT_VARIABLE: Final = "PSCDSL_CACHE_LIMIT"
DEFAULT_LIMIT: Final = 1 << 30
"""Bytes on disk, if the environment says nothing."""
_MOST: Final = 1 << 60
"""Bytes of a limit: more are none."""
OFF: Final = frozenset({"off", "0", "no", "none", "false"})
ON: Final = frozenset({"", "on", "1", "yes", "true"})
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

log: Final = logging.getLogger("pscdsl.compile")


def cache_folder() -> Path | None:
    """Return the folder for compiled programs; None if storing is switched off."""
    given = os.environ.get(FOLDER_VARIABLE, "").strip()
    if given.lower() in OFF or cache_limit() == 0:
        return None
    try:
        return user_folder() if given.lower() in ON else Path(given).expanduser()
    except RuntimeError:  # a user without a home
        return None


def user_folder() -> Path:
    """Return the user's folder for caches, as usual on this system; RuntimeError without a home."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
        return base / "pscdsl" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pscdsl"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "pscdsl"


def cache_limit() -> int:
    """Return the most bytes that are stored."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)(?:I?B)?", given.upper())
    if found is None:
        log.warning(
            "%s=%s is no number of bytes (500M, 2G); %d is used",
            LIMIT_VARIABLE,
            given,
            DEFAULT_LIMIT,
        )
        return DEFAULT_LIMIT
    return int(min(float(found[1]) * (1 << _UNITS[found[2]]), _MOST))


# The user's key: it seals the files stored for this user, so that no one else's are trusted.
#
# It is in the user's folder for caches, where no repository can have put it.


_KEY_NAME = "key"
_KEY_BYTES = 32


def user_key(strangers: Iterable[str]) -> bytes | None:
    """Return the key, made at the first request; None if there is no safe place for it.

    A place below one of the folders (resolved ones) with untrusted contents is not safe, nor is one
    in which others can write.
    """
    try:
        place = real(str(user_folder()))
        if place is None or inside_any(place, strangers):
            return None
        with Folder(place, make=True) as folder:
            return _key(folder) if folder.is_private() else None
    except (OSError, ValueError, RuntimeError):  # no home, or none that can be written
        return None


def _key(folder: Folder) -> bytes | None:
    if folder.state(_KEY_NAME) is None:
        folder.create(_KEY_NAME, os.urandom(_KEY_BYTES))
    elif not _is_good(folder):
        folder.replace(_KEY_NAME, os.urandom(_KEY_BYTES))
    return folder.read(_KEY_NAME, _KEY_BYTES) if _is_good(folder) else None


def _is_good(folder: Folder) -> bool:
    """Return whether the file can only be this user's."""
    state = folder.state(_KEY_NAME)
    return state is not None and state.st_size == _KEY_BYTES and is_secret(state)


# Entries in a folder, bounded in bytes, shared by any number of processes.
#
# An entry is one file: a seal, then the content. The seal depends on the entry's name too, so that
# a file that is damaged, truncated or moved to another name is no entry. A file is read completely
# or not at all, because it is written next to its place and then moved there. If nothing can be
# read or written the store is empty; nothing here raises.
#
# Entries are executed. The seal is no secret, so a folder in which others can write is not used,
# only regular files count that no one else could have written, and only files with the name of an
# entry are removed.


SUFFIX: Final = ".pscx"
_OWN: Final = re.compile(rf"(?P<entry>[0-9a-f]{{64}}){re.escape(SUFFIX)}|[0-9a-f]{{16}}\.part")
"""The names of files written here."""
_UNFINISHED = 3600.0
"""Seconds after which a file that was never finished is removed."""
_BLOCK: Final = 4096
"""The unit of disk space that a file takes."""
_ROOM: Final = 0.9
"""The part of the limit that remains after entries are removed, so that this happens rarely."""
_SEAL: Final = 32
_LARGEST: Final = 1 << 30
"""Bytes of the largest entry that is written or read."""


class Store:
    """The entries in a folder, by names of 64 hexadecimal digits.

    Those that were not used for longest go first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    @cached_property
    def _place(self) -> str:
        return resolved(str(self.folder))

    def _opened(self, *, make: bool = False) -> Folder:
        """Open the folder, which must be closed; raise OSError or ValueError if it is unusable."""
        found = Folder(self._place, make=make)
        if not found.is_private():
            found.close()
            _warn(self._place)
            raise PermissionError(None, "others can write in it")
        return found

    def get(self, name: str) -> bytes | None:
        """Return the content of an entry, or remove it if it is damaged."""
        try:
            with self._opened() as folder:
                file = _file(name)
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
        """Store an entry, unless it is too large or has no place; return whether it is stored."""
        if _SEAL + len(content) > _LARGEST or _on_disk(_SEAL + len(content)) > self.limit:
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
        """Return the existing entries."""
        with contextlib.suppress(OSError, ValueError), self._opened() as folder:
            found = map(_OWN.fullmatch, folder.names())
            return sorted(each["entry"] for each in found if each is not None and each["entry"])
        return []

    def _trim(self, folder: Folder) -> None:
        """Remove entries beyond the limit, and files that another process never finished."""
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
    """Return the file of an entry; raise ValueError for an impossible name."""
    file = f"{name}{SUFFIX}"
    if _OWN.fullmatch(file) is None:
        raise ValueError(f"not the name of an entry: {name!r}")
    return file


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
