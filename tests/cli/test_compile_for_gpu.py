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


MESH = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def product(x: f32["n@data d"], w: f32["d h@model"], v: f32["h@model k"]) -> f32["n@data k"]:
    return np.tanh(x @ w) @ v


@psc.kernel
def total(x: f32["n@data d"]) -> f32["d"]:
    return np.sum(x, axis=0)


@psc.kernel
def moved(x: f32["n@data d"]) -> f32["n d@data"]:
    return psc.place(2 * x, "n d@data")


@psc.kernel
def alone(x: f32["n d"]) -> f32["n d"]:
    return x + x
"""


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    path = tmp_path / "meshes.py"
    path.write_text(MESH)
    return path


SIZES = ["--dims", "n=64,d=8,h=16,k=4", "--mesh", "data=4,model=2"]


def test_stablehlo_of_a_device_of_a_mesh_needs_no_devices(meshes: Path) -> None:
    done = pscdsl(meshes.parent, "hlo", "meshes.py:product", *SIZES)
    assert done.returncode == 0, done.stderr
    assert "mhlo.num_replicas = 8" in done.stdout
    assert "[0, 1], [2, 3], [4, 5], [6, 7]" in done.stdout
    assert "tensor<16x8xf32>" in done.stdout
    done = pscdsl(meshes.parent, "hlo", "meshes.py:product", *SIZES, "--target", "h100")
    assert "mhlo.num_replicas = 8" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hlo", "meshes.py:alone", "--dims", "n=8,d=8", "--mesh", "data=2"], "names no mesh axis"),
        (["hlo", "meshes.py:total", "--dims", "n=9,d=8", "--mesh", "data=2"], "n = 9"),
        (["hlo", "meshes.py:total", "--dims", "n=9,d=8", "--mesh", "data=0"], "a positive integer"),
        (
            ["hlo", "meshes.py:total", "--dims", "n=8,d=8", "--mesh", "data=2", "--optimized"],
            "Mesh(data=2) needs 2 devices, and there is 1 of platform cpu",
        ),
    ],
)
def test_meshes_that_do_not_fit(meshes: Path, arguments: list[str], message: str) -> None:
    done = pscdsl(meshes.parent, *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


CALL = """\
import meshes, numpy as np
import pscdsl as psc
placed = meshes.product.lower(n=64, d=8, h=16, k=4).on_mesh(data=4, model=2)
print(placed.compile().source)
with psc.Mesh(data=4, model=2):
    y = meshes.product(np.ones((64, 8), "f4"), np.ones((8, 16), "f4"), np.ones((16, 4), "f4"))
print(np.asarray(y).sum())
"""


def test_a_call_on_a_mesh_finds_what_was_compiled(meshes: Path, tmp_path: Path) -> None:
    folder = meshes.parent
    environment = {**os.environ, "PSCDSL_CACHE": str(tmp_path / "cache")}
    environment.pop("PSCDSL_DEVICES", None)

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        here = {**environment, **more}
        return subprocess.run(
            command, cwd=folder, env=here, capture_output=True, text=True, check=False
        )

    compile_ = ["-m", "pscdsl", "compile", "meshes.py", *SIZES]
    done = run(*compile_)
    assert "product at n=64, d=8, h=16, k=4 on Mesh(data=4, model=2): compiled in" in done.stdout
    assert "alone: left out: the signature of alone names no mesh axis" in done.stdout
    assert "3 compiled, 0 there already, 1 left out" in done.stdout, done.stderr
    assert "0 compiled, 3 there already, 1 left out" in run(*compile_).stdout
    called = run("-c", CALL, PSCDSL_DEVICES="8", PYTHONPATH=os.pathsep.join(sys.path))
    assert called.stdout.split() == ["disk", "4096.0"], called.stderr
    few = run(*compile_, PSCDSL_DEVICES="2")
    assert few.returncode == 2
    assert "left out: Mesh(data=4, model=2) needs 8 devices, and there are 2" in few.stdout


def test_the_optimised_program_for_a_mesh_of_this_machine(
    meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSCDSL_DEVICES", "8")
    done = pscdsl(meshes.parent, "hlo", "meshes.py:product", *SIZES, "--optimized")
    assert done.returncode == 0, done.stderr
    assert "replica_count=8" in done.stdout
    assert done.stdout.count(" all-reduce(") == 1


@pytest.mark.skipif(not is_installed(), reason="the plugin is not installed")
def test_what_gpus_send_each_other_is_predicted(meshes: Path) -> None:
    given = ["--target", "h100", "--dims", "n=64,d=8"]
    done = pscdsl(meshes.parent, "compile", "meshes.py:product", *SIZES, "--target", "h100")
    assert "sent[model] 256 bytes: all-reduce 1x of 256 bytes" in done.stdout, done.stderr
    done = pscdsl(meshes.parent, "compile", "meshes.py:total", *given, "--mesh", "data=64")
    assert "sent[data] 32 bytes: all-reduce 1x of 32 bytes" in done.stdout, done.stderr
    done = pscdsl(meshes.parent, "compile", "meshes.py:moved", *given, "--mesh", "data=4")
    assert "sent[data] 512 bytes: all-to-all 1x of 512 bytes" in done.stdout, done.stderr
    done = pscdsl(
        meshes.parent, "hlo", "meshes.py:total", *given, "--mesh", "data=8", "--optimized"
    )
    assert "replica_count=8" in done.stdout
