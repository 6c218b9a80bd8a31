"""From what was asked for to the files of a check, and the folders that they may import from.

What is given is trusted; what lies in it is not: links do not lead out of it, folders that cannot
be listed are told, and there is an end to how much is looked through.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.finding import module_name
from pscdsl._src.support.paths import Refused, inside, real

SUFFIXES = (".py", ".ipynb")
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "build", "dist"})
MOST_ENTRIES = 1_000_000
"""So many names are looked at below a folder that is given."""
MOST_FILES = 50_000
DEEPEST = 100
"""So many folders may lie in each other: what the system does for a path grows with its length."""

Excluded = Callable[[str], bool]


def _none(path: str) -> bool:
    del path
    return False


def files_below(
    paths: Sequence[Path | str], excluded: Excluded | None = None, *, settled: bool = False
) -> Files:
    """The files to check, given by themselves or by folders, but for those that are excluded.

    If `settled`, the paths are resolved ones: one that leads elsewhere by now is refused.
    """
    leave_out = excluded or _none
    found = python_files(paths, leave_out, settled=settled)
    ends = (real(path) or os.path.abspath(path) for path in found)
    given = [path for path in ends if not leave_out(path)]
    return Files(given, _roots(paths), _bounds(paths))


def python_files(
    paths: Sequence[Path | str], excluded: Excluded, *, settled: bool = False
) -> Iterator[str]:
    """The files to check; links that lead out of a folder are not followed.

    A folder that cannot be listed is among them: to read it is what tells that.
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
    """The names below a folder that may be sources, a folder's own before those of its folders."""
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
    """Folders that modules may be named from: those given, what lies in `src`, and the current one.

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
    """The folders outside of which nothing is read: those given, and the current one above them.

    A file brings the outermost package that it lies in, or its folder.
    """
    here = os.getcwd()
    for path in map(real, map(str, paths)):
        if path is None:
            continue
        if inside(path, here):
            yield here
        yield path if os.path.isdir(path) else _package(os.path.dirname(path))


def _package(folder: str) -> str:
    """The outermost package around a folder, but within the repository; else the folder itself."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if not os.path.isfile(os.path.join(folder, "__init__.py")) or not os.path.isfile(
            os.path.join(above, "__init__.py")
        ):
            break
        folder = above
    return folder
