"""What is compiled: what tells specialisations apart, and what each carries to its executable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.xla.device import CPU, Device, UnsupportedDeviceError

pytestmark = pytest.mark.jaxlib


@psc.kernel
def scaled(x: f32["n"], y: f32["n"], by: f32 = 2.0) -> f32["n"]:
    """A program with a number for a default."""
    return x * by + y


@psc.kernel
def open_in_dtype(x: Float["n"]) -> Float["n"]:
    """A program for each dtype."""
    return x + x


def test_all_that_is_compiled_otherwise_has_another_key() -> None:
    one = scaled.lower(n=3).specialisation
    others = [
        scaled.lower(n=4).specialisation,
        scaled.lower(n=3, donate="x").specialisation,
        scaled.lower_for(np.ones(3, np.float32), np.ones(3, np.float32)).specialisation,
        replace(one, device=Device("cpu", 1)),
        open_in_dtype.lower(n=3, Float="f32").specialisation,
        open_in_dtype.lower(n=3, Float="f64").specialisation,
    ]
    assert len({each.key for each in (one, *others)}) == 1 + len(others)
    assert one.key == scaled.lower(n=3).specialisation.key


def test_a_specialisation_says_all_that_is_fixed() -> None:
    left_out = scaled.lower_for(np.ones(3, np.float32), np.ones(3, np.float32)).specialisation
    assert left_out.constants == ("by",)
    assert left_out.parts == {"size n": "3", "`by`": "its default"}
    assert left_out.arguments == {"x": "f32[3]", "y": "f32[3]"}
    given = scaled.lower(n=3, donate="x").specialisation
    assert given.parts == {"size n": "3", "`by`": "given"}
    assert (given.donate, given.device) == ((0,), CPU)
    assert str(given) == "n=3"


def test_an_executable_carries_the_device_and_where_it_comes_from() -> None:
    compiled = scaled.compile(n=5)
    assert compiled.executable.device == compiled.lowered.specialisation.device == CPU
    assert compiled.executable.source in ("compiled", "disk")
    assert compiled.executable.seconds > 0
    assert scaled.executable(compiled.lowered.specialisation) is compiled.executable


def test_nothing_is_compiled_for_a_device_that_is_not_supported() -> None:
    gpu = replace(scaled.lower(n=3).specialisation, device=Device("rocm"))
    with pytest.raises(UnsupportedDeviceError, match="not supported yet"):
        scaled.executable(gpu)


def test_nothing_is_lowered_for_a_device_that_is_not_supported() -> None:
    lowered = scaled.lower(n=3)
    gpu = replace(lowered, specialisation=replace(lowered.specialisation, device=Device("rocm")))
    with pytest.raises(UnsupportedDeviceError, match="not supported yet"):
        gpu.text()
