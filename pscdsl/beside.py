"""Which loaded modules belong to the same project: those whose files lie in the same folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


def root_of(namespace: Mapping[str, Any]) -> str:
    """The folder of a module's outermost package; its name if it has no file."""
    file = namespace.get("__file__")
    if not isinstance(file, str):
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
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and not is_installed(file):
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
    """Whether a file belongs to an installed package."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))
