"""Calls beside a jax, loaded before or after, that keeps 64-bit types off: as without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

SCRIPT = """
import warnings
warnings.filterwarnings("ignore")
import numpy as np
{first}
import pscdsl as psc
from pscdsl import Float, Int, f32
from pscdsl._src.xla.runtime.devices import put
from pscdsl._src.xla.dispatch import fast_path_works
assert fast_path_works()

class Pair(psc.Record):
    x: f32["3"]
    y: f32["3"]

@psc.kernel
def one(x: f32["3"]) -> f32["3"]:
    return x + x

@psc.kernel
def several(t: tuple[f32["3"], f32["3"]]) -> f32["3"]:
    return t[0] + t[1]

@psc.kernel
def record(p: Pair) -> f32["3"]:
    return p.x + p.y

@psc.kernel
def scalar(x: f32) -> f32:
    return x + x

@psc.kernel(donate="t")
def moved(t: tuple[f32["3"], f32["3"]]) -> tuple[f32["3"], f32["3"]]:
    return t[1] + t[0], t[0] + t[0]

@psc.kernel
def any_of(x: Float["3"], n: Int) -> tuple[Float["3"], Int]:
    return x + x, n + n

narrow, wide = np.ones(3, np.float32), np.ones(3)

def donated():
    theirs = jax.numpy.ones(3, "float32")
    assert not theirs._committed
    for t in ((put(narrow), put(narrow)), (put(narrow), theirs), (theirs, put(narrow))):
        assert [np.asarray(y).tolist() for y in moved(t)] == [[2, 2, 2], [2, 2, 2]]
        assert all(x is theirs or x.is_deleted() for x in t)
        assert not theirs.is_deleted()

def round_of_calls():
    donated()
    for x in (narrow, put(narrow), jax.numpy.ones(3, "float32"), np.ones(3, ">f4")):
        results = one(x), one(x=x), several((x, x)), record(Pair(x, x))
        assert all(np.asarray(y).tolist() == [2, 2, 2] for y in results)
        for wrong in (wide, put(wide), wide.astype(">f8")):
            calls = (
                lambda: one(wrong), lambda: one(x=wrong), lambda: several((x, wrong)),
                lambda: record(Pair(x, wrong)),
            )
            for call in calls:
                try:
                    call()
                except psc.ArgumentError:
                    continue
                raise AssertionError(wrong)
    assert float(scalar(np.float32(2))) == float(scalar(2.0)) == 4
    try:
        scalar(np.float64(2))
    except psc.ArgumentError:
        pass
    else:
        raise AssertionError("a scalar of 64 bits")
    large = 2**40
    for floats in (narrow, wide, put(narrow), put(wide), jax.numpy.ones(3)):
        for n in (np.int32(3), np.int64(large), np.array(5), np.array(large)):
            y, m = any_of(floats, n)
            assert y.dtype == floats.dtype and np.asarray(y).tolist() == [2, 2, 2]
            assert m.dtype == n.dtype and int(m) == 2 * int(n), (n, n.dtype, m)

{before}
for _ in range(3):
    round_of_calls()
for wide_is_on in (True, False, True, False):
    jax.config.update("jax_enable_x64", wide_is_on)
    for _ in range(2):
        round_of_calls()
assert float(jax.jit(lambda x: x + 1)(1.0)) == 2
assert jax.numpy.ones(3, "float64").dtype == "float32"
"""
JAX = "import jax, jax.numpy; jax.numpy.ones(3) + 1"
WITHOUT = "one(narrow); one(put(narrow)); one(narrow); scalar(2.0); several((narrow, narrow))"


@pytest.mark.parametrize("first", [True, False])
def test_64_bits_are_not_read_as_32(first: bool, tmp_path: Path) -> None:
    script = SCRIPT.format(
        first=JAX if first else "", before=WITHOUT if first else f"{WITHOUT}\n{JAX}"
    )
    file = tmp_path / "calls.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
