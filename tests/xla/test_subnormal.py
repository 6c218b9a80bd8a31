"""Values without subnormal numbers, as arithmetic has made them, and sines of these."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.targets.cpu.functions import FEWEST
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import flushed
from tests.targets.cpu.test_pointwise_forms import TINY, ulps

NORMAL: tuple[Callable[[Any], Any], ...] = (
    lambda x: x + x,
    lambda x: np.tanh(x * 0.5),
    lambda x: np.clip(x - 0.25, -1, 1),
    lambda x: np.where(x > 0, -np.exp(x), 0.5)[::-1],
    lambda x: abs(np.sqrt(x)).reshape((2, -1)).T,
    lambda x: np.concatenate([np.cos(x), np.zeros_like(x), np.pad(x / 3, 1)]),
    lambda x: (x > 0).astype(np.float32),
    lambda x: x.astype(np.float64).astype(np.float32),
    lambda x: np.tanh(np.sin(x + 1)),
)
"""Functions whose results arithmetic has made."""
SUBNORMAL: tuple[Callable[[Any], Any], ...] = (
    lambda x: x,
    lambda x: np.tanh(x),
    lambda x: np.clip(x, -1, 1),
    lambda x: np.where(x > 0, x, x + 1),
    lambda x: -x[::-1],
    lambda x: np.fmod(x + 1, 1e-40 * x),
    lambda x: np.maximum(x * x, 1e-40),
    lambda x: psc.scan(lambda a, b: (a, b), x[0], x)[1],
)
"""Functions whose results, or parts of them, may be those that are given."""


def is_flushed(function: Callable[[Any], Any]) -> bool:
    """What is seen of a result."""

    @psc.kernel
    def kernel(x: f32["8"]) -> f32["_"]:
        return function(x).ravel()

    lowered = kernel.lower()
    module = lower_module(lowered.program, lowered.sizes)
    main = c.mlir.SymbolTable(module.operation)["main"]
    return flushed(next(reversed(list(main.regions[0].blocks[0].operations))).operands[0])


@pytest.mark.parametrize("function", NORMAL)
def test_what_arithmetic_made_has_none(function: Callable[[Any], Any]) -> None:
    assert is_flushed(function)


@pytest.mark.parametrize("function", SUBNORMAL)
def test_what_is_given_may_have_some(function: Callable[[Any], Any]) -> None:
    assert not is_flushed(function)


def test_few_operations_are_looked_at() -> None:
    def deep(x: Any) -> Any:
        x = x + 1
        for _ in range(17):
            x = np.tanh(x)
        return x

    assert not is_flushed(deep)


def tiny() -> Any:
    """Numbers down to the smallest there is, zeros of both signs, and NaN."""
    sizes = np.ldexp(np.random.default_rng(0).uniform(1, 2, 2000), np.resize(range(-149, 0), 2000))
    special = np.array([0.0, -0.0, np.nan, 1e-45, TINY, -TINY, 2.0**-12, 2.0**-13])
    every: Any = np.concatenate([sizes, -sizes, special])
    return np.resize(every.astype(np.float32), FEWEST)


@psc.kernel
def of_arithmetic(x: f32["n"]) -> f32["n"]:
    return np.sin(np.clip(x * 2, -1.5, 1.5))


@psc.kernel
def of_small(x: f32["n"]) -> f32["n"]:
    return np.sin(np.tanh(x * 2))


@psc.kernel
def of_parameter(x: f32["n"]) -> f32["n"]:
    return np.sin(np.clip(x, -1.5, 1.5))


def test_sines_of_tiny_numbers() -> None:
    x = tiny()
    with np.errstate(all="ignore"):
        twice = (x * np.float32(2)).astype(np.longdouble)
        pairs = (
            (of_arithmetic, np.sin(np.clip(twice, -1.5, 1.5)), 0.51),
            (of_small, np.sin(np.tanh(twice)), 8.0),
            (of_parameter, np.sin(np.clip(x.astype(np.longdouble), -1.5, 1.5)), 0.51),
        )
    for kernel, wanted, bound in pairs:
        found = np.asarray(kernel(x))
        usual = abs(x) >= TINY  # arithmetic also takes others for zero
        assert ulps(found[usual], wanted[usual]) < bound
        np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
        known = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(x)[known])
        below = abs(twice if kernel is not of_parameter else x) < TINY
        assert np.all(abs(found[below]) <= TINY)


def test_a_choice_is_left_out() -> None:
    def choices(kernel: Any) -> int:
        text: str = kernel.lower(n=FEWEST).text()
        return text.count("stablehlo.select")

    assert choices(of_arithmetic) == choices(of_small) == 0
    assert choices(of_parameter) == 1
