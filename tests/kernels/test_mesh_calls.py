"""Kernels on the devices of a mesh give what they give on one device.

All meshes of this process are of its eight CPU devices, which a process of its own has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

pytestmark = pytest.mark.jaxlib

PROGRAMS = """
from typing import NamedTuple
import numpy as np
import pscdsl as psc
from pscdsl import f32, i32


class Params(NamedTuple):
    w: f32["d h@model"]
    v: f32["h@model k"]


def loss(p: Params, x: f32["n@data d"], y: f32["n@data k"]) -> f32:
    return np.mean((np.tanh(x @ p.w) @ p.v - y) ** 2)


@psc.kernel
def step(p: Params, x: f32["n@data d"], y: f32["n@data k"], rate: f32) -> tuple[f32, Params]:
    value, slope = psc.value_and_grad(loss)(p, x, y)
    return value, psc.tree.map(lambda a, g: a - rate * g, p, slope)


@psc.kernel(donate="p")
def donating(p: Params, x: f32["n@data d"], y: f32["n@data k"], rate: f32) -> Params:
    slope = psc.grad(loss)(p, x, y)
    return psc.tree.map(lambda a, g: a - rate * g, p, slope)


@psc.kernel
def extremes(x: f32["n@data d"]) -> tuple[f32["d"], i32["d"], f32["n@data d"]]:
    return np.max(x, axis=0), np.argmin(x, axis=0), np.cumsum(x, axis=1)


@psc.kernel
def recurrent(w: f32["h h"], xs: f32["t n@data h"]) -> f32["n@data h"]:
    def body(state, x):
        state = np.tanh(state @ w + x)
        return state, np.sum(state)

    state, _ = psc.scan(body, np.zeros_like(xs[0]), xs)
    return state


@psc.kernel
def noisy(key: psc.Key, x: f32["n@data d"]) -> tuple[psc.Key, f32["n@data d"]]:
    first, second = psc.random.split(key)
    return first, x + psc.random.normal(second, x.shape, np.float32)


@psc.kernel
def empty(x: f32["n@data d"]) -> tuple[f32["d"], f32["n@data d"], f32["n d"]]:
    assert x.shape[0] >= 0
    return np.sum(x, axis=0), np.cumsum(x, axis=0), psc.place(x, "n d")


@psc.kernel
def of_eight(x: f32["8@data d@model"]) -> tuple[f32["d"], f32["8@model d@data"]]:
    counts = np.arange(8.0, dtype=np.float32)
    return np.sum(x * counts[:, None], axis=0), psc.place(x, "_@model _@data")


@psc.kernel
def moved(x: f32["n@data d@model"]) -> f32["n@model d@data"]:
    return psc.place(2 * x, "n@model d@data")
"""


def _run(code: str) -> Any:
    """What a program in a process with eight devices prints, as JSON."""
    environment = {**os.environ, "PSCDSL_DEVICES": "8", "PSCDSL_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


CALLS = """
import json

r = np.random.default_rng(0)
f = lambda *s: r.normal(size=s).astype("f4")
p, x, y = Params(f(6, 16), f(16, 4)), f(32, 6), f(32, 4)
x[5, 2] = np.nan
clean = np.nan_to_num(x)
cases = {
    "step": (step, (p, clean, y, 0.1)),
    "extremes": (extremes, (x,)),
    "recurrent": (recurrent, (f(4, 4), f(5, 16, 4))),
    "moved": (moved, (f(16, 8),)),
    "noisy": (noisy, (psc.random.key(3), f(16, 8))),
    "empty": (empty, (f(0, 8),)),
    "of_eight": (of_eight, (f(8, 8),)),
}
meshes = [{"data": 4}, {"model": 2}, {"data": 2, "model": 2}, {"data": 2, "model": 4}, {"other": 2}]


def worst(got, want):
    pairs = zip(psc.tree.leaves(got), psc.tree.leaves(want), strict=True)
    differences = []
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert (np.isnan(a) == np.isnan(b)).all()
        differences.append(float(np.nanmax(np.abs(a.astype(float) - b)) if a.size else 0.0))
    return max(differences)
"""


def test_meshes_give_what_one_device_gives() -> None:
    found = _run(
        CALLS
        + """
errors = {}
for name, (kernel, args) in cases.items():
    want = kernel(*args)
    for axes in meshes:
        with psc.Mesh(**axes):
            got = kernel(*args)
            assert psc.tree.leaves(got)[0].placement is not None
            errors[f"{name} on {axes}"] = worst(got, want)
print(json.dumps(errors))
"""
    )
    assert len(found) == 35
    assert max(found.values()) <= 2e-6, found


def test_results_lie_as_they_are_declared() -> None:
    found = _run(
        CALLS
        + """
with psc.Mesh(data=2, model=2) as mesh:
    value, new = step(p, clean, y, 0.1)
    put = mesh.put(clean, "n@data d"), mesh.put(y, "n@data k")
    again = step(new, *put, 0.1)
    places = [str(value.placement), str(new.w.placement), str(new.v.placement)]
    shapes = [list(s.data.shape) for s in new.w.shards]
print(json.dumps([places, shapes, float(again[0]) < float(value)]))
"""
    )
    assert found == [["", "_ _@model", "_@model _"], [[6, 8]] * 4, True]


def test_calls_that_do_not_fit_are_errors() -> None:
    found = _run(
        CALLS
        + """
def told(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


errors = []
with psc.Mesh(data=8) as mesh:
    errors.append(told(lambda: step(p, clean[:30], y[:30], 0.1)))
    placed = mesh.put(clean, "n d")
    errors.append(told(lambda: step(p, placed, y, 0.1)))
    old = mesh.put(p, Params("d h", "h k"))
    donating(old, clean, y, 0.1)
    errors.append(told(lambda: donating(old, clean, y, 0.1)))
other = psc.Mesh(data=4).put(clean, "n@data d")
with psc.Mesh(data=2):
    errors.append(told(lambda: step(p, other, y, 0.1)))
errors.append(told(lambda: step(p, other, y, 0.1)))
print(json.dumps(errors))
"""
    )
    kinds = [kind for kind, _ in found]
    texts = [text for _, text in found]
    assert kinds == [
        "ArgumentError",
        "PlacementError",
        "PlacementError",
        "PlacementError",
        "PlacementError",
    ], found
    assert "n = 30" in texts[0]
    assert "`data`" in texts[0]
    assert '`mesh.put(x, "_@data _")` moves it' in texts[1]
    assert "donated" in texts[2]


def test_predicted_bytes_are_those_of_the_compiled_program() -> None:
    found = _run(
        CALLS
        + """
pairs = {}
for name, sizes in (("step", dict(n=32, d=6, h=16, k=4)), ("moved", dict(n=16, d=8))):
    for data, model in ((4, 2), (2, 2), (2, 4), (4, 1)):
        axes = {"data": data, "model": model}
        placed = cases[name][0].lower(**sizes).on_mesh(**axes)
        received = placed.compile().collectives.values()
        pairs[f"{name} on {axes}"] = sum(placed.sent.values()), sum(n for _, n in received)
print(json.dumps(pairs))
"""
    )
    assert len(found) == 8
    assert all(predicted == counted for predicted, counted in found.values()), found
    assert any(predicted for predicted, _ in found.values())
