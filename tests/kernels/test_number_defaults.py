"""Numbers that a call leaves to their defaults are constants, and results stay the same."""

# pyright: reportCallIssue=false, reportUnknownMemberType=false

from __future__ import annotations

import itertools
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64, i32
from pscdsl._src.cli import main
from pscdsl._src.xla.dispatch import fast_path_works
from pscdsl._src.xla.runtime.devices import put, to_numpy
from tests.calls.test_direct_calls import frames

pytestmark = pytest.mark.quick_code(but=4)

X = np.arange(1, 4, dtype=np.float32)
TENTH = np.float32(0.1)
"""The functions that a call runs which Python has looked at before."""
IN_CPP = pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")


class Pair(psc.Record):
    """Two arrays."""

    a: f32["n"]
    b: f32["n"]


def made() -> Any:
    """A kernel, never called, whose numbers must not change places."""

    @psc.kernel
    def mixed(x: f32["n"], a: f32 = 2.0, b: f32 = 3.0, *, c: f32 = 5.0) -> f32["n"]:
        return ((x + a) * b - c) / (a + 10 * b)

    return mixed


def meaning(x: Any, a: float = 2, b: float = 3, c: float = 5) -> Any:
    """What it computes."""
    return ((x + a) * b - c) / (a + 10 * b)


def from_device(value: float) -> Any:
    """A number in a device array."""
    return put(np.float32(value))


WAYS: dict[str, Callable[[float], Any]] = {
    "device": from_device,
    "number": float,
    "whole number": int,
    "NumPy": np.float32,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("compiled", [False, True])
def test_each_number_may_be_given_or_left_out(seed: int, compiled: bool) -> None:
    calls = list(itertools.product(range(8), WAYS, [False, True], [False, True]))
    random.Random(seed).shuffle(calls)
    kernel = made().compile(n=3) if compiled else made()
    for given, way, by_name, device in calls:
        values = {name: 7.0 + place for place, name in enumerate("abc") if given >> place & 1}
        wrapped = {name: WAYS[way](value) for name, value in values.items()}
        args: list[Any] = [put(X) if device else X]
        if not by_name:
            args += [wrapped.pop(name) for name in "ab"[: {0: 0, 1: 1, 3: 2}.get(given & 3, 0)]]
        for _ in range(2):
            found = to_numpy(kernel(*args, **wrapped))
            np.testing.assert_allclose(found, meaning(X, **values), rtol=1e-6)
    if not compiled:  # a program for each set of those that are left out
        assert kernel.cache_info().misses + kernel.cache_info().disk_hits == 8


@IN_CPP
def test_calls_without_them_run_no_python() -> None:
    kernel, x = made(), put(X)
    for _ in range(2):
        kernel(x)
        kernel(x=x)
    assert frames(lambda: kernel(x)) == ["<lambda>"]
    assert frames(lambda: kernel(x=x)) == ["<lambda>"]

    @psc.kernel
    def scaled(x: f32["n"], times: psc.Static[int] = 2, by: f32 | None = 0.5) -> f32["n"]:
        return x * times if by is None else x * times * by

    np.testing.assert_array_equal(scaled(x), X)
    assert frames(lambda: scaled(x)) == ["<lambda>"]
    np.testing.assert_array_equal(scaled(put(3 * X)), 3 * X)


def main_of(text: str) -> str:
    """What the program of a module takes."""
    return text.split("@main(")[1].split(") ->")[0]


def test_a_program_has_those_that_are_left_out() -> None:
    kernel = made()
    assert main_of(kernel.lower_for(X).text()) == "%arg0: tensor<3xf32>"
    some = kernel.lower_for(X, 1.0, c=1.0)
    assert [str(each) for each in some.program.body.in_types] == ["f32[n]", "f32", "f32"]
    assert main_of(some.text()).count("tensor<f32>") == 2
    whole = kernel.lower(n=3)
    assert main_of(whole.text()).count("tensor<f32>") == 3
    leaves = [X, *map(np.float32, (2, 3, 5))]
    np.testing.assert_allclose(whole.compile().run(leaves)[0], meaning(X), rtol=1e-6)


def test_what_is_known_counts() -> None:
    @psc.kernel
    def layer(x: f32["n"], power: f32 = 2.0, *, training: psc.bool_ = False) -> f32["n"]:
        found = x**power
        return psc.cond(training, lambda: np.sin(found), lambda: found)

    text = layer.lower_for(X).text()
    assert text.count("multiply") == 1
    for each in ("power", "sine", "case", "if"):
        assert f"stablehlo.{each}" not in text
    np.testing.assert_array_equal(layer(X), X * X)
    np.testing.assert_allclose(layer(X, training=True), np.sin(X * X), rtol=1e-6)
    np.testing.assert_allclose(layer(X, 1.0, training=True), np.sin(X), rtol=1e-6)


def test_what_is_compiled_for_a_call_takes_no_more() -> None:
    kernel = made()
    (compiled,) = psc.compile_all([(kernel, X)])
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), meaning(X), rtol=1e-6)
        np.testing.assert_allclose(kernel(put(X)), meaning(X), rtol=1e-6)
    assert kernel.cache_info().misses + kernel.cache_info().disk_hits == 1
    with pytest.raises(psc.ArgumentError, match="compiled for calls that leave `b` to its default"):
        compiled(X, b=1.0)


def test_what_is_compiled_for_sizes_serves_all_calls() -> None:
    kernel = made()
    kernel.compile(n=3)
    for x in (X, put(X)):
        for rest in ({}, {"b": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, {"c": from_device(4)}):
            values = {name: float(value) for name, value in rest.items()}
            for _ in range(3):
                found = to_numpy(kernel(x, **rest))
                np.testing.assert_allclose(found, meaning(X, **values), rtol=1e-6)
    assert kernel.cache_info().misses + kernel.cache_info().disk_hits == 1


def test_why_there_is_another_program_is_told(caplog: pytest.LogCaptureFixture) -> None:
    kernel = made()
    with caplog.at_level(logging.INFO, "pscdsl.compile"):
        kernel(X)
        kernel(X, 1.0)
    assert caplog.messages[-1].endswith(": `a` its default → given (`a` nothing → f32)")


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")])
def test_they_have_the_dtype_of_what_they_are_beside(dtype: np.dtype[Any]) -> None:
    @psc.kernel
    def scaled(x: Float["n"], by: Float = 0.1, turns: i32 = 3) -> tuple[Float["n"], i32]:
        return x * by, turns

    x = np.arange(3, dtype=dtype)
    for value in (x, put(x), x, put(x)):
        found, turns = scaled(value)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, x * dtype.type(0.1))
        assert int(turns) == 3


def test_numbers_of_numpy() -> None:
    @psc.kernel
    def scaled(x: f32["n"], by: f32 = TENTH, up: psc.bool_ = np.True_) -> f32["n"]:
        return np.where(up, x * by, x / by)

    assert main_of(scaled.lower_for(X).text()) == "%arg0: tensor<3xf32>"
    for x in (X, put(X)):
        np.testing.assert_array_equal(scaled(x), X * np.float32(0.1))
        np.testing.assert_array_equal(scaled(x, np.float32(0.5), up=False), X * 2)

    ahead = scaled.with_options()
    ahead.compile(n=3)
    for x in (X, put(X)):
        for _ in range(3):
            np.testing.assert_array_equal(ahead(x), X * np.float32(0.1))


def test_beside_static_values_and_what_may_be_none() -> None:
    @psc.kernel
    def chosen(
        x: f32["n"],
        times: psc.Static[int] = 2,
        by: f32 | None = 0.5,
        plus: f32 | None = None,
        less: f32 = 1.0,
    ) -> f32["n"]:
        found = x * times if by is None else x * times * by
        return (found if plus is None else found + plus) - less

    for _ in range(3):
        for x in (X, put(X)):
            np.testing.assert_allclose(chosen(x), X - 1)
            np.testing.assert_allclose(chosen(x, 4), X * 2 - 1)
            np.testing.assert_allclose(chosen(x, by=None), X * 2 - 1)
            np.testing.assert_allclose(chosen(x, 2, 2.0, 3.0), X * 4 + 2)
            np.testing.assert_allclose(chosen(x, plus=3.0), X + 2)
            np.testing.assert_allclose(chosen(x, less=0.0), X)


def test_a_number_that_is_donated_is_no_constant() -> None:
    @psc.kernel(donate="count")
    def counted(x: f32["n"], by: f32 = 2.0, count: i32 = 0) -> tuple[f32["n"], i32]:
        return x * by, count + 1

    for compiled in (counted, counted.compile(n=3), made_donating("count")):
        for x in (X, put(X)):
            count: Any = None
            for _ in range(4):
                found, count = compiled(x)
                np.testing.assert_array_equal(found, X * 2)
                assert int(count) == 1
                _, count = compiled(x, 3.0, count)
                assert int(count) == 2


def made_donating(name: str) -> Any:
    """The same by another way: what is donated is said when it is compiled."""

    @psc.kernel
    def counted(x: f32["n"], by: f32 = 2.0, count: i32 = 0) -> tuple[f32["n"], i32]:
        return x * by, count + 1

    return counted.compile(n=3, donate=name)


def test_beside_donated_arrays() -> None:
    @psc.kernel(donate="state")
    def step(state: Pair, x: f32["n"], rate: f32 = 0.5) -> Pair:
        return Pair(state.a - rate * x, state.b + x)

    for rates in ((), (0.25,), (put(np.float32(0.25)),)):
        state: Any = Pair(put(X), put(X))
        for turn in range(1, 5):
            before, state = state, step(state, put(X), *rates)
            assert before.a.is_deleted()
            assert before.b.is_deleted()
            np.testing.assert_allclose(state.a, X * (1 - turn * (0.25 if rates else 0.5)))
            np.testing.assert_allclose(state.b, X * (1 + turn))


def test_what_is_derived_or_exported_has_them() -> None:
    @psc.kernel
    def loss(x: f32["n"], a: f32 = 2.0, b: f32 = 3.0) -> f32:
        return np.sum(a * x**2 - b * x)

    slope, rows = psc.grad(loss), psc.vmap(loss)
    loaded = psc.load(loss.export(n=3))
    value = np.sum(2 * X**2 - 3 * X)
    for _ in range(3):
        for x in (X, put(X)):
            np.testing.assert_allclose(slope(x), 4 * X - 3)
            np.testing.assert_allclose(slope(x, 1.0), 2 * X - 3)
            np.testing.assert_allclose(slope(x, b=1.0), 4 * X - 1)
            np.testing.assert_allclose(loaded(x), value)
            np.testing.assert_allclose(loaded(x, b=0.0), np.sum(2 * X**2))
        np.testing.assert_allclose(rows(np.stack([X, X])), [value, value])


PROGRAM = """\
import sys
import numpy as np
import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.xla.runtime.devices import put

@psc.kernel(donate="old")
def difference(
    old: f32["n"], x: f32["n"], a: f32 = 2.0, b: f32 = 5.0
) -> f32["n"]:
    return old + x * a - b

@psc.kernel(donate="x")
def rounded(x: Float["n"], y: f32["n"]) -> f32["n"]:
    return y + x.astype("float32")

x = np.ones(3, np.float32)
single, wide = (put(np.ones(3, each)) for each in (np.float32, np.float64))
for _ in range(2):
    if not single.is_deleted():
        rounded(single, x)
    rounded(wide, x)
print(single.is_deleted(), wide.is_deleted())
found = [difference(x * 0, x), difference(x * 0, x, 3.0), difference(x * 0, x, b=1.0)]
print([float(each[0]) for each in found], difference.cache_info()[1])
print("pscdsl._src.frontend.interpreter.expressions" in sys.modules)
"""


def ran(path: Path, folder: Path) -> str:
    """What the program prints."""
    environment = {**os.environ, "PSCDSL_CACHE": str(folder)}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


def test_a_second_process_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert ran(path, tmp_path / "cache") == "True False\n[-3.0, -2.0, 1.0] 3\nTrue\n"
    assert ran(path, tmp_path / "cache") == "True False\n[-3.0, -2.0, 1.0] 0\nFalse\n"


def test_calls_find_what_was_compiled_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setenv("PSCDSL_CACHE", str(tmp_path / "cache"))
    assert main(["compile", str(path), "--dims", "n=3"]) == 0
    assert ran(path, tmp_path / "cache").startswith("True False\n[-3.0, -2.0, 1.0] 0\n")


def test_large_results_are_pooled_beside_them() -> None:
    @psc.kernel
    def scaled(x: f64["n"], by: f64 = 2.0) -> f64["n"]:
        return x * by

    x = np.ones(1 << 22)
    for _ in range(4):
        assert float(scaled(x)[-1]) == 2
        assert float(scaled(x, 3.0)[-1]) == 3
