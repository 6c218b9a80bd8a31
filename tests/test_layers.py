"""The arrows between the layers, read from the imports of every module."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pscdsl"

# What a part of the package may import, besides itself.  Imports under `if TYPE_CHECKING` are
# arrows of types only and do not count.
FOUNDATION = {"paths", "processes", "tracebacks", "typing"}
TYPED_PROGRAM = FOUNDATION | {
    "arrays",
    "builder",
    "elements",
    "cost",
    "descriptions",
    "evaluate",
    "forms",
    "hlo",
    "interpreters",
    "ir",
    "meanings",
    "narrowing",
    "numpy_dtypes",
    "primitive",
    "scalars",
    "show",
    "traffic",
    "verify",
}
PRIMITIVES = TYPED_PROGRAM | {"primitives"}
MIDDLE = PRIMITIVES | {
    "budgets",
    "caching",
    "configuration",
    "donation",
    "findings",
    "fingerprint",
    "frontend",
    "linearity",
    "lint",
    "numpy",
    "random",
    "records",
    "report",
    "special",
    "transforms",
    "trees",
    "xla",
}
ALLOWED: dict[str, set[str]] = {
    "typing": set(),
    "paths": set(),
    "tracebacks": set(),
    "processes": {"tracebacks"},
    "narrowing": set(),
    "forms": set(),
    "freezing": set(),
    "code_texts": set(),
    "pickling": set(),
    "rereading": {"frontend"},
    "report": FOUNDATION | {"code_texts"},
    "findings": FOUNDATION | {"report"},
    "configuration": FOUNDATION | {"findings", "report"},
    "ir": FOUNDATION | {"primitive", "show"},
    "hlo": FOUNDATION | {"ir"},
    "scalars": FOUNDATION | {"ir"},
    "primitive": TYPED_PROGRAM | {"hlo"},
    "primitives": TYPED_PROGRAM,
    "builder": PRIMITIVES,
    "interpreters": PRIMITIVES,
    "numpy": PRIMITIVES | {"random", "special"},
    "outside": set(),
    "random": PRIMITIVES | {"numpy", "outside"},
    "special": PRIMITIVES | {"numpy"},
    "linearity": PRIMITIVES,
    "donation": PRIMITIVES,
    "lint": PRIMITIVES,
    "transforms": PRIMITIVES,
    "caching": {"paths"},
    "fingerprint": PRIMITIVES,
    "recompilation": TYPED_PROGRAM | {"variant"},
    "xla": PRIMITIVES | {"caching", "containers", "fingerprint"},
    "budgets": MIDDLE,
    "code_content": set(),
    "traces": FOUNDATION | {"beside", "code_content", "elements", "numpy_dtypes"},
    "beside": set(),
    "containers": set(),
    "instances": {"containers", "typing"},
    "starts": MIDDLE | {"called", "containers", "traces"},
    "captured_state": {"tracebacks", "traces"},
    "constants": MIDDLE | {"errors", "freezing", "instances"},
    "frontend": MIDDLE | {"beside", "code_content", "code_texts", "freezing", "records", "traces"},
    "discover": MIDDLE,
    "interchange": TYPED_PROGRAM | {"xla"},
    "number_defaults": TYPED_PROGRAM | {"xla"},
    "boundary": TYPED_PROGRAM | {"instances", "interchange"},
    "default_arguments": MIDDLE | {"instances"},
    "direct": set(),
    "called": MIDDLE | {"boundary", "direct", "errors"},
    "checking": MIDDLE | {"pscdsl"},
    "custom": MIDDLE | {"custom_rules", "pickling", "traces"},
    "executables": MIDDLE | {"custom", "errors", "recompilation"},
    "variant": TYPED_PROGRAM,
    "custom_rules": MIDDLE,
    "custom_derivatives": MIDDLE | {"pickling", "rereading", "traces"},
    "call_sites": MIDDLE | {"code_texts"},
    "transformations": MIDDLE
    | {
        "call_sites",
        "custom",
        "custom_derivatives",
        "errors",
        "kernel",
        "pickling",
        "rereading",
        "traces",
    },
    "directional": MIDDLE
    | {"boundary", "errors", "executables", "kernel", "transformations", "variant"},
    "derived_programs": MIDDLE,
    "compile_all": MIDDLE | {"kernel", "lowered", "stand_ins"},
    "gradient_checks": MIDDLE | {"derived_programs", "directional", "errors", "transformations"},
    "errors": MIDDLE,
    "array_programs": MIDDLE | {"derived_programs"},
    "to_jax": MIDDLE | {"array_programs", "boundary", "derived_programs", "errors"},
    "choices": MIDDLE,
    "lowered": MIDDLE | {"boundary", "direct", "errors", "executables", "variant"},
    "stand_ins": TYPED_PROGRAM,
    "records": set(),
    "record_layouts": FOUNDATION | {"records"},
    "artefacts": TYPED_PROGRAM,
    "source_hash": MIDDLE,
    "exporting": MIDDLE
    | {"artefacts", "errors", "executables", "pscdsl", "source_hash", "stand_ins"},
    "loaded": MIDDLE
    | {"artefacts", "boundary", "called", "errors", "exporting", "loaded_to_jax", "record_layouts"},
    "loaded_to_jax": MIDDLE | {"boundary", "to_jax"},
    "kernel": MIDDLE
    | {"boundary", "called", "captured_state", "choices", "direct", "errors", "executables"}
    | {
        "exporting",
        "default_arguments",
        "lowered",
        "number_defaults",
        "pickling",
        "rereading",
        "starts",
        "to_jax",
        "traces",
    },
    "eager": MIDDLE
    | {
        "boundary",
        "call_sites",
        "errors",
        "executables",
        "instances",
        "interchange",
        "traces",
        "variant",
    },
    "tree": MIDDLE | {"boundary", "errors", "instances", "interchange"},
    "entry": {"pytest_plugin", "typeguard_plugin"},
    "pytest_plugin": MIDDLE,
    "cli": MIDDLE
    | {
        *{"artefacts", "checking", "choices", "discover", "executables"},
        *{"kernel", "loaded", "lowered", "pscdsl"},
    },
}


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
    """The part of the package a module belongs to: `pscdsl.cli.check` to `cli`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _ours(module: str) -> bool:
    return module.split(".")[0] == "pscdsl"


def test_there_is_something_to_look_at() -> None:
    assert {_part(module) for module, _ in _modules()} >= {"typing", "cli", "report", "ir"}


def test_nothing_in_the_package_imports_the_standard_library() -> None:
    wrong = [i for i in _all() if _part(i.module) != "stdlib" and _part(i.target) == "stdlib"]
    assert not wrong, "\n".join(map(str, wrong))


def test_the_bare_folders_are_never_imported() -> None:
    wrong = [i for i in _all() if i.target.startswith(("typing.", "stdlib"))]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_run_one_way(part: str) -> None:
    allowed = ALLOWED[part] | {part}
    wrong = [
        found
        for found in _all()
        if _part(found.module) == part
        and _ours(found.target)
        and _part(found.target) not in allowed
    ]
    assert not wrong, "\n".join(map(str, wrong))


def test_only_the_backend_imports_jaxlib() -> None:
    wrong = [
        found
        for found in _all()
        if found.target.split(".")[0] in {"jaxlib", "jax"} and _part(found.module) != "xla"
    ]
    assert not wrong, "\n".join(map(str, wrong))


PROGRAM = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return np.exp(x)
"""


def _loaded(code: str, *arguments: str) -> set[str]:
    """The packages and our parts that are loaded after running some code in a new interpreter."""
    code += "\nimport sys\nprint('loaded', *{name.split('.')[0] for name in sys.modules}, "
    code += "*{'.'.join(n.split('.')[:2]) for n in sys.modules if n.startswith('pscdsl.')})"
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


READING = {f"pscdsl.{part}" for part in ("frontend", "ir", "primitives", "transforms", "numpy")}
"""What kernels are read with, which is loaded when one has to be read."""


def test_making_kernels_loads_nothing_that_reads_them() -> None:
    code = "import pscdsl as psc; from pscdsl import f32, value_and_grad, vmap\n"
    code += "class Layer(psc.Record):\n    w: f32['n']\n"
    code += "psc.grad(psc.kernel(lambda x: x))"
    assert not _loaded(code) & (READING | {"pyrsistent"})


def test_every_public_name_is_there_whichever_module_was_loaded_first() -> None:
    code = (
        "import pscdsl.primitive, pscdsl.kernel, pscdsl.compile_all, types; import pscdsl as psc\n"
    )
    code += "kinds = {n: type(getattr(psc, n)) for n in psc.__all__}\n"
    code += "modules = {n for n in kinds if kinds[n] is types.ModuleType}\n"
    code += "assert modules == {'numpy', 'random', 'special', 'tree'}, modules\n"
    code += "assert set(psc.__all__) <= set(dir(psc))"
    assert _loaded(code)


def test_checking_loads_no_backend(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    code = "import sys; from pscdsl.cli import main; assert main(sys.argv[1:]) == 0"
    assert not _loaded(code, "check", str(program)) & {"jaxlib", "jax", "rich", "mypy"}
