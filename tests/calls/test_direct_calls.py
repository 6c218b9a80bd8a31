"""Calls that run in C++ alone, and those that need Python: the same results, the same errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64
from pscdsl._src.language.records import plain_fields
from pscdsl._src.xla.dispatch import fast_path_works
from pscdsl._src.xla.runtime.devices import put, to_numpy


class Pair(psc.Record):
    """Two arrays."""

    x: f32["n"]
    y: f32["n"]


def made() -> Any:
    """A kernel that was never called."""

    @psc.kernel
    def total(x: f32["n"], p: Pair, t: tuple[f32["n"], f64["n"]]) -> tuple[f32["n"], f64["n"]]:
        return x + p.x + p.y + t[0], t[1] * 2

    return total


def frames(call: Callable[[], Any]) -> list[str]:
    """The functions of Python's that a call runs."""
    found: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def arguments(wrap: Callable[[Any], Any], value: float = 1) -> tuple[Any, ...]:
    """What `total` takes, of whatever arrays."""
    a, b, c, d = (wrap(np.full(8, value * n, np.float32)) for n in (1, 2, 3, 4))
    return a, Pair(b, c), (d, wrap(np.full(8, value, np.float64)))


@psc.kernel
def plain(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return x - y


@psc.kernel
def scaled(
    x: f32["n"], times: psc.Static[int], other: psc.Static[tuple[float, str] | None] = None
) -> f32["n"]:
    return x * times


@psc.kernel
def signs(x: f32["n"], value: psc.Static[float], values: psc.Static[tuple[float, ...]]) -> f32["n"]:
    return x * (np.copysign(1, value) + (10 if np.array(values).dtype == np.int32 else 0))


@pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")
def test_device_arrays_run_no_python() -> None:
    x = put(np.ones(8, np.float32))
    y = put(np.zeros(8, np.float32))
    plain(x, x)
    plain(x, y)
    assert not frames(lambda: plain(x, y))[1:]  # the first is the lambda
    for times in (2, 3, 2):
        assert to_numpy(scaled(x, times, (0.5, "a"))).tolist() == [times] * 8
    scaled(x, 2)
    assert not frames(lambda: scaled(x, 2))[1:]


@pytest.mark.parametrize("wrap", [put, np.copy])
def test_static_values_that_python_calls_equal_are_told_apart(wrap: Callable[[Any], Any]) -> None:
    x = wrap(np.ones(2, np.float32))
    for _ in range(2):
        for value in (0.0, -0.0, 1, 1.0):
            expected = np.copysign(1, value) + (10 if type(value) is int else 0)
            assert to_numpy(signs(x, value, (value,))).tolist() == [expected] * 2


@pytest.mark.parametrize(
    ("times", "shown"), [(2.0, "2.0"), ("2", "'2'"), ([2], "of class list"), (None, "None")]
)
@pytest.mark.parametrize("wrap", [put, np.copy])
def test_static_values_of_another_type_are_refused(
    times: Any, shown: str, wrap: Callable[[Any], Any]
) -> None:
    x = wrap(np.ones(2, np.float32))
    for _ in range(2):
        assert to_numpy(scaled(x, 2)).tolist() == [2, 2]
        with pytest.raises(psc.ArgumentError, match="`times` of `scaled` is .*" + re.escape(shown)):
            scaled(x, times)


@pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")
@pytest.mark.parametrize("first", range(4))
def test_all_kinds_of_calls_follow_each_other(first: int) -> None:
    total = made()
    calls: list[Callable[[float], Any]] = [
        lambda v: total(*arguments(put, v)),
        lambda v: total(*arguments(np.asarray, v)),
        lambda v: total(**dict(zip(("t", "x", "p"), _turned(arguments(put, v)), strict=True))),
        lambda v: total(arguments(put, v)[0], *arguments(np.asarray, v)[1:]),
    ]
    calls = calls[first:] + calls[:first]
    for value in range(1, 5):
        for call in calls:
            single, double = call(value)
            assert to_numpy(single).tolist() == [10 * value] * 8
            assert to_numpy(double).tolist() == [2 * value] * 8


def _turned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args[2], args[0], args[1]


@pytest.mark.parametrize("size", [1, 8, 4096, 1 << 18])
def test_no_memory_of_numpys_is_shared_wherever_it_lies(size: int) -> None:
    @psc.kernel
    def same(x: f32["n"], t: tuple[f32["n"], f32["n"]]) -> tuple[f32["n"], f32["n"], f32["n"]]:
        return x, t[0], t[1]

    @psc.kernel
    def same_record(p: Pair, x: f32["n"]) -> tuple[f32["n"], f32["n"], f32["n"]]:
        return p.x, p.y, x

    space = np.empty(3 * size + 64, np.float32)
    for turn in range(8):
        start = -(space.ctypes.data // 4) % 16 + turn % 2  # aligned for XLA, and not
        x, y, z = (space[start + n * size : start + (n + 1) * size] for n in range(3))
        space[:] = turn
        results = (*same(x, (y, z)), *same_record(Pair(x, y), z))
        space[:] = -1
        assert all((to_numpy(each) == turn).all() for each in results)


def test_arrays_that_are_not_as_they_are_wanted() -> None:
    want = np.arange(8, dtype=np.float32)
    for turn in range(3):
        swapped, strided = want.astype(">f4"), np.repeat(want, 2)[::2]
        assert to_numpy(plain(swapped, strided)).tolist() == [0] * 8, turn
        with pytest.raises(psc.ArgumentError, match="`y` of `plain`"):
            plain(want, np.array(["text"] * 8))
        with pytest.raises(psc.ArgumentError, match="`x`"):
            plain(want.astype(np.float64), want)
        with pytest.raises(psc.ArgumentError, match="`x`"):
            plain(np.array([None] * 8), want)


def test_records_of_arrays_that_are_not_as_they_are_wanted() -> None:
    total, (x, pair, t) = made(), arguments(np.asarray)
    for turn in range(3):
        swapped = Pair(pair.x.astype(">f4"), np.repeat(pair.y, 2)[::2])
        assert to_numpy(total(x, swapped, t)[0]).tolist() == [10] * 8, turn
        assert to_numpy(total(x, Pair(put(pair.x), pair.y), t)[0]).tolist() == [10] * 8, turn
        wrong: Any
        for wrong in (pair.x.astype(np.float64), np.array([None] * 8), "text", None):
            with pytest.raises(psc.ArgumentError, match="`p"):
                total(x, Pair(wrong, pair.y), t)


def test_what_was_donated_is_told_by_whichever_kernel_gets_it() -> None:
    @psc.kernel(donate="x")
    def scaled(x: f32["n"], by: f32["n"]) -> f32["n"]:
        return x * by

    by = put(np.ones(8, np.float32))
    plain(by, by)
    plain(by, put(np.zeros(8, np.float32)))
    for _ in range(3):
        x = put(np.ones(8, np.float32))
        scaled(x, by)
        with pytest.raises(psc.ArgumentError, match="`y` of `plain` was donated"):
            plain(by, x)


def test_compiled_kernels_take_their_sizes_alone() -> None:
    compiled = plain.compile(n=8)
    x, y = (put(np.full(8, value, np.float32)) for value in (3, 2))
    for _ in range(3):
        assert to_numpy(compiled(x, y)).tolist() == [1] * 8
        assert to_numpy(compiled(y=np.ones(8, np.float32), x=x)).tolist() == [2] * 8
        with pytest.raises(psc.ArgumentError, match="compiled for"):
            compiled(np.ones(4, np.float32), np.ones(4, np.float32))
    if fast_path_works():
        fresh = plain.compile(n=8)
        fresh(x, y)
        assert not frames(lambda: fresh(x, y))[1:]


@pytest.mark.parametrize("keys", [("a", "b"), (1, "a"), (None, 1j), ()])
def test_dicts_are_refused_whatever_their_keys_are(keys: tuple[Any, ...]) -> None:
    x = np.ones(8, np.float32)
    for _ in range(3):
        plain(x, x)
        calls: list[Any] = [partial(plain, each) for each in (x, put(x))]
        for call in (*calls, partial(made(), x, Pair(x, x))):
            with pytest.raises(psc.ArgumentError, match="is a dict"):
                call(dict.fromkeys(keys, x))


def test_compiled_kernels_say_what_they_were_compiled_for() -> None:
    @psc.kernel
    def moved(x: Float["n"], by: Float["n"] | None = None) -> Float["n"]:
        return x if by is None else x + by

    compiled = moved.compile(n=2, Float=f32)
    with pytest.raises(
        psc.ArgumentError, match=r"for .*f32.*not None, n=2; .* called with .*f64.* None, n=3"
    ):
        compiled(np.ones(3))
    for wrong, says in ((2.5, "size n is 2.5"), ("2", "size n is '2'"), (None, "size n is None")):
        with pytest.raises(psc.ArgumentError, match=says):
            moved.compile(n=wrong, Float=f32)
    with pytest.raises(psc.ArgumentError, match="has the sizes n; given are: n, dtypes"):
        moved.compile(n=2, dtypes={"Float": f32}, Float=f32)


def test_a_kernel_with_other_options_is_called_for_itself() -> None:
    x = put(np.ones(8, np.float32))
    plain(x, x)
    other = plain.with_options(donate="x")
    given = put(np.full(8, 5, np.float32))
    assert to_numpy(other(given, x)).tolist() == [4] * 8
    assert given.is_deleted()
    assert to_numpy(plain(x, x)).tolist() == [0] * 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """Its construction sets fields."""

    x: Any
    y: Any = 2


class Inherited(Plain):
    """Another class, which is no data class itself."""


@dataclass(frozen=True)
class Checked:
    """Its construction checks."""

    x: Any

    def __post_init__(self) -> None:
        """Refuse, always."""
        raise ValueError("not to be made like this")


@dataclass(frozen=True)
class Given:
    """It takes more than its fields."""

    x: Any
    y: InitVar[int] = 0


@dataclass(frozen=True)
class Held:
    """It takes less."""

    x: Any
    y: int = field(default=1, init=False)


def test_whose_construction_is_left_to_jaxlib() -> None:
    assert plain_fields(Pair) == ("x", "y")
    assert plain_fields(Plain) == ("x", "y")
    for cls in (Inherited, Checked, Given, Held):
        assert plain_fields(cls) is None, cls
