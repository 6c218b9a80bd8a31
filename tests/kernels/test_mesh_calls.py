"""Kernels on the devices of a mesh give what they give on one device.

All meshes of this process are of its eight CPU devices, which a process of its own has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.jaxlib

PROGRAMS = '''
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
def moved(x: f32["n@data d@model"]) -> f32["n@model d@data"]:
    return psc.place(2 * x, "n@model d@data")
'''


def _run(code: str) -> object:
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
