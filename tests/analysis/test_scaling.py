"""The predicted times of programs on meshes are those that a count by hand gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.analysis.scaling import MACHINES, Machine, predicted, weak_scaling
from pscdsl._src.kernels.mesh_programs import on_mesh
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.signatures import Choice

SLOW = Machine("slow", 1e9, 1e6, 1e-3)


@psc.kernel
def means(x: f32["n@data d"]) -> f32["d"]:
    return np.sum(x, axis=0)


@psc.kernel
def eight(x: f32["8@data d"]) -> f32["d"]:
    return np.sum(x, axis=0)


@psc.kernel
def whole(x: f32["n@data d"]) -> f32["n d"]:
    return psc.place(x, "n d")


@psc.kernel
def cut_otherwise(x: f32["n@data d"]) -> f32["n d@data"]:
    return psc.place(x, "n d@data")


@psc.kernel
def several(x: f32["n@data d"], y: f32["n@data d"]) -> tuple[f32["d"], f32["d"]]:
    return np.sum(x, axis=0), np.sum(y, axis=0)


@psc.kernel
def one_after_the_other(x: f32["n@data d"]) -> f32["d"]:
    middle = np.mean(x, axis=0)
    return np.sum((x - middle) ** 2, axis=0)


@psc.kernel
def repeated(x: f32["n@data d"]) -> f32["d"]:
    def body(state: f32["d"], i: i32) -> tuple[f32["d"], None]:
        return state + np.sum(x * state, axis=0), None

    return psc.scan(body, np.ones_like(x[0]), np.arange(5, dtype=np.int32))[0]


@psc.kernel
def calling(x: f32["n@data d"]) -> f32["d"]:
    return means(x) * 2


def placed(kernel: psc.Kernel[..., Any]) -> Partitioned:
    return on_mesh(kernel.reading, Choice(), ("data",))


STEP, BYTE = SLOW.latency, 1 / SLOW.link


@pytest.mark.parametrize(
    ("kernel", "sending"),
    [
        (means, 6 * STEP + 2 * 3 / 4 * 48 * BYTE),
        (whole, 3 * STEP + 3 / 4 * 8 * 48 * BYTE),
        (cut_otherwise, 3 * STEP + 3 / 4 * 2 * 48 * BYTE),
        (several, 6 * STEP + 2 * 2 * 3 / 4 * 48 * BYTE),
        (one_after_the_other, 12 * STEP + 2 * 2 * 3 / 4 * 48 * BYTE),
        (repeated, 5 * (6 * STEP + 2 * 3 / 4 * 48 * BYTE)),
        (calling, 6 * STEP + 2 * 3 / 4 * 48 * BYTE),
    ],
)
def test_times_by_hand(kernel: psc.Kernel[..., Any], sending: float) -> None:
    found = predicted(placed(kernel), {"n": 8, "d": 12}, {"data": 4}, SLOW)
    assert found.sending == pytest.approx(sending)


def test_one_device_sends_nothing() -> None:
    found = predicted(placed(means), {"n": 8, "d": 10}, {"data": 1}, SLOW)
    assert found.sending == 0
    assert found.computing == pytest.approx(80 / SLOW.flops, rel=0.2)


def test_weak_scaling_keeps_the_pieces() -> None:
    found = weak_scaling(placed(means), {"n": 4096, "d": 8}, {"data": 4}, MACHINES["h100"])
    assert list(found.times) == [1, 2, 4, 8, 16, 32, 64]
    flops = [each.computing * 67e12 for each in found.times.values()]
    assert flops == pytest.approx([1024 * 8, *[1024 * 8 + 8] * 6], rel=2e-3)
    assert 0 < found.efficiency < 0.1
    assert found.slope < 0.2
    free = weak_scaling(placed(means), {"n": 64, "d": 8}, {"data": 4}, Machine("m", 1, 1e15, 0))
    assert free.slope == pytest.approx(1, abs=0.02)


def test_pieces_of_a_number_do_not_stay() -> None:
    found = weak_scaling(placed(eight), {"d": 12}, {"data": 4}, SLOW)
    assert [*found.times] == [4]
    assert found.times[4].sending == pytest.approx(6 * STEP + 2 * 3 / 4 * 48 * BYTE)


SOURCE = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def total(x: f32["n@data d"]) -> f32["d"]:
    return np.sum(x, axis=0)
"""


def cost(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "m.py").write_text(SOURCE)
    command = [sys.executable, "-m", "pscdsl", "cost", "m.py:total", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_prediction_is_printed_with_the_numbers_of_the_machine(tmp_path: Path) -> None:
    sizes = ["--dims", "n=80,d=10", "--mesh", "data=8"]
    done = cost(tmp_path, *sizes, "--machine", "1e9,1e6,1e-3")
    assert "machine: 0.001 TFLOP/s, 0.001 GB/s, 1000 us (as given)" in done.stdout, done.stderr
    assert "predicted  14.1 ms a call: 0.11 us computing, 14.1 ms sending" in done.stdout
    assert "along data from 1 to 64 devices" in done.stdout
    done = cost(tmp_path, *sizes, "--machine", "h100", "--format", "json")
    (found,) = json.loads(done.stdout)
    assert found["machine"]["flops"] == 67e12
    assert [*found["seconds"]] == ["1", "2", "4", "8", "16", "32", "64"]
    alone = cost(tmp_path, "--dims", "n=80,d=10", "--mesh", "data=1").stdout
    assert "sent" not in alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--machine", "h100"], "--machine goes with --mesh"),
        (["--machine", "h100", "--mesh", "data=8"], "--machine needs all sizes: --dims n=…,d=…"),
        (["--machine", "h1", "--mesh", "data=8"], "no machine: h1 (there are h100, a100; or write"),
        (["--machine", "1,0,1", "--mesh", "data=8"], "no machine: 1,0,1"),
        (
            ["--machine", "a100", "--mesh", "data=8", "--dims", "n=9,d=2"],
            "n = 9",
        ),
    ],
)
def test_what_cannot_be_predicted(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = cost(tmp_path, *arguments)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
