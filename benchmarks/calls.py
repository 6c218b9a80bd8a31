"""Calls of kernels that compute next to nothing, and the same ones of `jax.jit`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

COUNTS = (1, 10, 100)
KINDS = 8
"""How many arguments take turns where each call has others than the last."""


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
    yield from _numbers(side, side.put(hosts[0]))
    yield from _among(side, "NumPy", hosts)
    yield from _from_numpy(side)
    first, *rest = map(side.put, hosts)
    yield Call("a donated array, device", 2, _stepping(side.moved, rest[0], first))
    yield Call(
        "ten donated arrays, device", 11, _stepping(side.all_moved, tuple(rest[1:11]), first)
    )


def _among(side: Any, where: str, xs: list[Any]) -> Iterator[Call]:
    """Those with these arrays."""
    x, y, z = xs[:3]

    def call(name: str, arrays: int, function: Any, *args: Any, **kwargs: Any) -> Call:
        return Call(f"{name}, {where}", arrays, partial(function, *args, **kwargs))

    yield call("one array", 1, side.one, x)
    yield call("three arrays", 3, side.three, x, y, z)
    yield call("a dict of 4", 4, side.named, {"a": x, "b": y, "c": z, "d": x})
    yield call("a static value", 1, side.static, x, 3)
    yield call("a static word", 1, side.word, x, how="twice")
    yield call("a captured array", 1, side.captured, x)
    yield call("a number", 1, side.scaled, x, 0.5)
    yield call("a number, another one each time", 1, _counting(side.scaled, x))
    yield call("a record with a number", 2, side.product, side.Scaled(x, 0.5))
    yield call("arrays by name, and a default", 2, side.shifted, x=x, y=y)
    yield call("four defaults", 1, side.many_defaults, x)
    layer = side.Layer(x, y, 3)
    yield call("a record with a static field", 2, side.layer, layer)
    yield call("a record with a static field, and a number", 2, side.layer_by, layer, 0.5)
    yield call("a method", 2, side.Pair(x, y).apply, z)
    for count in COUNTS:
        yield call(f"tuple of {count}", count, side.arrays, tuple(xs[:count]))
    for count in COUNTS[1:]:
        pairs = tuple([side.Pair(*xs[i : i + 2]) for i in range(0, count, 2)])
        yield call(f"{count // 2} records of 2", count, side.records, pairs)


def _numbers(side: Any, x: Any) -> Iterator[Call]:
    """Those with numbers of Python and of NumPy."""
    for count, function in ((2, side.two_numbers), (4, side.four_numbers), (12, side.numbers)):
        floats = [float(n) for n in range(count)]
        others = [[n + k for n in floats] for k in range(KINDS)]
        yield Call(f"{count} floats", count, partial(function, *floats))
        yield Call(f"{count} floats, others each time", count, _turning(function, others))
    scalars = [list(map(np.float32, each)) for each in others]
    yield Call("12 scalars of NumPy", 12, partial(side.numbers, *scalars[0]))
    yield Call("12 scalars of NumPy, others each time", 12, _turning(side.numbers, scalars))
    devices = [side.put_number(scalar) for scalar in scalars[0]]
    yield Call("12 scalars, device", 12, partial(side.device_numbers, *devices))
    whole = [[int(n) for n in each] for each in others]
    yield Call("12 ints, others each time", 12, _turning(side.integers, whole))
    records = [[x, side.Settings(*each[:6])] for each in others]
    yield Call("a record of 6 floats", 7, partial(side.settings, *records[0]))
    yield Call("a record of 6 floats, others each time", 7, _turning(side.settings, records))
    yield Call("a dict of 4 floats", 4, partial(side.factors, dict.fromkeys("abcd", 0.5)))
    yield Call("two truth values and an int", 3, partial(side.chosen, x, True, False, 3))
    yield Call("a complex number", 1, partial(side.turned, 1 + 2j))
    yield Call("an array without axes, NumPy", 1, partial(side.scaled_by, x, np.array(2, "f4")))


def _from_numpy(side: Any) -> Iterator[Call]:
    """Those with arrays of NumPy that differ from call to call, or that are written."""
    arrays = [
        [np.arange(8 * k, 8 * k + 8, dtype=np.float32) + n for n in range(3)] for k in range(KINDS)
    ]
    yield Call("one array, others each time, NumPy", 1, _turning(side.one, [a[:1] for a in arrays]))
    yield Call("three arrays, others each time, NumPy", 3, _turning(side.three, arrays))
    tens = [[tuple(np.full(8, 10 * k + n, np.float32) for n in range(10))] for k in range(KINDS)]
    yield Call("tuple of 10, others each time, NumPy", 10, _turning(side.arrays, tens))
    large = [[np.full((64, 64), k, np.float32)] for k in range(KINDS)]
    yield Call("16 KiB, others each time, NumPy", 4, _turning(side.large, large))
    for offset, where in ((0, "aligned"), (16, "not aligned")):
        huge = [[_huge(k, offset)] for k in range(KINDS)]
        yield Call(f"1 MiB, {where}, others each time, NumPy", 20, _turning(side.large, huge))
    target = np.zeros(8, np.float32)
    yield Call("a declared write, NumPy", 2, partial(side.written, target, arrays[0][0]))


def _huge(value: int, offset: int) -> Any:
    """An array of 1 MiB that begins so many bytes after a multiple of 64."""
    count = 1 << 18
    room = np.full(4 * count + 128, value, np.uint8)
    start = -room.ctypes.data % 64 + offset
    return room[start : start + 4 * count].view(np.int32).reshape(512, 512).view(np.float32)


def _counting(function: Any, x: Any) -> Callable[[], Any]:
    numbers = map(float, itertools.count())
    return lambda: function(x, next(numbers))


def _turning(function: Any, arguments: list[Any]) -> Callable[[], Any]:
    turns = itertools.cycle(arguments)
    return lambda: function(*next(turns))


def _stepping(function: Any, x: Any, y: Any) -> Callable[[], Any]:
    state = [x]

    def step() -> Any:
        state[0] = function(state[0], y)
        return state[0]

    return step
