"""Whole projects: how names reach a kernel from other files, and which branches bind them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pscdsl._src.cli import main
from tests.support.projects import HEAD, check, codes, kernel, write
from tests.support.python_places import in_command, results

DOUBLE = "def double(x):\n    return 2 * x\n"
HALF = "def half(x):\n    return x / 2\n"

ACCEPTED: dict[str, tuple[dict[str, str], str, str]] = {
    "names that a star takes": (
        {"pkg/__init__.py": "from .impl import *\n", "pkg/impl.py": DOUBLE},
        "from pkg import double",
        "double(x)",
    ),
    "a private name that __all__ lists": (
        {
            "pkg/__init__.py": "from .impl import *\n",
            "pkg/impl.py": '__all__ = ["_secret"]\n\n\ndef _secret(x):\n    return x\n',
        },
        "from pkg import _secret",
        "_secret(x)",
    ),
    "__all__ in parts, some of them another module's": (
        {
            "pkg/__init__.py": "from .impl import *\n",
            "pkg/impl.py": "from . import more\nfrom .more import *\n"
            '__all__ = ["double"] + more.__all__\n__all__ += []\n' + DOUBLE,
            "pkg/more.py": '__all__ = []\n__all__.append("half")\n' + HALF,
        },
        "from pkg import double, half",
        "double(half(x))",
    ),
    "a namespace package": (
        {"space/ops.py": DOUBLE, "space/deep/more.py": "from ..ops import double\n" + HALF},
        "import space.ops\nfrom space.deep import more",
        "space.ops.double(more.half(more.double(x)))",
    ),
    "a package that is laid out below src": (
        {"src/pkg/__init__.py": "", "src/pkg/ops.py": DOUBLE},
        "from pkg.ops import double",
        "double(x)",
    ),
    "a namespace package below src": (
        {"src/space/ops.py": DOUBLE},
        "import space.ops as o",
        "o.double(x)",
    ),
    "a package before a module of the same name": (
        {"ops.py": "", "ops/__init__.py": DOUBLE},
        "import ops",
        "ops.double(x)",
    ),
    "a module of a package by the package": (
        {"pkg/__init__.py": "", "pkg/ops.py": DOUBLE},
        "import pkg.ops",
        "pkg.ops.double(x)",
    ),
    "an import under another name, two packages up": (
        {
            "pkg/__init__.py": "",
            "pkg/ops.py": DOUBLE,
            "pkg/a/__init__.py": "",
            "pkg/a/b/__init__.py": "",
            "pkg/a/b/c.py": "from ...ops import double as twice\n",
        },
        "from pkg.a.b.c import twice",
        "twice(x)",
    ),
    "packages that import each other": (
        {
            "a/__init__.py": "from b import half\n" + DOUBLE,
            "b/__init__.py": "import a\n\n\ndef half(x):\n    return a.double(x) / 4\n",
        },
        "from a import double, half",
        "double(half(x))",
    ),
    "stars that lead in a circle": (
        {"a.py": "from b import *\n" + DOUBLE, "b.py": "from a import *\n" + HALF},
        "from a import double, half",
        "double(half(x))",
    ),
    "a branch on the version": (
        {},
        "import sys\nif sys.version_info >= (3, 2):\n    N = 2\nelse:\n    N = print",
        "x * N",
    ),
    "a branch on the version, by its parts": (
        {},
        "import sys\nif sys.version_info[0] == 2 or sys.version_info.major < 3:\n    N = print\n"
        "elif not sys.version_info[:2] < (3, 0):\n    N = 3",
        "x * N",
    ),
    "branches that agree": (
        {},
        "import os\nif os.environ:\n    N = 2\nelse:\n    N = 2",
        "x * N",
    ),
    "a file beside another, and not one of the same name elsewhere": (
        {"other/helper.py": "double = print\n", "helper.py": DOUBLE},
        "from helper import double",
        "double(x)",
    ),
    "what a with block binds": (
        {},
        "import warnings\nwith warnings.catch_warnings():\n    N = 2",
        "x * N",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_python_would_find_is_found(name: str, tmp_path: Path) -> None:
    files, imports, expression = ACCEPTED[name]
    program = {"main.py": HEAD + imports + "\n" + kernel(expression)}
    result = check(tmp_path, {**files, **program})
    assert codes(result) == []
    assert [each.status for each in result.kernels] == ["ok"]


REFUSED: dict[str, tuple[dict[str, str], str, str, str]] = {
    "a name that __all__ leaves out": (
        {
            "pkg/__init__.py": "from .impl import *\n",
            "pkg/impl.py": '__all__ = ("double",)\n' + DOUBLE + HALF,
        },
        "from pkg import half",
        "half(x)",
        "PSC103",
    ),
    "a module's __getattr__": (
        {"lazy.py": "def __getattr__(name):\n    return 2\n"},
        "import lazy",
        "x * lazy.N",
        "PSC932",
    ),
    "a module's __getattr__, imported from": (
        {"lazy.py": "def __getattr__(name):\n    return 2\n"},
        "from lazy import N",
        "x * N",
        "PSC932",
    ),
    "a name that may be one of many that cannot be seen": (
        {"pkg/__init__.py": "from ._compiled import *\n"},
        "import pkg",
        "pkg.f(x)",
        "PSC910",
    ),
    "a name that a module may write into its own globals": (
        {"pkg/__init__.py": "import tools\ntools.fill(globals())\n"},
        "import pkg",
        "pkg.f(x)",
        "PSC910",
    ),
    "branches that do not agree": (
        {},
        "import os\nif os.environ:\n    N = 2\nelse:\n    N = 3",
        "x * N",
        "PSC931",
    ),
    "functions in two branches": (
        {
            "ops.py": "import os\nif os.environ:\n    def g(x):\n        return x\nelse:\n"
            "    def g(x):\n        return 2 * x\n"
        },
        "from ops import g",
        "g(x)",
        "PSC931",
    ),
    "a binding that may be replaced": (
        {},
        "N = 2\nif __name__ == '__main__':\n    N = 3",
        "x * N",
        "PSC931",
    ),
    "a name that is deleted": ({}, "N = 2\ndel N", "x * N", "PSC102"),
    "what a loop binds": ({}, "for N in range(3):\n    pass", "x * N", "PSC911"),
    "an import that may fail, of what is not there": (
        {},
        "try:\n    import missing\nexcept ImportError:\n    missing = None",
        "missing.f(x)",
        "PSC931",
    ),
    "an import that may fail, of what is there": (
        {"ops.py": DOUBLE},
        "try:\n    import ops\nexcept ImportError:\n    ops = None",
        "ops.double(x)",
        "PSC931",
    ),
    "an import for type checkers, used in the body": (
        {"ops.py": DOUBLE},
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ops import double",
        "double(x)",
        "PSC935",
    ),
    "a package without the module": (
        {"pkg/__init__.py": ""},
        "import pkg.missing",
        "pkg.missing.f(x)",
        "PSC103",
    ),
    "more dots than packages": ({}, "from ..x import f as g", "g(x)", "PSC910"),
    "an extension module beside a source": (
        {"fast.py": DOUBLE, "fast.cpython-311-x86_64-linux-gnu.so": ""},
        "from fast import double",
        "double(x)",
        "PSC910",
    ),
    "a module of which there is only a stub": (
        {"fast.pyi": "def double(x): ...\n"},
        "from fast import double",
        "double(x)",
        "PSC910",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_refused(name: str, tmp_path: Path) -> None:
    files, imports, expression, code = REFUSED[name]
    program = {"main.py": HEAD + imports + "\n" + kernel(expression)}
    assert [each.split()[0] for each in codes(check(tmp_path, {**files, **program}))] == [code]


def test_names_for_type_checkers_may_stand_in_annotations(tmp_path: Path) -> None:
    files = {
        "records.py": HEAD + '\nclass P(psc.Record):\n    w: f32["n"]\n',
        "main.py": "from __future__ import annotations\n"
        + HEAD
        + "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from records import P\n\n"
        + '\n@psc.kernel\ndef f(p: P) -> f32["n"]:\n    return p.w\n',
    }
    assert codes(check(tmp_path, files)) == []


def test_kernels_in_branches_are_checked_or_counted(tmp_path: Path) -> None:
    def block(head: str, name: str) -> str:
        return f"if {head}:\n" + "".join(
            f"    {row}\n" for row in kernel("x + y", name).splitlines()
        )

    text = (
        HEAD
        + "import os, sys\nfrom typing import TYPE_CHECKING\n"
        + block("__name__ == '__main__'", "script")
        + block("os.environ", "chosen")
        + block("TYPE_CHECKING", "typed")
        + block("sys.version_info < (3,)", "old")
        + "for y in range(3):\n"
        + "".join(f"    {row}\n" for row in kernel("x", "looped").splitlines())
    )
    result = check(tmp_path, {"main.py": text})
    status = {each.name: each.status for each in result.kernels}
    assert status == {
        "script": "error",
        "chosen": "error",
        "typed": "unchecked",
        "old": "unchecked",
        "looped": "ok",
    }


def test_a_kernel_that_two_branches_define_is_checked_in_both(tmp_path: Path) -> None:
    text = HEAD + "import os\nif os.environ:\n    "
    text += kernel("x + missing").strip().replace("\n", "\n    ") + "\nelse:\n    "
    text += kernel("x + absent").strip().replace("\n", "\n    ") + "\n"
    assert codes(check(tmp_path, {"main.py": text})) == ["PSC102 main.py:8", "PSC102 main.py:12"]


def test_files_outside_the_given_folders_are_not_read(tmp_path: Path) -> None:
    files = {
        "outside/ops.py": DOUBLE,
        "inside/main.py": HEAD + "import ops\n" + kernel("ops.double(x)"),
    }
    assert codes(check(tmp_path, files, "inside")) == ["PSC910 main.py:8"]
    assert codes(check(tmp_path, {}, "inside", "outside")) == []


def test_the_current_folder_is_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "space/ops.py": DOUBLE,
        "tools/main.py": HEAD + "from space import ops\n" + kernel("ops.double(x)"),
    }
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "tools/main.py"]) == 0


def test_one_file_by_two_names_is_one_module(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/records.py": HEAD + '\nclass P(psc.Record):\n    w: f32["n"]\n',
        "pkg/main.py": HEAD
        + "from . import records as a\nimport pkg.records as b\n"
        + "\n@psc.kernel\ndef f(p: a.P) -> b.P:\n    return b.P(p.w)\n",
    }
    assert codes(check(tmp_path, files)) == []


def test_what_is_found_of_a_file_does_not_depend_on_the_others_checked(tmp_path: Path) -> None:
    files = {
        "ops.py": HEAD + "def bad(x: f32['n n']):\n    print(x)\n    return x\n",
        "a.py": HEAD + "from ops import bad\n" + kernel("bad(x)"),
        "b.py": HEAD + "from ops import bad\nfrom a import f\n" + kernel("bad(f(x))", "g"),
    }
    together = check(tmp_path, files)
    alone = [codes(check(tmp_path, {}, name)) for name in ("a.py", "b.py")]
    assert all(found and set(found) <= set(codes(together)) for found in alone)


def test_names_over_very_many_modules_are_refused(tmp_path: Path) -> None:
    files = {f"m{i}.py": f"from m{i + 1} import double\n" for i in range(1000)}
    files["m1000.py"] = DOUBLE
    files["main.py"] = HEAD + "from m0 import double\n" + kernel("double(x)")
    assert [each.split()[0] for each in codes(check(tmp_path, files, "main.py"))] == ["PSC936"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
def test_what_is_no_file_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "missing")
    (tmp_path / "huge.py").write_bytes(b"#" * 4_000_001)
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff'\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "good.py").write_text(HEAD + "import pipe\n" + kernel("pipe.f(x)"))
    monkeypatch.chdir(tmp_path)
    found = check(tmp_path, {})
    assert codes(found) == [
        "PSC100 bytes.py:1",
        "PSC910 good.py:8",
        "PSC933 huge.py:1",
        "PSC933 loop.py:1",
        "PSC933 missing:1",  # the link is followed: this file is not there
        "PSC100 null.py:1",
        "PSC933 pipe.py:1",
    ]
    assert codes(check(tmp_path, {}, "folder.py")) == []


def test_json_says_the_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.support.projects import notebook

    (tmp_path / "n.ipynb").write_text(notebook(HEAD, kernel("x + missing")), encoding="utf-8")
    assert main(["check", "--format", "json", str(tmp_path)]) == 1
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (Path(found["path"]).name, found["cell"], found["line"]) == ("n.ipynb", 2, 4)


LOADED: dict[str, tuple[dict[str, str], str, str, str]] = {
    "a module that answers every name": (
        {"odd.py": "scale = 2.0\n\n\ndef __getattr__(name):\n    return object()\n"},
        "import odd",
        "x * odd.scale",
        "[2.0]",
    ),
    "a name that a module computes": (
        {"odd.py": "def __getattr__(name):\n    return 3.0\n"},
        "import odd",
        "x * odd.scale",
        "PSC932",
    ),
    "a module by the name of one of Python's": (
        {"statistics.py": "def mean(x):\n    return x * 7\n"},
        "import statistics",
        "statistics.mean(x)",
        "[7.0]",
    ),
    "what a star takes from one of Python's": ({}, "from operator import *", "abs(x)", "PSC910"),
    "what a star takes from NumPy": ({}, "from numpy import *", "abs(-x)", "[1.0]"),
}


@pytest.mark.parametrize("name", LOADED)
def test_names_mean_the_same_once_they_are_loaded(name: str, tmp_path: Path) -> None:
    files, imports, expression, expected = LOADED[name]
    text = f"{HEAD}{imports}\n{kernel(expression)}"
    result = check(tmp_path, {**files, "main.py": text}, "main.py")
    codes_ = [each.code for each in result.diagnostics]
    assert codes_ == ([expected] if expected.startswith("PSC") else [])
    call = (
        "import numpy as np, pscdsl, main\n"
        "try:\n    print('RESULT', main.f(np.ones(1, np.float32)).tolist())\n"
        "except pscdsl.CheckError as error:\n    print('RESULT', error.diagnostics[0].code)\n"
    )
    for _ in range(2):
        assert results(in_command(call, tmp_path)) == [f"RESULT {expected}"]


def test_a_star_that_is_not_read_hides_pythons_own_names(tmp_path: Path) -> None:
    result = check(tmp_path, {"main.py": f"{HEAD}from nowhere import *\n{kernel('abs(x)')}"})
    assert [each.code for each in result.diagnostics] == ["PSC910"]
