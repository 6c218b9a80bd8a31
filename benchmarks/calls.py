"""Calls of kernels that compute next to nothing, and the same ones of `jax.jit`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

COUNTS = (1, 10, 100)


class Call(NamedTuple):
    """Something that is done again and again."""

    name: str
    arrays: int
    """How many are taken, and as many given."""
    run: Callable[[], Any]


def calls(side: Any) -> Iterator[Call]:
    """All of them; `side` is the module `calls_ours` or `calls_jax`."""
    hosts = [np.arange(8, dtype=np.float32) for _ in range(max(COUNTS))]
    yield from _among(side, "device", list(map(side.put, hosts)))
    yield from _among(side, "NumPy", hosts)
    first, *rest = map(side.put, hosts)
    yield Call("a donated array, device", 2, _stepping(side.moved, rest[0], first))
    yield Call(
        "ten donated arrays, device", 11, _stepping(side.all_moved, tuple(rest[1:11]), first)
    )


def _among(side: Any, where: str, xs: list[Any]) -> Iterator[Call]:
    """Those with these arrays."""
    x, y = xs[:2]

    def call(name: str, arrays: int, function: Any, *args: Any, **kwargs: Any) -> Call:
        return Call(f"{name}, {where}", arrays, partial(function, *args, **kwargs))

    yield call("one array", 1, side.one, x)
    yield call("a static value", 1, side.static, x, 3)
    yield call("a number", 1, side.scaled, x, 0.5)
    yield call("a number, another one each time", 1, _counting(side.scaled, x))
    yield call("a record with a number", 2, side.product, side.Scaled(x, 0.5))
    yield call("arrays by name, and a default", 2, side.shifted, x=x, y=y)
    yield call("four defaults", 1, side.many_defaults, x)
    layer = side.Layer(x, y, 3)
    yield call("a record with a static field", 2, side.layer, layer)
    yield call("a record with a static field, and a number", 2, side.layer_by, layer, 0.5)
    for count in COUNTS:
        yield call(f"tuple of {count}", count, side.arrays, tuple(xs[:count]))
    for count in COUNTS[1:]:
        pairs = tuple([side.Pair(*xs[i : i + 2]) for i in range(0, count, 2)])
        yield call(f"{count // 2} records of 2", count, side.records, pairs)


def _counting(function: Any, x: Any) -> Callable[[], Any]:
    numbers = map(float, itertools.count())
    return lambda: function(x, next(numbers))


def _stepping(function: Any, x: Any, y: Any) -> Callable[[], Any]:
    state = [x]

    def step() -> Any:
        state[0] = function(state[0], y)
        return state[0]

    return step
