"""What a call costs besides the computation: kernels that compute next to nothing, beside jax.jit.

Numbers, and one, ten and a hundred arrays, go in and come out, in tuples and in records, by name,
by default and donated, from the device and from NumPy.  The arrays are small, so that what is
measured is the way to the program and back; NumPy's are the same for both sides, since how they are
aligned decides whether jaxlib copies them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import pscdsl as psc
from pscdsl import f32
from pscdsl.xla.client import put
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


@dataclasses.dataclass(frozen=True)
class OtherScaled:
    """The same for jax."""

    x: Any
    by: Any


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


def _their_one(x: Any) -> Any:
    return x + 1


def _their_static(x: Any, times: int) -> Any:
    return x + times


def _their_scaled(x: Any, by: float) -> Any:
    return x * by


def _their_layer_by(x: Any, by: float) -> Any:
    return OtherLayer(x.w * by, x.b + 1, x.times)


def _their_product(s: Any) -> Any:
    return s.x * s.by


def _their_shifted(x: Any, y: Any, by: Any = 0.5) -> Any:
    return x + y * by


def _their_many_defaults(
    x: Any, a: float = 0.5, b: float = 1.5, c: float = 2.5, d: float = 3.5
) -> Any:
    return (x * a - b) * c - d


def _their_all_moved(xs: Any, y: Any) -> Any:
    return tuple([x + y for x in xs])


def _their_moved(x: Any, y: Any) -> Any:
    return x + y


def _their_arrays(xs: Any) -> Any:
    return tuple([x + 1 for x in xs])


def _their_records(xs: Any) -> Any:
    return tuple([Other(x.w + 1, x.b + 1) for x in xs])


def _their_layer(x: Any) -> Any:
    return OtherLayer(x.w + x.times, x.b + 1, x.times)


def dispatch(jax: Any) -> list[Row]:
    """The rows."""
    jax.tree_util.register_dataclass(Other, ["w", "b"], [])
    jax.tree_util.register_dataclass(OtherLayer, ["w", "b"], ["times"])
    jax.tree_util.register_dataclass(OtherScaled, ["x", "by"], [])
    host = np.arange(8, dtype=np.float32)
    rows: list[Row] = []

    def row(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], count: int) -> None:
        found = compare(ours, theirs, ROUNDS, 20_000 // (20 + 10 * count))
        rows.append(replace(Row.of("dispatch", name, "jax.jit", found), goal=GOAL))

    hosts = [host.copy() for _ in range(max(COUNTS))]
    for where, mine, other in (
        ("device", put, jax.numpy.asarray),
        ("NumPy", _same, _same),
    ):
        xs, ys = tuple(map(mine, hosts)), tuple(map(other, hosts))
        row(f"one array, {where}", *_calls(one, xs[0], jax.jit(_their_one), ys[0]), 1)
        fixed = jax.jit(_their_static, static_argnums=1)
        row(f"a static value, {where}", partial(static, xs[0], 3), partial(fixed, ys[0], 3), 1)
        changed = jax.jit(_their_scaled)
        row(f"a number, {where}", partial(scaled, xs[0], 0.5), partial(changed, ys[0], 0.5), 1)
        ours, theirs = (_counting(f, z) for f, z in ((scaled, xs[0]), (changed, ys[0])))
        row(f"a number, another one each time, {where}", ours, theirs, 1)
        s, t = Scaled(xs[0], 0.5), OtherScaled(ys[0], 0.5)
        row(f"a record with a number, {where}", *_calls(product, s, jax.jit(_their_product), t), 2)
        named = jax.jit(_their_shifted)
        row(
            f"arrays by name, and a default, {where}",
            partial(shifted, x=xs[0], y=xs[1]),
            partial(named, x=ys[0], y=ys[1]),
            2,
        )
        name = f"four defaults, {where}"
        row(name, *_calls(many_defaults, xs[0], jax.jit(_their_many_defaults), ys[0]), 1)
        p, q = Layer(xs[0], xs[1], 3), OtherLayer(ys[0], ys[1], 3)
        row(
            f"a record with a static field, {where}", *_calls(layer, p, jax.jit(_their_layer), q), 2
        )
        changed = jax.jit(_their_layer_by)
        name = f"a record with a static field, and a number, {where}"
        row(name, partial(layer_by, p, 0.5), partial(changed, q, 0.5), 2)
        for count in COUNTS:
            calls = _calls(arrays, xs[:count], jax.jit(_their_arrays), ys[:count])
            row(f"tuple of {count}, {where}", *calls, count)
        for count in COUNTS[1:]:
            ps = tuple([Pair(*xs[i : i + 2]) for i in range(0, count, 2)])
            qs = tuple([Other(*ys[i : i + 2]) for i in range(0, count, 2)])
            name = f"{count // 2} records of 2, {where}"
            row(name, *_calls(records, ps, jax.jit(_their_records), qs), count)
    giving = jax.jit(_their_moved, donate_argnums=0)
    ours = _stepping(moved, put(host), put(host))
    theirs = _stepping(giving, jax.numpy.array(host), jax.numpy.array(host))
    row("a donated array, device", ours, theirs, 2)
    giving = jax.jit(_their_all_moved, donate_argnums=0)
    ours = _stepping(all_moved, tuple([put(host) for _ in range(10)]), put(host))
    arrays_of_jax = tuple([jax.numpy.array(host) for _ in range(10)])
    theirs = _stepping(giving, arrays_of_jax, jax.numpy.array(host))
    row("ten donated arrays, device", ours, theirs, 11)
    return rows


def _calls(
    kernel: Any, mine: Any, jitted: Any, other: Any
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    return partial(kernel, mine), partial(jitted, other)


def _counting(function: Any, x: Any) -> Callable[[], Any]:
    numbers = map(float, itertools.count())
    return lambda: function(x, next(numbers))


def _stepping(function: Any, x: Any, y: Any) -> Callable[[], Any]:
    state = [x]

    def step() -> Any:
        state[0] = function(state[0], y)
        return state[0]

    return step


def _same(value: Any) -> Any:
    return value
