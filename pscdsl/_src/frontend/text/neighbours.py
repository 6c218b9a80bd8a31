"""Which loaded modules belong to the same project: those whose files lie in the same folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final


def file_of(namespace: Mapping[str, Any]) -> str | None:
    """The file of a module; None if it has none.

    Python's prompt runs in the names of the module that it is written in, which it leaves a file.
    """
    file = namespace.get("__file__")
    if not isinstance(file, str) or (namespace.get("__name__") == "__main__" and is_pythons(file)):
        return None
    return file


def root_of(namespace: Mapping[str, Any]) -> str:
    """The folder of a module's outermost package; its name if it has no file."""
    file = file_of(namespace)
    if file is None:
        return f"<{namespace.get('__name__')}>"
    folder = os.path.dirname(_real(file))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def loaded_beside(root: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The modules of Python below a folder, and that of a namespace, by their files.

    None of them is among installed packages, whose modules no project writes to.
    """
    found: dict[str, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("pscdsl.") and not name.startswith("pscdsl.stdlib."):
            continue  # the language itself
        file = file_of(getattr(module, "__dict__", {}))
        if file is not None and file.endswith(".py") and not is_installed(file):
            if module.__dict__ is namespace or _belongs(_real(file), root):
                found[file] = module
    return found


@lru_cache(maxsize=1 << 16)
def _real(file: str) -> str:
    """Where the file of a loaded module is; asked for thousands, whenever one more is loaded."""
    return os.path.realpath(file)


def _belongs(file: str, root: str) -> bool:
    if not file.startswith(os.path.join(root, "")):
        return False
    return is_installed(root) or not is_installed(file)


@lru_cache(maxsize=1 << 16)
def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package, or to Python itself."""
    return not _INSTALLED.isdisjoint(path.split(os.sep)) or is_pythons(path)


_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_LIBRARY: Final = os.path.dirname(os.path.realpath(os.__file__))


@lru_cache(maxsize=1 << 16)
def is_pythons(path: str) -> bool:
    """Whether a file belongs to the standard library."""
    inside, _, rest = _real(path).partition(os.path.join(_LIBRARY, ""))
    return not inside and bool(rest) and _INSTALLED.isdisjoint(rest.split(os.sep))
