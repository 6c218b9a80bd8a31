"""A kernel that was called before, with whatever, answers as one that was never called."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Int, f32
from pscdsl.xla import trees
from pscdsl.xla.client import put


class Layer(psc.Record):
    """Two arrays, and a static value."""

    w: f32["n"]
    b: f32["n"]
    times: psc.Static[int]


class Plain(psc.Record):
    """Two arrays."""

    w: f32["n"]
    b: f32["n"]


def numbers() -> Any:
    """A kernel of arrays and numbers of any dtype."""

    @psc.kernel
    def made(x: Float["n"], by: Float, turns: Int) -> tuple[Float["n"], Int]:
        return x * by, turns + 1

    return made


def statics() -> Any:
    """One with static arguments beside numbers."""

    @psc.kernel
    def made(
        x: f32["n"], by: f32, times: psc.Static[int], flip: psc.Static[bool] = False
    ) -> f32["n"]:
        return -(x * by) * times if flip else x * by * times

    return made


def records() -> Any:
    """One with static fields beside numbers."""

    @psc.kernel
    def made(layer: Layer, by: f32) -> Layer:
        return Layer(layer.w * by, layer.b * layer.times, layer.times)

    return made


def nested() -> Any:
    """One with numbers inside of tuples, beside static arguments."""

    @psc.kernel
    def made(x: f32["n"], pair: tuple[f32["n"], f32], times: psc.Static[int]) -> f32["n"]:
        return x * pair[1] + pair[0] * times

    return made


def containers() -> Any:
    """One with tuples of any length, records and what may be None."""

    @psc.kernel
    def made(xs: tuple[f32["n"], ...], plain: Plain, y: f32["n"] | None = None) -> f32["n"]:
        found = plain.w - plain.b
        for x in xs:
            found = found + x
        return found if y is None else found * y

    return made


def array(rng: random.Random, code: str = "f4") -> Any:
    """An array, mostly of this dtype."""
    values = np.array([rng.randrange(-4, 5) for _ in range(3)])
    if rng.random() < 0.8:
        return rng.choice((np.copy, put))(values.astype(code))
    values = np.resize(values, rng.choice((3, 3, 4)))
    made = values.astype(rng.choice((code, code, "f4", "f8", "i4", ">f4", ">f8")))
    wrap: Callable[[Any], Any] = rng.choice((np.copy, put, _strided, _masked, np.ndarray.tolist))
    return wrap(made)


def number(rng: random.Random) -> Any:
    """A number, or what is given for one."""
    if rng.random() < 0.7:
        return rng.choice((0.5, 2.0, -0.25, 2, 3, 700))
    return rng.choice((
        -0.0, 1e39, float("inf"), 2**40, 2**24 + 1, True, np.float32(0.5), np.float64(0.5),
        np.int32(2), np.array(0.5, "f4"), put(np.float32(0.25)), None, 1j,
    ))  # fmt: skip


def small(rng: random.Random) -> Any:
    """A static value, or what is given for one; numbers are often the same objects."""
    return rng.choice((2, 2, 2, 3, 3, 3, 700, True, 2.0, np.int32(2), None, [2]))


def _strided(x: Any) -> Any:
    return np.repeat(x, 2)[::2]


def _masked(x: Any) -> Any:
    return np.ma.masked_array(x, mask=x > 10)


CALLS = 30
SEEDS = 2
ARGUMENTS: dict[Callable[[], Any], Callable[[random.Random], tuple[Any, ...]]] = {
    numbers: lambda r: (array(r, r.choice(("f4", "f8"))), number(r), number(r)),
    statics: lambda r: (array(r), number(r), small(r), *r.choice(((), (True,), (False,), (1,)))),
    records: lambda r: (Layer(array(r), array(r), small(r)), number(r)),
    nested: lambda r: (array(r), (array(r), number(r)), small(r)),
    containers: lambda r: (
        tuple([array(r) for _ in range(r.randrange(4))]),
        Plain(array(r), array(r)),
        *r.choice(((), (None,), (array(r),))),
    ),
}


def answer(kernel: Any, args: tuple[Any, ...]) -> Any:
    """The result, with its dtypes, or the class and the words of an error."""
    try:
        result: Any = kernel(*args)
    except (TypeError, ValueError, ArithmeticError) as error:
        return type(error), str(error).split("\n")[0]
    parts: list[Any] = [each for each in trees.flatten(result)[0] if not isinstance(each, int)]
    return [(str(x.dtype), str(np.asarray(x).tolist())) for x in parts]  # -0.0 is not 0.0


@pytest.mark.parametrize("fresh", ARGUMENTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_calls_do_not_hang_on_those_before(fresh: Callable[[], Any], seed: int) -> None:
    rng = random.Random(f"{fresh.__name__} {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [ARGUMENTS[fresh](rng) for _ in range(CALLS)]
        known = [(args, answer(fresh(), args)) for args in calls]
        kernel = fresh()
        for args, wanted in rng.choices(known, k=4 * CALLS):
            assert answer(kernel, args) == wanted, args
