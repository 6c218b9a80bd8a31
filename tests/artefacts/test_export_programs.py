"""Programs of every kind are exported, for any device or for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Key, f32, f64, i32
from tests.support.exported import P, X, loaded, loss, rnn, same

pytestmark = pytest.mark.jaxlib


def test_derivatives_and_batches() -> None:
    same(psc.value_and_grad(loss), P, X)
    batch = psc.vmap(rnn, in_axes=(None, 0, None))
    same(batch, P, np.stack([X, X]), np.float32(1))

    @psc.kernel
    def rosenbrock(x: f64["n"]) -> f64:
        assert x.shape[0] >= 2
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    same(psc.hessian(rosenbrock), np.array([1.0, 2.0, 3.0]))
    same(psc.vmap(psc.grad(rosenbrock)), np.ones((4, 3)))


@psc.kernel
def walk(key: Key, n: i32):  # type: ignore[no-untyped-def]
    def body(state: Any) -> Any:
        at, k, x = state
        k, now = psc.random.split(k)
        return at + 1, k, psc.cond(x > 0, lambda: x - 1, lambda: x + psc.random.normal(now))

    return psc.while_loop(lambda s: s[0] < n, body, (np.int32(0), key, np.float32(0)))


def test_control_flow_and_random_keys() -> None:
    key = psc.random.key(7)
    found = same(walk, key, np.int32(20))
    again = found(found(key, 3)[1], 2)
    np.testing.assert_array_equal(again[1], found(key, 5)[1])


def test_sorting() -> None:
    @psc.kernel
    def ordered(x: f32["n"], y: i32["n m"]):  # type: ignore[no-untyped-def]
        assert x.shape[0] >= 3
        return np.sort(x), np.argsort(x), np.sort(y, axis=0), psc.top_k(x, 3), np.argmax(y, axis=1)

    draw = np.random.default_rng(0)
    x = draw.normal(size=200).astype(np.float32)
    x[::7] = np.nan
    same(ordered, x, draw.integers(0, 9, (200, 3)).astype(np.int32), exact=True)


@psc.kernel
def positive(a: f64["n n"], b: f64["n"]):  # type: ignore[no-untyped-def]
    s = a @ a.T + np.eye(a.shape[0])
    factor = np.linalg.cholesky(s)
    return factor, psc.triangular_solve(factor, b), np.linalg.cholesky(a - 100 * np.eye(a.shape[0]))


@psc.kernel
def decomposed(a: f64["n n"]):  # type: ignore[no-untyped-def]
    values = np.linalg.eigvalsh(a + a.T)
    return np.linalg.inv(a), np.linalg.det(a), np.linalg.svd(a)[1], values, np.linalg.qr(a)[1]


@pytest.mark.parametrize("n", [1, 3, 6])
def test_linear_algebra(n: int) -> None:
    a = np.random.default_rng(n).normal(size=(n, n))
    assert same(positive, a, np.ones(n)).needs == ()
    assert loaded(positive, n=n, target="cpu").needs == ("lapack_dpotrf_ffi", "lapack_dtrsm_ffi")
    assert "lapack_dgesdd_ffi" in same(decomposed, a).needs


def test_modules_are_for_any_device_unless_the_target_is_the_cpu() -> None:
    plain = psc.load(positive.export(None, n=6))
    assert "custom_call" not in plain.text()
    assert "chlo." not in plain.text()
    assert plain.target == "any"
    args = (np.random.default_rng(0).normal(size=(6, 6)), np.ones(6))
    fast = psc.load(positive.export(None, n=6, target="cpu"))
    assert fast.target == "cpu"
    for got, wanted in zip(fast(*args), positive(*args), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_memory_is_donated_as_the_kernel_does() -> None:
    @psc.kernel(donate="state")
    def step(state: f32["n"], by: f32["n"]) -> f32["n"]:
        return state + by

    found = loaded(step, n=1000)
    given = found(np.ones(1000, np.float32), np.ones(1000, np.float32))
    given = found(given, np.ones(1000, np.float32))
    after = found(given, np.ones(1000, np.float32))
    assert after[0] == 4
    with pytest.raises(psc.ArgumentError, match=r"`state` of `step`.*memory"):
        found(given, after)
    kept = loaded(step, n=10, donate=())
    first = kept(np.ones(10, np.float32), np.ones(10, np.float32))
    assert kept(first, first)[0] == 4


def test_custom_calls_have_to_be_admitted() -> None:
    @psc.primitive
    def foreign(x: f32["n"]) -> f32["n"]:
        return x

    @foreign.translation
    def _(hlo: Any, x: Any) -> Any:
        return hlo.custom_call("somebodys_routine", (x,), (hlo.type_of(x),))[0]

    @psc.kernel
    def calls(x: f32["n"]) -> f32["n"]:
        return foreign(x)

    data = calls.export(None, n=2)
    assert psc.load(data).needs == ("somebodys_routine",)
    with pytest.raises(psc.ArtefactError, match="calls somebodys_routine, which must be admitted"):
        psc.load(data)(np.ones(2, np.float32))
    with pytest.raises(psc.ArtefactError, match=r"does not compile here.*needs somebodys_routine"):
        psc.load(data, calls=["somebodys_routine"])(np.ones(2, np.float32))
