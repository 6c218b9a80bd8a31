"""Results on disk: one file for each file that was checked, read as data.

An entry is used only if it is whole, was made by this version of pscdsl under the same conditions,
and if all that its check had read is as it was.  Anything else is no entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import pscdsl
from pscdsl.caching.writing import replace
from pscdsl.checking.data import Unreadable
from pscdsl.checking.reads import Reads
from pscdsl.checking.recorded import plain, read, read_result
from pscdsl.frontend.check import CheckResult
from pscdsl.frontend.files import Files

_IGNORED = "# Made by pscdsl, for pscdsl alone.\n*\n"
_MOST_BYTES = 200_000_000
_MOST_ENTRIES = 20_000
_ENTRY_BYTES = 20_000_000
_OLD = 3600.0
"""Seconds after which a file that was never finished is removed."""
_UNCERTAIN = ("PSC934", "PSC999")
"""What another try may not find."""


class Store:
    """The entries in a folder; one that cannot be used holds nothing."""

    def __init__(self, folder: str | Path, roots: Sequence[str]) -> None:
        self.folder = Path(folder) / "results"
        self.conditions = conditions(roots)
        self._written = False

    def get(self, path: str, files: Files) -> CheckResult | None:
        """The result of checking a file, if it is known and would still be the same."""
        try:
            entry = self._entry(path)
            with entry.open("rb") as file:
                data = file.read(_ENTRY_BYTES + 1)
            conditions, owner, reads, result = _unsealed(data)
            if (conditions, owner) != (self.conditions, path):
                return None
            known: Reads = read(Reads, reads)
            return read_result(result) if known.hold(files) else None
        except (OSError, ValueError, Unreadable, RecursionError):  # also a name that is none
            return None

    def put(self, path: str, reads: Reads, result: CheckResult) -> None:
        """Keep a result; without a place for it, nothing is kept."""
        if any(finding.code in _UNCERTAIN for finding in result.diagnostics):
            return
        data = _sealed([self.conditions, path, plain(reads), plain(result)])
        if len(data) > _ENTRY_BYTES:
            return
        with contextlib.suppress(OSError, ValueError):
            if not self._written:
                self._prepare()
            replace(self._entry(path), data)

    def _entry(self, path: str) -> Path:
        name = blake2b(os.fsencode(path), digest_size=16, key=self.conditions.encode()[:64])
        return self.folder / f"{name.hexdigest()}.json"

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = self.folder.parent / ".gitignore"
        if not ignore.exists():
            replace(ignore, _IGNORED.encode())
        self._written = True

    def close(self) -> None:
        """Remove the oldest entries if there are too many, and what was never finished."""
        if self._written:
            with contextlib.suppress(OSError):
                self._trim()

    def _trim(self) -> None:
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as found:
            for each in found:
                with contextlib.suppress(OSError):  # another process may have removed it
                    state = each.stat()
                    if each.name.endswith(".json"):
                        entries.append((state.st_mtime, state.st_size, each.path))
                    elif now - state.st_mtime > _OLD:
                        os.unlink(each.path)
        for path in _surplus(entries):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _surplus(entries: list[tuple[float, int, str]]) -> Iterator[str]:
    """The oldest entries, as many as are too many or too large together."""
    entries.sort(reverse=True)
    total = 0
    for index, (_, size, path) in enumerate(entries):
        total += size
        if index >= _MOST_ENTRIES or total > _MOST_BYTES:
            yield path


def _sealed(content: Any) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return _seal(body) + b"\n" + body


def _unsealed(data: bytes) -> tuple[str, str, Any, Any]:
    """The four parts of an entry; raises `Unreadable` if it is damaged."""
    seal, _, body = data.partition(b"\n")
    if seal != _seal(body):
        raise Unreadable("damaged")
    try:
        content = json.loads(body)
    except ValueError:
        raise Unreadable("not JSON") from None
    parts: tuple[str, str, Any, Any] = read(tuple[str, str, Any, Any], content)
    return parts


def _seal(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()


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
    folder = os.path.dirname(os.path.abspath(pscdsl.__file__))
    for place, names, files in os.walk(folder, followlinks=True):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".pyi")):
                path = os.path.join(place, name)
                yield path, os.stat(path)
