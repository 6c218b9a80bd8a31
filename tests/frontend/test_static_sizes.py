"""Sizes that one kernel gives to another as static values: in names of the one that is called."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.calls.errors import CheckError


@psc.kernel
def scaled(x: f32["n"], k: psc.Static[int]) -> f32["n"]:
    """Its own `n` is not the size of that name which a caller may have."""
    return x * k + x.shape[0]


@psc.kernel
def zeros(x: f32["n"], k: psc.Static[int]) -> f32["k"]:
    return np.zeros(k, np.float32) + np.sum(x)


@psc.kernel
def weighted(x: f32["n"], ks: psc.Static[tuple[int, ...]]) -> f32["n"]:
    return x * (ks[0] - ks[1]) + x.shape[0]


@psc.kernel
def applied(x: f32["n"], function: psc.Static[Callable[[Any], Any]]) -> f32["n"]:
    return function(x)


@psc.kernel
def of_another(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return scaled(x, y.shape[0])


@psc.kernel
def of_both(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return scaled(x, y.shape[0] * x.shape[0] - 1)


@psc.kernel
def of_its_own(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return scaled(x, x.shape[0]) + y.shape[0]


@psc.kernel
def as_an_axis(x: f32["m"], y: f32["n"]) -> f32["n+1"]:
    return zeros(x, y.shape[0] + 1)


@psc.kernel
def in_a_tuple(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return weighted(x, (y.shape[0], x.shape[0]))


@psc.kernel
def in_turn(x: f32["n"], y: f32["m"]) -> f32["n"]:
    return of_both(x, zeros(y, x.shape[0] + 3))


@psc.kernel
def in_a_batch(x: f32["m n"], y: f32["k"]) -> f32["m n"]:
    return psc.vmap(scaled, in_axes=(0, None))(x, y.shape[0])


@psc.kernel
def in_a_derivative(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return psc.grad(lambda v: np.sum(scaled(v, y.shape[0])))(x)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (5, 2), (3, 3)])
@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        (of_another, lambda x, m, n: x * n + m),
        (of_both, lambda x, m, n: x * (m * n - 1) + m),
        (of_its_own, lambda x, m, n: x * m + m + n),
        (as_an_axis, lambda x, m, n: np.full(n + 1, x.sum())),
        (in_a_tuple, lambda x, m, n: x * (n - m) + m),
        (in_turn, lambda x, m, n: x * (m * (m + 3) - 1) + m),
        (in_a_batch, lambda x, m, n: np.array([x * n + m])),
        (in_a_derivative, lambda x, m, n: np.full(m, n)),
    ],
)
def test_the_callee_has_the_sizes_of_the_caller(
    kernel: Any, wanted: Callable[..., Any], sizes: tuple[int, int]
) -> None:
    m, n = sizes
    x, y = np.arange(1, m + 1, dtype=np.float32), np.ones(n, np.float32)
    kernel.check()
    found = kernel(x[None] if kernel is in_a_batch else x, y)
    np.testing.assert_array_equal(found, wanted(x, m, n))


@psc.kernel
def captured(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return applied(x, lambda v: v * y.shape[0])


@psc.kernel
def captured_array(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return applied(x, lambda v: v * y[0])


@psc.kernel
def captured_size(x: f32["m"], y: f32["n"]) -> f32["m"]:
    n = y.shape[0]
    return applied(x, lambda v: v * n)


@psc.kernel
def partly_given(x: f32["m"], y: f32["n"]) -> f32["m"]:
    return applied(x, functools.partial(np.multiply, y.shape[0]))


@pytest.mark.parametrize("kernel", [captured, captured_array, captured_size, partly_given])
def test_functions_that_hold_sizes_of_the_caller_are_refused(kernel: Any) -> None:
    with pytest.raises(CheckError, match="PSC109"):
        kernel.check()


@psc.kernel
def plain(x: f32["m"]) -> f32["m"]:
    return applied(x, lambda v: 2 * v) + 3 * x


def test_functions_that_hold_none_are_taken() -> None:
    np.testing.assert_array_equal(plain(np.ones(2, np.float32)), [5, 5])
