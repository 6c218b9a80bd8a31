"""Discovery and calls: what they pass decides a signature, and `--fix` breaks none of them."""

from __future__ import annotations

import contextlib
import io
import linecache
import runpy
import textwrap
import time
from pathlib import Path

import pytest

from pscdsl._src.cli import main
from pscdsl._src.discover import verdicts
from pscdsl._src.discover.verdicts import FunctionVerdict, discover_source
from pscdsl._src.frontend.modules.files import files_below

pytestmark = pytest.mark.quick_code

HEAD = "import numpy as np\n\n\n"
RELAX = """
def relax(p, target):
    change = 1
    while change > target:
        q = p.copy()
        q[1:-1] = 0.5 * (p[2:] + p[:-2])
        change = np.sum(np.abs(q - p))
        p = q
    return p
"""
GRAVITY = """
def gravity(pos, mass, g):
    d = pos[:, 0:1]
    return g * (d.T - d) @ mass
"""
CLOSED_LOOP = """
def closed_loop(a, b, q, r):
    return q + a.T @ np.linalg.solve(r + b.T @ b, a)
"""
BLEND = "def blend(x, y, w):\n    return w * x + (1 - w) * y\n"
COLUMN = "def column(x):\n    return x[:, 0] * 2.0\n"


def found(text: str) -> dict[str, FunctionVerdict]:
    verdicts = discover_source(HEAD + textwrap.dedent(text), "plain.py").verdicts
    return {each.name: each for each in verdicts}


def signature(text: str, name: str) -> str:
    written = found(text)[name].written
    assert written is not None
    return written.signature


@pytest.mark.parametrize(
    ("function", "call", "expected"),
    [
        (
            RELAX,
            "relax(np.arange(5.0) ** 2, 1e-4)",
            '(p: Float["*batch n"], target: Float) -> Float["*batch n"]',
        ),
        (
            GRAVITY,
            "gravity(np.ones((3, 3)), np.ones((3, 1)), 9.81)",
            '(pos: Float["n m"], mass: Float["n k"], g: Float) -> Float["n k"]',
        ),
        (
            CLOSED_LOOP,
            "closed_loop(np.eye(2), np.eye(2), np.eye(2), np.eye(2))",
            '(a: f64["n m"], b: f64["k n"], q: f64["m m"], r: f64["n n"]) -> f64["m m"]',
        ),
        (
            BLEND,
            "blend(np.ones(3), np.zeros(3), 0.5)",
            '(x: Float["*batch"], y: Float["*batch"], w: Float) -> Float["*batch"]',
        ),
        (
            "def powers(x, n):\n    return x ** n\n",
            "for n in range(3):\n    powers(np.ones(2), n)",
            '(x: Float["*batch"], n: Float) -> Float["*batch"]',
        ),
    ],
)
def test_the_signature_is_the_one_that_calls_satisfy(
    function: str, call: str, expected: str
) -> None:
    name = function.strip().split("(")[0].removeprefix("def ")
    assert signature(f"{function}\n\n{call}\n", name) == expected


def test_calls_of_several_kinds_that_no_signature_takes_are_said() -> None:
    """The one that refuses the fewest is given, with the calls that it refuses."""
    text = """
    def rounded(t, step):
        return t - np.mod(t, float(step))


    rounded(53.279, 0.1)
    rounded(np.ones(3), 0.1)
    rounded(np.ones(4), 0.5)
    rounded(np.ones((2, 2)), 0.5)
    rounded(np.array([True]), 0.5)
    """
    verdict = found(text)["rounded"]
    assert verdict.status == "psc"
    assert 1 <= len(verdict.violated) < 4


@pytest.mark.parametrize(
    "call",
    [
        "def test_blend():\n    x = np.random.rand(4)\n    blend(x, y=2 * x, w=0.25)",
        "def main(n=3):\n    x = np.linspace(0, 1, n)\n    for w in (0.1, 0.2):\n"
        '        x = blend(x, x, w)\n\n\nif __name__ == "__main__":\n    main()',
        "class Model:\n    def __init__(self, w):\n        self.w = w\n\n"
        "    def step(self, x):\n        return blend(x, x, self.w)\n\n\n"
        "model = Model(0.5)\nmodel.step(np.zeros(3))",
        "pairs = [(np.ones(2), 0.5), (np.ones(3), 1.0)]\nfor x, w in pairs:\n    blend(x, x, w)",
        "import pytest\n\n\n@pytest.mark.parametrize('w', [0.5, 1.0])\ndef test_w(w):\n"
        "    blend(np.ones(2), np.ones(2), w)",
        "a = [blend(np.ones(2), np.ones(2), w) for w in [0.1, 0.2]]",
        'def documented():\n    """Blend.\n\n    >>> x = np.ones(2)\n'
        '    >>> blend(x, x, 0.5)\n    array([1., 1.])\n    """',
    ],
)
def test_calls_are_followed_to_their_arguments(call: str) -> None:
    expected = '(x: Float["*batch"], y: Float["*batch"], w: Float) -> Float["*batch"]'
    assert signature(f"{BLEND}\n\n{call}\n", "blend") == expected


PROGRAMS = {
    "relax": f"{RELAX}\n\nprint(relax(np.arange(5.0) ** 2, 1e-4))\n",
    "gravity": f"{GRAVITY}\n\nprint(gravity(np.ones((3, 3)), np.ones((3, 1)), 9.81))\n",
    "closed_loop": (
        f"{CLOSED_LOOP}\n\nprint(closed_loop(np.eye(2), np.eye(2), np.eye(2), np.eye(2)))\n"
    ),
    "two_kinds": f"{BLEND}\n\nprint(blend(1.0, 2.0, 0.5), blend(np.ones(2), np.ones(2), 0.5))\n",
    "vector_weight": f"{BLEND}\n\nprint(blend(np.ones(2), np.ones(2), np.ones(2)))\n",
    "matrix_and_row": f"{BLEND}\n\nprint(blend(np.ones((2, 3)), np.ones(3), 0.5))\n",
    "lists": "def f(x):\n    return 2 * np.asarray(x)\n\n\nprint(f([1.0, 2.0]), f(np.ones(2)))\n",
    "integers": f"{BLEND}\n\nprint(blend(np.arange(3), np.arange(3), 2))\n",
    "single": f"{BLEND}\n\nx = np.ones(2, dtype=np.float32)\nprint(blend(x, x, 0.5).dtype)\n",
    "mixed": f"{BLEND}\n\nx = np.ones(2, np.float32)\nprint(blend(x, x.astype(float), 0.5))\n",
    "passed_on": f"{COLUMN}\n\nprint(list(map(column, [np.ones((2, 2)), np.eye(3)])))\n",
    "unknown": (
        f"{BLEND}\n\nimport json\nw = json.loads('[0.5]')\nprint(blend(1.0, 2.0, np.array(w)))\n"
    ),
    "one_way_only": (
        f"{COLUMN}\n\n\ndef pick(flag):\n    x = np.ones((2, 2))\n    if flag:\n"
        "        x = np.ones((2, 2, 2))\n    return column(x)\n\n\n"
        "import os\nprint(pick(bool(os.environ)))\n"
    ),
    "late_in_a_loop": (
        f"{COLUMN}\n\n\nfor k in range(1, 400):\n"
        "    y = column(np.ones((2, 2)) if k < 300 else np.ones((2, 1, 1)))\nprint(y.shape)\n"
    ),
    "in_a_method": (
        f"{COLUMN}\n\n\nclass Holder:\n    def __call__(self, x):\n        return column(x)\n\n\n"
        "print(Holder()(np.ones((2, 2, 2))).shape)\n"
    ),
    "partial": (
        f"{BLEND}\n\nfrom functools import partial\n"
        "print(partial(blend, np.ones(2), np.ones(3)[:2])(np.ones((1, 1))))\n"
    ),
    "unpacked": f"{BLEND}\n\nprint(blend(*[np.ones(2), 1.0, 0.5]))\n",
    "static": (
        "class A:\n    @staticmethod\n    def f(x, k):\n        return k * x\n\n\n"
        "print(A.f(np.ones(2), 3.0), A().f(np.ones((2, 2)), 2.0))\n"
    ),
    "default": "def f(x, k=3):\n    return x * k\n\n\nprint(f(np.ones(2)), f(np.ones(2), 0.5))\n",
    "emptied": f"{RELAX}\n\nprint(relax(np.ones((4, 2)), 0.5), relax(np.ones(3), 10))\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same_after_fix(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEAD + PROGRAMS[name], encoding="utf-8")
    before = _printed(path)
    assert main(["discover", "--fix", str(path)]) == 0
    assert _printed(path) == before


def _printed(path: Path) -> str:
    linecache.checkcache(str(path))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


def test_calls_in_tests_count_and_are_not_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blending.py").write_text(HEAD + BLEND, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    test = tmp_path / "tests" / "test_blending.py"
    test.write_text(
        "import numpy as np\nfrom blending import blend\n\n\ndef test_blend():\n"
        "    assert blend(np.ones(3), np.ones(3), 0.5).sum() == 3\n",
        encoding="utf-8",
    )
    assert main(["discover", "blending.py"]) == 0
    assert "w: Float)" in capsys.readouterr().out
    test.write_text(test.read_text(encoding="utf-8").replace("0.5)", "load())"), encoding="utf-8")
    assert main(["discover", "--fix", "blending.py"]) == 0
    message = "`blend` is not written: tests/test_blending.py:6 calls it with what is not known"
    assert message in capsys.readouterr().err
    assert (tmp_path / "blending.py").read_text(encoding="utf-8") == HEAD + BLEND


COMPILED = """
from typing import overload
import numba
from numba import njit, prange


@njit(cache=True)
def total(x):
    s = 0.0
    for i in prange(len(x)):
        s += x[i]
    return s


@numba.jit(
    nopython=True,
)
def scaled(x, a):
    return total(x) * a * x


@overload
def twice(x: int) -> int: ...
@overload
def twice(x: float) -> float: ...
def twice(x):
    return 2 * x


class Filter:
    @staticmethod
    def gain(x, k):
        return k * x


def outer(n):
    def inner(x):
        return x + 1

    def captures(x):
        return x + n

    return inner(np.ones(n))


@numba.guvectorize(["void(f8[:], f8[:])"], "(n)->(n)")
def sums(x, out):
    out[0] = x[0]
    for i in range(1, x.shape[0]):
        out[i] = out[i - 1] + x[i]


scaled(np.ones(3), 2.0)
twice(3.0)
Filter.gain(np.ones(2), 3.0)
"""
SIGNATURES = {
    "total": '(x: Float["n"]) -> Float',
    "scaled": '(x: Float["n"], a: Float) -> Float["n"]',
    "twice": "(x: Float) -> Float",
    "Filter.gain": '(x: Float["*batch"], k: Float) -> Float["*batch"]',
    "outer": '(n: psc.Static[int]) -> f64["n"]',
    "outer.inner": '(x: Float["*batch"]) -> Float["*batch"]',
    "sums": '(x: Float["*batch n"], out: Float["*batch n"]) -> None writes out',
}


def test_compilers_overloads_static_methods_and_nested_functions_are_seen_through() -> None:
    verdicts = found(COMPILED)
    for name, expected in SIGNATURES.items():
        written = verdicts[name].written
        assert written is not None, name
        assert written.signature == expected
    assert list(verdicts) == [*[*SIGNATURES][:6], "outer.captures", "sums"]
    captured = verdicts["outer.captures"]
    assert (captured.status, captured.findings[0].code) == ("unknown", "PSC911")


@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_compilers_are_replaced_and_indentation_stays(indent: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = (HEAD + COMPILED).replace("    ", indent)
    path.write_text(text, encoding="utf-8")
    assert main(["discover", "--fix", str(path)]) == 0
    fixed = path.read_text(encoding="utf-8")
    assert "@njit" not in fixed
    assert "@numba.jit" not in fixed
    assert "@numba.guvectorize" in fixed, "its calls leave the last argument out"
    assert f"{indent}for i in range(len(x)):" in fixed
    assert f"{indent}@staticmethod\n{indent}@psc.kernel\n{indent}def gain(" in fixed
    assert main(["check", str(path)]) == 0


def test_a_kernel_that_compiled_code_calls_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    text = (
        f"{HEAD}from numba import njit\n\n\n@njit\ndef half(x):\n    return x / 2\n\n\n"
        "@njit\ndef show(x, names):\n    names.append('x')\n    return half(x)\n"
    )
    path.write_text(text, encoding="utf-8")
    assert main(["discover", "--fix", str(path)]) == 0
    assert "uses it in a function that is compiled" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


def test_no_number_is_a_literal_only_because_a_loop_has_no_step_with_it() -> None:
    for name, verdict in found(f"{RELAX}\n\n{GRAVITY}").items():
        if verdict.written is not None:
            assert "Literal" not in verdict.written.signature, name


def test_what_was_given_up_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"{HEAD}{RELAX}\n\n{BLEND}", encoding="utf-8")
    monkeypatch.setattr(verdicts, "MAX_SECONDS", 0.0)
    (discovery,) = verdicts.discovered(files_below([path])).values()
    assert [each.status for each in discovery.verdicts] == ["unknown", "unknown"]
    assert {each.findings[0].code for each in discovery.verdicts} == {"PSC947"}


@pytest.mark.parametrize(
    "call",
    [
        "blend(np.zeros((10**6, 10**6)), 1.0, 0.5)",
        "blend(np.ones(10**4)[:, None] * np.ones(10**5), 1.0, 0.5)",
        "x = 'a' * 10**12",
        "x = [0] * 10**12",
        "x = 10 ** 10 ** 10",
        "x = np.arange(1e15)",
        "x = np.repeat(np.ones(1000), 10**9)",
        "while True:\n    blend(1.0, 1.0, 1.0)",
        "def f(n):\n    return f(n + 1)\n\n\nf(0)",
        "for i in range(10**9):\n    for j in range(10**9):\n        blend(i, j, 1)",
        "x = [[]]\nx[0] = x\nblend(x, x, x)",
        "x = np.ones(2)\nfor i in range(60):\n    x = np.outer(x, x).ravel()",
    ],
)
def test_following_calls_is_bounded(call: str) -> None:
    begin = time.process_time()
    assert found(f"{BLEND}\n\n{call}\n")["blend"].status == "psc"
    assert time.process_time() - begin < 10
