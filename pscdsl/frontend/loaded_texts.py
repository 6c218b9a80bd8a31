"""The texts of loaded modules, so that what they write is known when a kernel is called."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl.frontend.captures import Captures
from pscdsl.frontend.source import Source, runtime_source
from pscdsl.typing.diagnostics import Failure


@dataclass(frozen=True)
class LoadedText:
    """The text of a loaded module."""

    source: Source
    module: str
    is_package: bool = False


_TEXTS: dict[tuple[int, str], LoadedText] = {}
_BESIDE: dict[str, tuple[int, list[LoadedText]]] = {}
_CAPTURES: dict[str, Captures] = {}


def loaded_text(source: Source, name: str, is_package: bool = False) -> LoadedText:
    """A module's text under the name it was loaded by; the same object each time."""
    key = (id(source), name)
    if key not in _TEXTS:
        _TEXTS[key] = LoadedText(source, name, is_package)
    return _TEXTS[key]


def module_source(module: types.ModuleType) -> Source | None:
    """The source of a loaded module; None if it has none that can be read."""
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    try:
        return runtime_source(file, vars(module))
    except Failure:
        return None


def captures_beside(namespace: Mapping[str, Any]) -> Captures:
    """What guards the names of the modules that belong to the same project as a namespace."""
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
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not isinstance(module, types.ModuleType):
            continue
        if module.__dict__ is not namespace and not _belongs(os.path.realpath(file), root):
            continue
        if name.startswith("pscdsl.") and not name.startswith("pscdsl.stdlib."):
            continue  # the language itself
        source = module_source(module)
        if source is not None:
            found.append(loaded_text(source, name, hasattr(module, "__path__")))
    _BESIDE[root] = (len(sys.modules), found)
    return found


def _belongs(file: str, root: str) -> bool:
    if not file.startswith(os.path.join(root, "")):
        return False
    inner = file[len(root) :].split(os.sep)
    return not {"site-packages", "dist-packages"}.intersection(inner)
