"""The texts of loaded modules, so that what they write is known when a kernel is called."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl.frontend.captures import Captures
from pscdsl.frontend.source import Source, runtime_source, shown_path


class LoadedText:
    """The text of a loaded module, read and parsed when it is needed."""

    def __init__(self, module: types.ModuleType, file: str) -> None:
        self.module = module.__name__
        self.is_package = hasattr(module, "__path__")
        self.place = shown_path(file) if os.path.exists(file) else file
        self._file = file
        self._namespace = vars(module)
        self._source: Source | None = None

    @property
    def source(self) -> Source:
        """Its tree; a Failure if it is not Python."""
        if self._source is None:
            found = runtime_source(self._file, self._namespace)
            self._source = Source(self.place, "") if found is None else found
        return self._source

    @property
    def text(self) -> str:
        """Its text alone."""
        return "".join(linecache.getlines(self._file))


@dataclass(eq=False)
class TextOf:
    """The text of code whose source is at hand."""

    source: Source
    module: str
    is_package: bool = False

    @property
    def text(self) -> str:
        """Its text alone."""
        return self.source.text

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        return self.source.path


_BESIDE: dict[str, tuple[int, list[LoadedText]]] = {}
_CAPTURES: dict[str, Captures] = {}


def text_of(source: Source, name: str) -> TextOf:
    """A module as far as its text goes."""
    return TextOf(source, name, os.path.basename(source.path) == "__init__.py")


def loaded_text(module: types.ModuleType) -> LoadedText | None:
    """A loaded module's text; None if it is not written in Python."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    return LoadedText(module, file)


def captures_beside(namespace: Mapping[str, Any]) -> Captures:
    """What knows the writes in the modules that belong to the same project as a namespace."""
    root = _root(namespace)
    if root not in _CAPTURES:
        _CAPTURES[root] = Captures(lambda: _beside(root, namespace))
    return _CAPTURES[root]


def _root(namespace: Mapping[str, Any]) -> str:
    """The folder of a module's outermost package; its name if it has no file."""
    file = namespace.get("__file__")
    if not isinstance(file, str):
        return f"<{namespace.get('__name__')}>"
    folder = os.path.dirname(os.path.realpath(file))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _beside(root: str, namespace: Mapping[str, Any]) -> Sequence[LoadedText]:
    """The loaded modules whose files lie below a folder, and not among installed packages."""
    count, found = _BESIDE.get(root, (0, []))
    if count == len(sys.modules):
        return found
    texts: list[LoadedText] = []
    for name, module in list(sys.modules.items()):
        if name.startswith("pscdsl.") and not name.startswith("pscdsl.stdlib."):
            continue  # the language itself
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            if module.__dict__ is namespace or _belongs(os.path.realpath(file), root):
                text = loaded_text(module)
                texts += [] if text is None else [text]
    _BESIDE[root] = (len(sys.modules), texts)
    return texts


def _belongs(file: str, root: str) -> bool:
    if not file.startswith(os.path.join(root, "")):
        return False
    inner = file[len(root) :].split(os.sep)
    return not {"site-packages", "dist-packages"}.intersection(inner)
