"""What runs is what is loaded: after `importlib.reload`, after `%autoreload`, in later cells."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from tests.support.python_places import in_cells, python, results

MODULE = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

CONSTANT = {a}
TABLE = np.full(1, {a}, np.float32)

def helper(x, by={a}):
    return x * {b} + by

class P(psc.Record):
    w: f32["n"]
    def of(self):
        return self.w * {c}

@psc.kernel
def inner(x: f32["n"]) -> f32["n"]:
    return helper(x) * CONSTANT + TABLE - {c}

@psc.custom_jvp
def ruled(x):
    return x * {b}

@ruled.defjvp
def _(primals, tangents):
    return ruled(primals[0]), tangents[0] * {b}

def plain(x):
    return helper(x) * CONSTANT + TABLE - {c}
"""
X = np.full(1, 2, np.float32)
_stamps = count(2_000_000_000, 10)


def write(path: Path, **numbers: int) -> None:
    """Write the module with these numbers; its time tells that it is another one."""
    path.write_text(MODULE.format(**{"a": 1, "b": 1, "c": 1, **numbers}), encoding="utf-8")
    stamp = next(_stamps)
    os.utime(path, (stamp, stamp))


FOLDER = tempfile.TemporaryDirectory()
FILE = Path(FOLDER.name, "reread_module.py")
write(FILE)
sys.path.append(FOLDER.name)
module: Any = importlib.import_module("reread_module")


@psc.kernel
def beside(x: f32["n"]) -> f32["n"]:
    return module.helper(x) + module.CONSTANT


@psc.kernel
def around(x: f32["n"]) -> f32["n"]:
    return module.inner(x) + module.P(x).of()


@psc.kernel
def total(x: f32["n"]) -> f32:
    return module.ruled(module.helper(x)).sum()


def _expected() -> list[float]:
    x = float(X[0])
    slope = float(module.ruled(1.0) * (module.helper(1.0) - module.helper(0.0)))
    return [
        module.helper(x) + module.CONSTANT,
        float(module.plain(x)[0]) + float(module.P(np.float32(x)).of()),
        module.ruled(module.helper(x)),
        slope,
        float(module.plain(x)[0]),
    ]


def _found() -> list[float]:
    kernels: list[Callable[..., Any]] = [beside, around, total, psc.grad(total), module.inner]
    return [float(np.ravel(kernel(X))[0]) for kernel in kernels]


@pytest.fixture
def path() -> Path:
    """The file of the module, which is loaded from there."""
    write(FILE)
    importlib.reload(module)
    return FILE


def test_kernels_that_found_what_was_loaded_again(path: Path) -> None:
    given = psc.grad(total).with_options(fast_math=True)
    rows = psc.vmap(beside.with_options(donate="x"))
    assert _found() == _expected()
    for numbers in ({"a": 3}, {"b": 3}, {"c": 3}, {"a": 2, "b": 5, "c": 7}, {}):
        write(path, **numbers)
        importlib.reload(module)
        assert _found() == _expected()
        assert [float(given(X)[0]), float(rows(X[None])[0, 0])] == [_found()[3], _found()[0]]


def test_what_has_not_changed_is_not_read_again(path: Path) -> None:
    beside(X)
    importlib.reload(importlib.import_module("colorsys"))
    before = beside.definition
    assert beside(X) is not None
    assert beside.definition is before
    assert beside.__call__.__name__ == "call"  # and calls ask for what was captured alone


def test_calls_while_a_module_is_loaded_again(path: Path) -> None:
    assert _found() == _expected()
    text = MODULE.format(a=4, b=4, c=4).replace(
        "class P",
        "import sys\nsys.modules['tests.frontend.test_rereading'].beside(np.ones(1, 'f'))\nclass P",
    )
    path.write_text(text, encoding="utf-8")
    importlib.reload(module)
    assert _found() == _expected()


FOUND_ON_DISK = """
import importlib, os, sys
import numpy as np
import pscdsl as psc
from pscdsl import f32
sys.path.insert(0, os.getcwd())
import helping

@psc.kernel
def k(x: f32["n"]) -> f32["n"]:
    return helping.by(x)

x = np.ones(1, np.float32)
print("RESULT", k(x))
print("RESULT", k.trace is None)
if "FIRST" in os.environ:
    sys.exit()
importlib.reload(importlib.import_module("colorsys"))
k(x)
print("RESULT", k.trace is None)
with open("helping.py", "w") as file:
    file.write("def by(x): return x * 30\\n")
importlib.reload(helping)
print("RESULT", k(x))
"""


def test_kernels_that_were_found_on_disk(tmp_path: Path) -> None:
    (tmp_path / "helping.py").write_text("def by(x): return x * 2\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(FOUND_ON_DISK, encoding="utf-8")
    env = {"PSCDSL_CACHE": str(tmp_path / "kept"), "PYTHONDONTWRITEBYTECODE": "1"}
    first = results(python("program.py", folder=tmp_path, FIRST="1", **env))
    assert first == ["RESULT [2.]", "RESULT False"]
    said = results(python("program.py", folder=tmp_path, **env))
    assert said == ["RESULT [2.]", "RESULT True", "RESULT True", "RESULT [30.]"]


SHOW = (
    "print('RESULT', k(x), f(x), reread_module.inner(x), inner(x), "
    "reread_module.plain(2.0)[0], P(x).of())\n"
)


def test_a_record_that_a_cell_defines_anew(tmp_path: Path) -> None:
    """Kernels take the class that their annotations name now, also those that call others."""
    made = "P(np.ones(3, np.float32), np.float32(1))"
    cells = [
        "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n",
        'class P(psc.Record):\n    w: f32["n"]\n',
        "@psc.kernel\ndef f(p: P) -> f32:\n    return p.w.sum()\n",
        "@psc.kernel\ndef g(p: tuple[P, P]) -> f32:\n    return f(p[0]) + f(p[1])\n",
        "p = P(np.ones(3, np.float32))\nprint('RESULT', f(p), g((p, p)))\n",
        'class P(psc.Record):\n    w: f32["n"]\n    b: f32\n',
        f"p = {made}\nprint('RESULT', f(p), g((p, p)))\n",
        "@psc.kernel\ndef f(p: P) -> f32:\n    return p.w.sum() + p.b\n",
        "print('RESULT', f(p), g((p, p)))\n",
    ]
    said = results(in_cells(cells, tmp_path))
    shown = [[float(each) for each in re.findall(r"-?[\d.]+", line)] for line in said]
    assert shown == [[3, 6], [3, 6], [4, 8]]


def test_cells(tmp_path: Path) -> None:
    """IPython's `%autoreload` gives functions new code, classes new methods, kernels new places."""
    file = tmp_path / "reread_module.py"
    write(file)
    cells = [
        "%load_ext autoreload\n%autoreload 2\n",
        "import os\nimport numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n"
        "import reread_module\nfrom reread_module import inner, P\n"
        "FACTOR = 2.0\nx = np.full(1, 2, np.float32)\n"
        "def own(x): return x + 1\n",
        '@psc.kernel\ndef k(x: f32["n"]) -> f32["n"]:\n    return own(x) * FACTOR\n'
        '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return reread_module.P(x).of()\n',
        SHOW,
        "def own(x): return x + 10\n",
        SHOW,
        "FACTOR = 100.0\n",
        SHOW,
    ]
    for number, numbers in enumerate(({"c": 3}, {"b": 5}, {"a": 7}, {"a": 2, "b": 3, "c": 4})):
        text = MODULE.format(**{"a": 1, "b": 1, "c": 1, **numbers})
        stamp = 3_000_000_000 + number
        cells.append(
            f"with open('reread_module.py', 'w') as file: file.write({text!r})\n"
            f"os.utime('reread_module.py', ({stamp}, {stamp}))\n"
        )
        cells.append(SHOW)
    said = results(in_cells(cells, tmp_path))
    shown = [[float(each) for each in re.findall(r"-?[\d.]+", line)] for line in said]

    def expected(own: float, a: float, b: float, c: float) -> list[float]:
        inner = (2 * b + a) * a + a - c
        return [own, 2 * c, inner, inner, inner, 2 * c]

    assert shown == [
        expected(6, 1, 1, 1),
        expected(24, 1, 1, 1),
        expected(1200, 1, 1, 1),
        expected(1200, 1, 1, 3),
        expected(1200, 1, 5, 1),
        expected(1200, 7, 1, 1),
        expected(1200, 2, 3, 4),
    ]
