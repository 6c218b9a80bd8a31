"""Kernels on a device of their own, of two devices that a CPU can be divided into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jaxlib

PROGRAM = """
import pickle
import numpy as np
import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime import boot

make = boot.xla.make_cpu_client
boot.xla.make_cpu_client = lambda asynchronous: make(asynchronous=asynchronous, num_devices=2)


@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return x + x


@psc.kernel
def both(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32]:
    return double(x) * y, np.sum(x)


@psc.kernel
def total(x: f32["n"]) -> f32:
    return np.sum(double(x))


def place(array):
    return array._sharding._device.id


first, second = psc.devices()
other = double.with_options(device=second)
assert (double.device, other.device) == (first, second)
x = np.arange(3, dtype=np.float32)
for _ in range(3):  # the first calls find the program, the later ones have it
    here, there = double(x), other(x)
    assert (place(here), place(there)) == (0, 1)
    moved, back = other(here), double(there)
    assert (place(moved), place(back)) == (1, 0)
    for array in (here, there, moved / 2, back / 2):
        np.testing.assert_array_equal(array, x + x)
results = both.with_options(device=second)(here, there)
assert [place(each) for each in results] == [1, 1]
again = pickle.loads(pickle.dumps(other))
assert again.device == second and place(again(x)) == 1
assert place(other.compile(n=3)(here)) == 1
assert place(double.with_options(device=second, donate="x")(there)) == 1 and there.is_deleted()
assert place(other.with_options(fast_math=True)(x)) == 1
slope = psc.grad(total.with_options(device=second))
assert (slope.device, place(slope(x))) == (first, 0)
print(other.cache_info().disk_hits)
"""


def test_a_kernel_runs_on_its_device(tmp_path: Path) -> None:
    """Compiled, and loaded from disk by another process."""
    path = tmp_path / "two.py"
    path.write_text(PROGRAM)
    here = {**os.environ, "PSCDSL_CACHE": str(tmp_path / "cache")}
    for hits in ("0", "1"):
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=here)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == hits
