"""Notebooks as lists of cells: the JSON document read as data, whatever is in it.

A place in a notebook is a cell and a line in it.  Its path is `FILE:cell NUMBER`, all cells counted
from 1, which is how editors and other linters write it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeGuard

SUFFIX = ".ipynb"
_CELL = re.compile(r"^(?P<file>.*\.ipynb):cell (?P<number>\d+)$", re.DOTALL)


class NotANotebook(Exception):
    """The document is not a notebook; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among all cells, and its text."""

    number: int
    text: str


def cell_path(path: str, number: int) -> str:
    """How the path of a place in a cell is written."""
    return f"{path}:cell {number}"


def split_cell(path: str) -> tuple[str, int | None]:
    """The file of a place, and the number of the cell if it is in a notebook."""
    found = _CELL.match(path)
    return (path, None) if found is None else (found["file"], int(found["number"]))


def code_cells(data: bytes) -> tuple[Cell, ...]:
    """The code cells of a notebook in order; none if its language is not Python."""
    document = _object(_parsed(data), "the document")
    if not isinstance(document.get("nbformat"), int) or document["nbformat"] < 4:
        raise NotANotebook("its format is older than version 4")
    if not _is_python(document):
        return ()
    cells = document.get("cells")
    if not _is_list(cells):
        raise NotANotebook("it has no list of cells")
    found: list[Cell] = []
    for number, item in enumerate(cells, 1):
        cell = _object(item, f"cell {number}")
        if cell.get("cell_type") == "code":
            found.append(Cell(number, _text(cell.get("source"), number)))
    return tuple(found)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError:
        raise NotANotebook("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotANotebook("it is not Unicode text") from None
    except ValueError as error:
        raise NotANotebook(f"it is not JSON ({error})") from None


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _object(value: object, what: str) -> dict[str, Any]:
    if not _is_object(value):
        raise NotANotebook(f"{what} is not an object")
    return value


def _text(source: object, number: int) -> str:
    """The text of a cell, which is written as one string or as its lines."""
    parts: list[Any] = source if _is_list(source) else [source]
    if not all(isinstance(part, str) for part in parts):
        raise NotANotebook(f"the source of cell {number} is not text")
    text = "".join(parts).encode(errors="surrogatepass").decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_python(document: dict[str, Any]) -> bool:
    """Whether a notebook's kernel runs Python; one that does not say so does."""
    metadata = document.get("metadata")
    if not _is_object(metadata):
        return True
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        entry = metadata.get(section)
        language = entry.get(key) if _is_object(entry) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython", "python3")
    return True
