"""A kernel read from source and the same kernel loaded give the same typed program."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pscdsl._src.analysis.verify import verify
from pscdsl._src.checker.check import check_definition, check_source
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.kernels.kernel import Kernel
from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.signatures import Choice
from tests.support.literate import Program, programs
from tests.support.projects import module_of
from tests.support.share import some

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "stdlib").glob("*.py"), *(ROOT / "examples").glob("*.py")])


def load(path: Path) -> ModuleType:
    """Import a file by its path, library modules under their own names."""
    if path.parent.name == "stdlib":
        return importlib.import_module(f"pscdsl.stdlib.{path.stem}")
    name = path.stem
    return module_of(path, name)


def definitions(path: Path) -> Iterator[tuple[str, Definition]]:
    """The kernels of a file, from its source alone."""
    project = Project()
    yield from find_kernels(project.add(Source.read(str(path)), str(path)), [])


def program(definition: Definition, choice: Choice) -> str:
    """The typed program as text, without the name of the kernel, or why there is none."""
    try:
        function = definition.instance(choice)
    except Excluded as excluded:
        return excluded.finding.message()
    verify(function)
    return str(function).removeprefix(definition.signature.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_static_and_loaded_programs_agree(path: Path) -> None:
    module = load(path)
    for name, static in definitions(path):
        kernel = getattr(module, name)
        assert isinstance(kernel, Kernel)
        loaded = kernel.definition
        # A kernel made of others bears the name of the variable only where its text is read.
        renamed = replace(loaded.signature, name=static.signature.name)
        assert str(static.signature) == str(renamed)
        for choice in some(static.signature.choices() or [], 4, name):
            assert program(static, choice) == program(loaded, choice), (name, str(choice))


PURITY = ROOT / "tests" / "conformance" / "purity"
PROGRAMS = [
    pytest.param(program, id=f"{path.stem}: {program.name.rpartition(' - ')[2]}")
    for path in sorted(PURITY.glob("*.md"))
    if path.stem != "vouched"  # these functions are called once they are loaded
    for program in programs(path.read_text(encoding="utf-8"))
]
KNOWN_ONCE_LOADED = {
    "A constant read from the clock by the module",
    "Where and how the module was loaded",
    "Helper default time",
    "Record default time",
    "Record decorator",
    "Mixin record method",
    "Aug assign in if",
    "Aug assign in for",
    "Cond global env",
    "Cond global helper",
    "An array that the module changes by +=",
    "Module iter",
    "A module that changes itself before it is used",
    "A name that is bound twice at module level",
    "Module level generator",
    "An annotation's name is bound again in the factory",
}
"""What the text leaves open and a module that was loaded has decided."""


def errors(findings: Iterable[Diagnostic]) -> set[str]:
    """The codes of the errors among findings."""
    return {each.code for each in findings if each.severity is Severity.ERROR}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("case", PROGRAMS)
def test_purity_is_the_same_from_source_and_loaded(case: Program, tmp_path: Path) -> None:
    if case.name.rpartition(" - ")[2] in KNOWN_ONCE_LOADED:
        pytest.skip("known once it is loaded")
    path = tmp_path / f"purity_{tmp_path.name}.py"
    path.write_text(case.text, encoding="utf-8")
    try:
        module = load(path)
    except ImportError as missing:
        pytest.skip(str(missing))
    try:
        found: set[str] = set()
        for kernel in list(vars(module).values()):
            if isinstance(kernel, Kernel) and kernel.definition.closure.scope.module == path.stem:
                found |= errors(check_definition(kernel.definition)[0])
        written = errors(check_source(case.text, str(path)).diagnostics)
        if "PSC206" in written:  # what is loaded has the value: each call compares it
            assert "PSC206" not in found
        else:
            assert found == written
    finally:
        del sys.modules[path.stem]
