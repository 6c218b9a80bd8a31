"""A typed, purely functional language for array kernels.

`__init__.pyi` lists the public names.  Each is loaded when it is first asked for, so that a program
that finds its compiled kernels on disk loads no more of the language than it uses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import get_data
from types import ModuleType

if sys.version_info < (3, 11):  # noqa: UP036  # a copy of the folder, which pip did not install
    raise ImportError(f"pscdsl needs Python 3.11 or later; this is Python {sys.version.split()[0]}")

from pscdsl._src.support.versions import require_python

require_python()
__version__ = "0.1.0"


def _listed(text: str) -> Iterator[tuple[str, str]]:
    """Each public name, and the module that it is from."""
    home = ""
    for line in text.splitlines():
        words = line.rstrip(",").split()
        if words[:1] == ["from"]:
            home, words = words[1], words[3:]
        if words[1:2] == ["as"]:
            yield words[0], home


_HOMES = dict(_listed((get_data(__name__, "__init__.pyi") or b"").decode()))
# A star takes no module that hides one of Python's, or that few programs use.
__all__ = sorted(_HOMES.keys() - {"arrays", "debug", "distributed", "stdlib", "typing"})  # pyright: ignore[reportUnsupportedDunderAll]


class _Package(ModuleType):
    """Keeps modules from taking the places of what they define: `pscdsl.kernel`, for one."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType) or _HOMES.get(name, __name__) == __name__:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home == __name__:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: object) -> None:
    """Add the magic `%psc` to a shell of IPython, at `%load_ext pscdsl`."""
    import_module(f"{__name__}._src.notebook.magics").load(shell)


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for name in globals() if name.startswith("__"))})
