"""Functions of one device's part on devices: values, derivatives, and the bytes that are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.analysis.cost import cost
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.mesh_programs import device_program
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.mesh_executable import mesh_executable
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import Choice
from tests.support.sent import compiled, emitted, predicted

MESHES = ({"data": 1}, {"data": 2}, {"data": 4}, {"data": 2, "model": 2}, {"model": 2, "data": 4})
X = np.random.default_rng(0).uniform(-1, 1, (8, 3)).astype(np.float32)
W = np.array([1, -2, 0.5], np.float32)


@psc.kernel
def diffused(x: f32["n@data d"]) -> f32["n@data d"]:
    def part(piece: f32["m d"]) -> f32["m d"]:
        before = psc.axis_shift(piece[-1:], "data")
        after = psc.axis_shift(piece[:1], "data", by=-1)
        wide = np.concatenate([before, piece, after])
        return (wide[:-2] + wide[1:-1] + wide[2:]) / 3

    return psc.on_each("data", part)(x)


@psc.kernel
def density(x: f32["n@data d"]) -> f32["n@data"]:
    def part(piece: f32["m d"]) -> f32["m"]:
        def step(i: i32, state: tuple[f32["m d"], f32["m"]]) -> tuple[f32["m d"], f32["m"]]:
            passing, total = state
            apart = np.sum((piece[:, None] - passing) ** 2, axis=2)
            return psc.axis_shift(passing, "data"), total + np.sum(np.exp(-apart), axis=1)

        start = piece, np.zeros_like(piece[:, 0])
        return psc.fori_loop(0, psc.axis_size("data"), step, start)[1]

    return psc.on_each("data", part)(x)


@psc.kernel
def gathered(x: f32["n@data d"]) -> f32["n@data n"]:
    def part(piece: f32["m d"]) -> f32["m n"]:
        return piece @ psc.axis_gather(piece, "data").T

    return psc.on_each("data", part)(x)


def loss(w: f32["d"], x: f32["n@data d"]) -> f32:
    def part(w: f32["d"], piece: f32["m d"]) -> f32:
        y = np.tanh(piece @ w)
        return psc.axis_sum(np.sum(y * psc.axis_shift(y, "data", 0)), "data")

    total: f32 = psc.on_each("data", part, in_axes=(None, 0), out_axes=None)(w, x)
    return total


@psc.kernel
def slope(w: f32["d"], x: f32["n@data d"]) -> tuple[f32, f32["d"]]:
    value, gradient = psc.value_and_grad(loss)(w, x)
    return value, gradient


@psc.kernel
def losses(ws: f32["b d"], x: f32["n@data d"]) -> f32["b"]:
    return psc.vmap(loss, in_axes=(0, None))(ws, x)


@psc.kernel
def descent(w: f32["d"], x: f32["n@data d"]) -> f32["d"]:
    return psc.scan(lambda w, _: (w - psc.grad(loss)(w, x) / 10, ()), w, length=3)[0]


def _loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w) ** 2)


def _slope(w: Any, x: Any) -> Any:
    y = np.tanh(x @ w)
    return (2 * y * (1 - y * y)) @ x


def _descent(w: Any, x: Any) -> Any:
    for _ in range(3):
        w = w - _slope(w, x) / 10
    return w


PAIRS = np.sum((X[:, None] - X) ** 2, axis=2)
PROGRAMS: Mapping[str, tuple[Kernel[..., Any], Sequence[Any], Sequence[str], Sequence[Any]]] = {
    "diffused": (
        diffused,
        [X],
        ["n@data d"],
        [(X + np.roll(X, 1, 0) + np.roll(X, -1, 0)) / 3],
    ),
    "density": (density, [X], ["n@data d"], [np.sum(np.exp(-PAIRS), axis=1)]),
    "gathered": (gathered, [X], ["n@data d"], [X @ X.T]),
    "slope": (slope, [W, X], ["d", "n@data d"], [_loss(W, X), _slope(W, X)]),
    "losses": (
        losses,
        [np.stack([W, 2 * W]), X],
        ["b d", "n@data d"],
        [np.stack([_loss(W, X), _loss(2 * W, X)])],
    ),
    "descent": (descent, [W, X], ["d", "n@data d"], [_descent(W, X)]),
}
SENT: Mapping[str, Mapping[str, str]] = {
    "diffused": {"data": "8*d"},
    "gathered": {"data": "4*d*data*n@data"},
    "slope": {"data": "4*d+4"},
    "losses": {"data": "4*b"},
}


@pytest.mark.parametrize("axes", MESHES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_whole(name: str, axes: Mapping[str, int]) -> None:
    kernel, arguments, placements, wanted = PROGRAMS[name]
    mesh = psc.Mesh(**axes)
    given = [mesh.put(x, where) for x, where in zip(arguments, placements, strict=True)]
    with mesh:
        found = kernel(*given)
    results = found if is_tuple(found) else (found,)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(psc.gather(one)), other, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("axes", MESHES[1:], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_are_those_predicted(name: str, axes: Mapping[str, int]) -> None:
    kernel = PROGRAMS[name][0]
    sizes = {"n": 8, "d": 3, "b": 2}
    known = {key: sizes[key] for key in kernel.ir().dims}
    made = device_program(kernel.reading, Choice(), known, axes)
    module = made.module(Device("cpu"))
    wanted = predicted(made.placed.function.body, made.sizes)
    assert emitted(module) == wanted
    placed = made.placed
    program = mesh_executable(module, psc.Mesh(**axes), placed.arguments, placed.results)
    assert compiled(program.text()) == wanted


@pytest.mark.parametrize("name", SENT)
def test_cost_counts_what_is_sent(name: str) -> None:
    kernel = PROGRAMS[name][0]
    placed = kernel.reading.definition.partitioned(
        kernel.reading.instance(Choice(), over_mesh=True), Choice()
    )
    assert {axis: str(size) for axis, size in cost(placed.function).sent} == SENT[name]


@psc.kernel
def noisy(key: psc.Key, x: f32["n@data"]) -> f32["n@data"]:
    def part(key: psc.Key, piece: f32["m"]) -> f32["m"]:
        own = psc.random.fold_in(key, psc.axis_index("data"))
        return piece + psc.random.normal(own, piece.shape)

    return psc.on_each("data", part, in_axes=(None, 0))(key, x)


def test_each_device_draws_from_its_own_key() -> None:
    mesh, key = psc.Mesh(data=4), psc.random.key(7)
    with mesh:
        found = psc.gather(noisy(key, mesh.put(np.zeros(8, np.float32), "n@data")))
    keys = [psc.random.fold_in(key, place) for place in range(4)]
    each = [psc.random.normal(own, (2,), np.float32) for own in keys]
    np.testing.assert_allclose(np.asarray(found), np.concatenate(each), rtol=1e-6)


@psc.kernel
def halo(x: f32["n@data"]) -> f32["n@data"]:
    def part(piece: f32["m"]) -> f32["m"]:
        assert piece.shape[0] >= 2
        return piece + np.sum(psc.axis_shift(piece[-2:], "data"))

    return psc.on_each("data", part)(x)


def test_preconditions_of_pieces_hold_on_the_mesh() -> None:
    x = np.arange(4, dtype=np.float32)
    for size, wanted in ((1, x + 5), (2, x + np.array([5, 5, 1, 1]))):
        mesh = psc.Mesh(data=size)
        with mesh:
            assert np.array_equal(psc.gather(halo(mesh.put(x, "n@data"))), wanted)
    mesh = psc.Mesh(data=4)
    with mesh, pytest.raises(psc.ArgumentError, match=r"does not hold: Mesh\(data=4\)"):
        halo(mesh.put(x, "n@data"))
    mesh = psc.Mesh(data=8)
    with pytest.raises(psc.PlacementError):
        mesh.put(x, "n@data")


def test_an_axis_that_the_mesh_has_not_has_one_device() -> None:
    mesh = psc.Mesh(model=2)
    with mesh:
        found = density(mesh.put(X, "n d"))
    np.testing.assert_allclose(np.asarray(psc.gather(found)), PROGRAMS["density"][3][0], rtol=2e-5)
