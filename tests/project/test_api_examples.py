"""The examples of the reference of the API: every entry has one, and every one is run.

An example is the section `Examples:` of a docstring, a session as Python shows it.  `numpy` is `np`
there and `pscdsl` is `psc`; the types of arrays, and the public names of the module that has the
entry, have their names.  Four digits are printed, and `…` stands for anything.

`--update-golden` writes what was printed into the docstrings.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import arrays, f32
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import ArrayType
from tests.project.test_site import ON_PAGES, members
from tests.support.documents import ROOT, Session, agrees, entries

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code]

SECTION = re.compile(r"^Examples:\n((?:(?:    .*)?\n)*(?:    .*)?)", re.MULTILINE)
WITH_JAX = "import jax"
"""Such examples are run by `tests/interop`."""


@dataclass(frozen=True)
class Entry:
    """An entry of the reference, with its docstring."""

    name: str
    path: Path
    docstring: ast.Constant

    @property
    def example(self) -> str | None:
        """The lines of the example; None if there is none."""
        found = SECTION.search(inspect.cleandoc(str(self.docstring.value)) + "\n")
        return None if found is None else textwrap.dedent(found[1]).strip("\n") + "\n"


def definitions(body: Sequence[ast.stmt]) -> dict[str, ast.stmt]:
    """The public functions, classes and aliases by their names; of overloads, the last."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            found[ast.unparse(node.target)] = node
    return {name: node for name, node in found.items() if name[0] != "_"}


def documented(name: str, path: Path, body: Sequence[ast.stmt], node: ast.stmt) -> Entry:
    """An entry for a definition, one statement of a body."""
    inside = node.body[0] if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
    found = inside or body[body.index(node) + 1]
    assert isinstance(found, ast.Expr), name
    assert isinstance(found.value, ast.Constant), name
    return Entry(name, path, found.value)


def homes() -> dict[str, str]:
    """The public names, each with the module that defines it."""
    found: dict[str, str] = {}
    for file, package in (("__init__.pyi", "pscdsl"), ("distributed.py", "pscdsl.distributed")):
        for node in ast.parse((ROOT / "pscdsl" / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {f"{package}.{each.name}": node.module for each in node.names}
    debug = [name for name in ON_PAGES if name.startswith("pscdsl.debug.")]
    return found | dict.fromkeys(debug, "pscdsl._src.language.debug")


HOMES = homes()


def file_of(module: str) -> Path:
    """The file with the docstrings of a module."""
    base = ROOT / module.replace(".", "/")
    files = (base.with_suffix(".pyi"), base.with_suffix(".py"), base / "__init__.py")
    return next(path for path in files if path.exists())


def entries_of(name: str) -> Iterator[Entry]:
    """The entries that the reference shows for a name on one of its pages."""
    home = HOMES.get(name, "pscdsl")
    path = file_of(name if home == "pscdsl" else home)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    known = definitions(body)
    if home != "pscdsl":
        known = {(short := name.rpartition(".")[2]): known[short]}
    package = name if home == "pscdsl" else name.rpartition(".")[0]
    for each, node in known.items():
        if isinstance(node, ast.AnnAssign) and home == "pscdsl":
            continue  # an alias of types, for signatures
        yield documented(f"{package}.{each}", path, body, node)
        if isinstance(node, ast.ClassDef):
            methods = definitions(node.body)
            for method in shown(f"{package}.{each}", methods):
                yield documented(f"{package}.{each}.{method}", path, node.body, methods[method])


def shown(name: str, methods: Iterable[str]) -> Iterable[str]:
    """The methods that the reference shows of a class: those that its page names, or all."""
    page = ON_PAGES.get(name)
    options = f"::: {name}\n    options:\n"
    named = page is not None and options in page.read_text("utf-8")
    return [each for each in members(name) if each in methods] if named else methods


ENTRIES = {name: [*entries_of(name)] for name in ON_PAGES}


def names_of(name: str) -> dict[str, Any]:
    """The names that an example knows."""
    known: dict[str, Any] = {"__name__": "__main__", "np": np, "psc": psc}
    known |= {each: value for each, value in vars(arrays).items() if each[0] != "_"}
    if name not in HOMES or HOMES[name] == "pscdsl":
        module = importlib.import_module(name)
        known |= {each: value for each, value in vars(module).items() if each[0] != "_"}
    return known


def printed(example: str, names: dict[str, Any]) -> str:
    """The example with the outputs that it has now."""
    session, module = Session(), ModuleType("session")
    session.names = vars(module)
    session.names.update(names, __name__="session")
    # Classes find the names of their module there, as those of Python's own sessions do.
    with np.printoptions(precision=4), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "session", module)
        return "".join(session.entry(lines) for lines in entries(example))


def printed_by_rule(example: str) -> str:
    """The same of an example that a rule of translation runs, with its operands x and y."""
    found: list[str] = []

    @psc.primitive
    def operation(x: f32["3"], y: f32["3"]) -> f32["3"]:
        return x + y

    @operation.translation
    def _(hlo: Any, x: Any, y: Any) -> Any:
        types = {"ArrayType": ArrayType, **vars(dtypes)}
        found.append(printed(example, {"np": np, "hlo": hlo, "x": x, "y": y, **types}))
        return x

    @psc.kernel
    def emitting(x: f32["3"], y: f32["3"]) -> f32["3"]:
        return operation(x, y)

    emitting.lower().text()
    return found[0]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_has_an_example(name: str) -> None:
    assert [entry.name for entry in ENTRIES[name] if entry.example is None] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_examples_print_what_they_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: dict[Entry, str] = {}
    known = names_of(name)
    for entry in ENTRIES[name]:
        if entry.example is not None and WITH_JAX not in entry.example:
            by_rule = entry.name.startswith("pscdsl.Hlo")
            found = printed_by_rule(entry.example) if by_rule else printed(entry.example, known)
            if not agrees(entry.example, found):
                wrong[entry] = found
    if update_golden:
        for entry in wrong:
            rewrite(name, entry, wrong[entry])
    else:
        assert not wrong, "\n".join(f"{entry.name}:\n{text}" for entry, text in wrong.items())


def rewrite(of: str, entry: Entry, found: str) -> None:
    """Write an example with its outputs into its docstring, wherever that is by now."""
    [entry] = [each for each in entries_of(of) if each.name == entry.name]
    lines = entry.path.read_text(encoding="utf-8").split("\n")
    margin = " " * entry.docstring.col_offset
    head = lines.index(margin + "Examples:", entry.docstring.lineno)
    end = head + 1
    while not lines[end] or lines[end].startswith(margin + "    "):
        end += 1
    while not lines[end - 1]:
        end -= 1
    lines[head + 1 : end] = textwrap.indent(found.rstrip("\n"), margin + "    ").split("\n")
    entry.path.write_text("\n".join(lines), encoding="utf-8")
