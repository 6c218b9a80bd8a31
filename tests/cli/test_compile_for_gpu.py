"""`pscdsl compile --target` and `pscdsl hlo --target`: kernels for GPUs that are not here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.runtime.plugins import find

pytestmark = pytest.mark.jaxlib

SOURCE = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32, f64


@psc.kernel
def dense(x: f32["n d"], w: f32["d k"]) -> f32["n k"]:
    return np.tanh(x @ w)


@psc.kernel
def eigenvalues(a: f64["n n"]) -> f64["n"]:
    return np.abs(np.linalg.eigvals(a))
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def pscdsl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pscdsl", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=dict(os.environ), check=False
    )


def is_installed() -> bool:
    try:
        find("cuda")
    except UnsupportedDeviceError:
        return False
    return True


def test_stablehlo_for_a_gpu_needs_no_plugin(model: Path) -> None:
    done = pscdsl(
        model.parent, "hlo", "model.py:dense", "--dims", "n=4,d=3,k=2", "--target", "h100"
    )
    assert done.returncode == 0, done.stderr
    assert "stablehlo.dot_general" in done.stdout
    refused = pscdsl(
        model.parent, "hlo", "model.py:eigenvalues", "--dims", "n=4", "--target", "h100"
    )
    assert refused.returncode == 1
    assert "error[PSC953]" in refused.stderr


def test_the_code_belongs_to_a_target(model: Path) -> None:
    done = pscdsl(model.parent, "hlo", "model.py:dense", "--dims", "n=4,d=3,k=2", "--ptx")
    assert done.returncode == 2
    assert "--ptx goes with --target" in done.stderr


@pytest.mark.skipif(is_installed(), reason="the plugin is installed")
@pytest.mark.parametrize("command", [["compile"], ["hlo", "--optimized"]])
def test_a_missing_plugin_is_named(model: Path, command: list[str]) -> None:
    name, *options = command
    given = [name, "model.py:dense", "--dims", "n=4,d=3,k=2", "--target", "h100", *options]
    done = pscdsl(model.parent, *given)
    assert done.returncode == 2
    assert "pip install '.[cuda13]'" in done.stderr


@pytest.mark.skipif(not is_installed(), reason="the plugin is not installed")
def test_kernels_are_compiled_and_written_to_files(model: Path) -> None:
    given = ["compile", "model.py", "--dims", "n=4,d=3,k=2", "--target", "l4", "--output", "out"]
    done = pscdsl(model.parent, *given)
    assert done.returncode == 1
    assert "dense at n=4, d=3, k=2: compiled in " in done.stdout
    assert "1 compiled for l4, 1 with errors in " in done.stdout
    assert "error[PSC953]" in done.stderr
    written = sorted(path.name for path in (model.parent / "out").iterdir())
    assert written == ["dense-n4-d3-k2.hlo", "dense-n4-d3-k2.ptx"]
    assert ".target sm_89" in (model.parent / "out" / "dense-n4-d3-k2.ptx").read_text()


@pytest.mark.skipif(not is_installed(), reason="the plugin is not installed")
def test_the_optimised_program_and_its_code_are_printed(model: Path) -> None:
    given = ["hlo", "model.py:dense", "--dims", "n=4,d=3,k=2", "--target", "a100"]
    assert "HloModule" in pscdsl(model.parent, *given, "--optimized").stdout
    assert ".target sm_80" in pscdsl(model.parent, *given, "--ptx").stdout
