"""Gradients and products with Hessians, through loops and layers."""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pscdsl as psc
from benchmarks.workload import Derived, Workload, normal
from pscdsl import f32, i32
from pscdsl._src.kernels.kernel import Kernel
from pscdsl.stdlib import hmm
from pscdsl.stdlib.hmm import HMM

STEPS = 1000
LAYERS = 64


@psc.kernel
def recurrent(
    w: f32["h h"], u: f32["h d"], b: f32["h"], xs: f32["t d"], h0: f32["h"], ys: f32["t h"]
) -> f32:
    """The loss of a recurrent network."""

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w @ h + u @ x + b)
        return h, h

    return np.sum((psc.scan(step, h0, xs)[1] - ys) ** 2) / ys.size


@psc.kernel
def recurrent_batch(
    w: f32["h h"], u: f32["d h"], b: f32["h"], xs: f32["t n d"], h0: f32["n h"], ys: f32["t n h"]
) -> f32:
    """The same for several sequences at once."""

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x @ u + b)
        return h, h

    return np.sum((psc.scan(step, h0, xs)[1] - ys) ** 2) / ys.size


def _recurrent(jax: Any, batch: bool) -> Callable[..., Any]:
    def loss(w: Any, u: Any, b: Any, xs: Any, h0: Any, ys: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jax.numpy.tanh(h @ w + x @ u + b if batch else w @ h + u @ x + b)
            return h, h

        _, hs = jax.lax.scan(step, h0, xs)
        return jax.numpy.mean((hs - ys) ** 2)

    return loss


def _recurrent_arguments(state: int, batch: int | None, steps: int) -> tuple[Any, ...]:
    w, b = normal(state, state, scale=0.1), normal(state)
    if batch is None:
        return w, normal(state, 8), b, normal(steps, 8), normal(state), normal(steps, state)
    given = normal(steps, batch, 8), normal(batch, state), normal(steps, batch, state)
    return w, normal(8, state), b, *given


class Layer(NamedTuple):
    """One of many; a tuple, as jax's are."""

    w: f32["h h"]
    b: f32["h"]


@psc.kernel
def network(layers: tuple[Layer, ...], x: f32["n h"], y: f32["n h"]) -> f32:
    """The loss of a network of equal layers."""
    for layer in layers:
        x = np.tanh(x @ layer.w + layer.b)
    return np.mean((x - y) ** 2)


def _network(jax: Any) -> Callable[..., Any]:
    def loss(layers: Any, x: Any, y: Any) -> Any:
        for w, b in layers:
            x = jax.numpy.tanh(x @ w + b)
        return jax.numpy.mean((x - y) ** 2)

    return loss


def _network_arguments(batch: int) -> tuple[Any, ...]:
    layers = tuple(Layer(w=normal(32, 32, scale=0.2), b=normal(32)) for _ in range(LAYERS))
    return layers, normal(batch, 32), normal(batch, 32)


@psc.kernel
def bounded(a: f32["k k"], x: f32["k"], n: i32) -> f32:
    """`n` steps of at most ten thousand."""

    def body(state: tuple[Any, Any]) -> Any:
        i, x = state
        return i + 1, np.tanh(a @ x)

    _, x = psc.while_loop(lambda state: state[0] < n, body, (0, x), max_steps=10_000)
    return np.sum(x * x)


def _bounded(jax: Any) -> Callable[..., Any]:
    """What users of jax write, whose loops with a condition have no gradient: all steps."""
    jnp = jax.numpy

    def loss(a: Any, x: Any, n: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            i, x = state
            going = i < n
            return (jnp.where(going, i + 1, i), jnp.where(going, jnp.tanh(a @ x), x)), None

        (_, x), _ = jax.lax.scan(step, (jnp.int32(0), x), None, length=10_000)
        return jnp.sum(x * x)

    return loss


@psc.kernel
def hmm_curvature(p: HMM["s o"], v: HMM["s o"], observations: i32["t"]) -> HMM["s o"]:
    """The Hessian of a log-likelihood, times a direction."""

    def gradient(p: Any) -> Any:
        return psc.grad(hmm.log_likelihood)(p, observations)

    found: HMM["s o"] = psc.jvp(gradient, (p,), (v,))[1]
    return found


def _likelihood(jax: Any) -> Callable[..., Any]:
    logsumexp = jax.nn.logsumexp

    def log_likelihood(p: Any, observations: Any) -> Any:
        start, transition, emission = p
        emissions = emission.T[observations]

        def step(message: Any, emission: Any) -> Any:
            message = logsumexp(message[:, None] + transition, axis=0) + emission
            return message, None

        message, _ = jax.lax.scan(step, start + emissions[0], emissions[1:])
        return logsumexp(message)

    return log_likelihood


def _curvature(jax: Any) -> Callable[..., Any]:
    likelihood = _likelihood(jax)

    def curvature(p: Any, v: Any, observations: Any) -> Any:
        def gradient(p: Any) -> Any:
            return jax.grad(likelihood)(p, observations)

        return jax.jvp(gradient, (p,), (v,))[1]

    return curvature


def _model(states: int, symbols: int, seed: int) -> HMM:
    random = np.random.default_rng(seed)
    shapes = (states,), (states, states), (states, symbols)
    return HMM(*[random.normal(size=shape) for shape in shapes])


def _observations(symbols: int, steps: int) -> Any:
    return np.random.default_rng(steps).integers(0, symbols, steps).astype(np.int32)


def _observed(states: int, symbols: int, steps: int) -> tuple[Any, ...]:
    return _model(states, symbols, 0), _observations(symbols, steps)


def _observed_along(states: int, symbols: int, steps: int) -> tuple[Any, ...]:
    return _model(states, symbols, 0), _model(states, symbols, 1), _observations(symbols, steps)


def _bounded_arguments(taken: int, size: int) -> tuple[Any, ...]:
    return normal(size, size, scale=0.1), normal(size), np.int32(taken)


def _value_and_grad(argnums: tuple[int, ...], kernel: Kernel[Any, Any]) -> Kernel[Any, Any]:
    return psc.value_and_grad(kernel, argnums=argnums)


def _grad(argnums: int | tuple[int, ...], kernel: Kernel[Any, Any]) -> Kernel[Any, Any]:
    return psc.grad(kernel, argnums=argnums)


def _gradient(
    name: str,
    forward: Kernel[Any, Any],
    argnums: int | tuple[int, ...],
    arguments: Callable[[int], tuple[Any, ...]],
    scale: int,
    theirs: Callable[[Any], Callable[..., Any]],
    **rest: Any,
) -> Workload:
    transform = partial(_grad, argnums)
    return Workload(
        name,
        transform(forward),
        arguments,
        scale,
        lambda jax: jax.grad(theirs(jax), argnums=argnums),
        derived=Derived(forward, transform),
        **rest,
    )


def _gradients() -> list[Workload]:
    made: list[Workload] = []
    for batch in (None, 16):
        for state in (32, 64, 128):
            made.append(
                _gradient(
                    f"rnn-{state} gradient" + (f", batch {batch}" if batch else ""),
                    recurrent_batch if batch else recurrent,
                    (0, 1, 2),
                    partial(_recurrent_arguments, state, batch),
                    STEPS,
                    partial(_recurrent, batch=batch is not None),
                    goal=0.6 if (state, batch) == (32, None) else 1.0,
                    tolerance=1e-3,
                )
            )
    for states, symbols, steps in ((6, 12, 50), (16, 32, 500), (64, 64, 500)):
        made.append(
            _gradient(
                f"hmm-{states} gradient",
                hmm.log_likelihood,
                0,
                partial(_observed, states, symbols),
                steps,
                _likelihood,
                double=True,
                tolerance=1e-10,
                choices={"Float": "f64", "Int": "i32"},
            )
        )
    return made


WORKLOADS = (
    *_gradients(),
    _gradient(
        f"{LAYERS} layers, gradient",
        network,
        0,
        _network_arguments,
        16,
        _network,
        choices={"len(layers)": LAYERS},
    ),
    *(
        Workload(
            f"{taken} of 10000 steps, gradient",
            psc.value_and_grad(bounded, argnums=(0, 1)),
            partial(_bounded_arguments, taken),
            64,
            lambda jax: jax.value_and_grad(_bounded(jax), argnums=(0, 1)),
            derived=Derived(bounded, partial(_value_and_grad, (0, 1)), goal=3.0),
        )
        for taken in (100, 1000)
    ),
    *(
        Workload(
            f"hmm-{states} Hessian times vector",
            hmm_curvature,
            partial(_observed_along, states, symbols),
            steps,
            _curvature,
            double=True,
            tolerance=1e-10,
            choices={"Float": "f64"},
        )
        for states, symbols, steps in ((6, 12, 50), (16, 32, 500), (64, 64, 500))
    ),
)
