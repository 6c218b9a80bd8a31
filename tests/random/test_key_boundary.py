"""Keys on their way into kernels and out of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Key, f32
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.cli import main


class State(NamedTuple):
    """A key in a record."""

    key: Key
    x: f32["n"]


@psc.kernel
def step(state: State) -> State:
    """One step of a random walk."""
    key, sub = psc.random.split(state.key)
    return State(key, state.x + psc.random.normal(sub, state.x.shape))


@psc.kernel
def walk(state: State) -> State:
    """Two steps."""
    return step(step(state))


@psc.kernel
def draw(key: Key) -> f32:
    """One number."""
    return psc.random.normal(key)


@psc.kernel
def draws(keys: Key["n"]) -> f32["n"]:
    """A number from each key."""
    return psc.map(lambda k: draw(k), keys)


@psc.kernel
def pair(keys: tuple[Key, Key]) -> tuple[Key, Key, Key["2"]]:
    """Keys in tuples."""
    left, right = keys
    return right, left, np.stack([psc.random.fold_in(left, 1), psc.random.fold_in(right, 1)])


def test_a_key_goes_round() -> None:
    state = State(psc.random.key(0), np.zeros(3, np.float32))
    there = walk(state)
    again = step(step(state))
    for one, other in zip(there, again, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert np.asarray(there.key).shape == (2,)
    assert not np.array_equal(np.asarray(there.key), np.asarray(state.key))


def test_arrays_of_keys() -> None:
    keys = psc.random.split(psc.random.key(1), 4)
    together = np.asarray(draws(keys))
    apart = [float(draw(key)) for key in keys]
    np.testing.assert_array_equal(together, np.asarray(apart, np.float32))


def test_tuples_of_keys() -> None:
    one, other = psc.random.split(psc.random.key(2))
    right, left, both = pair((one, other))
    np.testing.assert_array_equal(np.asarray(right), other)
    np.testing.assert_array_equal(np.asarray(left), one)
    assert np.asarray(both).shape == (2, 2)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (0, "i64"),
        (np.zeros(2, np.float32), r"f32\[2\]"),
        (np.zeros(3, np.uint32), r"u32\[3\]"),
        (np.zeros((2, 2), np.uint32), r"Key\[2\]"),
        ("key", "str"),
        (None, "None"),
    ],
)
def test_what_is_no_key(given: Any, found: str) -> None:
    with pytest.raises(ArgumentError, match=f"`key` of `draw` is .*{found}.*Key is declared"):
        draw(given)


def test_one_key_is_no_array_of_them() -> None:
    with pytest.raises(ArgumentError, match=r"is Key, but Key\[n\] is declared"):
        draws(psc.random.key(0))


KEY_OF_THE_MODULE: Any = psc.random.key(5)


def test_a_key_of_the_module_is_not_drawn_from() -> None:
    @psc.kernel
    def noisy(x: f32["n"]) -> f32["n"]:
        return x + psc.random.normal(KEY_OF_THE_MODULE, x.shape)

    with pytest.raises(CheckError, match="PSC602"):
        noisy(np.zeros(3, np.float32))


def test_a_reused_key_is_found_at_the_first_call() -> None:
    @psc.kernel
    def twice(key: Key) -> f32:
        return psc.random.normal(key) + psc.random.normal(key)

    with pytest.raises(CheckError, match="PSC601"):
        twice(psc.random.key(0))


PROGRAM = """\
import pscdsl as psc
from pscdsl import Key, f32


@psc.kernel
def draw(key: Key, x: f32["n"]) -> f32["n"]:
    return psc.random.uniform(key, x.shape)
"""


@pytest.mark.parametrize("value", ["42", "[0, 42]"])
def test_a_key_on_the_command_line(
    value: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert main(["run", f"{path}:draw", "--arg", f"key={value}", "--arg", "x=[0, 0]"]) == 0
    assert "0.4887" in capsys.readouterr().out
    assert main(["run", f"{path}:draw", "--arg", "key=0.5", "--arg", "x=[0, 0]"]) == 2


def test_the_text_forms() -> None:
    assert "draw(key: Key) -> f32" in str(draw.ir())
    assert str(draws.signature) == "draws(keys: Key[n]) -> f32[n]"
    assert "tensor<2xui32>" in draw.lower().text()
