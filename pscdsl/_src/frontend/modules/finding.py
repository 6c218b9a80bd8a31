"""Where modules are found: Python's own search, in the folders that a check may read.

A search starts in some folders and follows the parts of a dotted name.  A package with an
`__init__.py` ends it in that folder, then a module; folders without one are portions of a namespace
package.  An extension module (`x.so`) hides what stands beside it, because nothing is known of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from pscdsl._src.support.paths import inside_any, real, resolved
from pscdsl._src.support.tracebacks import FOLDER, LIBRARY

_PACKAGE = os.path.realpath(FOLDER) + os.sep
_OURS = "pscdsl.stdlib"
_EXTENSIONS = (".so", ".pyd")


@dataclass(frozen=True, slots=True)
class Found:
    """A module: its file, or the folders of a namespace package; and where its submodules are."""

    file: str | None
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A search: the folders it starts in, and the dotted name."""

    folders: tuple[str, ...]
    name: str


def is_language(path: str) -> bool:
    """Whether a file belongs to the implementation of the language, which no program writes to."""
    return path.startswith(_PACKAGE) and not path.startswith(os.path.join(LIBRARY, ""))


class Finder:
    """Finds modules; what a folder holds is read once."""

    def __init__(self, bounds: Sequence[str]) -> None:
        self.bounds = tuple(filter(None, map(real, (*bounds, LIBRARY))))
        """Nothing outside of these folders is found, also not through links."""
        self._listings: dict[str, _Listing] = {}
        self._answers: dict[Question, Found | None] = {}

    def find(self, question: Question) -> Found | None:
        """What a name stands for; None if there is no such module."""
        if question not in self._answers:
            self._answers[question] = self._search(question)
        return self._answers[question]

    def _search(self, question: Question) -> Found | None:
        found: Found | None = None
        folders = question.folders
        for part in question.name.split("."):
            found = self._step(folders, part)
            if found is None:
                return None
            folders = found.folders
        return found

    def _step(self, folders: Sequence[str], part: str) -> Found | None:
        portions: list[str] = []
        for folder in folders:
            here = self._listing(folder)
            inner = os.path.join(folder, part)
            if part in here.folders and "__init__.py" in self._listing(inner).files:
                return self._allowed(os.path.join(inner, "__init__.py"), (inner,))
            if part in here.extensions:
                return None
            if part + ".py" in here.files:
                return self._allowed(inner + ".py", ())
            if part in here.folders and inside_any(real(inner), self.bounds):
                portions.append(inner)
        return Found(None, tuple(portions)) if portions else None

    def _allowed(self, file: str, folders: tuple[str, ...]) -> Found | None:
        end = real(file)
        return Found(end, folders) if end and inside_any(end, self.bounds) else None

    def _listing(self, folder: str) -> _Listing:
        found = self._listings.get(folder)
        if found is None:
            found = self._listings[folder] = _Listing(folder)
        return found


class _Listing:
    """What modules can be made of in a folder."""

    def __init__(self, folder: str) -> None:
        self.folders: set[str] = set()
        self.files: set[str] = set()
        self.extensions: set[str] = set()
        """The first parts of the names of extension modules."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._add(entry)
        except (OSError, ValueError):
            pass  # nothing can be found in it

    def _add(self, entry: os.DirEntry[str]) -> None:
        try:
            if entry.is_dir():
                self.folders.add(entry.name)
            elif entry.name.endswith(_EXTENSIONS):
                self.extensions.add(entry.name.split(".")[0])
            elif stat.S_ISREG(entry.stat().st_mode):
                self.files.add(entry.name)
        except OSError:
            pass  # a link to nowhere, or to itself


def module_name(path: str) -> tuple[str, str]:
    """The full name of a module's file, and the folder that its outermost package lies in."""
    folder, base = os.path.split(resolved(path))
    stem = os.path.splitext(base)[0]
    if folder == LIBRARY:
        return f"{_OURS}.{stem}", folder
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        if not name:
            break
        parts.insert(0, name)
    return ".".join(parts), folder


def absolute(name: str, folders: Sequence[str]) -> Question:
    """The search for a module by its full name; our own library's lie in a place of their own."""
    head, _, rest = name.partition(f"{_OURS}.")
    return Question((LIBRARY,), rest) if rest and not head else Question(tuple(folders), name)
