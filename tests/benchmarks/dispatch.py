"""What a call costs besides the computation: kernels that compute next to nothing, beside jax.jit.

One, ten and a hundred arrays go in and come out, in tuples and in records, from the device and from
NumPy.  The arrays are small, so that what is measured is the way to the program and back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f32
from pscdsl.xla.client import put
from tests.benchmarks.alongside import share_client
from tests.benchmarks.measure import compare
from tests.benchmarks.report import Row

COUNTS = (1, 10, 100)
ROUNDS = 41
GOAL = 1.0


class Pair(psc.Record):
    """Two arrays."""

    w: f32["8"]
    b: f32["8"]


@dataclasses.dataclass(frozen=True)
class Other:
    """The same for jax."""

    w: Any
    b: Any


class Layer(psc.Record):
    """Two arrays, and a static value."""

    w: f32["8"]
    b: f32["8"]
    times: psc.Static[int]


@dataclasses.dataclass(frozen=True)
class OtherLayer:
    """The same for jax."""

    w: Any
    b: Any
    times: int


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


def _their_one(x: Any) -> Any:
    return x + 1


def _their_static(x: Any, times: int) -> Any:
    return x + times


def _their_arrays(xs: Any) -> Any:
    return tuple([x + 1 for x in xs])


def _their_records(xs: Any) -> Any:
    return tuple([Other(x.w + 1, x.b + 1) for x in xs])


def _their_layer(x: Any) -> Any:
    return OtherLayer(x.w + x.times, x.b + 1, x.times)


def dispatch(jax: Any) -> list[Row]:
    """The rows; jax's client is used by both."""
    share_client(jax)
    jax.tree_util.register_dataclass(Other, ["w", "b"], [])
    jax.tree_util.register_dataclass(OtherLayer, ["w", "b"], ["times"])
    host = np.arange(8, dtype=np.float32)
    rows: list[Row] = []

    def row(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], count: int) -> None:
        found = compare(ours, theirs, ROUNDS, 20_000 // (20 + 10 * count))
        rows.append(replace(Row.of("dispatch", name, "jax.jit", found), goal=GOAL))

    for where, mine, other in (
        ("device", lambda: put(host), lambda: jax.numpy.asarray(host)),
        ("NumPy", host.copy, host.copy),
    ):
        row(f"one array, {where}", *_calls(one, mine(), jax.jit(_their_one), other()), 1)
        fixed = jax.jit(_their_static, static_argnums=1)
        x, y = mine(), other()
        row(f"a static value, {where}", partial(static, x, 3), partial(fixed, y, 3), 1)
        p, q = Layer(mine(), mine(), 3), OtherLayer(other(), other(), 3)
        row(
            f"a record with a static field, {where}", *_calls(layer, p, jax.jit(_their_layer), q), 2
        )
        for count in COUNTS:
            xs = tuple([mine() for _ in range(count)])
            ys = tuple([other() for _ in range(count)])
            row(
                f"tuple of {count}, {where}", *_calls(arrays, xs, jax.jit(_their_arrays), ys), count
            )
        for count in COUNTS[1:]:
            ps = tuple([Pair(mine(), mine()) for _ in range(count // 2)])
            qs = tuple([Other(other(), other()) for _ in range(count // 2)])
            name = f"{count // 2} records of 2, {where}"
            row(name, *_calls(records, ps, jax.jit(_their_records), qs), count)
    return rows


def _calls(
    kernel: Any, mine: Any, jitted: Any, other: Any
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    return partial(kernel, mine), partial(jitted, other)
