"""Devices: which there are, when their clients are made, and what is said of the others."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.xla.device import CPU, Device, UnsupportedDeviceError
from pscdsl._src.xla.disk import from_text
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.devices import put

pytestmark = pytest.mark.jaxlib

UNUSED = """
import sys
from pscdsl._src.xla.device import CPU, Device
assert str(Device("cuda", 1)) == "cuda:1" and hash(CPU) == hash(Device("cpu", 0))
assert "jaxlib" not in sys.modules and "numpy" not in sys.modules
"""


def test_devices_are_equal_by_platform_and_number() -> None:
    assert Device() == CPU == Device("cpu", 0) != Device("cpu", 1)


def test_naming_a_device_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", UNUSED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_other_platforms_are_refused_when_something_is_to_run_there() -> None:
    other = Device("rocm")
    with pytest.raises(UnsupportedDeviceError, match="`rocm` are not supported yet"):
        _ = other.placement
    with pytest.raises(psc.UnsupportedDeviceError):
        _ = other.client
    with pytest.raises(UnsupportedDeviceError):
        put(np.ones(2), device=other)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_platform_that_is_not_here_is_named(platform: str) -> None:
    try:
        there = Device(platform).client
    except UnsupportedDeviceError as problem:  # no plugin, another version's, or no device
        there, said = None, str(problem)
        named = f"platform `{platform}`" in said or "does not fit jaxlib" in said
        if not named:
            pytest.fail(said)
    if there is not None:
        with pytest.raises(UnsupportedDeviceError, match="no device"):
            _ = Device(platform, 1000).placement


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "[2. 2.]"),
        ("cpu:0", "[2. 2.]"),
        ("cpu:7", "no device cpu:7"),
        ("rocm", "PSCDSL_PLATFORM is `rocm`; it can be cpu, cuda, tpu"),
        ("cuda:x", "PSCDSL_PLATFORM is `cuda:x`"),
    ],
)
def test_the_environment_chooses_the_device(asked: str, said: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    given = {**os.environ, "PSCDSL_PLATFORM": asked}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=given)
    assert said in done.stdout + done.stderr


PROGRAM = """
import numpy as np
import pscdsl as psc
from pscdsl import f32

@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return x + x

print(double(np.ones(2, np.float32)))
"""


def test_devices_of_a_platform() -> None:
    assert psc.devices("cpu") == psc.devices() == (CPU,)
    with pytest.raises(psc.UnsupportedDeviceError, match="platform `rocm`"):
        psc.devices("rocm")


def test_a_number_that_the_machine_does_not_have_is_refused() -> None:
    for number in (-1, 1000):
        with pytest.raises(UnsupportedDeviceError, match=f"no device cpu:{number}: "):
            _ = Device("cpu", number).placement


def test_a_placement_is_made_once() -> None:
    assert CPU.placement is Device("cpu", 0).placement
    assert CPU.client is CPU.placement.client


def test_arrays_and_executables_lie_on_the_device_that_they_were_made_for() -> None:
    text = (
        "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    aval = Aval((2,), np.dtype(np.float32))
    program = from_text(text, [aval], [aval], CPU)
    assert program.device == CPU
    (result,) = program.run([np.ones(2, np.float32)])
    assert CPU.placement.holds(result)
    assert CPU.placement.holds(put(np.ones(2)))
