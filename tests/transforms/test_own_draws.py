"""What devices make themselves, random draws for instance, is made on the own piece only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i32
from pscdsl._src.ir.program import evaluate, walk_called
from pscdsl._src.transforms.partition import Partitioned
from pscdsl.typing.dims import names
from pscdsl.typing.signatures import Choice
from tests.transforms.devices import run

KEY = np.array([7, 11], np.uint32)
X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = np.arange(12, dtype=np.int32) % 4
MESHES = {"data": 1}, {"data": 2}, {"data": 3, "model": 2}, {"model": 2, "data": 2}


@psc.kernel
def noisy(key: psc.Key, x: f32["n@data d"]) -> f32["n@data d"]:
    return x + 0.1 * psc.random.normal(key, x.shape)


@psc.kernel
def dropped(key: psc.Key, x: f32["n@data d"], w: f32["d"]) -> f32["d"]:
    def loss(w: f32["d"]) -> f32:
        return np.mean(np.where(psc.random.bernoulli(key, 0.5, x.shape), x, 0.0) @ w)

    return psc.grad(loss)(w)


@psc.kernel
def by_row(key: psc.Key, x: f32["n@data d"]) -> f32["n@data d"]:
    def row(key: psc.Key, x: f32["d"]) -> f32["d"]:
        return x * psc.random.uniform(psc.random.fold_in(key, 3), x.shape)

    return psc.vmap(row)(psc.random.split(key, x.shape[0]), x)


@psc.kernel
def of_a_function(key: psc.Key, x: f32["n@data d"]) -> f32["n@data d"]:
    return noise(key, x.shape[0], x.shape[1]) + x


@psc.kernel
def noise(key: psc.Key, n: int, d: int) -> f32["n d"]:
    return psc.random.normal(key, (n, d))


@psc.kernel
def wide_and_both(key: psc.Key, x: f64["n@data d@model"]) -> tuple[f64["n@data d@model"], f64]:
    draws = psc.random.normal(key, x.shape, np.float64)
    return x + draws, np.sum(draws)


@psc.kernel
def placed(x: f32["n@data d"]) -> f32["n@data d"]:
    counts = psc.place(np.arange(x.shape[0]), "n@data")
    return np.sqrt(counts.astype(np.float32))[:, None] + x


@psc.kernel
def one_hot(labels: i32["n@data"], x: f32["n@data k@model"]) -> f32["n@data k@model"]:
    return np.where(labels[:, None] == np.arange(x.shape[1]), x, 0.0)


@psc.kernel
def in_a_loop(key: psc.Key, x: f32["n@data d"]) -> f32["n@data d"]:
    def step(x: f32["n d"], key: psc.Key) -> tuple[f32["n d"], None]:
        return np.sin(x) + psc.random.normal(key, x.shape), None

    return psc.scan(step, x, psc.random.split(key, 3))[0]


KERNELS: dict[Any, tuple[Any, ...]] = {
    noisy: (KEY, X),
    dropped: (KEY, X, np.ones(3, np.float32)),
    by_row: (KEY, X),
    of_a_function: (KEY, X),
    in_a_loop: (KEY, X),
    placed: (X,),
    one_hot: (LABELS, X[:, :2]),
}


def _program(kernel: Any, mesh: dict[str, int]) -> Partitioned:
    made: Partitioned = kernel.reading.definition.partitioned(kernel.ir(), Choice(), tuple(mesh))
    return made


def _sizes(kernel: Any, operands: tuple[Any, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for type_, x in zip(kernel.ir().body.in_types, operands, strict=True):
        found.update({str(n): k for n, k in zip(type_.shape, x.shape, strict=False)})
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.name)
def test_no_device_makes_the_whole(kernel: Any) -> None:
    operands = KERNELS[kernel]
    sizes = _sizes(kernel, operands)
    wanted = evaluate(kernel.ir(), sizes, operands)
    for mesh in MESHES:
        program = _program(kernel, mesh)
        for got, want in zip(run(program, operands, sizes, mesh), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
        if "data" not in mesh:
            continue
        cut = {whole for whole, along in program.cut.values() if "data" in along}
        for each in walk_called(program.function.body):
            assert each.primitive.name != "own_part"
            for var in each.outputs:
                of = {name for size in var.type.shape for name in names(size)}
                assert of.isdisjoint(cut), each


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_draws_are_those_of_one_device(mesh: dict[str, int]) -> None:
    x = np.zeros((12, 4))
    sizes = {"n": 12, "d": 4}
    wanted = evaluate(wide_and_both.ir(), sizes, (KEY, x))
    program = _program(wide_and_both, mesh)
    found = run(program, (KEY, x), sizes, mesh)
    for got, want in zip(found, wanted, strict=True):
        assert got.tobytes() == want.tobytes()
