"""Kernels among jax's functions: jitted, differentiated and batched by jax, against jax's own.

They need jax, which the rest of the tests must do without: `make test` gives it to them alone.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import Float, Key, f32, f64, i32

jax: Any = pytest.importorskip("jax")
jnp: Any = import_module("jax.numpy") if jax else None
jax.config.update("jax_enable_x64", True)


class Params(psc.Record):
    """A layer and a step."""

    w: f64["d"]
    b: f64


class Sums(NamedTuple):
    """What a pass over rows finds."""

    total: f64
    largest: f64


@psc.kernel
def loss(p: Params, xs: f64["n d"], ys: f64["n"]) -> f64:
    """A loop, products and a mean."""
    z = np.tanh(xs @ p.w + p.b)

    def step(total: f64, row: f64) -> tuple[f64, None]:
        return total + np.sin(row) * total, None

    total, _ = psc.scan(step, np.float64(1), z)
    return np.mean((z - ys) ** 2) * total


def reference(p: Any, xs: Any, ys: Any) -> Any:
    """The same for jax."""
    z = jnp.tanh(xs @ p.w + p.b)
    total = jax.lax.scan(lambda c, row: (c + jnp.sin(row) * c, None), 1.0, z)[0]
    return jnp.mean((z - ys) ** 2) * total


def arguments() -> tuple[Params, Any, Any]:
    random = np.random.default_rng(0)
    p = Params(jnp.asarray(random.normal(size=3)), jnp.asarray(0.3))
    return p, jnp.asarray(random.normal(size=(5, 3))), jnp.asarray(random.normal(size=5))


def close(found: Any, wanted: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


TRANSFORMED: dict[str, Any] = {
    "as it is": lambda f: f,
    "jit": lambda f: jax.jit(f),
    "grad": lambda f: jax.grad(f),
    "grad in the last": lambda f: jax.jit(jax.grad(f, 2)),
    "grad of grad": lambda f: jax.grad(
        lambda p, xs, ys: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(jax.grad(f)(p, xs, ys)))
    ),
    "hessian": lambda f: jax.hessian(f, 1),
    "jacfwd of jacrev": lambda f: jax.jacfwd(jax.jacrev(f, 2), 2),
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
    "linearize": lambda f: lambda *args: jax.linearize(f, *args)[1](*args),
    "vmap": lambda f: (
        lambda p, xs, ys: jax.vmap(f, (None, 0, None))(p, jnp.stack([xs, 2 * xs]), ys)
    ),
    "vmap of the last axis": lambda f: (
        lambda p, xs, ys: jax.vmap(f, (None, None, 1))(p, xs, jnp.stack([ys, 2 * ys, ys], 1))
    ),
    "vmap of vmap of grad": lambda f: (
        lambda p, xs, ys: jax.vmap(jax.vmap(jax.grad(f, 1), (None, 0, None)), (None, None, 0))(
            p, jnp.stack([xs, 2 * xs]), jnp.stack([ys, ys, -ys])
        )
    ),
    "grad of vmap": lambda f: jax.grad(
        lambda p, xs, ys: jax.vmap(f, (None, None, 0))(p, xs, jnp.stack([ys, -ys])).sum()
    ),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "scan": lambda f: (
        lambda p, xs, ys: jax.lax.scan(lambda c, y: (c + f(p, xs, ys * y), None), 0.0, ys)[0]
    ),
    "grad of scan": lambda f: jax.grad(
        lambda p, xs, ys: jax.lax.scan(lambda c, y: (c + f(p, xs, ys * y), None), 0.0, ys)[0]
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_jax_transforms_kernels(name: str) -> None:
    transformed = TRANSFORMED[name]
    close(transformed(loss.to_jax())(*arguments()), transformed(reference)(*arguments()))


def test_transformed_kernels() -> None:
    close(psc.grad(loss).to_jax()(*arguments()), jax.grad(reference)(*arguments()))


@psc.kernel
def sums(key: Key, xs: tuple[Float["n"], ...], scale: Float, count: psc.Static[int]) -> Sums:
    """Random weights; a tuple, a scalar, a static number, another record."""
    noise = psc.random.normal(key, (count,), dtype=np.float64)
    first = xs[0] * scale
    return Sums((first.sum() + noise.sum()).astype(np.float64), first.max().astype(np.float64))


def test_keys_scalars_statics_and_named_tuples() -> None:
    data = jax.random.key_data(jax.random.key(7))
    xs = (jnp.arange(4.0), jnp.ones(4))
    found = jax.jit(sums.to_jax(), static_argnums=3)(data, xs, 2.0, 3)
    noise = jax.random.normal(jax.random.key(7), (3,), np.float64)
    assert isinstance(found, Sums)
    close(found, Sums(2 * xs[0].sum() + noise.sum(), 2 * xs[0].max()))
    close(sums.to_jax()(data, xs, 2, count=3), found)


@psc.kernel
def nearest(x: f32["n d"], classes: i32["n"], query: f32["d"]) -> tuple[i32, f32]:
    """Integers, which have no tangents."""
    distances = ((x - query) ** 2).sum(axis=1)
    at = np.argmin(distances)
    return classes[at], distances[at]


def test_integers_have_no_tangents() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, 2)), np.float32)
    classes = jnp.arange(6, dtype=np.int32)
    slope = jax.grad(lambda q: nearest.to_jax()(x, classes, q)[1])(x[3] + 0.01)
    np.testing.assert_allclose(slope, 2 * (x[3] + np.float32(0.01) - x[3]), rtol=1e-4)
    found, _ = jax.vmap(nearest.to_jax(), (None, None, 0))(x, classes, x)
    assert found.tolist() == list(range(6))


@dataclass(frozen=True)
class Point:
    """A dataclass."""

    x: f64
    y: f64


@psc.kernel
def turned(p: Point, weights: pyrsistent.PVector[f64["n"]]) -> tuple[Point, f64["n"]]:
    """A quarter turn; the sum of two vectors."""
    return Point(-p.y, p.x), weights[0] + weights[1]


def test_dataclasses_and_persistent_vectors() -> None:
    function = turned.to_jax()
    p, weights = Point(jnp.asarray(1.0), jnp.asarray(2.0)), pyrsistent.v(jnp.ones(2), jnp.ones(2))
    found, total = jax.jit(function)(p, weights)
    close(found, Point(-p.y, p.x))
    close(total, 2 * jnp.ones(2))
    slope = jax.grad(lambda p, weights: function(p, weights)[0].x, argnums=(0, 1))(p, weights)
    close(slope, (Point(0.0, -1.0), pyrsistent.v(jnp.zeros(2), jnp.zeros(2))))


def test_arrays_of_either_side() -> None:
    p, xs, ys = arguments()
    mixed = loss.to_jax()(Params(np.asarray(p.w), psc.from_dlpack(p.b)), xs, np.asarray(ys))
    close(mixed, reference(p, xs, ys))
    np.testing.assert_allclose(loss(p, xs, ys), reference(p, xs, ys), rtol=1e-12)
    assert isinstance(jnp.from_dlpack(psc.from_dlpack(np.ones(3))), jax.Array)


def test_mistakes_are_told() -> None:
    p, xs, ys = arguments()
    with pytest.raises(psc.ArgumentError, match="it has 1 axis, not 2"):
        jax.jit(loss.to_jax())(p, ys, ys)
    with pytest.raises(psc.ArgumentError, match=r"to_jax\(\)"):
        jax.jit(lambda xs: loss(p, xs, ys))(xs)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(psc.ArgumentError, match="64-bit types are switched off"):
            loss.to_jax()(p, xs, ys)
    finally:
        jax.config.update("jax_enable_x64", True)


@psc.kernel
def faded(x: f32["n"], rate: float, times: int, down: bool) -> f32["n"]:
    """Numbers of Python's beside an array."""
    return np.where(down, x * (1 - rate) * times, x)


@pytest.mark.parametrize("wide", [True, False])
def test_pythons_numbers_where_64_bit_types_are_off(wide: bool) -> None:
    """They are passed in the dtypes of jax, and are weak there, too."""
    x = np.array([1, 2.7, 0.3], np.float32)
    jax.config.update("jax_enable_x64", wide)
    try:
        function = faded.to_jax()
        wanted = x * np.float32(1 - 0.25) * 3
        for call in (function, jax.jit(function)):
            found = call(x, 0.25, 3, True)
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, wanted)
        slope = jax.grad(lambda rate: function(x, rate, 3, True).sum())(0.25)
        assert slope.dtype == (np.float64 if wide else np.float32)
        np.testing.assert_allclose(slope, -3 * x.sum(), rtol=1e-6)
        rates = np.array([0.25, 0.5], np.float32)
        rows = jax.vmap(function, (None, 0, None, None))(x, rates, 3, True)
        np.testing.assert_array_equal(rows[0], wanted)
    finally:
        jax.config.update("jax_enable_x64", True)
