"""What type checkers say of kernels: nothing, unless something is wrong."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import typing
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from pyrsistent import PRecord, field

import pscdsl as psc
from pscdsl import Float, Key, Static, f32, i32
from pscdsl._src.xla.runtime import devices
from pscdsl.numpy.methods import NAMES
from pscdsl.typing.placements import ShapeSyntaxError
from tests.support.documents import ROOT, blocks
from tests.support.share import WHOLE

HERE = Path(__file__).parent / "type_surface"
PACKAGE = Path(psc.__file__).parent
PATH = [] if "site-packages" in PACKAGE.parts else [str(PACKAGE.parent)]

UNANNOTATED = """\
# pyright: standard
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def k(x: f32["t n"], h0: f32["n"]) -> tuple[f32["n"], f32["t n"]]:
    def step(h, x):
        h = np.tanh(h + x)
        return h, h

    def double(v):
        return v * 2

    h, hs = psc.scan(step, h0, x)
    y = psc.map(double, hs)
    z = psc.cond(h.sum() > 0, double, lambda v: v, h)
    w = psc.fori_loop(0, 3, lambda i, v: double(v), np.zeros(3))
    u = psc.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, double(s[1])), (0, z))
    s = psc.switch(u[0], [double, lambda v: v], w)
    return s[0] + y[0] + u[1].sum(), hs
"""

WRONG = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl.stdlib import newton


class Params(psc.Record):
    w: f32["h h"]


@psc.kernel
def k(p: Params, x: f32["n"], m: psc.Static[int] = 1) -> f32:
    return x.nothing  # both


def integer(p: Params) -> int:
    return p.w  # both


def store(x: f32["n"]) -> None:
    x[0] = "text"  # both


def single(x: f32["n"]) -> f32["n"]:
    return x, x  # pyright


p = Params(w=np.ones(2))
Params(v=np.ones(2))  # all
p.w = np.ones(3)  # all
k(np.ones(2), np.ones(2))  # all
k(p)  # all
k(p, np.ones(2), z=1)  # all
k(p, np.ones(2), m="one")  # both
k(p, None)  # pyright
k(p, "text")  # pyright
k(p, np.ones(2)).nothing  # both
psc.update(p.w, 0, 0, combine="divide")  # all


def lowest(p: Params) -> f32:
    found = newton.newton_cg(lambda p: np.sum(p.w * p.w), p)
    return found.params.w + found.params.nothing  # all
"""

PROJECT = ("first.py", "stdlib", "examples")
SETTINGS = next(
    block.text
    for block in blocks((ROOT / "docs" / "how-to" / "editors.md").read_text("utf-8"))
    if block.language == "toml" and "[tool.ty" in block.text
)

Found = dict[str, set[int]]


def _write(folder: Path, library: bool = WHOLE) -> list[str]:
    """Write the project of somebody who uses the language, and return the names of its files.

    `library` adds the standard library and the examples, which `make types` checks, too.
    """
    readme = blocks((ROOT / "README.md").read_text("utf-8"))
    first = next(block.text for block in readme if block.text.startswith("# first.py\n"))
    texts = {"first": first, "unannotated": UNANNOTATED, "wrong": WRONG}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    for path in HERE.glob("*.py"):
        shutil.copy(path, folder)
    if library:
        shutil.copytree(PACKAGE / "stdlib", folder / "stdlib", ignore=_CACHES)
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=_CACHES)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))


_CACHES = shutil.ignore_patterns("__pycache__", ".*")


def _expected(*checkers: str) -> set[int]:
    lines = enumerate(WRONG.splitlines(), 1)
    return {number for number, line in lines if line.endswith(tuple(f"# {c}" for c in checkers))}


def _run(*command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout or done.stderr
    return done.stdout or done.stderr


def _lines(places: Iterable[tuple[str, str]]) -> Found:
    found: Found = defaultdict(set)
    for file, line in places:
        found[file].add(int(line))
    return found


def test_pyright(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    include = _write(tmp_path)
    settings = {"typeCheckingMode": "strict", "extraPaths": PATH, "include": include}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable)
    out = _run(*command, folder=tmp_path)
    report = json.loads(out)
    assert report["summary"]["filesAnalyzed"] == len(include)
    places = (
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in report["generalDiagnostics"]
    )
    assert _lines(places) == {"wrong.py": _expected("pyright", "both", "all")}, out


MYPY = """\
strict = true
follow_imports = "silent"
scripts_are_modules = true

[[tool.mypy.overrides]]
module = "unannotated"
disallow_untyped_defs = false
disallow_untyped_calls = false

[[tool.mypy.overrides]]
module = ["scipy.*", "sklearn.*"]
ignore_missing_imports = true
"""


def test_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    include = _write(tmp_path)
    plugin = f'"{PACKAGE / "mypy_plugin.py"}"'
    (tmp_path / "pyproject.toml").write_text(
        SETTINGS.replace('"pscdsl.mypy_plugin"]', f"{plugin}]\nmypy_path = {PATH}\n{MYPY}"),
        encoding="utf-8",
    )
    for _ in range(2):  # from the sources, and with what it has stored
        out = _run(sys.executable, "-m", "mypy", *include, folder=tmp_path)
        places = re.findall(r"^(.*\.py):(\d+): error:", out, re.MULTILINE)
        assert _lines(places) == {"wrong.py": _expected("mypy", "both", "all")}, out


NEIGHBOURS = {
    "ty": (
        *("check", "--output-format=concise", "--extra-search-path=site"),
        f"--python={sys.executable}",
    ),
    "pyrefly": (
        *("check", "--output-format=min-text", "--search-path=.", "--site-package-path=site"),
        f"--site-package-path={sysconfig.get_path('purelib')}",
        f"--python-interpreter-path={sys.executable}",
    ),
    "zuban": ("check", "--extra-search-path=site", f"--python-executable={sys.executable}"),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours(name: str, tmp_path: Path) -> None:
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    checker = shutil.which(name, path=os.pathsep.join(places))
    if checker is None:
        pytest.skip(f"{name} is not installed")
    _write(tmp_path, library=True)
    shutil.copytree(PACKAGE, tmp_path / "site" / "pscdsl", ignore=_CACHES)  # as it is installed
    command = (checker, *NEIGHBOURS[name])

    def found(*files: str) -> Found:
        out = _run(*command, *files, folder=tmp_path, NO_COLOR="1")
        return _lines(re.findall(r"^(?:ERROR )?([\w/]+\.py):(\d+):", out, re.MULTILINE))

    assert not found("jaxtyped.py"), "without any settings"
    settings = SETTINGS.replace(
        '["pscdsl.arrays"]', '["pscdsl.arrays", "scipy.*"]'
    )  # it has no stubs
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    assert not found(*PROJECT)
    wrong = found("wrong.py")["wrong.py"]
    assert _expected("all") <= wrong <= _expected("pyright", "both", "all")


def test_ruff(tmp_path: Path) -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        pytest.skip("ruff is not installed")
    (tmp_path / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    pages = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    written = (block for page in pages for block in blocks(page.read_text("utf-8")))
    programs = [block.text for block in written if block.language == "py"]
    playground = ROOT / "docs" / "_site" / "playground" / "examples"
    programs += [path.read_text("utf-8") for path in playground.glob("*.py")]
    for number, text in enumerate(programs):
        (tmp_path / f"program_{number}.py").write_text(text, encoding="utf-8")
    assert _run(ruff, "check", "--no-cache", folder=tmp_path) == "All checks passed!\n"


def test_the_stub_has_every_operator_and_method() -> None:
    stub = ast.parse((PACKAGE / "arrays.pyi").read_text(encoding="utf-8"))
    classes = {each.name: each for each in stub.body if isinstance(each, ast.ClassDef)}
    surface = classes["Surface"].body
    declared = {each.name for each in surface if isinstance(each, ast.FunctionDef)}
    operators = {
        *(f"__{name}__" for name in (*devices.COMPARISONS, *devices.UNARY)),
        *(f"__{side}{name}__" for name in devices.ARITHMETIC for side in ("", "r", "i")),
    }
    assert not {*NAMES, *operators} - declared
    assert "Surface[Any]" in map(ast.unparse, classes["Array"].bases)


def test_the_same_file_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.plugins.type_surface import jaxtyped, kernels

    kernels.use()
    jaxtyped.use()
    assert capsys.readouterr().out


class Layer(psc.Record, dims="i o"):
    """A record with size parameters."""

    w: f32["o i"]


class Pair(NamedTuple):
    """A named tuple of arrays."""

    left: f32["n"]
    right: "f32['n'] | None" = None


class Scale(PRecord):  # type: ignore[type-arg]
    """A persistent record."""

    factor = field(type=f32["n"])


def annotated(
    a: f32["n d"],
    b: tuple[f32["n"], ...],
    c: f32["n"] | None,
    d: Annotated[f32["n"], "note"],
    e: Layer["d h"] | None,
    f: Static[int],
    g: "tuple[Layer['d h'], Float['*b n']]",
    h: f32["a shape, that is none"],
) -> i32: ...


def test_annotations_are_ordinary_types_at_run_time() -> None:
    hints = typing.get_type_hints(annotated, include_extras=True)
    assert hints["a"] is f32["n d"]
    assert hints["b"] == tuple[f32["n"], ...]
    assert hints["c"] == (None | f32["n"])
    assert isinstance(Layer["d h"], GenericAlias)
    assert hints["e"] == Layer["d h"] | None
    assert hints["g"] == tuple[Layer["d h"], Float["*b n"]]
    assert hints["return"] is i32
    assert repr(hints["a"]) == 'f32["n d"]'
    assert typing.get_type_hints(Pair)["right"] == f32["n"] | None
    with pytest.raises(ShapeSyntaxError):
        _ = hints["h"].dims


def test_element_types_are_dtypes_of_numpy() -> None:
    element: Any = f32
    assert np.dtype(element) == np.float32
    assert np.zeros(2, element).astype(i32).dtype == np.int32
    zero = element(0)
    assert type(zero) is np.float32
    assert element(np.arange(2)).dtype == np.float32
    with pytest.raises(TypeError, match="Float is not one NumPy dtype"):
        np.zeros(2, Float)
    with pytest.raises(TypeError, match="Key is not one NumPy dtype"):
        np.zeros(2, Key)


def test_instances_have_the_dtype_and_any_shape() -> None:
    single: Any = f32["n"]
    key: Any = Key
    assert isinstance(np.ones((2, 2), np.float32), single)
    assert isinstance(1.0, single)
    assert not isinstance(np.ones(2), single)
    assert not isinstance("text", single)
    assert isinstance(np.zeros(2, np.uint32), key)
    assert not isinstance(np.zeros(3, np.uint32), key)
    assert Scale(factor=np.ones((3, 2), np.float32)).factor.shape == (3, 2)
    with pytest.raises(TypeError):
        Scale(factor=np.ones(2))


def test_records_applied_to_sizes_are_the_record() -> None:
    layer = Layer["d h"](w=np.ones((2, 3)))
    assert isinstance(layer, Layer)
    assert layer.replace(w=np.zeros((2, 3))).w.sum() == 0
