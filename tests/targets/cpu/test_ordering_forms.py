"""Large arrays: in order, their prefixes, and where extremes stand, compiled, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from ml_dtypes import bfloat16

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.reductions import Accumulation, ArgReduce, Cumulative, Extreme
from pscdsl._src.primitives.shaping import Reverse, without
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl._src.targets.cpu.reductions import BLOCK, CHUNK, CHUNK_OF_ROW, FEW, LONG
from pscdsl._src.targets.cpu.reductions import LEAST_IN_BLOCKS as IN_BLOCKS
from pscdsl._src.targets.cpu.sorting import LANES, LEAST_BLOCKED
from pscdsl._src.targets.cpu.sorting import LEAST as SORTED
from pscdsl._src.targets.forms import VARIABLE
from pscdsl.typing.dtypes import I32
from tests.support.numpy_differential import INF, NAN, theirs
from tests.support.numpy_harness import build, run_compiled
from tests.support.share import some

pytestmark = pytest.mark.jaxlib

SHAPES = (
    ((3 * CHUNK + 5,), 0),
    ((7, 3 * CHUNK), 1),
    ((3, 5 * CHUNK_OF_ROW + 7), 1),
    ((40, 33), 0),
    ((5, 30, 3), 1),
    ((FEW - 1, LONG + 3), 0),
    ((4, 2, 40), 1),
)


EXTREMES: tuple[Extreme, ...] = get_args(Extreme)
ACCUMULATIONS: tuple[Accumulation, ...] = get_args(Accumulation)


def numbers(code: str, shape: tuple[int, ...]) -> Any:
    """Numbers of a dtype, many of which are equal."""
    found = np.round(np.random.default_rng(sum(shape)).normal(size=shape) * 8) / 4
    return (abs(found) if code[0] in "u?" else found).astype(code)


CASES = [
    *[("f4", *each) for each in SHAPES],
    *[(code, *SHAPES[0]) for code in ("?", "i1", "f2", "f8", "c8")],
    *[(code, *SHAPES[1]) for code in ("u8", "i4")],
    *[(code, *SHAPES[3]) for code in ("f2", "c8")],
]


@pytest.mark.parametrize(("code", "shape", "axis"), CASES)
def test_prefixes(code: str, shape: tuple[int, ...], axis: int) -> None:
    x = numbers(code, shape)
    for kind, reverse in some(product(ACCUMULATIONS, (False, True)), 2, (code, shape)):
        if (code == "?" and kind in ("sum", "product")) or (code == "c8" and kind[0] == "m"):
            continue
        built = build(Cumulative(kind, axis, reverse), (x,), {})
        found, wanted = built.compiled(), built.evaluated()
        assert found.dtype == x.dtype
        if kind == "product":
            tolerance = 4e-3 if code == "f2" else 1e-5
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-6)
        else:  # multiples of a quarter: exact
            np.testing.assert_array_equal(found, wanted)


def test_infinities_and_nan_do_not_reach_earlier_prefixes() -> None:
    x = np.ones(100, np.float32)
    x[40], x[70] = INF, -INF
    np.testing.assert_array_equal(run_compiled(Cumulative("sum", 0), x), theirs("numpy.cumsum", x))
    np.testing.assert_array_equal(
        run_compiled(Cumulative("product", 0), x), theirs("numpy.cumprod", x)
    )
    x[20] = NAN
    wanted = np.maximum.accumulate(x)
    np.testing.assert_array_equal(run_compiled(Cumulative("maximum", 0), x), wanted)


@pytest.mark.parametrize("count", [1000, 1 << 18])
def test_long_sums_of_single_precision_round_little(count: int) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1, count).astype(np.float32)
    wanted = np.cumsum(x, dtype=np.float64)
    found = run_compiled(Cumulative("sum", 0), x)
    assert np.max(abs(found - wanted) / wanted) < 4 * np.finfo(np.float32).eps


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(5000,), (40, 64), (3, 500, 2)])
@pytest.mark.parametrize("code", ["?", "i1", "u8", "i4", "f2", "f4", "f8"])
def test_places_of_extremes(code: str, shape: tuple[int, ...]) -> None:
    x, axis = numbers(code, shape), int(len(shape) > 1)
    for kind in EXTREMES:
        find = np.argmax if kind == "maximum" else np.argmin
        found = run_compiled(ArgReduce(kind, axis, I32), x)
        np.testing.assert_array_equal(found, find(x, axis=axis))


@pytest.mark.sampled
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [NAN, INF, -INF, -0.0])
def test_places_of_extremes_of_special_values(value: float, axis: int) -> None:
    x = numbers("f4", (64, 64))
    x[30:, 40:] = value
    x[:, 50] = x[50, :] = value
    x[3, :] = x[:, 3] = -INF
    np.testing.assert_array_equal(
        run_compiled(ArgReduce("maximum", axis, I32), x), np.argmax(x, axis=axis)
    )
    np.testing.assert_array_equal(
        run_compiled(ArgReduce("minimum", axis, I32), x), np.argmin(x, axis=axis)
    )


ROWS_IN_BLOCKS = (
    ((IN_BLOCKS + BLOCK - 1,), 0),
    ((1, 70 * BLOCK, 1), 1),
    ((20 * BLOCK, 15), 0),
    ((300, 1000), 1),
    ((260, 1, 1024, 1), 2),
    ((100, 1009), 1),
)


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "axis"), ROWS_IN_BLOCKS)
@pytest.mark.parametrize("code", ["f4", "i1", "f8", "f2", "?"])
def test_places_of_extremes_in_blocks(code: str, shape: tuple[int, ...], axis: int) -> None:
    if code != "f4" and shape != (300, 1000):
        return
    x = numbers(code, shape)
    rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
    rng = np.random.default_rng(0)
    rows[0] = rows[0, 0]  # all are equal
    for row in rows[-50:]:
        row[rng.integers(len(row), size=2)] = 100
        row[-1 - rng.integers(BLOCK) % len(row)] = -100 if code[0] != "?" else 0
        if code[0] == "f":
            row[rng.integers(len(row), size=2)] = rng.choice([NAN, INF, -INF, -0.0], 2)
    x = np.ascontiguousarray(np.moveaxis(rows.reshape(*without(shape, (axis,)), -1), -1, axis))
    for kind in EXTREMES:
        find = np.argmax if kind == "maximum" else np.argmin
        found = run_compiled(ArgReduce(kind, axis, I32), x)
        np.testing.assert_array_equal(found, find(x, axis=axis))


LINES = (
    ((LANES + 6, 100), 1),
    ((257, LANES), 0),
    ((3, 90, 40), 1),
    ((SORTED + 3,), 0),
    ((2, SORTED), 1),
)


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "axis"), LINES)
@pytest.mark.parametrize("code", ["?", "i1", "i8", "f2", "f4"])
def test_sorted_lines(code: str, shape: tuple[int, ...], axis: int) -> None:
    shape = tuple([4 * n if a != axis and len(shape) > 1 else n for a, n in enumerate(shape)])
    x = numbers(code, shape) * np.array(3, code)
    for descending in (False, True):
        # NumPy 2.4's other sort of f16 leaves some of 16387 numbers out of order on an AMD EPYC.
        wanted = np.sort(x, axis, kind="stable")
        wanted = np.flip(wanted, axis) if descending else wanted
        found = run_compiled(Sort(axis, descending=descending), x)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("shape", "axis"), [LINES[0], LINES[3]])
def test_special_values_in_order(shape: tuple[int, ...], axis: int) -> None:
    shape = (4 * shape[0], *shape[1:])
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    special = np.array([NAN, INF, -INF, 0.0, -0.0, 1e-40, np.finfo(np.float32).max])
    x.flat[::5] = np.resize(special, x.flat[::5].shape)
    found, wanted = run_compiled(Sort(axis), x), np.sort(x, axis)
    np.testing.assert_array_equal(found, wanted)
    # NumPy's own sort may change the sign of a zero.
    assert np.count_nonzero(np.signbit(found) & (found == 0)) == np.count_nonzero(
        np.signbit(x) & (x == 0)
    )
    x[x == np.float32(1e-40)] = 1  # XLA compares subnormal numbers as zero
    places = build("numpy.argsort", (x,), {"axis": axis}).compiled()
    np.testing.assert_array_equal(places, np.argsort(x, axis, stable=True))


@pytest.mark.sampled
@pytest.mark.parametrize("place", [1, 100])  # the latter is clamped
@pytest.mark.parametrize("shape", [(40, 50), (600, 500), (50, 9, 13)])
@pytest.mark.parametrize("code", ["?", "i1", "f4", "c8"])
def test_most_of_an_array_replaced(code: str, shape: tuple[int, ...], place: int) -> None:
    x = numbers(code, shape)
    sizes = (*shape[:-1], shape[-1] - 2)
    start = min(place, 2)
    wanted = x.copy()
    wanted[..., start : start + sizes[-1]] = np.flip(x, 0)[..., start : start + sizes[-1]]

    def starts(x: Value) -> list[Value]:
        return [x.builder.literal(each, I32) for each in (*[0] * (x.ndim - 1), place)]

    def replaced(x: Value, part: Value) -> Value:
        return DynamicUpdate()(x, part, *starts(x))

    def moved(x: Value) -> Value:
        return replaced(x, DynamicSlice(sizes)(Reverse((0,))(x), *starts(x)))

    np.testing.assert_array_equal(run_compiled(moved, x), wanted)
    part = np.ascontiguousarray(np.flip(x, 0)[..., start : start + sizes[-1]])
    np.testing.assert_array_equal(run_compiled(replaced, x, part), wanted)


LONG_ROWS = (
    ((LEAST_BLOCKED,), 10),
    ((4, 20_011), 3),
    ((70_000,), 1),
    ((1 << 16,), 200),
)


def among(x: Any, *values: float) -> Any:
    """The same with few of each value put in."""
    random = np.random.default_rng(2)
    for value in values:
        places: Any = random.integers(x.size, size=50)
        x = x.copy()
        x.flat[places] = value
    return x


def both(k: int) -> Callable[[Value], Any]:
    """The largest few and their places."""
    return lambda x: TopK(k).bind(x)


@pytest.mark.parametrize("code", ["f4", "f8", "bfloat16", "i4", "u1"])
def test_the_largest_few_of_many(code: str) -> None:
    kind = np.dtype(bfloat16 if code == "bfloat16" else code)
    for shape, k in LONG_ROWS:
        x = numbers("f8" if kind.kind in "fV" else code, shape).astype(kind)
        given = [x, np.full_like(x, 3)]
        if kind.kind in "fV":
            given += [
                among(x, NAN, INF, -NAN),
                np.full_like(x, -INF),
                among((-abs(x) - 1).astype(kind), 0.0, -0.0),  # older NumPy makes f32 of bf16
            ]
        else:
            given.append(
                np.full_like(x, -(1 << (8 * kind.itemsize - 1)) if kind.kind == "i" else 0)
            )
        built = build(both(k), (x,), {})
        for each in given:
            for found, wanted in zip(built.compiled(each), built.evaluated(each), strict=True):
                np.testing.assert_array_equal(found.astype("f8"), wanted.astype("f8"))
                number = ~np.isnan(wanted.astype("f8"))
                signs = [np.signbit(one.astype("f8")[number]) for one in (found, wanted)]
                np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize(("shape", "k"), [((256, 1024), 10), ((4, 256, 200), 3), ((512, 64), 16)])
def test_the_largest_few_of_many_rows(shape: tuple[int, ...], k: int) -> None:
    x = numbers("f4", shape)
    lowest = np.full_like(x, -INF)
    lowest[..., 5] = NAN
    specials = among(x, NAN, INF, -NAN), among(-abs(x) - 1, 0.0, -0.0)
    built = build(both(k), (x,), {})
    for each in (x, np.full_like(x, 3), lowest, *specials):
        for found, wanted in zip(built.compiled(each), built.evaluated(each), strict=True):
            np.testing.assert_array_equal(found, wanted)
            number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(wanted[number]))


def test_the_largest_of_blocks_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    given = largest.lower(n=LEAST_BLOCKED).text()
    monkeypatch.setenv(VARIABLE, "top_of_blocks")
    assert largest.lower(n=LEAST_BLOCKED).text() != given


@psc.kernel
def largest(x: f32["n"]) -> f32["5"]:
    assert x.shape[0] >= 5
    return psc.top_k(x, 5)[0]
