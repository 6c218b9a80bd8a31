"""Transformations called from Python: what comes back, and what is said of wrong uses."""

# pyright: basic

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32
from pscdsl._src.ir.program import evaluate

pytestmark = [pytest.mark.quick_code, pytest.mark.jaxlib]


class Affine(psc.Record):
    """A record with two leaves."""

    w: f64["h d"]
    b: f64["h"]


class Counted(NamedTuple):
    """A tuple with a leaf that has no tangent."""

    x: f64["n"]
    steps: i32


@psc.kernel
def loss(p: Affine, x: f64["d"], y: f64["h"]) -> f64:
    z = (p.w @ x + p.b) - y
    return np.sum(z * z)


@psc.kernel
def counted_loss(c: Counted, y: f64["n"]) -> f64:
    return np.sum(c.x * y) * c.steps.astype(np.float64)


def values() -> tuple[Affine, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return Affine(rng.normal(size=(3, 2)), rng.normal(size=3)), rng.normal(size=2), np.ones(3)


def residual(p: Affine, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.asarray(p.w) @ x + np.asarray(p.b) - y
    return result


def test_grad_has_the_tree_of_the_argument() -> None:
    p, x, y = values()
    found = psc.grad(loss)(p, x, y)
    z = residual(p, x, y)
    assert isinstance(found, Affine)
    np.testing.assert_allclose(found.w, 2 * np.outer(z, x))
    np.testing.assert_allclose(found.b, 2 * z)


def test_argnums_name_one_or_several_arguments() -> None:
    p, x, y = values()
    value, (dx, dy) = psc.value_and_grad(loss, argnums=(1, -1))(p, x, y)
    z = residual(p, x, y)
    np.testing.assert_allclose(value, z @ z)
    np.testing.assert_allclose(dx, 2 * np.asarray(p.w).T @ z)
    np.testing.assert_allclose(dy, -2 * z)


def test_second_derivatives() -> None:
    p, x, y = values()
    w = np.asarray(p.w)
    np.testing.assert_allclose(psc.hessian(loss, argnums=1)(p, x, y), 2 * w.T @ w)
    np.testing.assert_allclose(psc.jacrev(psc.grad(loss, argnums=1), argnums=2)(p, x, y), -2 * w.T)
    np.testing.assert_allclose(psc.jacfwd(psc.grad(loss, argnums=1), argnums=2)(p, x, y), -2 * w.T)


def test_vmap_maps_the_axes_that_are_named() -> None:
    p, x, y = values()
    xs = np.stack([x, 2 * x], axis=1)
    found = psc.vmap(loss, in_axes=(None, 1, None))(p, xs, y)
    np.testing.assert_allclose(found, [loss(p, x, y), loss(p, 2 * x, y)])
    grads = psc.vmap(psc.grad(loss), in_axes=(None, 1, None), out_axes=-1)(p, xs, y)
    assert grads.w.shape == (3, 2, 2)
    np.testing.assert_allclose(grads.w[..., 1], psc.grad(loss)(p, 2 * x, y).w)


def test_a_derived_kernel_is_a_kernel() -> None:
    slope = psc.grad(loss, argnums=1)
    assert slope.check() == ()
    assert str(slope.signature) == "grad(loss)(p: Affine, x: f64[d], y: f64[h])"
    assert "f64[d]" in str(slope.ir())
    p, x, y = values()

    @psc.kernel
    def step(p: Affine, x: f64["d"], y: f64["h"]) -> f64["d"]:
        return x - 0.1 * slope(p, x, y)

    np.testing.assert_allclose(step(p, x, y), x - 0.1 * np.asarray(slope(p, x, y)))


def test_preconditions_are_kept() -> None:
    @psc.kernel
    def halves(x: f64["n"]) -> f64:
        n = x.shape[0]
        assert n % 2 == 0
        return np.sum(x[: n // 2] * x[n // 2 :])

    np.testing.assert_allclose(psc.grad(halves)(np.arange(4.0)), [2, 3, 0, 1])
    with pytest.raises(psc.ArgumentError, match=re.escape("n % 2 == 0")):
        psc.grad(halves)(np.arange(3.0))


def test_integers_have_no_tangents() -> None:
    with pytest.raises(psc.CheckError, match=r"PSC511(.|\n)*`\.steps`: it is i32"):
        psc.grad(counted_loss)(Counted(np.ones(2), np.int32(3)), np.ones(2))
    found = psc.grad(counted_loss, argnums=1)(Counted(np.ones(2), np.int32(3)), np.ones(2))
    np.testing.assert_allclose(found, [3, 3])


def test_reverse_mode_needs_a_bound_and_says_who_asked() -> None:
    @psc.kernel
    def root(a: f64) -> f64:
        return psc.while_loop(lambda x: x * x - a > 1e-9, lambda x: (x + a / x) / 2, a)

    with pytest.raises(psc.CheckError) as caught:
        psc.grad(root)(2.0)
    assert "PSC512" in str(caught.value)
    assert "`psc.grad(root)`" in str(caught.value)


def test_untyped_functions_are_refused() -> None:
    untyped: Any = np.sum
    with pytest.raises(TypeError, match=re.escape("psc.grad takes a kernel")):
        psc.grad(untyped)(np.ones(2))
    with pytest.raises(TypeError, match=re.escape("psc.grad takes a function, not 3")):
        psc.grad(3)  # type: ignore[arg-type]
    with pytest.raises(psc.CheckError, match="has no type"):
        psc.grad(lambda x: x)(1.0)


@psc.kernel
def outer(x: f64["n"], c: Counted) -> tuple[f64["n"], f64]:
    return x * c.x, np.sum(x) * c.steps.astype(np.float64)


def test_directions_from_python() -> None:
    x, c = np.array([1.0, 2.0]), Counted(np.array([3.0, 4.0]), np.int32(5))
    dc = Counted(np.array([1.0, 0.0]), None)  # pyright: ignore[reportArgumentType]
    value, tangent = psc.jvp(outer, (x, c), (np.ones(2), dc))
    np.testing.assert_allclose(value[0], [3, 8])
    np.testing.assert_allclose(tangent[0], [4, 4])
    np.testing.assert_allclose(tangent[1], 10)
    value, linear = psc.linearize(outer, x, c)
    np.testing.assert_allclose(value[1], 15)
    np.testing.assert_allclose(linear(np.ones(2), dc)[0], [4, 4])
    value, back = psc.vjp(outer, x, c)
    for scale in (1.0, 2.0):
        dx, found = back((scale * np.array([1.0, 0.0]), 0.0))
        np.testing.assert_allclose(dx, [3 * scale, 0])
        np.testing.assert_allclose(found.x, [scale, 0])
        assert found.steps is None


def test_wrong_directions_are_refused() -> None:
    x, c = np.array([1.0, 2.0]), Counted(np.array([3.0, 4.0]), np.int32(5))
    _, back = psc.vjp(outer, x, c)
    with pytest.raises(psc.ArgumentError, match=re.escape("is f64[3], not f64[2]")):
        back((np.ones(3), 0.0))
    with pytest.raises(psc.ArgumentError, match="takes one cotangent"):
        back(np.ones(2), 0.0)
    with pytest.raises(psc.ArgumentError, match=re.escape("not None")):
        psc.jvp(outer, (x, c), (x, c))


@psc.kernel
def differences(x: f64["n+1"], s: psc.Static[float] = 2.0) -> f64["n"]:
    return (x[1:] - x[:-1]) * s


@psc.kernel
def squares(x: f64["n"]) -> f64["n"]:
    return x * x


def test_linear_functions_are_transposed() -> None:
    back = psc.linear_transpose(differences, np.zeros(4))
    (found,) = back(np.array([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(found, [-2, -18, -180, 200])
    with pytest.raises(psc.CheckError, match="linear"):
        psc.linear_transpose(squares, np.zeros(4))


@psc.custom_jvp
def doubled(x: f64) -> f64:
    return 2 * x


@doubled.defjvp
def _doubled_jvp(primals, tangents):  # type: ignore[no-untyped-def]
    return doubled(*primals), 7 * tangents[0]


def test_functions_with_rules_are_transformed_as_they_are() -> None:
    assert float(psc.grad(doubled)(1.0)) == 7
    assert float(psc.jvp(doubled, (1.0,), (1.0,))[1]) == 7
    np.testing.assert_allclose(psc.vmap(psc.grad(doubled))(np.ones(2)), [7, 7])


@psc.kernel
def grown(x: f64["n"]) -> f64["n"]:
    return psc.while_loop(lambda c: np.sum(c) < 100, lambda c: c * x, x)


def test_forward_mode_needs_no_bound() -> None:
    x = np.array([1.5, 2.0])
    found = np.asarray(psc.jacfwd(grown)(x))
    steps = np.diff([np.asarray(grown(x + d)) for d in (-1e-6, 1e-6)], axis=0)[0] / 2e-6
    np.testing.assert_allclose(found.sum(axis=1), steps, rtol=1e-6)


@psc.kernel
def long_product(x: f64["n"], a: f64["n"]) -> f64:
    for _ in range(1500):
        x = x * a
    return np.sum(x)


def test_a_long_chain_of_cheap_equations_is_no_problem() -> None:
    gradient = psc.grad(long_product, argnums=(0, 1))
    x, a = np.array([0.5, 1.25]), np.array([1.001, 0.999])
    by_x, by_a = evaluate(gradient.ir(), {"n": 2}, [x, a])
    np.testing.assert_allclose(by_x, a**1500, rtol=1e-10)
    np.testing.assert_allclose(by_a, 1500 * x * a**1499, rtol=1e-10)


@psc.kernel
def multiple(k: psc.Static[int], x: f64["n"]) -> f64["n"]:
    return k * x


def test_a_static_argument_is_the_same_for_all_rows() -> None:
    x = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(psc.vmap(multiple, in_axes=(None, 0))(3, x), 3 * x)
    with pytest.raises(psc.CheckError, match="axis 0 of argument 0, but it is i64"):
        psc.vmap(multiple)(3, x)
    with pytest.raises(psc.CheckError, match="in_axes has 1 item, but there are 2 arguments"):
        psc.vmap(multiple, in_axes=(None,))(3, x)


def test_a_partial_function_is_no_kernel() -> None:
    with pytest.raises(TypeError, match="not a partial; write a typed function that calls it"):
        psc.grad(functools.partial(multiple, 3))(np.ones(2))


def test_pulling_back_through_a_loop_without_a_bound_says_who_asks() -> None:
    def looped(x: f64) -> f64:
        return psc.while_loop(lambda x: x < 3, lambda x: x * 2, x)

    with pytest.raises(psc.CheckError, match=r"`psc\.vjp\(looped\)` asks for"):
        psc.vjp(looped, np.float64(1))
