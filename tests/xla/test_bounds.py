"""Bounds of values seen from operations: what is computed lies between them, and uses of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f16, f32, i32
from pscdsl._src.targets.cpu.functions import FEWEST
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import bounds
from tests.targets.cpu.test_pointwise_forms import ulps

FLOATS: tuple[Callable[[Any], Any], ...] = (
    np.tanh,
    lambda x: 3 * np.tanh(x) - 1,
    lambda x: np.tanh(x) * np.sin(x) / 4,
    lambda x: np.clip(x, -2, 5),
    lambda x: np.exp(np.clip(x, -3, 2)),
    lambda x: np.exp(-abs(x)),
    lambda x: np.sqrt(np.clip(x, -1, 9)),
    lambda x: np.where(x > 0, np.cos(x), 0.5),
    lambda x: np.multiply(3, np.tanh(x)) - 1,
    lambda x: abs(np.sin(x) - 0.25),
    lambda x: np.tanh(x) / (np.tanh(x) + 2),
    lambda x: np.fmod(x, 3.0),
    lambda x: np.arctan(x) * psc.special.expit(x),
    lambda x: np.sin(x)[1:-1],
    lambda x: np.arange(4.0) * np.array([0.5, -2, 3, 1]) + np.sin(x[:4]),
    lambda x: np.concatenate([np.tanh(x), np.zeros_like(x) - 2]),
    lambda x: (x > 0).astype(np.float32) - 3,
    lambda x: np.clip(x, 0, 1) * 1e30 * np.clip(x, 0, 1) * 1e30,
)
"""Functions of any numbers whose results are bounded."""
INTEGERS: tuple[Callable[[Any], Any], ...] = (
    lambda i: np.clip(i, -5, 9) * np.clip(i, -5, 9),
    lambda i: np.clip(i, -5, 9) + (2**31 - 4),
    lambda i: np.clip(i, 6, 7) // 2,
    lambda i: np.fmod(i, np.clip(i, 0, 3)),
    lambda i: abs(i),
    lambda i: i.astype(np.int8),
    lambda i: -i,
)


def seen(kernel: Any, x: Any) -> tuple[float, float]:
    """The bounds of the result of a kernel, as its module has it."""
    lowered = kernel.lower(n=len(x))
    module = lower_module(lowered.program, lowered.sizes)
    main = c.mlir.SymbolTable(module.operation)["main"]
    return bounds(next(reversed(list(main.regions[0].blocks[0].operations))).operands[0], {})


def numbers() -> Any:
    """Numbers of all sizes, and special ones."""
    random = np.random.default_rng(0)
    x = random.normal(size=500) * 10 ** random.uniform(-42, 38, 500)
    return np.append(x, [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 0.5, -1]).astype(np.float32)


@pytest.mark.parametrize("function", FLOATS)
def test_results_lie_between_their_bounds(function: Callable[[Any], Any]) -> None:
    @psc.kernel
    def kernel(x: f32["n"]) -> f32["_"]:
        assert x.shape[0] > 4
        return function(x)

    x = numbers()
    low, high = seen(kernel, x)
    found = np.asarray(kernel(x))
    known = found[~np.isnan(found)]
    assert np.all(known >= low)
    assert np.all(known <= high)
    assert max(abs(low), abs(high)) < 200 or np.max(known) > 1e30


@pytest.mark.parametrize("function", INTEGERS)
def test_integers_that_wrap_around_have_no_bounds(function: Callable[[Any], Any]) -> None:
    @psc.kernel
    def kernel(i: i32["n"]) -> psc.Int["_"]:
        return function(i)

    ends = [0, 1, -1, 6, 7, 100, 2**31 - 1, -(2**31), 1000]
    i = np.append(np.random.default_rng(0).integers(-20, 20, 500), ends).astype(np.int32)
    low, high = seen(kernel, i)
    found = np.asarray(kernel(i))
    assert low <= int(found.min())
    assert int(found.max()) <= high


@psc.kernel
def unbounded(x: f32["n"]) -> f32["n"]:
    return x * x + np.exp(x)


@psc.kernel
def deep(x: f32["n"]) -> f32["n"]:
    x = np.tanh(x)
    for _ in range(60):
        x = x * 0.5
    return x


def test_nothing_is_seen_of_a_parameter_or_far_away() -> None:
    assert seen(unbounded, numbers()) == (-np.inf, np.inf)
    assert seen(deep, numbers()) == (-np.inf, np.inf)


@pytest.mark.sampled
@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan])
@pytest.mark.parametrize("most", [0.9, 1.0, 1.5, 3.0, 30.0, 1e4, 8e6, 1e7])
def test_circular_functions_of_bounded_numbers(function: Any, most: float) -> None:
    @psc.kernel
    def kernel(x: f32["n"]) -> f32["n"]:
        return function(np.clip(x, -most, most))

    random = np.random.default_rng(0)
    quarters = np.arange(1, 300) * (np.pi / 2)
    x = random.uniform(-1, 1, FEWEST) * most * np.exp2(-random.integers(0, 30, FEWEST))
    x[:600] = np.append(np.append(quarters, most), np.append(-quarters, -most))
    x = x.astype(np.float32)
    near = np.clip(x, -np.float32(most), np.float32(most))
    wanted = function(near.astype(np.longdouble))
    assert ulps(np.asarray(kernel(x)), wanted) < (2.0 if function is np.tan else 0.51)
    special = np.resize(np.array([0, -0.0, np.nan], np.float32), FEWEST)
    found = np.asarray(kernel(special))
    np.testing.assert_array_equal(found, function(special))
    np.testing.assert_array_equal(np.signbit(found[:2]), [False, function is not np.cos])


@psc.kernel
def waves_of_waves(x: f32["n"]) -> f32["n"]:
    return np.sin(np.cos(np.sin(x)))


@psc.kernel
def halves(x: f16["n"]) -> f16["n"]:
    return np.sin(x)


def test_small_numbers_take_fewer_operations() -> None:
    text = waves_of_waves.lower(n=FEWEST).text()
    assert text.count("round_nearest_even") == 2  # both of the first sine
    assert halves.lower(n=FEWEST).text().count("round_nearest_even") == 1
