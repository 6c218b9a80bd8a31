"""The kernels of a text, as the checker reads them."""

from __future__ import annotations

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source


def kernels_of(text: str, path: str = "program.py") -> dict[str, Definition]:
    """Return the kernels of a module by their names; nothing is loaded."""
    return dict(find_kernels(Project().add(Source(path, text), None), []))
