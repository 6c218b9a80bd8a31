"""Results on disk: one file for each file that was checked, read as data.

An entry is used only if this user has written it, as the seal says, which depends on the user's
key; if it was made by this version of pscdsl under the same conditions; and if all that its check
had read is as it was.  Anything else is no entry.  Wherever the folder lies, no link is followed,
and nothing is removed but what has the name of an entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl._src.caching.secret import user_key
from pscdsl._src.checker.check import CheckResult
from pscdsl._src.checker.parallel.data import Unreadable
from pscdsl._src.checker.parallel.reads import Reads
from pscdsl._src.checker.parallel.recorded import plain, read, read_result
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.support.package import FOLDER
from pscdsl._src.support.paths import Folder, real

_IGNORED = "# Made by pscdsl, for pscdsl alone.\n*\n"
_MOST_BYTES = 200_000_000
_MOST_ENTRIES = 20_000
_ENTRY_BYTES = 20_000_000
_OLD = 3600.0
"""Seconds after which a file that was never finished is removed."""
_DAY = 86400.0
_OWN = re.compile(r"(?P<entry>[0-9a-f]{32}\.json)|[0-9a-f]{16}\.part")
"""The names of what is written here."""
_UNCERTAIN = ("PSC934", "PSC999")
"""What another try may not find."""


class Store:
    """The entries in a folder; one that cannot be used holds nothing."""

    def __init__(self, folder: str | Path, files: Files) -> None:
        self.conditions = conditions(files.roots)
        self._place = str(folder)
        self._key = user_key((*files.bounds, os.getcwd()))
        self._folder = None if self._key is None else self._opened(make=False)
        self._written = False

    def get(self, path: str, files: Files) -> CheckResult | None:
        """The result of checking a file, if it is known and would still be the same."""
        if self._folder is None or self._key is None:
            return None
        try:
            name = self._entry(path)
            data = self._folder.read(name, _ENTRY_BYTES)
            conditions, owner, reads, result = _unsealed(data, self._key)
            if (conditions, owner) != (self.conditions, path):
                return None
            known: Reads = read(Reads, reads)
            if not known.hold(files):
                return None
            state = self._folder.state(name)
            if state is not None and time.time() - state.st_mtime > _DAY:
                self._folder.touch(name)  # used now: the oldest are removed first
            return read_result(result)
        except (OSError, ValueError, Unreadable, RecursionError):
            return None

    def put(self, path: str, reads: Reads, result: CheckResult) -> None:
        """Keep a result; without a place for it, nothing is kept."""
        if any(finding.code in _UNCERTAIN for finding in result.diagnostics):
            return
        if self._key is None:
            return
        data = _sealed([self.conditions, path, plain(reads), plain(result)], self._key)
        if len(data) > _ENTRY_BYTES:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._folder is None:
                self._folder = self._opened(make=True)
            if self._folder is not None:
                self._folder.replace(self._entry(path), data)
                self._written = True

    def _entry(self, path: str) -> str:
        name = blake2b(os.fsencode(path), digest_size=16, key=self.conditions.encode()[:64])
        return f"{name.hexdigest()}.json"

    def _opened(self, *, make: bool) -> Folder | None:
        """The folder of the entries; a new one lies in a folder that version control ignores."""
        try:
            place = real(self._place)
            if place is None:
                return None
            if make:
                with Folder(place, make=True) as outer:
                    outer.create(".gitignore", _IGNORED.encode(), 0o644)
            return Folder(os.path.join(place, "results"), make=make)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Remove the oldest entries if there are too many, and what was never finished."""
        if self._folder is None:
            return
        if self._written:
            with contextlib.suppress(OSError):
                self._trim(self._folder)
        self._folder.close()

    def _trim(self, folder: Folder) -> None:
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        for name in folder.names():
            kind = _OWN.fullmatch(name)
            state = folder.state(name) if kind else None
            if kind is None or state is None:
                continue
            if kind["entry"]:
                entries.append((state.st_mtime, state.st_size, name))
            elif now - state.st_mtime > _OLD:
                folder.remove(name)
        for name in _surplus(entries):
            folder.remove(name)


def _surplus(entries: list[tuple[float, int, str]]) -> Iterator[str]:
    """The oldest entries, as many as are too many or too large together."""
    entries.sort(reverse=True)
    total = 0
    for index, (_, size, name) in enumerate(entries):
        total += size
        if index >= _MOST_ENTRIES or total > _MOST_BYTES:
            yield name


def _sealed(content: Any, key: bytes) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return _seal(body, key) + b"\n" + body


def _unsealed(data: bytes, key: bytes) -> tuple[str, str, Any, Any]:
    """The four parts of an entry; raises `Unreadable` if it is damaged, or somebody else's."""
    seal, _, body = data.partition(b"\n")
    if not compare_digest(seal, _seal(body, key)):
        raise Unreadable("damaged")
    try:
        content = json.loads(body)
    except ValueError:
        raise Unreadable("not JSON") from None
    parts: tuple[str, str, Any, Any] = read(tuple[str, str, Any, Any], content)
    return parts


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, digest_size=32, key=key).hexdigest().encode()


def conditions(roots: Sequence[str]) -> str:
    """What stands for everything but the files that a check depends on."""
    parts = (
        *(sys.version, platform.platform(), np.__version__, os.getcwd(), str(sys.flags.optimize)),
        *roots,
        *(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in _own_files()),
    )
    return blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=32).hexdigest()


def _own_files() -> Iterator[tuple[str, os.stat_result]]:
    """The sources of pscdsl itself, where they are and when they were changed."""
    for place, names, files in os.walk(FOLDER, followlinks=True):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".pyi")):
                path = os.path.join(place, name)
                yield path, os.stat(path)
