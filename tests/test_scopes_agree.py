"""A kernel read from source and the same kernel loaded give the same typed program."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pscdsl.frontend.check import find_kernels
from pscdsl.frontend.definitions import Definition, Excluded
from pscdsl.frontend.project import Project
from pscdsl.frontend.source import Source
from pscdsl.kernel import Kernel
from pscdsl.typing.signatures import Choice
from pscdsl.verify import verify

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*(ROOT / "stdlib").glob("*.py"), *(ROOT / "examples").glob("*.py")])


def load(path: Path) -> ModuleType:
    """Import a file by its path, library modules under their own names."""
    if path.parent.name == "stdlib":
        return importlib.import_module(f"pscdsl.stdlib.{path.stem}")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def definitions(path: Path) -> Iterator[tuple[str, Definition]]:
    """The kernels of a file, from its source alone."""
    project = Project()
    yield from find_kernels(project.add(Source.read(str(path)), str(path)), [])


def program(definition: Definition, choice: Choice) -> str:
    """The typed program as text, or why there is none."""
    try:
        function = definition.instance(choice)
    except Excluded as excluded:
        return excluded.finding.message()
    verify(function)
    return str(function)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_static_and_loaded_programs_agree(path: Path) -> None:
    module = load(path)
    for name, static in definitions(path):
        kernel = getattr(module, name)
        assert isinstance(kernel, Kernel)
        loaded = kernel.definition
        assert str(static.signature) == str(loaded.signature)
        for choice in static.signature.choices() or []:
            assert program(static, choice) == program(loaded, choice), (name, str(choice))
