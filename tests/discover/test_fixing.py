"""`pscdsl discover --fix`: what is found is written into the files, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl._src.discover.fixing import fix
from pscdsl._src.discover.verdicts import discovered
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.kernels.kernel import load_kernel

PROGRAM = '''\
"""A module."""

from __future__ import annotations

import numpy as np

ONE = 1


def scale(A, s=2.0, *, flag: bool = False):  # scales
    # in place
    A *= s


def pooled(x, width=2):
    """The largest of each window."""

    return x.reshape(-1, width).max(axis=1)  # é


def filled(x,
           y = 3.0,  # why
          ) :
    z = np.zeros_like(x)
    z[0] = y
    return z


def short(x): return x + 1


def positive(x):
    return x[x > 0]


def calls(x, y):
    scale(x, 2.0)
    y[0] = 1.0
'''
WRITTEN = (
    "from typing import Literal\n",
    '@psc.kernel(writes="A")\ndef scale(A: Float["*batch"], s: Float = 2.0, *, flag: ',
    "-> None:  # scales\n    # in place\n",
    '    """The largest of each window."""\n    assert width >= 1\n',
    '           y: Float = 3.0,  # why\n          ) -> Float["*batch n"] :\n',
    '@psc.kernel(writes=("x", "y"))\ndef calls(',
    "\n\ndef short(x): return x + 1\n\n\ndef positive(x):\n",
)


def fixed(folder: Path, **modules: str) -> dict[str, str]:
    for name, text in modules.items():
        (folder / f"{name}.py").write_bytes(text.encode())
    files = files_below([folder])
    verdicts = {path: each.verdicts for path, each in discovered(files).items()}
    contents = fix(files, verdicts).contents
    return {Path(path).stem: content.decode() for path, content in contents.items()}


class Plain(ast.NodeTransformer):
    """A program without what is written into it."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without decorators, types and preconditions."""
        node.decorator_list = []
        node.returns = None
        for each in (*node.args.args, *node.args.kwonlyargs):
            each.annotation = None
        node.body = [each for each in node.body if not isinstance(each, ast.Assert)]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """Without imports of ours."""
        return None if node.module in ("pscdsl", "typing") else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        """The same."""
        return None if node.names[0].name == "pscdsl" else node


def plain(text: str) -> str:
    return ast.dump(Plain().visit(ast.parse(text)))


def test_definitions_are_written_and_nothing_else(tmp_path: Path) -> None:
    text = fixed(tmp_path, program=PROGRAM)["program"]
    for part in WRITTEN[1:]:
        assert part in text, text
    assert plain(text) == plain(PROGRAM)
    result = check_source(text, "program.py")
    assert {each.name: each.status for each in result.kernels} == dict.fromkeys(
        ("scale", "pooled", "filled", "calls"), "ok"
    )
    kept = [line for line in text.split("\n") if line in PROGRAM.split("\n")]
    assert len(kept) >= len(PROGRAM.split("\n")) - 6, "lines of heads alone are changed"


def test_what_is_written_runs(tmp_path: Path) -> None:
    text = fixed(tmp_path, program=PROGRAM)["program"]
    path = tmp_path / "written.py"
    path.write_text(text, encoding="utf-8")
    x, y = np.ones(3), np.zeros(2)
    load_kernel(path, "calls")(x, y)
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert y.tolist() == [1.0, 0.0]


def test_line_ends_stay(tmp_path: Path) -> None:
    text = fixed(tmp_path, program=PROGRAM.replace("\n", "\r\n"))["program"]
    assert "\n" not in text.replace("\r\n", "")
    assert plain(text) == plain(PROGRAM)


def test_what_does_not_hold_beside_others_is_left_alone(tmp_path: Path) -> None:
    helper = "def doubled(x):\n    x *= 2\n    return x\n"
    user = "def stored(x):\n    y = doubled(x.copy())\n    y[0] = 1.0\n    return y\n"
    text = fixed(tmp_path, program=f"{helper}\n\n{user}")["program"]
    assert '@psc.kernel(writes="x")\ndef doubled(' in text
    assert "\n\ndef stored(x):" in text, "a kernel's result may be its argument"
    result = check_source(text, "program.py")
    assert [(each.name, each.status) for each in result.kernels] == [("doubled", "ok")]


def test_kernels_of_other_files_stay_kernels(tmp_path: Path) -> None:
    one = "def doubled(x):\n    x *= 2\n    return x\n"
    two = (
        "import pscdsl as psc\nfrom pscdsl import f64\nfrom one import doubled\n\n\n"
        '@psc.kernel\ndef stored(x: f64["n"]) -> f64["n"]:\n'
        "    y = doubled(x.copy())\n    y[0] = 1.0\n    return y\n"
    )
    assert fixed(tmp_path, one=one, two=two) == {}


def test_the_command_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert main(["discover", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == PROGRAM
    assert main(["discover", "--fix", str(path)]) == 0
    assert "4 functions written in 1 file" in capsys.readouterr().err
    assert "@psc.kernel" in path.read_text(encoding="utf-8")
    assert main(["discover", "--fix", str(path)]) == 0
    assert "0 functions written in 0 files" in capsys.readouterr().err
