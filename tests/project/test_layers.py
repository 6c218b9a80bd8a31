"""The arrows between the layers, read from the imports of every module."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pscdsl as psc
from pscdsl import f32

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pscdsl"


@dataclass(frozen=True)
class Import:
    """One import at run time: who imports what."""

    module: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def _modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package, those behind the two links included."""
    for folder in (PACKAGE, *(PACKAGE / name for name in ("typing", "stdlib"))):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if folder is PACKAGE and parts[1] in {"typing", "stdlib"}:
                continue  # some versions of rglob follow links
            yield ".".join(part for part in parts if part != "__init__"), path


def _imports(module: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _at_run_time(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                yield Import(module, _module_of(base, alias.name), node.lineno)


def _at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield other
                yield from _at_run_time(other)
            continue
        yield child
        yield from _at_run_time(child)


def _module_of(base: str, name: str) -> str:
    """`from base import name` imports a submodule if there is one."""
    path = ROOT.joinpath(*base.split("."), name)
    return f"{base}.{name}" if path.is_dir() or path.with_suffix(".py").is_file() else base


@lru_cache(maxsize=1)
def _all() -> list[Import]:
    return [found for module, path in _modules() for found in _imports(module, path)]


def _part(module: str) -> str:
    """The room a module belongs to: `pscdsl._src.cli.check` to `cli`."""
    parts = [part for part in module.split(".") if part != "_src"]
    return parts[1] if len(parts) > 1 else parts[0]


def _ours(module: str) -> bool:
    return module.split(".")[0] == "pscdsl"


def test_there_is_something_to_look_at() -> None:
    assert {_part(module) for module, _ in _modules()} >= {"typing", "cli", "checker", "ir"}


def test_nothing_in_the_package_imports_the_standard_library() -> None:
    wrong = [i for i in _all() if _part(i.module) != "stdlib" and _part(i.target) == "stdlib"]
    assert not wrong, "\n".join(map(str, wrong))


def test_the_bare_folders_are_never_imported() -> None:
    wrong = [i for i in _all() if i.target.startswith(("typing.", "stdlib"))]
    assert not wrong, "\n".join(map(str, wrong))


def test_typing_imports_nothing_above_it() -> None:
    """import-linter keeps the order of the rooms, but does not follow links to folders."""
    allowed = {"support", "typing"}
    found = [i for i in _all() if _part(i.module) == "typing" and _ours(i.target)]
    wrong = [i for i in found if _part(i.target) not in allowed]
    assert found
    assert not wrong, "\n".join(map(str, wrong))


def test_every_room_has_its_place_in_the_order() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = {each.strip("()").rpartition(".")[2] for each in contract["layers"]}
    rooms = {path.parent.name for path in (PACKAGE / "_src").glob("*/__init__.py")}
    assert rooms < layers
    assert not [path for path in (PACKAGE / "_src").glob("*.py") if path.name != "__init__.py"]


def test_users_see_what_is_theirs() -> None:
    code = "import pscdsl as psc, numpy as np; from pscdsl import f32\n"
    code += "k = psc.kernel(lambda x: x + 1); psc.grad(lambda x: x)\n"
    code += "import pscdsl.stdlib.linear\n"
    code += "shown = {n for n in dir(psc) if not n.startswith('__')}\n"
    code += "modules = {'arrays', 'debug', 'distributed', 'stdlib', 'typing'}\n"
    code += "assert shown == {*psc.__all__, *modules}, shown ^ {*psc.__all__, *modules}\n"
    code += "assert all(getattr(psc, n).__name__ == f'pscdsl.{n}' for n in modules)"
    assert _loaded(code)


def test_a_kernel_shows_what_the_reference_documents() -> None:
    page = (ROOT / "docs" / "reference" / "api" / "kernels.md").read_text(encoding="utf-8")
    members = page.partition("pscdsl.Kernel\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^ +- (\w+)$", members, re.M)

    @psc.kernel
    def kernel(x: f32) -> f32:
        return x

    assert sorted(documented) == [name for name in dir(kernel) if not name.startswith("_")]


def test_only_the_backend_imports_jaxlib() -> None:
    wrong = [
        found
        for found in _all()
        if found.target.split(".")[0] in {"jaxlib", "jax"} and _part(found.module) not in BACKEND
        if ".dialects.jax.packages." not in found.module  # which are read, and never imported
    ]
    assert not wrong, "\n".join(map(str, wrong))


BACKEND = {"interop", "kernels", "targets", "xla"}

PROGRAM = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return np.exp(x)
"""


def _loaded(code: str, *arguments: str) -> set[str]:
    """The modules that are loaded after running some code in a new interpreter."""
    code += "\nimport sys\nprint('loaded', *sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return set(out.splitlines()[-1].split())


def test_importing_the_package_loads_no_backend() -> None:
    assert not _loaded("import pscdsl") & {"jaxlib", "jax", "rich", "mypy"}


READING = {
    "pscdsl._src.frontend.interpreter.expressions",
    "pscdsl._src.ir.program",
    "pscdsl._src.primitives.elementwise",
    "pscdsl._src.transforms.simplify",
    "pscdsl.numpy.elementwise",
}
"""What kernels are read with, which is loaded when one has to be read."""


def test_making_kernels_loads_nothing_that_reads_them() -> None:
    code = "import pscdsl as psc; from pscdsl import f32, value_and_grad, vmap\n"
    code += "class Layer(psc.Record):\n    w: f32['n']\n"
    code += "psc.grad(psc.kernel(lambda x: x))"
    assert not _loaded(code) & (READING | {"pyrsistent"})


def test_every_public_name_is_there_whichever_module_was_loaded_first() -> None:
    code = (
        "import pscdsl._src.ir.primitive, pscdsl._src.kernels.kernel\n"
        "import pscdsl._src.kernels.lowered, types; import pscdsl as psc\n"
    )
    code += "kinds = {n: type(getattr(psc, n)) for n in psc.__all__}\n"
    code += "modules = {n for n in kinds if kinds[n] is types.ModuleType}\n"
    code += "assert modules == {'numpy', 'random', 'special', 'tree'}, modules\n"
    code += "assert set(psc.__all__) <= set(dir(psc))"
    assert _loaded(code)


def test_checking_loads_no_backend(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    code = "import sys; from pscdsl._src.cli import main; assert main(sys.argv[1:]) == 0"
    assert not _loaded(code, "check", str(program)) & {"jaxlib", "jax", "rich", "mypy"}
