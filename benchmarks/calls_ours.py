"""Kernels that compute next to nothing, whose calls `dispatch` times."""

from __future__ import annotations

from typing import TypeAlias, TypedDict

import numpy as np

import pscdsl as psc
from pscdsl import c64, f32, i32

leaves = psc.tree.leaves


class Pair(psc.Record):
    """Two arrays."""

    w: f32["8"]
    b: f32["8"]

    @psc.kernel
    def apply(self, x: f32["8"]) -> f32["8"]:
        """A method of the two and an array."""
        return self.w * x + self.b


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
def put_number(x: f32) -> f32:
    """A number that is a result."""
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


class Named(TypedDict):
    """Four arrays by name."""

    a: f32["8"]
    b: f32["8"]
    c: f32["8"]
    d: f32["8"]


@psc.kernel
def named(x: Named) -> f32["8"]:
    """The sum of a dict."""
    return x["a"] + x["b"] + x["c"] + x["d"]


@psc.kernel
def three(x: f32["8"], y: f32["8"], z: f32["8"]) -> f32["8"]:
    """Three arrays as one."""
    return x * y + z


@psc.kernel
def word(x: f32["8"], how: psc.Static[str]) -> f32["8"]:
    """One array, changed as a word says."""
    return x * 2 if how == "twice" else x


TABLE = psc.constant(np.arange(8, dtype=np.float32))


@psc.kernel
def captured(x: f32["8"]) -> f32["8"]:
    """One array, with an array of the module."""
    return x + TABLE


@psc.kernel
def two_numbers(a: f32, b: f32) -> f32:
    """A sum of numbers."""
    return a + b


@psc.kernel
def four_numbers(a: f32, b: f32, c: f32, d: f32) -> f32:
    """A sum of numbers."""
    return a + b + c + d


def _sum(
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    e: f32,
    f: f32,
    g: f32,
    h: f32,
    i: f32,
    j: f32,
    k: f32,
    m: f32,
) -> f32:
    """A sum of numbers."""
    return a + b + c + d + e + f + g + h + i + j + k + m


numbers = psc.kernel(_sum)
device_numbers = psc.kernel(_sum)


@psc.kernel
def integers(
    a: i32,
    b: i32,
    c: i32,
    d: i32,
    e: i32,
    f: i32,
    g: i32,
    h: i32,
    i: i32,
    j: i32,
    k: i32,
    m: i32,
) -> i32:
    """A sum of whole numbers."""
    return a + b + c + d + e + f + g + h + i + j + k + m


class Settings(psc.Record):
    """Six numbers."""

    a: f32
    b: f32
    c: f32
    d: f32
    e: f32
    f: f32


@psc.kernel
def settings(x: f32["8"], by: Settings) -> f32["8"]:
    """One array, changed by a record of numbers."""
    return (x * by.a + by.b) * by.c + by.d * by.e + by.f


class Factors(TypedDict):
    """Four numbers by name."""

    a: f32
    b: f32
    c: f32
    d: f32


@psc.kernel
def factors(by: Factors) -> f32:
    """The sum of a dict of numbers."""
    return by["a"] + by["b"] + by["c"] + by["d"]


@psc.kernel
def chosen(x: f32["8"], a: psc.bool_, b: psc.bool_, n: i32) -> f32["8"]:
    """One array, changed as truth values say."""
    return np.where(a & b, x, x + n.astype(np.float32))


@psc.kernel
def turned(z: c64) -> c64:
    """A complex number, changed."""
    return z * z


@psc.kernel
def scaled_by(x: f32["8"], by: f32) -> f32["8"]:
    """One array, changed by an array without axes."""
    return x * by


@psc.kernel
def large(x: f32["n n"]) -> f32:
    """A sum of a few elements of a large array."""
    return np.sum(x[0, :8])


@psc.kernel(writes="x")
def written(x: f32["8"], y: f32["8"]) -> None:
    """Write to an array."""
    x[:] = y + 1
