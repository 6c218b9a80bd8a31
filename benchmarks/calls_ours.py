"""Kernels that compute next to nothing, whose calls `dispatch` times."""

from __future__ import annotations

from typing import TypeAlias

import pscdsl as psc
from pscdsl import f32

leaves = psc.tree.leaves


class Pair(psc.Record):
    """Two arrays."""

    w: f32["8"]
    b: f32["8"]


class Layer(psc.Record):
    """Two arrays, and a static value."""

    w: f32["8"]
    b: f32["8"]
    times: psc.Static[int]


@psc.kernel
def put(x: f32["8"]) -> f32["8"]:
    """An array that is a result, as the arrays of users are, and those of jax.numpy.array."""
    return x


@psc.kernel
def arrays(xs: tuple[f32["8"], ...]) -> tuple[f32["8"], ...]:
    """Each array, changed."""
    return tuple([x + 1 for x in xs])


@psc.kernel
def records(xs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Each record, changed."""
    return tuple([Pair(x.w + 1, x.b + 1) for x in xs])


@psc.kernel
def layer(x: Layer) -> Layer:
    """A record, changed according to a static field."""
    return Layer(x.w + x.times, x.b + 1, x.times)


@psc.kernel
def one(x: f32["8"]) -> f32["8"]:
    """One array, changed."""
    return x + 1


@psc.kernel
def static(x: f32["8"], times: psc.Static[int]) -> f32["8"]:
    """One array, changed according to a static value."""
    return x + times


@psc.kernel
def scaled(x: f32["8"], by: f32) -> f32["8"]:
    """One array, changed by one of Python's numbers."""
    return x * by


@psc.kernel
def layer_by(x: Layer, by: f32) -> Layer:
    """A record with a static field, changed by one of Python's numbers."""
    return Layer(x.w * by, x.b + 1, x.times)


class Scaled(psc.Record):
    """An array and what it is multiplied by."""

    x: f32["8"]
    by: f32


@psc.kernel
def product(s: Scaled) -> f32["8"]:
    """What a record with a number says."""
    return s.x * s.by


@psc.kernel
def shifted(x: f32["8"], y: f32["8"], by: f32 = 0.5) -> f32["8"]:
    """Two arrays, and a number that need not be given."""
    return x + y * by


@psc.kernel
def many_defaults(x: f32["8"], a: f32 = 0.5, b: f32 = 1.5, c: f32 = 2.5, d: f32 = 3.5) -> f32["8"]:
    """An array, and numbers that need not be given."""
    return (x * a - b) * c - d


Ten: TypeAlias = tuple[
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
    f32["8"],
]


@psc.kernel(donate="xs")
def all_moved(xs: Ten, y: f32["8"]) -> Ten:
    """Ten arrays, in their own memory."""
    a, b, c, d, e, f, g, h, i, j = xs
    return (a + y, b + y, c + y, d + y, e + y, f + y, g + y, h + y, i + y, j + y)


@psc.kernel(donate="x")
def moved(x: f32["8"], y: f32["8"]) -> f32["8"]:
    """One array, in its own memory."""
    return x + y
