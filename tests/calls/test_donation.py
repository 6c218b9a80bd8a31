"""Donated arguments: what is reused, what is refused, and that nothing else is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.checker.check import check_source
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.xla.runtime.devices import put, to_numpy

pytestmark = pytest.mark.jaxlib


class State(psc.Record):
    """Two arrays that a step replaces, and one that it reads."""

    x: f32["n"]
    v: f32["n"]
    scale: f32


@psc.kernel(donate="state")
def step(state: State, force: f32["n"]) -> State:
    v = state.v + force * state.scale
    return State(state.x + v, v, state.scale)


@psc.kernel(donate=0)
def scaled(x: f32["n"], by: f32["n"]) -> f32["n"]:
    return x * by


@psc.kernel
def plain(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return x - y


def vector(value: float, size: int = 64) -> Any:
    return put(np.full(size, value, np.float32))


def place(array: Any) -> int:
    found: int = array.unsafe_buffer_pointer()
    return found


def test_results_take_the_memory_of_a_tree() -> None:
    state, force = State(vector(1), vector(2), put(np.float32(1))), vector(3)
    before = {place(state.x), place(state.v)}
    for turn in range(4):  # the first by way of Python, the others in C++
        state_, state = state, step(state, force)
        assert {place(state.x), place(state.v)} == before, turn
        old: list[Any] = [state_.x, state_.v, state_.scale]
        assert all(each.is_deleted() for each in old)
    assert not force.is_deleted()
    np.testing.assert_array_equal(state.v, np.full(64, 2 + 4 * 3))
    np.testing.assert_array_equal(state.x, np.full(64, 1 + 5 + 8 + 11 + 14))


def test_arrays_of_numpy_are_not_touched() -> None:
    x, by = np.full(64, 2, np.float32), np.full(64, 3, np.float32)
    for _ in range(3):
        result = scaled(x, by)
        assert to_numpy(result)[0] == 6
    assert x[0] == 2


@pytest.mark.parametrize("kernel", [scaled, plain])
def test_a_result_does_not_change_with_an_argument(kernel: Kernel[Any, Any]) -> None:
    for size in (8, 1 << 20):
        space = np.empty(size + 16, np.float32)
        for offset in range(0, 16, 4):  # aligned for XLA, and not
            x = space[offset : offset + size]
            x[:] = 5
            result = kernel(x, np.full(size, 2, np.float32))
            x[:] = 0
            assert (to_numpy(result) == (10 if kernel is scaled else 3)).all()


def test_what_numpy_looks_at_does_not_change() -> None:
    x = vector(2)
    seen = to_numpy(x)
    assert to_numpy(scaled(x, vector(3)))[0] == 6
    assert seen[0] == 2


@pytest.mark.parametrize("warm", [False, True])
def test_an_array_that_is_used_again(warm: bool) -> None:
    for _ in range(3 * warm):  # C++ has found the programs
        plain(vector(1), vector(2))
        scaled(vector(1), vector(3))
        step(State(vector(1), vector(2), put(np.float32(1))), vector(3))
    for x in (vector(2), vector(2)):
        scaled(x, vector(3))
        for _ in range(2):
            with pytest.raises(psc.ArgumentError, match="`x` of `scaled` was donated to an earl"):
                scaled(x, vector(3))
        with pytest.raises(psc.ArgumentError, match="`y` of `plain` was donated to an earlier"):
            plain(vector(3), x)
        with pytest.raises(psc.ArgumentError, match="`y` of `plain` was donated to an earlier"):
            plain(vector(3), y=x)
        with pytest.raises(psc.ArgumentError, match="`x` of `scaled` was donated to an earlier"):
            scaled.compile(n=64)(x, vector(3))
        with pytest.raises(psc.ArgumentError, match="`state` of `step` was donated"):
            step(State(x, vector(2), put(np.float32(1))), vector(3))


@pytest.mark.parametrize("inside", ["x", "v", "array"])
def test_c_explains_no_array_that_is_used_again(inside: str) -> None:
    @psc.kernel
    def read(x: f32["n"]) -> f32["n"]:
        return x + 1

    for _ in range(3):
        state, array = State(vector(1), vector(2), put(np.float32(1))), vector(3)
        step(state, vector(3))
        scaled(array, vector(3))
        read(vector(1))
        with pytest.raises(psc.ArgumentError, match="`x` of `read` was donated to an earlier"):
            read(array if inside == "array" else getattr(state, inside))


def test_what_lies_beside_donated_arrays_stays() -> None:
    @psc.kernel(donate="x")
    def moved(x: f32["n"], by: f32["n"], times: f32 = 2.0, *, plus: f32 = 0.5) -> f32["n"]:
        return x + by * times + plus

    x, by = vector(0), np.ones(64, np.float32)
    for _ in range(4):
        x = moved(x, by, plus=1)
    np.testing.assert_array_equal(x, np.full(64, 4 * 3))
    np.testing.assert_array_equal(by, np.ones(64))
    np.testing.assert_array_equal(moved(np.zeros(64, np.float32), by), np.full(64, 2.5))


class Only(psc.Record):
    """One array."""

    x: f32["n"]


@psc.kernel(donate="both")
def exchanged(both: tuple[Only, Only]) -> tuple[Only, Only]:
    return Only(both[1].x + 1), Only(both[0].x + 2)


def test_as_many_arrays_as_records() -> None:
    both: Any = Only(vector(0)), Only(vector(0))
    for _ in range(4):
        given, both = both, exchanged(both)
        assert all(each.x.is_deleted() for each in given)
    np.testing.assert_array_equal(to_numpy(both[0].x), np.full(64, 6))


def test_an_array_that_is_given_twice() -> None:
    scaled(vector(1), vector(1))
    x = vector(2)
    with pytest.raises(psc.ArgumentError, match="`by` of `scaled` is the same array as `x`"):
        scaled(x, x)
    y = vector(2)
    with pytest.raises(psc.ArgumentError, match="`state` of `step` is the same array as `state`"):
        step(State(y, y, put(np.float32(1))), vector(2))


def test_other_failures_stay_what_they_are() -> None:
    with pytest.raises(psc.ArgumentError, match=r"argument `by` of `scaled` is f32\[3\]"):
        scaled(vector(1), vector(1, 3))


def test_it_can_be_said_when_compiling() -> None:
    donating = plain.compile(n=64, donate="y")
    assert donating.executable.memory()["aliased"] == 256
    assert "buffer_donor" in plain.lower(n=64, donate=(0,)).text()
    assert "buffer_donor" not in plain.lower(n=64).text()
    x, y = vector(5), vector(2)
    assert to_numpy(donating(x, y))[0] == 3
    assert y.is_deleted()
    assert not x.is_deleted()
    assert "buffer_donor" not in scaled.lower(n=64, donate=()).text()
    assert plain(x, vector(1)) is not None
    assert not x.is_deleted()


def test_kernels_of_kernels() -> None:
    def loss(x: f32["n"], y: f32["n"]) -> f32:
        return np.sum(x * x * y)

    slope: Kernel[Any, Any] = psc.kernel(psc.grad(loss), donate="x")
    x, y = vector(3), vector(2)
    at = place(x)
    assert place(slope(x, y)) == at
    assert x.is_deleted()
    z = vector(3)
    assert to_numpy(psc.grad(loss)(z, y))[0] == 12
    assert not z.is_deleted()
    donating = psc.kernel(plain, donate="x")
    donating(z, y)
    assert z.is_deleted()

    @psc.kernel
    def inside(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return scaled(x, y) + x  # a call in a kernel gives nothing away

    w = vector(3)
    assert to_numpy(inside(w, y))[0] == 9
    assert not w.is_deleted()


SOURCE = """
import pscdsl as psc
from pscdsl import Float, f32

@psc.kernel(donate={donate})
def f(x: f32["n"], y: f32["m"], k: psc.Static[int]) -> f32["n"]:
    return x * 2
"""


@pytest.mark.parametrize(
    ("donate", "says"),
    [
        ("'z'", "`f` has no parameter `z` that could be donated"),
        ("3", "`f` has 3 parameters by position, none is 3"),
        ("-1", "`f` has 3 parameters by position, none is -1"),
        ("'k'", "`k` is static: it has no memory that could be donated"),
        ("1.5", "`donate` is a parameter's name or position, or several"),
        ("('x', 'y')", "`y` is donated, but no result can take its memory"),
        ("[0]", ""),
        ("()", ""),
    ],
)
def test_what_check_says(donate: str, says: str) -> None:
    found = check_source(SOURCE.format(donate=donate), "donating.py").diagnostics
    messages = [each.message() for each in found]
    assert len(messages) == bool(says)
    assert all(says in each for each in messages)


def test_what_a_call_says() -> None:
    @psc.kernel(donate="z")
    def f(x: f32["n"]) -> f32["n"]:
        return x

    with pytest.raises(psc.CheckError, match="has no parameter `z`"):
        f(vector(1))
    with pytest.raises(psc.CheckError, match="has no parameter `q`"):
        plain.lower(n=3, donate="q")


def test_what_gives_no_memory_is_left_alone() -> None:
    @psc.kernel(donate="x")
    def rounded(x: Float["n"], y: f32["n"]) -> f32["n"]:
        return y + x.astype("float32")

    wide: Any = put(np.full(64, 2.0))
    for _ in range(3):
        single, y = vector(1), vector(3)
        assert to_numpy(rounded(single, y))[0] == 4
        assert single.is_deleted()
        assert to_numpy(rounded(wide, y))[0] == 5
        assert not wide.is_deleted()
        assert not y.is_deleted()


def test_what_gives_no_memory_within_a_tree_is_left_alone() -> None:
    @psc.kernel(donate="state")
    def moved(state: State, force: f32["n"]) -> f32["n"]:
        return state.x + state.v + force * state.scale

    for _ in range(3):
        state: Any = State(vector(1), vector(2), put(np.float32(1)))
        assert to_numpy(moved(state, vector(3)))[0] == 6
        assert [each.is_deleted() for each in (state.x, state.v, state.scale)] == [1, 0, 0]
