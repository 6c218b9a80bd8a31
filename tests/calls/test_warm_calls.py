"""A kernel that was called before, with whatever, answers as one that was never called."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Int, f32
from pscdsl._src.xla import binding
from pscdsl._src.xla.runtime.boot import ArrayImpl
from pscdsl._src.xla.runtime.devices import put
from tests.support.share import due

pytestmark = pytest.mark.quick_code

T = TypeVar("T", bound=psc.Tree[f32])


class Layer(psc.Record):
    """Two arrays, and a static value."""

    w: f32["n"]
    b: f32["n"]
    times: psc.Static[int]


class Plain(psc.Record):
    """Two arrays."""

    w: f32["n"]
    b: f32["n"]


class Mode(Enum):
    """A choice."""

    TIMES = 1
    PLUS = 2


class Rates(NamedTuple):
    """Two numbers."""

    a: f32
    b: f32


class Setting(psc.Record):
    """Arrays, numbers and static values."""

    x: f32["n"]
    times: psc.Static[int]
    rate: f32
    more: Rates
    mode: psc.Static[Mode] = Mode.TIMES


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


def by_name() -> Any:
    """One with arguments that are given by name alone, beside static ones."""

    @psc.kernel
    def made(
        x: f32["n"],
        y: f32["n"] | None = None,
        *,
        times: psc.Static[int] = 2,
        by: f32,
        also: f32["n"],
    ) -> f32["n"]:
        return (x * by - also) * times if y is None else (y * by - also) * times + x

    return made


def defaults() -> Any:
    """One whose arguments need not be given, or not by name."""

    @psc.kernel
    def made(
        x: Float["n"],
        /,
        by: Float = 2.0,
        y: Float["n"] | None = None,
        turns: Int = 3,
        *,
        flip: psc.Static[bool] = False,
        plus: Float = 0.25,
    ) -> tuple[Float["n"], Int]:
        found = x * by + plus if y is None else y * by - plus
        return -found if flip else found, turns

    return made


def settings() -> Any:
    """One with numbers in records and tuples, beside static fields."""

    @psc.kernel
    def made(s: Setting, pair: tuple[f32["n"], tuple[f32, f32]]) -> tuple[f32["n"], f32]:
        found = s.x * s.rate if s.mode is Mode.TIMES else s.x + s.rate
        return found * s.times + pair[0] * pair[1][0], pair[1][1] + s.more.a

    return made


def trees_of_any_kind() -> Any:
    """One that takes numbers and arrays in whatever they come."""

    @psc.kernel
    def made(tree: T, by: f32) -> T:
        return psc.tree.map(lambda x: x * by, tree)

    return made


def donated() -> Any:
    """One that takes the memory of arguments."""

    @psc.kernel(donate=("plain", "x", "by"))
    def made(plain: Plain, x: f32["n"], y: f32["n"], by: f32) -> tuple[Plain, f32["n"], f32]:
        return Plain(plain.w + y, plain.b * by), x - y, by * 2

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
SEEDS = due(2, 2)
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
    by_name: lambda r: (
        array(r), r.choice((None, array(r))), small(r), r.choice((0.5, 0.5, number(r))), array(r)
    ),
    defaults: lambda r: (
        array(r), number(r), r.choice((None, array(r))), small(r), r.random() < 0.5, number(r)
    )[: r.choice((6, 6, 1, 2, 3, 4))],
    trees_of_any_kind: lambda r: (
        r.choice((
            (array(r), [r.choice((0.5, number(r))), (number(r), small(r))]),
            r.choice(({"x": 0.5}, [number(r), 0.5])),
            Rates(number(r), array(r)),
        )),
        r.choice((0.5, number(r))),
    ),
    settings: lambda r: (
        Setting(
            array(r),
            small(r),
            number(r),
            Rates(number(r), r.choice((0.5, number(r)))),
            r.choice((Mode.TIMES, Mode.TIMES, Mode.PLUS)),
        ),
        (array(r), (r.choice((0.5, number(r))), r.choice((0.5, number(r))))),
    ),
    donated: lambda r: (Plain(array(r), array(r)), array(r), array(r), number(r)),
}  # fmt: skip


class Call(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def called(kernel: Any, args: tuple[Any, ...], rng: random.Random) -> Call:
    """A call with these arguments, some of them by name; now and then a wrong one."""
    parameters = list(inspect.signature(kernel).parameters.values())
    late = next((i for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), len(args))
    first = rng.choice((late, late, rng.randrange(late + 1)))
    if rng.random() < 0.2:  # one object in two places
        one = rng.choice([x for x in args if isinstance(x, np.ndarray | ArrayImpl)] or [None])
        args = tuple([one if isinstance(x, np.ndarray | ArrayImpl) else x for x in args])
    named = [(p.name, x) for p, x in zip(parameters[first:], args[first:], strict=False)]
    rng.shuffle(named)
    if rng.random() < 0.1 and parameters:
        named = rng.choice((named[1:], [*named, ("other", 1)], [*named, (parameters[0].name, 1)]))
    return Call(args[:first], dict(named))


def answer(kernel: Any, call: Call) -> Any:
    """The result, with its dtypes, or the class and the words of an error."""
    leaves, structure = binding.flatten(tuple(call))  # of copies, as a call may take their memory
    args, kwargs = structure.unflatten(
        [put(np.asarray(x)) if type(x) is ArrayImpl else x for x in leaves]
    )
    kwargs = {name: kwargs[name] for name in call.kwargs}
    try:
        result: Any = kernel(*args, **kwargs)
    except (TypeError, ValueError, ArithmeticError) as error:
        return type(error), str(error).split("\n")[0]
    parts: list[Any] = [each for each in binding.flatten(result)[0] if not isinstance(each, int)]
    return [(str(x.dtype), str(np.asarray(x).tolist())) for x in parts]  # -0.0 is not 0.0


@pytest.mark.parametrize("fresh", ARGUMENTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_calls_do_not_hang_on_those_before(fresh: Callable[[], Any], seed: int) -> None:
    rng = random.Random(f"{fresh.__name__} {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [called(fresh(), ARGUMENTS[fresh](rng), rng) for _ in range(CALLS)]
        known = [(call, answer(fresh(), call)) for call in calls]
        kernel = fresh()
        for call, wanted in rng.choices(known, k=4 * CALLS):
            assert answer(kernel, call) == wanted, call
