"""Functions of every element: circular ones, powers, activations, and what normalises rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Workload, normal
from pscdsl import Float, f32, f64, i32
from pscdsl.stdlib import activations

MANY = 1 << 20
"""The elements of the larger arrays."""


@psc.kernel
def sine(x: f32["n"]) -> f32["n"]:
    """The sine of each element."""
    return np.sin(x)


@psc.kernel
def cosine(x: f32["n"]) -> f32["n"]:
    """The cosine of each element."""
    return np.cos(x)


@psc.kernel
def tangent(x: f32["n"]) -> f32["n"]:
    """The tangent of each element."""
    return np.tan(x)


@psc.kernel
def waves(x: f32["n"], w: f32["n"]) -> f32:
    """A sum of waves: the sine is not written anywhere."""
    return np.sum(np.sin(3 * x) * w)


@psc.kernel
def standing_waves(x: f32["n"], t: f32["n"]) -> f32["n n"]:
    """Waves at times and places: each sine is read a thousand times."""
    return np.cos(t)[:, None] * np.sin(x)


@psc.kernel
def slopes(x: f32["n"]) -> f32["n-1"]:
    """How a wave changes from one sample to the next."""
    assert x.shape[0] >= 2
    return np.diff(np.sin(x))


@psc.kernel
def steepness(x: f32["n"]) -> f32:
    """A penalty for how much a wave changes."""
    return np.sum(np.diff(np.sin(x)) ** 2)


steepest = psc.grad(steepness)


@psc.kernel
def pendulum(angle: f32["n"], speed: f32["n"]) -> f32["n"]:
    """Pendulums through a thousand steps."""

    def step(_: Any, state: Any) -> Any:
        angle, speed = state
        speed = speed - 0.01 * np.sin(angle)
        return angle + 0.01 * speed, speed

    return psc.fori_loop(0, 1000, step, (angle, speed))[0]


@psc.kernel
def growth(x: f32["n"], rate: f32["n"]) -> f32["n"]:
    """Populations after 60 years, each of which needs the one before."""
    for _ in range(60):
        x = rate * x * (1.0 - x)
    return x


@psc.kernel
def settling(x: f32["n"]) -> f32["n"]:
    """A map that is applied 5 times in each step of a loop."""

    def step(_: i32, x: f32["n"]) -> f32["n"]:
        for _ in range(5):
            x = np.tanh(np.sin(x) * 1.5 + x)
        return x

    return psc.fori_loop(0, 4, step, x)


@psc.kernel
def powers(x: f32["n"], y: f32["n"]) -> f32["n"]:
    """Each element to a power of its own."""
    return x**y


@psc.kernel
def power_by_default(x: f32["n"], to: f32 = 2.0) -> f32["n"]:
    """A power that need not be given."""
    return x**to


@psc.kernel
def power_1_7(x: f32["n"]) -> f32["n"]:
    """A constant power."""
    return x**1.7


@psc.kernel
def power_1_5(x: f32["n"]) -> f32["n"]:
    """A power that is a root and a product."""
    return x**1.5


@psc.kernel
def power_1_5_double(x: f64["n"]) -> f64["n"]:
    """The same in double precision."""
    return x**1.5


@psc.kernel
def power_half(x: f32["n"]) -> f32["n"]:
    """A power that is a root."""
    return x**0.5


@psc.kernel
def inverse(x: f32["n"]) -> f32["n"]:
    """A power that is a quotient."""
    return x**-1.0


@psc.kernel
def seventh(x: f32["n"]) -> f32["n"]:
    """A power that is a product."""
    return x**7


@psc.kernel
def exp2(x: Float["n"]) -> Float["n"]:
    """Two to the power of each element."""
    return np.exp2(x)


@psc.kernel
def gelu(x: f32["n"]) -> f32["n"]:
    """The activation by the error function."""
    return activations.gelu(x)


@psc.kernel
def softplus(x: f32["n"]) -> f32["n"]:
    """`log(1 + exp(x))`."""
    return np.logaddexp(x, 0.0)


@psc.kernel
def expm1(x: f32["n"]) -> f32["n"]:
    """`exp(x) - 1`."""
    return np.expm1(x)


@psc.kernel
def log1p(x: f32["n"]) -> f32["n"]:
    """`log(1 + x)`."""
    return np.log1p(x)


@psc.kernel
def sigmoid(x: f32["n"]) -> f32["n"]:
    """`1 / (1 + exp(-x))`."""
    return activations.sigmoid(x)


@psc.kernel
def tanh(x: f32["n"]) -> f32["n"]:
    """The hyperbolic tangent."""
    return np.tanh(x)


@psc.kernel
def erf(x: f32["n"]) -> f32["n"]:
    """The error function."""
    return psc.special.erf(x)


@psc.kernel
def softmax(x: f32["m n"]) -> f32["m n"]:
    """Rows that sum to 1."""
    return activations.softmax(x)


@psc.kernel
def layernorm(x: f32["m n"], scale: f32["n"], shift: f32["n"]) -> f32["m n"]:
    """Rows of mean 0 and variance 1, scaled and shifted."""
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.var(x, axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


@psc.kernel
def logsumexp(x: f32["m n"]) -> f32["m"]:
    """The logarithm of the sum of the exponentials of each row."""
    return psc.special.logsumexp(x, axis=1)


@psc.kernel
def gelu_tanh(x: f32["n"]) -> f32["n"]:
    """The activation by the hyperbolic tangent."""
    return activations.gelu_tanh(x)


def _function(name: str) -> Callable[[Any], Callable[..., Any]]:
    """Jax's function of a name from NumPy."""
    return lambda jax: lambda *arrays: getattr(jax.numpy, name)(*arrays)


def _nn(name: str, **keywords: Any) -> Callable[[Any], Callable[..., Any]]:
    """Jax's function for neural networks."""
    return lambda jax: lambda *arrays: getattr(jax.nn, name)(*arrays, **keywords)


def _raised(exponent: float) -> Callable[[Any], Callable[..., Any]]:
    def raised(x: Any) -> Any:
        return x**exponent

    return lambda jax: raised


def _waves(jax: Any) -> Callable[..., Any]:
    def total(x: Any, w: Any) -> Any:
        return jax.numpy.sum(jax.numpy.sin(3 * x) * w)

    return total


def _slopes(jax: Any) -> Callable[..., Any]:
    def slopes(x: Any) -> Any:
        return jax.numpy.diff(jax.numpy.sin(x))

    return slopes


def _steepest(jax: Any) -> Callable[..., Any]:
    def steepness(x: Any) -> Any:
        return jax.numpy.sum(jax.numpy.diff(jax.numpy.sin(x)) ** 2)

    found: Callable[..., Any] = jax.grad(steepness)
    return found


def _standing_waves(jax: Any) -> Callable[..., Any]:
    def table(x: Any, t: Any) -> Any:
        return jax.numpy.cos(t)[:, None] * jax.numpy.sin(x)

    return table


def _pendulum(jax: Any) -> Callable[..., Any]:
    def run(angle: Any, speed: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            angle, speed = state
            speed = speed - 0.01 * jax.numpy.sin(angle)
            return angle + 0.01 * speed, speed

        return jax.lax.fori_loop(0, 1000, step, (angle, speed))[0]

    return run


def _growth(jax: Any) -> Callable[..., Any]:
    def run(x: Any, rate: Any) -> Any:
        for _ in range(60):
            x = rate * x * (1.0 - x)
        return x

    return run


def _settling(jax: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            for _ in range(5):
                x = jax.numpy.tanh(jax.numpy.sin(x) * 1.5 + x)
            return x

        return jax.lax.fori_loop(0, 4, step, x)

    return run


def _erf(jax: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = jax.lax.erf
    return found


def _layernorm(jax: Any) -> Callable[..., Any]:
    def normalised(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(axis=1, keepdims=True)
        variance = x.var(axis=1, keepdims=True)
        return (x - mean) / jax.numpy.sqrt(variance + 1e-5) * scale + shift

    return normalised


def _row(n: int) -> tuple[Any, ...]:
    return (normal(n, scale=1.0),)


def _row_double(n: int) -> tuple[Any, ...]:
    return (normal(n, scale=1.0, dtype=np.float64),)


def _rows(n: int) -> tuple[Any, ...]:
    return (normal(n, n, scale=1.0),)


def _positive(n: int) -> tuple[Any, ...]:
    return (abs(normal(n, scale=1.0)) + np.float32(0.1),)


def _positive_double(n: int) -> tuple[Any, ...]:
    return (abs(normal(n, scale=1.0, dtype=np.float64)) + 0.1,)


def _raised_arguments(n: int) -> tuple[Any, ...]:
    return *_positive(n), normal(n + 1, scale=3.0)[:n]


def _populations(n: int) -> tuple[Any, ...]:
    chance = np.random.default_rng(n)
    given = chance.uniform(0.1, 0.9, n), chance.uniform(1.5, 2.9, n)
    return tuple([each.astype(np.float32) for each in given])


def _two(n: int) -> tuple[Any, ...]:
    return normal(n, scale=1.0), normal(n + 1)[:n]


def _normalised(n: int) -> tuple[Any, ...]:
    return normal(n, n, scale=1.0), normal(n), normal(n + 1)[:n]


WORKLOADS = (
    Workload("sin 1M", sine, _row, MANY, _function("sin"), goal=0.15),
    Workload("sin 1k", sine, _row, 1000, _function("sin"), goal=1.05),
    Workload("cos 1M", cosine, _row, MANY, _function("cos"), goal=0.15),
    Workload("tan 1M", tangent, _row, MANY, _function("tan"), goal=0.3),
    Workload("waves", waves, _two, MANY, _waves, goal=0.2, tolerance=1e-3),
    Workload("standing waves", standing_waves, _two, 1000, _standing_waves, goal=0.5),
    Workload("slopes of a wave", slopes, _row, MANY, _slopes, goal=0.3),
    Workload("slopes of a wave, gradient", steepest, _row, MANY, _steepest, goal=0.3),
    Workload("pendulum", pendulum, _two, 1, _pendulum, goal=1.05),
    Workload("pendulums", pendulum, _two, 1000, _pendulum, goal=0.3),
    Workload("growth", growth, _populations, MANY, _growth, goal=0.8, tolerance=1e-4),
    Workload("settling", settling, _row, MANY, _settling, goal=0.5, tolerance=2e-3),
    Workload("power 1M", powers, _raised_arguments, MANY, _function("power"), goal=0.5),
    Workload("power by default 1M", power_by_default, _positive, MANY, _raised(2.0), goal=1.05),
    Workload("power 1k", powers, _raised_arguments, 1000, _function("power"), goal=1.05),
    Workload("x**1.7", power_1_7, _positive, MANY, _raised(1.7), goal=0.4),
    Workload("x**1.5", power_1_5, _positive, MANY, _raised(1.5), goal=0.3),
    Workload(
        "x**1.5 f64", power_1_5_double, _positive_double, MANY, _raised(1.5), goal=0.3, double=True
    ),
    Workload("x**0.5", power_half, _positive, MANY, _raised(0.5), goal=1.05),
    Workload("x**-1", inverse, _positive, MANY, _raised(-1.0), goal=1.05),
    Workload("x**7", seventh, _positive, MANY, _raised(7.0), goal=0.3),
    Workload("exp2", exp2, _row, MANY, _function("exp2"), goal=1.05),
    Workload("exp2 f64", exp2, _row_double, MANY, _function("exp2"), goal=1.05, double=True),
    Workload("gelu", gelu, _row, MANY, _nn("gelu", approximate=False), goal=1.05),
    Workload("gelu by tanh", gelu_tanh, _row, MANY, _nn("gelu"), goal=1.05, tolerance=2e-3),
    Workload("softplus", softplus, _row, MANY, _nn("softplus"), goal=0.8),
    Workload("expm1", expm1, _row, MANY, _function("expm1"), goal=1.05),
    Workload("log1p", log1p, _positive, MANY, _function("log1p"), goal=0.7),
    Workload("sigmoid", sigmoid, _row, MANY, _nn("sigmoid"), goal=1.05),
    Workload("tanh", tanh, _row, MANY, _function("tanh"), goal=1.05),
    Workload("erf", erf, _row, MANY, _erf, goal=1.05),
    Workload("softmax", softmax, _rows, 1024, _nn("softmax"), goal=1.05),
    Workload("layernorm", layernorm, _normalised, 1024, _layernorm, goal=1.05),
    Workload("logsumexp", logsumexp, _rows, 1024, _nn("logsumexp", axis=1), goal=1.05),
)
