"""Devices: which there are, when their clients are made, and what is said of the others."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pscdsl._src.xla.compilation.disk import from_text
from pscdsl._src.xla.device import CPU, Device, UnsupportedDeviceError
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
    gpu = Device("cuda")
    with pytest.raises(UnsupportedDeviceError, match="`cuda` are not supported yet"):
        _ = gpu.placement
    with pytest.raises(NotImplementedError):
        _ = gpu.client
    with pytest.raises(UnsupportedDeviceError):
        put(np.ones(2), device=gpu)


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
