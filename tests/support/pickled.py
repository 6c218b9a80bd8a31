"""Kernels and records that other processes find by their names."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f32


@psc.kernel
def square(x: f32["n"]) -> f32["n"]:
    return x * x


@psc.kernel(donate="x")
def donating(x: f32["n"]) -> f32["n"]:
    return x + 1


def plain(x: f32["n"]) -> f32:
    """No kernel."""
    return (x * x).sum()


@psc.custom_jvp
def sine(x: Any) -> Any:
    """With a rule of its own."""
    return np.sin(x)


@sine.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return sine(primals[0]), np.cos(primals[0]) * tangents[0]


class Weights(psc.Record):
    """A record with a kernel for a method."""

    w: f32["n"]

    @psc.kernel
    def doubled(self: Weights) -> f32["n"]:
        """Twice its field."""
        return self.w * 2


made = psc.kernel(plain)
gradient = psc.grad(plain)
giving = square.with_options(donate="x")
partial = functools.partial(square)
rows = psc.vmap(square)
row_gradients = psc.vmap(psc.grad(made))
giving_gradient = psc.grad(plain).with_options(donate="x")
lowered = square.lower(n=3)
compiled = square.compile(n=3)
anonymous: Any = psc.kernel(lambda: np.float32(1))


def nested() -> Any:
    """A kernel without a name of its own."""

    @psc.kernel
    def inner(x: f32["n"]) -> f32["n"]:
        return x * x

    return inner
