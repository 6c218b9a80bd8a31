"""`pscdsl check --watch`: a check, and another one whenever a file that it depends on changes."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pscdsl._src.cli import Unusable, say
from pscdsl._src.frontend.modules.files import python_files
from pscdsl._src.frontend.text.display import shown_path
from pscdsl._src.support.paths import Refused, resolved

_INTERVAL = 0.3
"""Seconds between two looks at the files."""
_SHARE = 10
"""Looking takes at most this part of the time, however many files there are."""
_SETTLED = 0.1
"""Seconds without a change after which a check starts: editors and Git write several files."""
_MOST_WAITS = 20
_MOST_NAMES = 3

_CACHED: Final[type[Any]] = type(functools.lru_cache(abs))

State = dict[str, tuple[int, int] | None]
"""The files with a state that changes with them; None if only a file's presence matters."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The files that a check depends on."""

    paths: tuple[str, ...]
    """The files and folders that are checked; files may appear in the folders."""
    excluded: Callable[[str], bool]
    others: frozenset[str]
    """Imported files, those of settings, and the baseline; each may be missing."""
    folders: frozenset[str]
    """Folders in which modules are looked up: one that appears there may be imported."""

    def state(self) -> State:
        """Return the files as they are now."""
        found: State = dict.fromkeys(self._modules())
        given = map(resolved, python_files(self.paths, self.excluded))
        for path in {*itertools.filterfalse(self.excluded, given), *self.others}:
            try:
                state = os.stat(path)
            except OSError:
                continue
            found[path] = (state.st_mtime_ns, state.st_size)
        return found

    def _modules(self) -> Iterator[str]:
        for folder in self.folders:
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                yield from (each.path for each in entries if each.name.endswith(".py"))


def watch(check: Callable[[], int], look: Callable[[], Watched]) -> int:
    """Check now and after each change, until Ctrl-C; return the exit code of the last check.

    `look` returns the dependencies of the next check. An error that prevents a check ends only the
    first one: a file may be missing, or the settings wrong, while they are edited.
    """
    code: int | None = None
    watched = look()
    state = watched.state()
    try:
        while True:
            try:
                code = check()
            except (Unusable, Refused) as problem:
                if code is None:
                    raise
                say(f"pscdsl: {problem}", error=True)
                code = 2
            _forget()
            number = sum(each is not None for each in state.values())
            _head(f"watching {number} file{'' if number == 1 else 's'}, until Ctrl-C")
            after = _changed(watched, state)
            print()
            _head(_difference(state, after))
            with contextlib.suppress(Unusable, Refused):  # the check says so
                watched = look()
            state = watched.state()
    except KeyboardInterrupt:
        return 130 if code is None else code


def _forget() -> None:
    """Release the programs of a check, which are cycles, and which bounded caches hold.

    A cache with a bound may lose any entry, so it may lose them all; the others hold no programs.
    """
    for name, module in [*sys.modules.items()]:
        if name.startswith("pscdsl."):
            for value in [*vars(module).values()]:
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()
    gc.collect()


def _changed(watched: Watched, before: State) -> State:
    """Wait until something has changed, and a moment longer until nothing does."""
    took = 0.0
    while True:
        time.sleep(max(_INTERVAL, _SHARE * took))
        started = time.monotonic()
        now = watched.state()
        took = time.monotonic() - started
        if now == before:
            continue
        for _ in range(_MOST_WAITS):
            time.sleep(_SETTLED)
            now, last = watched.state(), now
            if now == last:
                break
        if now != before:  # a file may have been removed for a moment, to be written again
            return now


def _head(text: str) -> None:
    say(f"[{time.strftime('%H:%M:%S')}] {text}")
    sys.stdout.flush()


def _difference(before: State, after: State) -> str:
    groups = (
        ("changed", [path for path in after if path in before and after[path] != before[path]]),
        ("new", [path for path in after if path not in before]),
        ("removed", [path for path in before if path not in after]),
    )
    return "; ".join(f"{what}: {_names(paths)}" for what, paths in groups if paths)


def _names(paths: list[str]) -> str:
    names = sorted(map(shown_path, paths))
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
