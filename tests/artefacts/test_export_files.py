"""Exported files: used without the source, compared with it, written by the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.cli import main
from pscdsl._src.kernels.kernel import Kernel
from tests.support.exported import P, X, rnn

pytestmark = pytest.mark.jaxlib

ROOT = str(Path(__file__).parents[2])


SCRIPT = """
import sys
import numpy as np
import pscdsl as psc
import pscdsl._src.frontend.definitions as definitions

def never(*args):
    raise AssertionError("something was elaborated")

definitions.Definition.instance = never
found = psc.load(sys.argv[1])
p = found.records["Params"](np.eye(3, dtype=np.float32), np.ones(3, np.float32))
x = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
print(np.asarray(found(p, x)).tobytes().hex())
"""


def run(path: Path, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": ROOT, "PSCDSL_CACHE": str(cache)}
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_another_process_runs_it_without_the_source_and_compiles_it_once(tmp_path: Path) -> None:
    rnn.export(tmp_path / "rnn.psca", t=4, h=3)
    cache = tmp_path / "cache"
    wanted = np.asarray(rnn(P, X)).tobytes().hex()
    assert run(tmp_path / "rnn.psca", cache) == wanted
    kept = sorted(each.name for each in cache.iterdir())
    assert kept
    assert run(tmp_path / "rnn.psca", cache) == wanted
    assert sorted(each.name for each in cache.iterdir()) == kept


def test_it_is_told_whether_the_source_has_changed(tmp_path: Path) -> None:
    from pscdsl._src.kernels.kernel import load_kernel

    def written(text: str) -> Kernel[Any, Any]:
        path = tmp_path / "module.py"
        path.write_text(textwrap.dedent(text))
        return load_kernel(path, "f")

    before = """
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    FACTOR = 2.0

    def helper(x):
        return x * FACTOR

    @psc.kernel
    def g(x: f32["n"]) -> f32["n"]:
        return np.sin(x)

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return helper(g(x))
    """
    data = written(before).export(None, n=2)
    found = psc.load(data)
    assert found.made_from(written(before))
    assert found.made_from(written("# moved\n" + textwrap.dedent(before) + "\nother = 1\n"))
    assert written(before).export(None, n=2) == data
    for old, new in (("np.sin(x)", "np.sin( x)"), ("x * FACTOR", "FACTOR * x"), ("2.0", "3.0")):
        changed = written(before.replace(old, new))
        assert not found.made_from(changed)
        if old != "2.0":  # a value, which is no source of a function
            assert psc.load(changed.export(None, n=2)).source_hash != found.source_hash


def test_the_command_line_writes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(
        textwrap.dedent(
            """
            import numpy as np
            import pscdsl as psc
            from pscdsl import f32

            raise SystemExit("it is not run")

            @psc.kernel
            def f(x: f32["n"]) -> f32:
                assert x.shape[0] >= 2
                return np.sum(np.linalg.svd(np.outer(x, x))[1])

            @psc.kernel
            def g(x: f32["n"]) -> f32:
                return np.sum(x)
            """
        )
    )
    assert main(["export", "model.py:f", "--dims", "n=2", "--dims", "n=3"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("f.psca: f(x: f32[n]) -> f32, ")
    assert "\n  n=2\n  n=3\n  needs lapack_sgesdd_ffi" in told
    assert psc.load("f.psca").sizes == ({"n": 2}, {"n": 3})
    assert main(["export", "model.py:g", "--grad", "--dims", "n=2", "--output", "g.psca"]) == 0
    np.testing.assert_array_equal(psc.load("g.psca")(np.zeros(2, np.float32)), [1, 1])
    for bad, why in (
        (["model.py:f", "--dims", "n=1"], "needs n >= 2"),
        (["model.py:f"], "sizes are missing: n"),
        (["model.py", "--dims", "n=2"], "2 kernels in model.py"),
        (["model.py:g", "--dims", "n=2", "--output", "no/where/g.psca"], "cannot be written"),
    ):
        assert main(["export", *bad]) == 2
        assert why in capsys.readouterr().err
