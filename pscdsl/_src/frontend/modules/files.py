"""The files of one check: those given, those they may import, and what they contain.

Each is read once, so that everything said of it is said of the same content, and parsed when it is
needed.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from pscdsl._src.frontend.captures.resolution import WORD, patching, storing
from pscdsl._src.frontend.interpreter.captures import Captures
from pscdsl._src.frontend.modules.finding import Finder, absolute, is_language, module_name
from pscdsl._src.frontend.text.cells import NotANotebook, code_cells
from pscdsl._src.frontend.text.reading import read_bytes
from pscdsl._src.frontend.text.source import Source, from_bytes, searchable, shown_path
from pscdsl._src.frontend.text.sources import decode
from pscdsl._src.support.paths import resolved
from pscdsl.typing.diagnostics import Failure

# Possessive: what a part has taken it does not give back, so that each line is read once.
_FROM = re.compile(
    r"^[ \t]*+from(?=[ \t.])[ \t]*+(\.*+)([\w.]*+)[ \t]*+import\b[ \t]*+(\([^()]*+\)|[^\n;#(]*+)",
    re.M,
)
_IMPORT = re.compile(r"^[ \t]*+import[ \t]++([^\n;#]++)", re.M)
_MOST_PARTS = 100
"""Of the name of a module; longer ones are of no file."""
_MOST_FILES = 5_000


class FileText:
    """The text of a file of the project, parsed when its tree is needed."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
        self._place = ""
        self._module = ""

    @property
    def source(self) -> Source:
        """Its tree; a Failure if it is not Python."""
        return self.files.source(self.path)

    @property
    def text(self) -> str:
        """Its text alone, as it is searched for names without parsing."""
        return self.files.searched(self.path)

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        if not self._place:
            self._place = shown_path(self.path)
        return self._place

    @property
    def module(self) -> str:
        """The module's full name."""
        if not self._module:
            self._module = module_name(self.path)[0]
        return self._module

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        return os.path.basename(self.path) == "__init__.py"


class Files:
    """The files of a check by their real paths."""

    def __init__(
        self,
        given: Iterable[str] = (),
        roots: Iterable[str] = (),
        bounds: Iterable[str] | None = None,
    ) -> None:
        self.given = tuple(dict.fromkeys(given))
        own = (module_name(path)[1] for path in self.given)
        self.roots = tuple(dict.fromkeys((*roots, *own)))
        """The folders in which absolute imports are looked up."""
        self.bounds = self.roots if bounds is None else tuple(dict.fromkeys(bounds))
        """The folders outside of which nothing is read but what is given."""
        self.finder = Finder(self.bounds)
        self._data: dict[str, bytes | Failure] = {}
        self._sources: dict[str, Source | Failure] = {}
        self._digests: dict[str, str] = {}
        self._all: tuple[str, ...] | None = None
        self._answers: dict[str, str] = {}
        self._imports: dict[str, tuple[str, ...]] = {}
        self._words_of: dict[str, frozenset[str]] = {}
        self._texts: dict[str, str] = {}

    def changed(self, contents: Mapping[str, bytes]) -> Files:
        """The same files with other contents in some; nothing is written."""
        other = Files(self.given, self.roots, self.bounds)
        other.finder = self.finder
        other._data = {**self._data, **contents}
        other._sources = {k: v for k, v in self._sources.items() if k not in contents}
        other._imports = {k: v for k, v in self._imports.items() if k not in contents}
        other._words_of = {k: v for k, v in self._words_of.items() if k not in contents}
        other._texts = {k: v for k, v in self._texts.items() if k not in contents}
        return other

    def data(self, path: str) -> bytes:
        """The content of a file; a Failure if it cannot be read."""
        found = self._data.get(path)
        if found is None:
            try:
                found = read_bytes(path, shown_path(path))
            except Failure as failure:
                found = failure
            self._data[path] = found
        if isinstance(found, Failure):
            raise Failure(*found.diagnostics)
        return found

    def digest(self, path: str) -> str:
        """What stands for the content of a file."""
        found = self._digests.get(path)
        if found is None:
            try:
                found = blake2b(self.data(path), digest_size=16).hexdigest()
            except Failure as failure:
                found = f"unread: {failure}"
            self._digests[path] = found
        return found

    def source(self, path: str) -> Source:
        """A file as a module's text and tree; a Failure if it is not Python."""
        found = self._sources.get(path)
        if found is None:
            try:
                found = from_bytes(shown_path(path), self.data(path))
            except Failure as failure:
                found = failure
            self._sources[path] = found
        if isinstance(found, Failure):
            raise Failure(*found.diagnostics)
        return found

    @functools.cached_property
    def texts(self) -> list[FileText]:
        """All files, as far as their texts go."""
        return [FileText(self, path) for path in self.all() if not is_language(path)]

    def texts_with(self, *words: str) -> list[FileText]:
        """The files in which one of some words occurs."""
        found = {path for word in words for path in self.mentioning(word)}
        return [each for each in self.texts if each.path in found]

    @functools.cached_property
    def captures(self) -> Captures:
        """What these files write of each other."""
        return Captures(lambda: self.texts)

    def mentioning(self, name: str) -> tuple[str, ...]:
        """The files in which a name occurs, in order: only these can write what it stands for."""
        return tuple(self._words.get(name, ()))

    @functools.cached_property
    def _words(self) -> dict[str, list[str]]:
        """The files in which each word occurs."""
        found: dict[str, list[str]] = {}
        for path in self.all():
            words = self._words_of.get(path)
            if words is None:
                words = frozenset(WORD.findall(self.searched(path)))
                self._words_of[path] = words
            for word in words:
                found.setdefault(word, []).append(path)
        return found

    def answer_to(self, question: str) -> str:
        """What stands for the answer to a question about all files; it changes if the answer does.

        A word asks for the files in which it occurs, and for their content; `module NAME` for the
        files of a module and of those in it, not for their content; `file PATH` for the content of
        one; `stored NAME` for the files that may store an attribute of this name, `patching *` for
        those that may store attributes of anything but `self`.
        """
        if question not in self._answers:
            self._answers[question] = self._answer_to(question)
        return self._answers[question]

    def _answer_to(self, question: str) -> str:
        kind, _, argument = question.partition(" ")
        if kind in ("stored", "patching") and argument:
            stored = kind == "stored"
            texts = storing(self.texts_with, argument) if stored else patching(self.texts)
            parts = [f"{each.place}\0{self.digest(each.path)}" for each in texts]
        elif not argument:
            parts = [f"{path}\0{self.digest(path)}" for path in self.mentioning(question)]
        elif kind == "file":
            parts = [self.digest(resolved(argument))]
        else:
            names = ((module_name(path)[0], path) for path in self.all())
            parts = [path for name, path in names if f"{name}.".startswith(f"{argument}.")]
        text = "\0".join(parts).encode(errors="surrogateescape")
        return blake2b(text, digest_size=16).hexdigest()

    def all(self) -> tuple[str, ...]:
        """The files given and those that they import, directly or not, as far as can be told.

        What is imported is read off the text: a file that is not needed is never parsed.  What the
        implementation of the language imports does not matter, because it writes to no program.
        """
        if self._all is None:
            found = dict.fromkeys(self.given)
            waiting = list(self.given)
            while waiting and len(found) < _MOST_FILES:
                path = waiting.pop()
                if is_language(path):
                    continue
                imported = self._imports.get(path)
                if imported is None:
                    imported = self._imports[path] = tuple(dict.fromkeys(self._imported(path)))
                for other in imported:
                    if other not in found:
                        found[other] = None
                        waiting.append(other)
            self._all = tuple(found)
        return self._all

    def searched(self, path: str) -> str:
        """The text of a file as it is searched for names; nothing if there is none."""
        found = self._texts.get(path)
        if found is None:
            found = self._texts[path] = self._searched(path)
        return found

    def _searched(self, path: str) -> str:
        try:
            data = self.data(path)
            if path.endswith(".ipynb"):
                return searchable("\n".join(cell.text for cell in code_cells(data)))
        except (Failure, NotANotebook):
            return ""
        return searchable(decode(data))

    def _imported(self, path: str) -> Iterator[str]:
        text = self.searched(path)
        own = (module_name(path)[1], *self.roots)
        for found in _FROM.finditer(text):
            dots, base, names = found.groups()
            folder = os.path.dirname(path)
            for _ in dots[1 : _MOST_PARTS + 1]:
                folder = os.path.dirname(folder)
            folders = (folder,) if dots else own
            tails = [name.split()[0] for name in names.strip("()").split(",") if name.split()]
            for tail in ["", *tails]:
                yield from self._named(".".join(part for part in (base, tail) if part), folders)
        for found in _IMPORT.finditer(text):
            for name in found[1].split(","):
                yield from self._named((name.split() or [""])[0], own)

    def _named(self, name: str, folders: Sequence[str]) -> Iterator[str]:
        """The files of a module and of the packages it lies in."""
        parts = name.split(".", _MOST_PARTS)[:_MOST_PARTS]
        for count in range(1, len(parts) + 1):
            found = self.finder.find(absolute(".".join(parts[:count]), folders))
            if found is not None and found.file is not None:
                yield found.file
