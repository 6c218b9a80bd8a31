"""Derivatives that a function's author gives, and what is saved for the way back."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32

pytestmark = pytest.mark.quick_code


@psc.custom_jvp
def softplus(x: f64) -> f64:
    return np.log1p(np.exp(x))


@softplus.defjvp
def _softplus_jvp(primals, tangents):  # type: ignore[no-untyped-def]
    (x,), (dx,) = primals, tangents
    return softplus(x), dx / (1 + np.exp(-x))


@psc.custom_vjp
def clipped(x: f64["n"], low: f64) -> f64["n"]:
    return np.maximum(x, low)


def _clipped_forward(x, low):  # type: ignore[no-untyped-def]
    return clipped(x, low), (x, low)


def _clipped_backward(saved, ct):  # type: ignore[no-untyped-def]
    x, low = saved
    return ct * 10.0, np.sum(ct * x) * low


clipped.defvjp(_clipped_forward, _clipped_backward)


@psc.custom_jvp(nondiff_argnums=(1,))
def powered(x: f64, n: psc.Static[int]) -> f64:
    return x**n


@powered.defjvp
def _powered_jvp(n, primals, tangents):  # type: ignore[no-untyped-def]
    (x,), (dx,) = primals, tangents
    return powered(x, n), 100.0 * n * dx


@psc.custom_jvp
def counted(x: f64, steps: i32) -> f64:
    return x * steps.astype(np.float64)


@counted.defjvp
def _counted_jvp(primals, tangents):  # type: ignore[no-untyped-def]
    x, steps = primals
    dx, none = tangents
    assert none is None
    return counted(x, steps), dx * steps.astype(np.float64)


def test_a_jvp_rule_serves_both_modes_to_any_order() -> None:
    @psc.kernel
    def f(x: f64) -> tuple[f64, f64, f64, f64]:
        first = psc.grad(softplus)
        _, forward = psc.jvp(softplus, (x,), (1.0,))
        return softplus(x), first(x), forward, psc.grad(first)(x)

    s = 1 / (1 + np.exp(-0.3))
    wanted = [np.log1p(np.exp(0.3)), s, s, s * (1 - s)]
    np.testing.assert_allclose(np.array(f(0.3)), wanted)
    assert np.isfinite(psc.grad(big)(800.0))


@psc.kernel
def big(x: f64) -> f64:
    return softplus(x)


def test_rules_are_batched() -> None:
    @psc.kernel
    def f(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
        return psc.vmap(softplus)(x), psc.vmap(psc.grad(softplus))(x)

    x = np.array([-1.0, 0.5, 2.0])
    value, slope = f(x)
    np.testing.assert_allclose(value, np.log1p(np.exp(x)))
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-x)))

    @psc.kernel
    def total(x: f64["n"]) -> f64:
        return np.sum(psc.vmap(softplus)(x))

    np.testing.assert_allclose(psc.grad(total)(x), 1 / (1 + np.exp(-x)))


def test_a_vjp_rule_is_what_reverse_mode_does() -> None:
    @psc.kernel
    def f(x: f64["n"], low: f64) -> tuple[f64["n"], f64]:
        dx, dlow = psc.grad(lambda x, low: np.sum(clipped(x, low)), argnums=(0, 1))(x, low)
        return dx, dlow

    dx, dlow = f(np.array([1.0, 3.0]), 2.0)
    np.testing.assert_allclose(dx, [10, 10])
    np.testing.assert_allclose(dlow, 8)

    @psc.kernel
    def rows(x: f64["b n"], low: f64) -> tuple[f64["b n"], f64]:
        def total(x: f64["b n"], low: f64) -> f64:
            return np.sum(psc.vmap(clipped, in_axes=(0, None))(x, low))

        dx, dlow = psc.grad(total, argnums=(0, 1))(x, low)
        return dx, dlow

    dxs, dlow = rows(np.array([[1.0, 3.0], [0.0, 5.0]]), 2.0)
    np.testing.assert_allclose(dxs, np.full((2, 2), 10))
    np.testing.assert_allclose(dlow, 18)


def test_a_vjp_rule_has_no_forward_mode() -> None:
    @psc.kernel
    def f(x: f64["n"], low: f64) -> f64["n"]:
        return psc.jvp(clipped, (x, low), (x, low))[1]

    with pytest.raises(psc.CheckError, match="PSC520"):
        f(np.ones(2), 1.0)


def test_arguments_that_are_not_differentiated_come_first() -> None:
    @psc.kernel
    def f(x: f64) -> tuple[f64, f64]:
        return powered(x, 3), psc.grad(lambda x: powered(x, 3))(x)

    np.testing.assert_allclose(np.array(f(2.0)), [8, 300])


def test_integers_have_none_for_their_tangent() -> None:
    @psc.kernel
    def f(x: f64, n: i32) -> f64:
        return psc.grad(counted)(x, n)

    assert float(f(2.0, np.int32(5))) == 5


def test_outside_of_kernels_it_is_the_function() -> None:
    assert softplus(0.0) == np.log(2)


def test_nested_rules_use_values_around_them() -> None:
    @psc.kernel
    def f(s: f64, x: f64["n"]) -> f64["n"]:
        @psc.custom_jvp
        def scaled(x):  # type: ignore[no-untyped-def]
            return np.sum(s * x)

        @scaled.defjvp
        def _rule(primals, tangents):  # type: ignore[no-untyped-def]
            return scaled(*primals), np.sum(2 * s * tangents[0])

        return psc.grad(scaled)(x)

    np.testing.assert_allclose(f(3.0, np.ones(2)), [6, 6])


@pytest.mark.parametrize("policy", ["nothing", "dots", "everything"])
def test_checkpoints_change_no_derivative(policy: str) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(4, 4)), rng.normal(size=4)

    def kernels(policy: str) -> Any:
        if policy == "nothing":

            @psc.kernel
            def layer(w: f64["n n"], x: f64["n"]) -> f64:
                block = psc.checkpoint(lambda x: np.tanh(w @ np.sin(x)))
                return np.sum(block(block(x)))

        elif policy == "dots":

            @psc.kernel
            def layer(w: f64["n n"], x: f64["n"]) -> f64:
                block = psc.checkpoint(lambda x: np.tanh(w @ np.sin(x)), policy="dots")
                return np.sum(block(block(x)))

        else:

            @psc.kernel
            def layer(w: f64["n n"], x: f64["n"]) -> f64:
                block = psc.checkpoint(lambda x: np.tanh(w @ np.sin(x)), policy="everything")
                return np.sum(block(block(x)))

        return layer

    @psc.kernel
    def plain(w: f64["n n"], x: f64["n"]) -> f64:
        def block(x: f64["n"]) -> f64["n"]:
            return np.tanh(w @ np.sin(x))

        return np.sum(block(block(x)))

    layer = kernels(policy)
    for one, other in zip(
        psc.grad(layer, argnums=(0, 1))(w, x), psc.grad(plain, argnums=(0, 1))(w, x), strict=True
    ):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(
        psc.hessian(layer, argnums=1)(w, x), psc.hessian(plain, argnums=1)(w, x)
    )


def test_what_is_stopped_is_constant() -> None:
    @psc.kernel
    def f(x: f64) -> f64:
        return psc.grad(lambda x: x * psc.stop_gradient(x))(x)

    assert float(f(3.0)) == 3


def test_rules_that_have_been_used_are_not_replaced() -> None:
    @psc.custom_jvp
    def double(x: f64) -> f64:
        return 2 * x

    def rule(primals: Any, tangents: Any) -> Any:
        return 2 * primals[0], 2 * tangents[0]

    double.defjvp(rule)
    double.defjvp(rule)
    assert psc.jvp(double, (np.float64(1),), (np.float64(1),))[1] == 2
    with pytest.raises(RuntimeError, match="the rules of `double` have been used"):
        double.defjvp(rule)
