"""Integers and truths combined outside of loops, against NumPy: sizes at which slices differ."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Num, bool_, f32, i32
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.xla.runtime.devices import to_numpy

SHAPES = (
    (800, 64),
    (12, 4096),
    (1600, 33),
    (250, 255),
    (52, 1001),
    (65537,),
    (2, 30, 40, 50),
)


@psc.kernel
def extremes(x: Num["*s n"]) -> tuple[Num["*s"], Num["*s"], Num, Num]:
    return np.max(x, axis=-1), np.min(x, axis=-1), np.max(x), np.min(x)


@psc.kernel
def truths(x: bool_["*s n"]) -> tuple[bool_["*s"], bool_["*s"], bool_, bool_, bool_["*s"]]:
    return np.any(x, axis=-1), np.all(x, axis=-1), np.any(x), np.all(x), np.max(x, axis=-1)


@psc.kernel
def counts(x: bool_["*s n"]) -> tuple[i32["*s"], i32]:
    return np.sum(x, axis=-1, dtype=np.int32), np.sum(x, dtype=np.int32)


@psc.kernel
def over_two(x: bool_["a b c"]) -> tuple[i32["a"], bool_["a"], bool_["c"], i32["b"]]:
    return (
        np.sum(x, axis=(1, 2), dtype=np.int32),
        np.any(x, axis=(1, 2)),
        np.all(x, axis=(0, 1)),
        np.sum(x, axis=(0, 2), dtype=np.int32),
    )


@pytest.mark.sampled
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_extremes(dtype: Any, shape: tuple[int, ...]) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    wanted = (x.max(-1), x.min(-1), x.max(), x.min())
    for found, each in zip(extremes(x), wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(found), each)


@pytest.mark.sampled
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.001, 0.999, 1.0])
def test_truths(shape: tuple[int, ...], share: float) -> None:
    x = np.random.default_rng(sum(shape)).random(shape) < share
    wanted = (x.any(-1), x.all(-1), x.any(), x.all(), x.max(-1))
    for found, each in zip(truths(x), wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(found), each)
    for count, each in zip(counts(x), (x.sum(-1), x.sum()), strict=True):
        np.testing.assert_array_equal(to_numpy(count), each)


@pytest.mark.parametrize("count", [64, 97, 1001])
def test_one_that_differs_wherever_it_stands(count: int) -> None:
    one = np.eye(count, dtype=bool)
    x = one[np.arange(max(count, 1000)) % count]
    any_, _, _, _, largest = truths(x)
    assert to_numpy(any_).all()
    assert to_numpy(largest).all()
    assert not to_numpy(truths(~x)[1]).any()
    assert (to_numpy(counts(x)[0]) == 1).all()
    assert (to_numpy(counts(~x)[0]) == count - 1).all()
    largest, least, _, _ = extremes(np.where(x, 7, 3).astype(np.int64))
    assert (to_numpy(largest) == 7).all()
    assert (to_numpy(least) == 3).all()


@pytest.mark.parametrize("shape", [(6, 100, 90), (500, 9, 13), (1, 300, 300)])
def test_along_several_axes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).random(shape) < 0.99
    wanted = (x.sum((1, 2)), x.any((1, 2)), x.all((0, 1)), x.sum((0, 2)))
    for found, each in zip(over_two(x), wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(found), each)


@pytest.mark.parametrize("most", [1, 2, 3, 100, 127, 128, 300])
def test_sums_of_small_numbers(most: int) -> None:
    @psc.kernel
    def total(x: i32["n m"]) -> tuple[i32["n"], i32]:
        small = np.clip(x, 0, most)
        return np.sum(small, axis=1), np.sum(np.clip(x, -1, most))

    x = np.random.default_rng(most).integers(-2, most + 3, (70, 999)).astype(np.int32)
    x[:3] = most
    rows, whole = total(x)
    np.testing.assert_array_equal(to_numpy(rows), np.clip(x, 0, most).sum(1))
    assert int(whole) == np.clip(x, -1, most).sum()


def test_what_is_computed_is_folded_too() -> None:
    @psc.kernel
    def checked(x: f32["n m"]) -> tuple[bool_["n"], i32, bool_]:
        return np.any(np.isnan(x), axis=1), np.sum(x > 0, dtype=np.int32), np.all(np.isfinite(x))

    x = np.random.default_rng(0).normal(size=(100, 999)).astype(np.float32)
    x[17, 998] = np.nan
    nans, count, finite = checked(x)
    np.testing.assert_array_equal(to_numpy(nans), np.isnan(x).any(1))
    assert int(count) == (x > 0).sum()
    assert not finite
    assert checked(np.zeros((100, 999), np.float32))[2]


def test_derivatives_and_batches_are_as_they_were() -> None:
    @psc.kernel
    def picked(x: f32["n m"]) -> f32:
        return np.sum(np.where(np.any(x > 2, axis=1), np.sum(x**2, axis=1), 0.0))

    x = np.random.default_rng(0).normal(size=(90, 128)).astype(np.float32)
    rows = np.any(x > 2, axis=1, keepdims=True)
    np.testing.assert_allclose(psc.grad(picked)(x), np.where(rows, 2 * x, 0), rtol=1e-6)
    batch = np.stack([x, -x, 2 * x])
    wanted = [np.sum(np.where((each > 2).any(1), (each**2).sum(1), 0)) for each in batch]
    np.testing.assert_allclose(psc.vmap(picked)(batch), wanted, rtol=1e-4)


@pytest.mark.parametrize("kernel", [truths, counts])
def test_it_can_be_switched_off(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = kernel.lower_for(np.zeros((300, 300), bool))
    assert "stablehlo.slice" in lowered.text()
    monkeypatch.setenv(VARIABLE, "folded_reductions")
    assert "stablehlo.slice" not in lowered.text()


@psc.kernel
def many(x: Num["n m"]) -> Num["m"]:
    return np.max(x, axis=0)


@psc.kernel
def places(x: Num["*s n"]) -> tuple[i32["*s"], i32["*s"], Num["*s"], Num["*s"]]:
    return (
        np.argmax(x, axis=-1),
        np.argmin(x, axis=-1),
        np.max(x, axis=-1),
        np.min(x, axis=-1),
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "shape", [(3, 31), (9, 32), (1600, 33), (2000, 48), (900, 64), (130, 600), (1, 70001)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64, np.int8])
def test_the_first_of_equal_extremes(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(shape[1])
    x = rng.integers(-3 * shape[1], 3 * shape[1], shape).clip(-100, 100).astype(dtype)
    if x.dtype.kind == "f":
        x[::7, 5] = np.nan
        x[::14, 25] = np.nan
        x[1::7, 3] = np.inf
        x[2::7] = -0.0
        x[3::7] = -np.inf
    wanted = (x.argmax(-1), x.argmin(-1), x.max(-1), x.min(-1))
    for found, each in zip(places(x), wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(found), each)


def test_columns_are_left_alone() -> None:
    assert "stablehlo.slice" not in many.lower_for(np.zeros((300, 300), np.int32)).text()
