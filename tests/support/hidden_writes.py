"""Writes that the text of no project shows, because names are computed."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def rebound(name: str, value: Any) -> Generator[None]:
    """Bind a name of a module to something else for a while, as in `rebound("a.b.name", 1)`."""
    module, _, last = name.rpartition(".")
    before = getattr(sys.modules[module], last)
    setattr(sys.modules[module], last, value)
    try:
        yield
    finally:
        setattr(sys.modules[module], last, before)


@contextmanager
def replaced_code(name: str, other: Any) -> Generator[None]:
    """Give a function the code of another one for a while."""
    function = _named(name)
    before = function.__code__
    function.__code__ = other.__code__
    try:
        yield
    finally:
        function.__code__ = before


def fill_cell(function: Any, value: Any) -> None:
    """Put another value into the first cell of a function."""
    function.__closure__[0].cell_contents = value


def write_item(name: str) -> None:
    """Write an array, and if it is a view, the array that it shows."""
    array = _named(name)
    base = array if array.base is None else array.base
    base[...] = 5.0


def _named(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(sys.modules[module], last)
