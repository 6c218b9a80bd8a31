"""A matrix and its transpose that multiply one vector in a loop become one matrix before it."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i32
from pscdsl._src.targets.cpu.loops import PREPARED_FACTORS
from pscdsl._src.targets.forms import VARIABLE

N = 12


@psc.kernel
def plain(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: a @ v + v @ a, v)


@psc.kernel
def scaled(a: f64["n n"], v: f64["n"], s: f64) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: (s * v) @ a + (a @ v) * s, v)


@psc.kernel
def hessian_products(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    def loss(x: f64["n"]) -> f64:
        return x @ (a @ x) / 2

    def step(_: i32, v: f64["n"]) -> f64["n"]:
        return psc.jvp(psc.grad(loss), (v,), (v,))[1]

    return psc.fori_loop(0, 5, step, v)


@psc.kernel
def scanned(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    def step(v: f64["n"], _: None) -> tuple[f64["n"], None]:
        return a.T @ v + a @ v, None

    return psc.scan(step, v, length=5)[0]


@psc.kernel
def stopped(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.while_loop(lambda v: v @ v < 1e6, lambda v: a @ v + a.T @ v, v)


@psc.kernel
def scaled_otherwise(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: 2 * (a @ v) + 3 * (v @ a), v)


@psc.kernel
def another_vector(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: a @ v + (v + 1) @ a, v)


@psc.kernel
def another_matrix(a: f64["n n"], b: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: a @ v + v @ b, v)


@psc.kernel
def carried(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    def step(_: i32, state: tuple[f64["n n"], f64["n"]]) -> tuple[f64["n n"], f64["n"]]:
        a, v = state
        return a * 0.5, a @ v + v @ a

    return psc.fori_loop(0, 5, step, (a, v))[1]


@psc.kernel
def the_same_twice(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 5, lambda _, v: a @ v + a @ v * 1.0, v)


ONE = (plain, scaled, hessian_products, scanned, stopped)
TWO = (scaled_otherwise, another_vector, another_matrix, carried, the_same_twice)


def arguments(kernel: Any) -> tuple[Any, ...]:
    """What a kernel takes."""
    random = onp.random.default_rng(0)
    shapes = {"a": (N, N), "b": (N, N), "v": (N,), "s": ()}
    return tuple([random.normal(size=shapes[p.name]) for p in kernel.signature.parameters])


@pytest.mark.parametrize("kernel", [*ONE, *TWO], ids=lambda kernel: str(kernel.name))
def test_results_are_the_same(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = arguments(kernel)
    found = onp.asarray(kernel(*given))
    text = kernel.lower(n=N).text()
    monkeypatch.setenv(VARIABLE, PREPARED_FACTORS.name)
    assert (text != kernel.lower(n=N).text()) == (kernel in ONE)
    wanted = onp.asarray(psc.kernel(kernel.__wrapped__)(*given))
    onp.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * abs(wanted).max())


def test_one_product_is_left() -> None:
    @psc.kernel
    def single(a: f32["n n"], v: f32["n"]) -> f32["n"]:
        return psc.fori_loop(0, 5, lambda _, v: a @ v + v @ a, v)

    assert single.compile(n=100).text().count(" dot(") == 1


def test_a_matrix_beyond_the_cache_is_left_alone() -> None:
    assert "transpose" not in plain.lower(n=1000).text()
