"""The files of one check: those given, those they may import, and their contents.

Each is read once, so that all findings refer to the same content, and parsed when needed.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pscdsl._src.frontend.text.display import NotANotebook, code_cells, decode
from pscdsl._src.frontend.text.source import Source, from_bytes, read_bytes, searchable, shown_path
from pscdsl._src.support.paths import Refused, inside, inside_any, real, resolved
from pscdsl._src.support.tracebacks import FOLDER, JAX_PACKAGES, LIBRARY
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.frontend.captures.writes import Writes

# The search for modules: Python's own, in the folders that a check may read.
#
# A search starts in some folders and follows the parts of a dotted name. A package with an
# `__init__.py` ends it in that folder, then a module; folders without one are portions of a
# namespace package. An extension module (`x.so`) hides a source file of the same name, because its
# contents are unknown.


_PACKAGE = os.path.realpath(FOLDER) + os.sep
LIBRARY_NAME = "pscdsl.stdlib"
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
    """Return whether a file belongs to the language's implementation, which is never modified."""
    return path.startswith(_PACKAGE) and not path.startswith(os.path.join(LIBRARY, ""))


class Finder:
    """Finds modules; each folder is listed once."""

    def __init__(self, bounds: Sequence[str]) -> None:
        self.bounds = tuple(filter(None, map(real, (*bounds, LIBRARY, JAX_PACKAGES))))
        """Nothing outside of these folders is found, also not through links."""
        self._listings: dict[str, _Listing] = {}
        self._answers: dict[Question, Found | None] = {}

    def find(self, question: Question) -> Found | None:
        """Return the module that a name refers to; None if there is no such module."""
        if question not in self._answers:
            self._answers[question] = self._search(question)
        return self._answers[question]

    def asked(self) -> frozenset[Question]:
        """Return all that was looked for."""
        return frozenset(self._answers)

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
        cached = self._listings.get(folder)
        if cached is None:
            cached = self._listings[folder] = _Listing(folder)
        return cached


class _Listing:
    """The files and folders in a folder that can be modules."""

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
    """Return the full name of a module's file, and the folder of its outermost package."""
    folder, base = os.path.split(resolved(path))
    stem = os.path.splitext(base)[0]
    if folder == LIBRARY:
        return f"{LIBRARY_NAME}.{stem}", folder
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        if not name:
            break
        parts.insert(0, name)
    return ".".join(parts), folder


def absolute(name: str, folders: Sequence[str]) -> Question:
    """Return the search for a module by its full name; our own library has a special place."""
    head, _, rest = name.partition(f"{LIBRARY_NAME}.")
    return Question((LIBRARY,), rest) if rest and not head else Question(tuple(folders), name)


# Possessive: a part never gives back matched text, so that each line is read once.
_FROM = re.compile(
    r"^[ \t]*+from(?=[ \t.])[ \t]*+(\.*+)([\w.]*+)[ \t]*+import\b[ \t]*+(\([^()]*+\)|[^\n;#(]*+)",
    re.M,
)
_IMPORT = re.compile(r"^[ \t]*+import[ \t]++([^\n;#]++)", re.M)
_MOST_PARTS = 100
"""The most parts of a module's name; no file has a longer one."""
_MOST_FILES = 5_000
WORD = re.compile(r"[^\W\d]\w*")
_PATCHERS = frozenset("setattr delattr patch __dict__ vars".split())
_STORE = re.compile(r"(?<!\bself)(?<!\bcls)\.[^\W\d]\w*\s*+(?:[^\w\s=!<>()]{1,2})?=(?!=)|\bdel\b")
_PATCHES = "="
"""Marks, among the words of a file, that it may store attributes of imported modules."""


class FileText:
    """The text of a file of the project, parsed when its tree is needed."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path
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
        return self.files.place(self.path)

    @property
    def module(self) -> str:
        """The module's full name."""
        if not self._module:
            self._module = module_name(self.path)[0]
        return self._module

    @property
    def is_package(self) -> bool:
        """Return whether it is the `__init__.py` of a package."""
        return os.path.basename(self.path) == "__init__.py"


MARKS = ("pscdsl", "writes")
"""Words that matter wherever they occur: the language, and the option of kernels that write."""
LANGUAGE = MARKS[0]


@dataclass(frozen=True)
class FileFacts:
    """The facts that an earlier check found about a file that has not been written since."""

    imports: tuple[str, ...]
    """The files that it imports."""
    marks: tuple[str, ...]
    """The members of `MARKS` that occur in it."""
    written: tuple[tuple[str, str], ...]
    """The names that it writes, and a digest of the writes of each."""
    consulted: tuple[str, ...]
    """The files that determine the meanings of its names, directly or not."""


_Analysis = TypeVar("_Analysis")


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
        """The folders outside of which only given files are read."""
        self.dialect = "auto"
        """The setting that says which files are checked as JAX programs."""
        self.further: tuple[str, float] | None = None
        """The module whose `completed` adds to the result of each file, and its seconds."""
        self.finder = Finder(self.bounds)
        self._data: dict[str, bytes | Failure] = {}
        self._sources: dict[str, Source | Failure] = {}
        self._digests: dict[str, str] = {}
        self._all: tuple[str, ...] | None = None
        self._answers: dict[str, str] = {}
        self.facts: Mapping[str, FileFacts] = {}
        """Known facts about files that need not be read, by path."""
        self._imports: dict[str, tuple[str, ...]] = {}
        self._words_of: dict[str, frozenset[str]] = {}
        self._texts: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._analyses: dict[Callable[..., Any], Any] = {}

    def analysis(self, kind: Callable[[Files], _Analysis]) -> _Analysis:
        """Return the one analysis of a kind of these files, made when it is first needed."""
        found: _Analysis | None = self._analyses.get(kind)
        if found is None:
            found = self._analyses[kind] = kind(self)
        return found

    def knows(self, path: str) -> bool:
        """Return whether a file was given or read."""
        return path in self._data or path in self.given

    def changed(self, contents: Mapping[str, bytes], reread: Iterable[str] = ()) -> Files:
        """Return these files with other contents in some; nothing is written to disk.

        The files in `reread` are read from disk again.
        """
        other = Files((), self.roots, self.bounds)
        other.given = self.given  # whose roots are known
        other.dialect = self.dialect
        other.finder = self.finder
        other._data = {**self._data, **contents}
        other._places = self._places
        for path in reread:
            other._data.pop(path, None)
        stale = {*contents, *reread}
        other._sources = {k: v for k, v in self._sources.items() if k not in stale}
        other._imports = {k: v for k, v in self._imports.items() if k not in stale}
        other._words_of = {k: v for k, v in self._words_of.items() if k not in stale}
        other._texts = {k: v for k, v in self._texts.items() if k not in stale}
        if all(other._imported_by(path) == self._imported_by(path) for path in stale):
            other._all = self._all
            if "_words" in vars(self):
                other._words = other._reindexed(self, stale)
        return other

    def _reindexed(self, before: Files, stale: Iterable[str]) -> dict[str, list[str]]:
        """Return the files in which each word occurs, updated from an earlier index."""
        found = dict(before._words)
        order = {path: place for place, path in enumerate(self.all())}
        for path in order.keys() & set(stale):
            old = before._words_of.get(path, frozenset())
            new = self._words_in(path)
            for word in old - new:
                found[word] = [each for each in found[word] if each != path]
            for word in new - old:
                found[word] = sorted((*found.get(word, ()), path), key=order.__getitem__)
        return found

    def place(self, path: str) -> str:
        """Return the path by which findings name a file."""
        found = self._places.get(path)
        if found is None:
            found = self._places[path] = shown_path(path)
        return found

    def data(self, path: str) -> bytes:
        """Return the content of a file; a Failure if it cannot be read."""
        found = self._data.get(path)
        if found is None:
            try:
                found = read_bytes(path, self.place(path))
            except Failure as failure:
                found = failure
            self._data[path] = found
        if isinstance(found, Failure):
            raise Failure(*found.diagnostics)
        return found

    def digest(self, path: str) -> str:
        """Return a digest of the content of a file."""
        found = self._digests.get(path)
        if found is None:
            try:
                found = blake2b(self.data(path), digest_size=16).hexdigest()
            except Failure as failure:
                found = f"unread: {failure}"
            self._digests[path] = found
        return found

    def source(self, path: str) -> Source:
        """Return a file as a module's text and tree; a Failure if it is not Python."""
        found = self._sources.get(path)
        if found is None:
            try:
                found = from_bytes(self.place(path), self.data(path))
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

    @functools.cached_property
    def writes(self) -> Writes:
        """The writes of these files to each other's names."""
        from pscdsl._src.frontend.captures.writes import Writes  # which known results do not need

        return Writes(self)

    def imported_by(self, path: str | None, name: str, level: int) -> Found | None:
        """Return the module that an import in a file names."""
        if level:
            if path is None:
                return None
            folder = os.path.dirname(path)
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            if name:
                return self.finder.find(Question((folder,), name))
            above, base = os.path.split(folder)
            found = self.finder.find(Question((above,), base))
            return found if found and found.folders == (folder,) else Found(None, (folder,))
        own = () if path is None else (module_name(path)[1],)
        return self.finder.find(absolute(name, tuple(dict.fromkeys((*own, *self.roots)))))

    def inside(self, package: Found, name: str) -> Found | None:
        """Return a module in a package."""
        return self.finder.find(Question(package.folders, name)) if package.folders else None

    def writing(self, question: str) -> list[str]:
        """Return the files that may hold the writes that a question asks for; see `answer_to`."""
        kind, _, name = question.partition(" ")
        marks = (name, _PATCHES) if kind == "patches" else (name,)
        if not self.facts:
            found = self.mentioning(name)
            return [path for path in found if self._words_of[path].issuperset(marks)]
        return [
            path
            for path in self.all()
            if (
                any(asks(question, written) for written, _ in self.facts[path].written)
                if path in self.facts
                else self._words_in(path).issuperset(marks)
            )
        ]

    def mentioning(self, name: str) -> tuple[str, ...]:
        """Return the files in which a name occurs, in order: no other file can write to it."""
        return tuple(self._words.get(name, ()))

    def marked(self, mark: str) -> list[str]:
        """Return the files in which one of `MARKS` occurs."""
        return [
            path
            for path in self.all()
            if mark in (self.facts[path].marks if path in self.facts else self._words_in(path))
        ]

    @functools.cached_property
    def with_kernels(self) -> bool:
        """Return whether a kernel may write to its arguments: a file has the word `writes`."""
        return bool(self.marked("writes"))

    @functools.cached_property
    def leading(self) -> frozenset[str]:
        """The files that may name kernels: they, or their imports, name the language."""
        importing: dict[str, list[str]] = {}
        for path in self.all():
            for other in self._imported_by(path):
                importing.setdefault(other, []).append(path)
        found = set(self.marked(LANGUAGE))
        waiting = [*found]
        while waiting:
            more = set(importing.get(waiting.pop(), ())) - found
            found |= more
            waiting.extend(more)
        return frozenset(found)

    def _words_in(self, path: str) -> frozenset[str]:
        words = self._words_of.get(path)
        if words is None:
            words = self._words_of[path] = _words(self.searched(path))
        return words

    @functools.cached_property
    def _words(self) -> dict[str, list[str]]:
        """The files in which each word occurs."""
        found: dict[str, list[str]] = {}
        for path in self.all():
            for word in self._words_in(path):
                found.setdefault(word, []).append(path)
        return found

    def answer_to(self, question: str) -> str:
        """Return a digest of the answer to a question about all files.

        `writes NAME` asks for the writes to variables of this name, `patches LIBRARY` for the
        stores to attributes of a library, `leads PATH` whether a file, or one of its imports, may
        name kernels.
        """
        if question.startswith("leads "):
            return str(question.removeprefix("leads ") in self.leading)
        if question not in self._answers:
            self._answers[question] = _digest(
                part
                for path in self.writing(question)
                for name, digest in self._written(path)
                if asks(question, name)
                for part in (path, name, digest)
            )
        return self._answers[question]

    def _written(self, path: str) -> Iterable[tuple[str, str]]:
        facts = self.facts.get(path)
        return self.writes.digests(path) if facts is None else facts.written

    def facts_of(self, path: str) -> FileFacts | None:
        """Return the facts about a file; None if its writes have not been asked for yet."""
        if path in self.facts:
            return self.facts[path]
        consulted = self.writes.consulted(path) if "writes" in vars(self) else None
        if consulted is None:
            return None
        words = self._words_in(path)
        written = tuple(
            (name, digest)
            for name, digest in self.writes.digests(path)
            if name in words or words.issuperset((name.partition(".")[0], _PATCHES))
        )
        marks = tuple(mark for mark in MARKS if mark in words)
        return FileFacts(self._imported_by(path), marks, written, consulted)

    def all(self) -> tuple[str, ...]:
        """Return the files given and their imports, direct or not, as far as they are known.

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
                for other in self._imported_by(path):
                    if other not in found:
                        found[other] = None
                        waiting.append(other)
            self._all = tuple(found)
        return self._all

    def _imported_by(self, path: str) -> tuple[str, ...]:
        """Return the files that one imports, as far as they are known."""
        imported = self._imports.get(path)
        if imported is None:
            facts = self.facts.get(path)
            found = dict.fromkeys(self._imported(path)) if facts is None else facts.imports
            imported = self._imports[path] = tuple(found)
        return imported

    def searched(self, path: str) -> str:
        """Return the text of a file as it is searched for names; empty if there is none."""
        cached = self._texts.get(path)
        if cached is None:
            cached = self._texts[path] = self._searched(path)
        return cached

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
        """Yield the files of a module and of the packages around it."""
        parts = name.split(".", _MOST_PARTS)[:_MOST_PARTS]
        for count in range(1, len(parts) + 1):
            found = self.finder.find(absolute(".".join(parts[:count]), folders))
            if found is not None and found.file is not None:
                yield found.file


def asks(question: str, name: str) -> bool:
    """Return whether a question about all files asks for the writes of a name."""
    kind, _, asked = question.partition(" ")
    return name.startswith(f"{asked}.") if kind == "patches" else name == asked


def _words(text: str) -> frozenset[str]:
    words = set(WORD.findall(text))
    if not words.isdisjoint(_PATCHERS) or _STORE.search(text):
        words.add(_PATCHES)
    return frozenset(words)


def _digest(parts: Iterable[str]) -> str:
    text = "\0".join(parts).encode(errors="surrogateescape")
    return blake2b(text, digest_size=16).hexdigest()


# The files of a check, and the folders that they may import from, for the paths that are given.
#
# The given paths are trusted; their contents are not: links must not lead out of them, folders that
# cannot be listed are reported, and the search is bounded.


SUFFIXES = (".py", ".ipynb")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "build", "dist"})
MOST_ENTRIES = 1_000_000
"""The most names that are examined below a given folder."""
MOST_FILES = 50_000
DEEPEST = 100
"""The most folders in each other: the system's work for a path grows with its length."""

Excluded = Callable[[str], bool]


def _none(path: str) -> bool:
    del path
    return False


def files_below(
    paths: Sequence[Path | str], excluded: Excluded | None = None, *, settled: bool = False
) -> Files:
    """Return the files to check, given directly or by folders, without the excluded ones.

    If `settled`, the paths are resolved ones: a path that leads elsewhere by now is refused.
    """
    leave_out = excluded or _none
    found = python_files(paths, leave_out, settled=settled)
    ends = (real(path) or os.path.abspath(path) for path in found)
    given = [path for path in ends if not leave_out(path)]
    return Files(given, _roots(paths), _bounds(paths))


def python_files(
    paths: Sequence[Path | str], excluded: Excluded, *, settled: bool = False
) -> Iterator[str]:
    """Yield the files to check; links that lead out of a folder are not followed.

    A folder that cannot be listed is yielded, too: reading it reports the problem.
    """
    for given in dict.fromkeys(map(str, paths)):
        root = real(given)
        if settled and root != given:
            raise Refused(f"{given} has been changed while it was looked at")
        if root is None or not os.path.isdir(root):
            yield given
            continue
        if root == os.path.dirname(root):
            raise Refused(f"{root} is the whole file system: name the folders with the sources")
        for file in _below(root, excluded):
            end = real(file)
            if end is not None and inside(end, root):
                if end.endswith(SUFFIXES) or not os.path.exists(end):
                    yield file


def _below(root: str, excluded: Excluded) -> Iterator[str]:
    """Yield the names below a folder that may be sources, a folder's own before its folders'."""
    waiting = [root]
    seen = files = 0
    most_parts = root.count(os.sep) + DEEPEST
    while waiting:
        folder = waiting.pop()
        if folder.count(os.sep) > most_parts:
            raise Refused(_too_much(root, f"{DEEPEST} folders in each other"))
        inner: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_ENTRIES:
                        raise Refused(_too_much(root, f"{MOST_ENTRIES:,} files and folders"))
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(entry.name)
                    elif entry.name.endswith(SUFFIXES):
                        names.append(entry.name)
        except FileNotFoundError:  # removed since
            continue
        except OSError:
            yield folder
            continue
        files += len(names)
        if files > MOST_FILES:
            raise Refused(_too_much(root, f"{MOST_FILES:,} files of Python"))
        yield from (os.path.join(folder, name) for name in sorted(names))
        within = [os.path.join(folder, name) for name in sorted(inner) if _wanted(name)]
        waiting.extend(path for path in reversed(within) if not excluded(path))


def _wanted(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED_FOLDERS


def _too_much(root: str, what: str) -> str:
    return f"more than {what} below {root}: name the folders with the sources"


def _roots(paths: Sequence[Path | str]) -> Iterator[str]:
    """Yield the roots of modules' names: the given folders, their `src`, and the current one.

    A file's own root comes with the file.
    """
    here = os.getcwd()
    for path in map(real, map(str, paths)):
        if path is None:
            continue
        if inside(path, here):
            yield from _with_src(here)
        if os.path.isdir(path):
            yield from _with_src(module_name(os.path.join(path, "x.py"))[1])


def _with_src(folder: str) -> Iterator[str]:
    yield folder
    inner = real(os.path.join(folder, "src"))
    if (
        inner is not None
        and inside(inner, folder)
        and os.path.isdir(inner)
        and not os.path.isfile(os.path.join(inner, "__init__.py"))
    ):
        yield inner


def _bounds(paths: Sequence[Path | str]) -> Iterator[str]:
    """Yield the folders outside of which nothing is read: the given and the current one above them.

    A file contributes the outermost package around it, or its folder.
    """
    here = os.getcwd()
    for path in map(real, map(str, paths)):
        if path is None:
            continue
        if inside(path, here):
            yield here
        yield path if os.path.isdir(path) else _package(os.path.dirname(path))


def _package(folder: str) -> str:
    """Return the outermost package around a folder in the repository; otherwise the folder."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if not os.path.isfile(os.path.join(folder, "__init__.py")) or not os.path.isfile(
            os.path.join(above, "__init__.py")
        ):
            break
        folder = above
    return folder
