"""Reductions outside of loops, against NumPy: sizes at which blocks differ."""

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
    assert "stablehlo.reshape" in lowered.text()
    monkeypatch.setenv(VARIABLE, "folded_reductions")
    assert "stablehlo.reshape" not in lowered.text()


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


AXES = (0, 1, 2, (0, 1), (0, 2), (1, 2), None)


@psc.kernel
def sums(
    x: Num["a b c"], signs: Num["a b c"]
) -> tuple[Num["b c"], Num["a c"], Num["a b"], Num["c"], Num["b"], Num["a"], Num]:
    y = x * signs
    return (
        np.sum(y, axis=0),
        np.sum(y, axis=1),
        np.sum(y, axis=2),
        np.sum(y, axis=(0, 1)),
        np.sum(y, axis=(0, 2)),
        np.sum(y, axis=(1, 2)),
        np.sum(y),
    )


@psc.kernel
def of_computed(
    x: Num["a b c"],
) -> tuple[Num["b c"], Num["a c"], Num["a b"], Num["c"], Num["b"], Num["a"], Num]:
    assert x.shape[0] >= 1
    assert x.shape[1] >= 1
    assert x.shape[2] >= 1
    y = x * x[:1, :, :1] + x[:, :1]
    return (
        np.sum(y, axis=0),
        np.sum(y, axis=1),
        np.sum(y, axis=2),
        np.sum(y, axis=(0, 1)),
        np.sum(y, axis=(0, 2)),
        np.sum(y, axis=(1, 2)),
        np.sum(y),
    )


@psc.kernel
def largest(
    x: Num["a b c"], signs: Num["a b c"]
) -> tuple[Num["b c"], Num["a c"], Num["a b"], Num["c"], Num["b"], Num["a"], Num]:
    y = x * signs
    return (
        np.max(y, axis=0),
        np.max(y, axis=1),
        np.max(y, axis=2),
        np.max(y, axis=(0, 1)),
        np.max(y, axis=(0, 2)),
        np.max(y, axis=(1, 2)),
        np.max(y),
    )


@psc.kernel
def least(
    x: Num["a b c"], signs: Num["a b c"]
) -> tuple[Num["b c"], Num["a c"], Num["a b"], Num["c"], Num["b"], Num["a"], Num]:
    y = x * signs
    return (
        np.min(y, axis=0),
        np.min(y, axis=1),
        np.min(y, axis=2),
        np.min(y, axis=(0, 1)),
        np.min(y, axis=(0, 2)),
        np.min(y, axis=(1, 2)),
        np.min(y),
    )


@psc.kernel
def products(
    x: Num["a b c"], signs: Num["a b c"]
) -> tuple[Num["b c"], Num["a c"], Num["a b"], Num["c"], Num["b"], Num["a"], Num]:
    y = x * signs
    return (
        np.prod(y, axis=0),
        np.prod(y, axis=1),
        np.prod(y, axis=2),
        np.prod(y, axis=(0, 1)),
        np.prod(y, axis=(0, 2)),
        np.prod(y, axis=(1, 2)),
        np.prod(y),
    )


def same(found: Any, wanted: list[Any]) -> None:
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(each), other)


UNEVEN = ((17, 3, 90), (16, 17, 19), (300, 7, 2), (40, 105, 1), (1, 1021, 4), (5, 33, 33))
OF_FLOATS = [(np.float32, shape) for shape in UNEVEN]
OF_OTHERS = [(dtype, (17, 33, 9)) for dtype in (np.float64, np.float16, np.int64, np.complex64)]


def signs(x: Any, *, ones: bool = False) -> Any:
    """Return factors, for sums of products are never left to the library."""
    if ones:
        return np.ones_like(x)
    return np.random.default_rng(x.size).choice([-1, 1], x.shape).astype(x.dtype)


@pytest.mark.parametrize(("dtype", "shape"), [*OF_FLOATS, *OF_OTHERS])
def test_along_any_axes(dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    x = rng.choice([-1, 0, 0, 0, 1], shape).astype(dtype)  # all sums are exact, in any order
    y = x * signs(x)
    same(sums(x, signs(x)), [y.sum(axes, dtype=dtype) for axes in AXES])
    if not np.iscomplexobj(x):
        same(largest(x, signs(x)), [y.max(axes) for axes in AXES])
        same(least(x, signs(x)), [y.min(axes) for axes in AXES])
    y = x * x[:1, :, :1] + x[:, :1]
    same(of_computed(x), [y.sum(axes, dtype=dtype) for axes in AXES])
    x = np.where(rng.random(shape) < 0.001, 2, 1).astype(dtype)
    y = x * signs(x)
    same(products(x, signs(x)), [y.prod(axes, dtype=dtype) for axes in AXES])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_extremes_that_are_nan(dtype: Any) -> None:
    x = np.random.default_rng(3).normal(size=(300, 2, 300)).astype(dtype)
    x[7, :, ::3] = np.nan
    x[::5, 0, 8] = -np.nan
    x[9] = -0.0
    x[:, :, 10] = np.inf
    ones = signs(x, ones=True)
    same(largest(x, ones), [x.max(axes) for axes in AXES])
    same(least(x, ones), [x.min(axes) for axes in AXES])


@psc.kernel
def attention(x: f32["n m"], weights: f32["n m"]) -> tuple[f32["n m"], f32["n m"], f32["n"]]:
    y = x * weights
    rows, columns = psc.special.softmax(y, axis=1), psc.special.softmax(y, axis=0)
    return rows, columns, psc.special.logsumexp(y, axis=1)


@pytest.mark.parametrize("shape", [(300, 200), (17, 900), (900, 33), (400, 17)])
def test_softmax_of_products(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
    x[3, 5], x[4, 6], x[:, 7], x[6] = np.nan, np.inf, -np.inf, -0.0
    y = x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [np.exp(y - y.max(axis, keepdims=True)) for axis in (1, 0)]
        wanted = [
            each / each.sum(axis, keepdims=True) for each, axis in zip(found, (1, 0), strict=True)
        ]
        sums = np.log(np.exp(y - y.max(1, keepdims=True)).sum(1)) + y.max(1)
        sums[4] = np.inf
    results = attention(x, signs(x, ones=True))
    for each, other in zip(results, (*wanted, sums), strict=True):
        np.testing.assert_allclose(to_numpy(each), other, rtol=2e-6, atol=1e-12)


@psc.kernel
def plain(x: f32["n m"]) -> f32["n"]:
    return np.sum(x, axis=1)


@psc.kernel
def softmax(x: f32["n m"]) -> f32["n m"]:
    return psc.special.softmax(x, axis=1)


@psc.kernel
def dots(x: f32["n m"], y: f32["n m"]) -> f32["n"]:
    return np.sum(x * y, axis=1) + plain(x)


@psc.kernel(fast_math=True)
def fast_dots(x: f32["n m"], y: f32["n m"]) -> f32["n"]:
    return np.sum(x * y, axis=1)


def test_modules_with_the_library_leave_sums_to_it() -> None:
    x = np.zeros((300, 300), np.float32)
    for kernel, count, by_blocks in (
        (plain, 1, False),
        (softmax, 1, False),
        (fast_dots, 2, False),
        (dots, 2, True),
    ):
        text = kernel.lower_for(*[x] * count).text()
        assert ("stablehlo.reshape" in text) == by_blocks
    text = dots.lower_for(x, x).text()
    assert "across dimensions = [1] : (tensor<300x300xf32>" not in text  # of neither sum


def test_costly_elements_are_computed_first() -> None:
    @psc.kernel
    def waves(x: f32["n m"], y: f32["n m"]) -> f32["n"]:
        return np.sum(np.tanh(x) * y, axis=1)

    x = np.random.default_rng(1).normal(size=(300, 300)).astype(np.float32)
    assert "(tensor<300x300xf32>) -> tensor<300xf32>" in waves.lower_for(x, x).text()
    wanted = np.sum(np.tanh(x, dtype=np.float64) * x, axis=1)
    np.testing.assert_allclose(to_numpy(waves(x, x)), wanted, rtol=1e-5)


def test_sums_are_as_accurate_as_numpys() -> None:
    @psc.kernel
    def sums(x: f32["n m"], y: f32["n m"]) -> tuple[f32["n"], f32["m"], f32]:
        return np.sum(x * y, axis=1), np.sum(x * y, axis=0), np.sum(x * y)

    x = np.random.default_rng(1).random((1000, 3000)).astype(np.float32)
    wide = x.astype(np.float64)
    found = sums(x, signs(x, ones=True))
    for each, wanted in zip(found, (wide.sum(1), wide.sum(0), wide.sum()), strict=True):
        np.testing.assert_allclose(to_numpy(each), wanted, rtol=4e-7)
