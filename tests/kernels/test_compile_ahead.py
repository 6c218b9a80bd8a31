"""Kernels compiled before they are called: `psc.compile_all` and `pscdsl compile`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Key, f32
from pscdsl._src.caching.store import SUFFIX
from pscdsl._src.cli import main
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl._src.kernels.lowered import Job

pytestmark = pytest.mark.jaxlib

Capture = pytest.CaptureFixture[str]


class P(psc.Record):
    """A tree of two arrays."""

    w: f32["n m"]
    b: f32["n"]


@psc.kernel
def layer(p: P, x: Float["m"], k: psc.Static[int] = 1) -> f32["n"]:
    return p.w @ x.astype(np.float32) * k + p.b


@psc.kernel
def draw(key: Key, x: f32["n"]) -> f32["n"]:
    return psc.random.uniform(key, x.shape) + x


@psc.kernel
def constant() -> f32:
    return np.float32(3)


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_jobs_are_compiled_in_their_order(threads: int | None) -> None:
    p: Any = P(psc.stand_in(f32["4 5"]), psc.stand_in(f32["4"]))
    jobs: list[Job] = [
        (layer, {"n": 2, "m": 3, "Float": "f64", "k": 2}),
        (layer, p, np.zeros(5, np.float16)),
        (layer, p, f32["5"], 7),
        constant,
        (draw, Key, f32["6"]),
    ]
    made = psc.compile_all(jobs, threads=threads)
    kernels = [each.lowered.kernel for each in made]
    assert kernels == [layer, layer, layer, constant, draw]
    sizes = [each.lowered.sizes["n"] for each in made[:3]]
    assert sizes == [2, 4, 4]
    before = layer.cache_info()
    given = P(np.ones((4, 5), np.float32), np.zeros(4, np.float32))
    assert np.asarray(layer(given, np.ones(5, np.float32), 7))[0] == 35
    assert np.asarray(made[2](given, np.ones(5, np.float32), 7))[0] == 35
    assert layer.cache_info()[1:] == before[1:]
    assert draw.cache_info().entries == 1


def test_what_is_wrong_is_told_before_anything_is_compiled() -> None:
    @psc.kernel
    def wrong(x: f32["n"]) -> f32["m"]:
        return x

    @psc.kernel
    def right(x: f32["n"]) -> f32["n"]:
        return x

    with pytest.raises(psc.CheckError):
        psc.compile_all([(right, {"n": 1}), (wrong, {"n": 1})])
    with pytest.raises(psc.ArgumentError):
        psc.compile_all([(right, f32["2 3"])])
    for job in (3, (), (3, 4), ("f", {"n": 2})):
        with pytest.raises(TypeError, match="not a kernel"):
            psc.compile_all([(right, {"n": 1}), job])  # type: ignore[list-item]
    for unknown in (f32["n"], Float["3"], f32["3 +"]):
        with pytest.raises(TypeError):
            psc.compile_all([(right, unknown)])
    assert right.cache_info().misses == 0


PROGRAM = """\
import numpy as np
import pscdsl as psc
from pscdsl import Float, f32


@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return x + x


@psc.kernel
def even(x: Float["n"]) -> Float["n"]:
    assert x.shape[0] % 2 == 0
    return x + 1


@psc.kernel
def wide(x: f32["n m"]) -> f32["n"]:
    return np.sum(np.linalg.norm(x, axis=1, keepdims=True), axis=1)


@psc.primitive
def cube(x: f32["n"]) -> f32["n"]:
    return x * x * x


@cube.translation
def _(hlo, x):
    return hlo.binary("multiply", x, hlo.binary("multiply", x, x))


@psc.kernel
def cubed(x: f32["n"]) -> f32["n"]:
    return cube(x)


@psc.kernel
def loss(x: f32["n"]) -> f32:
    return np.sum(x * x)


slope = psc.grad(loss)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PSCDSL_CACHE", "cache")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path / "cache"


def test_a_file_is_compiled(folder: Path, capsys: Capture) -> None:
    assert main(["compile", "program.py", "--dims", "n=4", "--dims", "n=5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" in ")[0] for line in lines] == [
        "double at n=4: compiled",
        "double at n=5: compiled",
        "even at n=4, Float=f32: compiled",
        "even: left out: even needs n % 2 == 0, which n=5 does not meet",
        "wide: left out: sizes are missing: m",
        "cubed: left out: the translation of `cube` is not run here",
        "loss at n=4: compiled",
        "loss at n=5: compiled",
        "slope at n=4: compiled",
        "slope at n=5: compiled",
        "7 compiled, 0 there already, 3 left out",
    ]
    assert len(list(folder.glob(f"*{SUFFIX}"))) >= 14
    assert main(["compile", "program.py:double", "--dims", "n=4"]) == 0
    assert capsys.readouterr().out.startswith("double at n=4: there already\n0 compiled, 1 there")
    kernel: Any = runpy.run_path("program.py")["slope"]
    kernel(np.ones(5, np.float32))
    assert kernel.cache_info().disk_hits == 1
    read = load_kernel("program.py", "double")
    read(np.ones(4, np.float32))
    assert read.cache_info().disk_hits == 1


def test_what_cannot_be_compiled(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compile", "program.py:wide"]) == 2
    assert "sizes are missing: n, m" in capsys.readouterr().out
    Path("wrong.py").write_text(PROGRAM.replace("x + x", "x @ x"), encoding="utf-8")
    assert main(["compile", "wrong.py", "--dims", "n=2"]) == 1
    out, err = capsys.readouterr()
    assert "error[PSC" in err
    assert "1 with errors" in out
    monkeypatch.setenv("PSCDSL_CACHE", "off")
    assert main(["compile", "program.py:double", "--dims", "n=2"]) == 2
    assert "--output" in capsys.readouterr().err
    assert main(["compile", "program.py:double", "--dims", "n=2", "--output", "kept"]) == 0
    assert list(Path("kept").glob(f"*{SUFFIX}"))
    monkeypatch.setenv("PSCDSL_CACHE", str(folder.parent / "program.py"))
    assert main(["compile", "program.py:double", "--dims", "n=2"]) == 2
    assert "does not take it" in capsys.readouterr().out


def test_gradients_are_compiled_as_they_are_called(folder: Path, capsys: Capture) -> None:
    assert main(["compile", "program.py:loss", "--dims", "n=3", "--grad"]) == 0
    kernel = load_kernel("program.py", "slope")
    kernel(np.ones(3, np.float32))
    assert kernel.cache_info().disk_hits == 1
    assert "compiled" in capsys.readouterr().out
    del folder
