"""A program in several files is the program in one: the same findings, the same typed program."""

from __future__ import annotations

import ast
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pscdsl._src.checker.check import check_paths
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.kernels.kernel import load_kernel
from tests.fuzz.laws import Broken, errors
from tests.fuzz.programs import Program

Group = list[ast.stmt]
PACKAGE, CAPTURED = "generated", "PSC206"
LIBRARIES = ("lower", "upper")
STYLES = ("from", "import", "alias", "renamed", "star", "relative", "relative module")


def groups_of(body: Sequence[ast.stmt]) -> Iterator[Group]:
    """Statements that stay together: a function with its rules for derivatives."""
    rest = list(body)
    while rest:
        group = [rest.pop(0)]
        first = group[0]
        if isinstance(first, ast.FunctionDef) and "psc.custom_" in _decorators(first):
            while rest and not re.search(rf"\b{first.name}\.def[jv]", _heading(group[-1])):
                group.append(rest.pop(0))
        yield group


def _decorators(node: ast.FunctionDef) -> str:
    return " ".join(map(ast.unparse, node.decorator_list))


def _heading(node: ast.stmt) -> str:
    return _decorators(node) if isinstance(node, ast.FunctionDef) else ast.unparse(node)


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    return set()


class _Elsewhere(ast.NodeTransformer):
    """Writes names as those of another module."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name as it is reached here."""
        if isinstance(node.ctx, ast.Load) and node.id in self.texts:
            return ast.parse(self.texts[node.id], mode="eval").body
        return node


def reached(style: str, module: str, names: list[str]) -> tuple[str, dict[str, str]]:
    """An import of some names of a module, and how they are written after it."""
    match style:
        case "from":
            return f"from {PACKAGE}.{module} import {', '.join(names)}", {}
        case "import":
            return f"import {PACKAGE}.{module}", {x: f"{PACKAGE}.{module}.{x}" for x in names}
        case "alias":
            return f"import {PACKAGE}.{module} as _{module}", {x: f"_{module}.{x}" for x in names}
        case "renamed":
            renamed = ", ".join(f"{x} as {x}_{module}" for x in names)
            return f"from {PACKAGE}.{module} import {renamed}", {x: f"{x}_{module}" for x in names}
        case "star":
            return f"from .{module} import *", {}
        case "relative":
            return f"from .{module} import {', '.join(names)}", {}
        case _:
            return f"from . import {module}", {x: f"{module}.{x}" for x in names}


def spread(text: str, rng: random.Random) -> dict[str, str]:
    """The files of a package that hold the parts of a module; `main.py` has the last ones."""
    tree = ast.parse(text)
    imports = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    groups = list(groups_of([each for each in tree.body if each not in imports]))
    last = len(groups) - 1  # often the main kernel is alone
    cuts = sorted((rng.randrange(last + 1), rng.choice((last, rng.randrange(last + 1)))))
    parts = [groups[: cuts[0]], groups[cuts[0] : cuts[1]], groups[cuts[1] :]]
    head = "\n".join(map(ast.unparse, imports))
    homes: dict[str, str] = {}
    files = {"__init__.py": ""}
    for module, part in zip((*LIBRARIES, "main"), parts, strict=True):
        statements = [statement for group in part for statement in group]
        mentioned = {
            node.id
            for statement in statements
            for node in ast.walk(statement)
            if isinstance(node, ast.Name)
        }
        lines, texts = [head], dict[str, str]()
        for other in LIBRARIES:
            names = sorted(name for name in mentioned if homes.get(name) == other)
            if names:
                line, written = reached(rng.choice(STYLES), other, names)
                lines.append(line)
                texts |= written
        homes |= {name: module for statement in statements for name in bound(statement)}
        moved = [_Elsewhere(texts).visit(statement) for statement in statements]
        lines += [ast.unparse(each) for each in moved]
        files[f"{module}.py"] = "\n".join(lines) + "\n"
    return files


def findings(result: CheckResult) -> Counter[tuple[str, str]]:
    """The findings of a check, but for where they are."""
    found: Counter[tuple[str, str]] = Counter()
    for each in result.diagnostics:
        message = re.sub(rf"\b({PACKAGE}\.)?(_?({'|'.join(LIBRARIES)})|main)\.", "", each.message())
        message = re.sub(rf"_({'|'.join(LIBRARIES)})\b", "", message)
        message = re.sub(r"\S+\.py:\d+(:\d+)?|line \d+", "…", message)
        found[each.code, message] += 1
    for key in [key for key in found if key[0] == CAPTURED]:
        del found[key]  # where it is found rests on the texts of files, to be on the safe side
        found[CAPTURED, ""] = 1
    return found


def agree(program: Program, rng: random.Random) -> bool:
    """Check a program in one file and in several; whether it is accepted in both."""
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder, "one"), Path(folder, "many")
        written = {one / PACKAGE / "main.py": ast.unparse(ast.parse(program.text)) + "\n"}
        files = spread(program.text, rng)
        written |= {many / PACKAGE / name: text for name, text in files.items()}
        for path, text in written.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shown = "\n".join(f"# {name}\n{text}" for name, text in files.items())
        alone, together = check_paths([one]), check_paths([many])
        if findings(alone) != findings(together):
            here = sorted((findings(alone) - findings(together)).elements())
            there = sorted((findings(together) - findings(alone)).elements())
            raise Broken(f"in one file {here}, in several {there}\n{shown}")
        states = [sorted((each.name, each.status) for each in x.kernels) for x in (alone, together)]
        if states[0] != states[1] and (CAPTURED, "") not in findings(alone):
            raise Broken(f"in one file {states[0]}, in several {states[1]}\n{shown}")
        if errors(alone):
            return False
        for name in sorted(name for name, _ in states[0]):
            compare(one, many, name, shown)
        return True


def compare(one: Path, many: Path, name: str, shown: str) -> None:
    """A Broken unless a kernel is the same typed program for all choices of its signature."""
    files = [
        next(path for path in sorted(folder.rglob("*.py")) if f"\ndef {name}(" in path.read_text())
        for folder in (one, many)
    ]
    kernels = [load_kernel(str(path), name).definition for path in files]
    if str(kernels[0].signature) != str(kernels[1].signature):
        raise Broken(f"`{name}` has another signature in several files\n{shown}")
    for choice in kernels[0].signature.choices() or ():
        texts: list[str] = []
        for kernel in kernels:
            try:
                texts.append(str(kernel.instance(choice)))
            except Excluded:
                texts.append("excluded")
        if texts[0] != texts[1]:
            raise Broken(f"`{name}` in one file:\n{texts[0]}\nin several:\n{texts[1]}\n{shown}")
