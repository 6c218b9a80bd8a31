"""Small projects in a folder, for tests."""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pscdsl._src.checker.check import check_paths
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.text.display import split_cell

HEAD = "import pscdsl as psc\nfrom pscdsl import f32\n\n"


def kernel(expression: str, name: str = "f") -> str:
    """A kernel of one array."""
    return f'\n@psc.kernel\ndef {name}(x: f32["n"]) -> f32["n"]:\n    return {expression}\n'


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by their paths below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def module_of(path: Path, name: str | None = None) -> types.ModuleType:
    """Load a file as a module, which `sys.modules` has from then on."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(path: Path, text: str) -> Any:
    """Write a module and load it."""
    path.write_text(text, encoding="utf-8")
    return module_of(path)


def check(folder: Path, files: Mapping[str, str], *given: str) -> CheckResult:
    """Write the files and check those that are given, or all."""
    write(folder, files)
    return check_paths([folder / name for name in given] or [folder])


def codes(result: CheckResult) -> list[str]:
    """The codes that were found, with where."""
    found: list[str] = []
    for each in result.diagnostics:
        file, cell = split_cell(each.span.path)
        place = Path(file).name if cell is None else f"{Path(file).name}:{cell}"
        found.append(f"{each.code} {place}:{each.span.line}")
    return found


def notebook(*cells: str | Sequence[str], **metadata: object) -> str:
    """A notebook's document; a text is a code cell, a list of lines is one of Markdown."""
    made: list[dict[str, object]] = []
    for cell in cells:
        if isinstance(cell, str):
            lines = cell.splitlines(keepends=True)
            made.append({"cell_type": "code", "source": lines, "metadata": {}, "outputs": []})
        else:
            made.append({"cell_type": "markdown", "source": list(cell), "metadata": {}})
    document = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1)
