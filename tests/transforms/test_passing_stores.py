"""Reads go past stores that are overwritten: the same values, wherever these stand."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.program import Function, evaluate, walk
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.shaping import Slice
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.dtypes import I32
from tests.ir.test_show import Results, program

pytestmark = pytest.mark.quick_code

UPDATE = DynamicUpdate()
PARTS = ((1, 1), (1, 3), (3, 1), (2, 2), (1, 2))


def of_parts(seed: int, shape: str) -> Function:
    """Stores and reads in turn, at numbers that are given and at constants."""
    rng = np.random.default_rng(seed)

    def build(x: Value, part: Value, i: Value, j: Value, k: Value) -> Results:
        here = x.builder
        starts = [i, j, k, *[here.literal(number, I32) for number in (-1, 0, 1, 5)]]
        results: list[Value] = []
        for _ in range(6):
            size = PARTS[rng.integers(len(PARTS))]
            at = [starts[int(each)] for each in rng.integers(0, len(starts), 2)]
            if rng.integers(2):
                part = part + 1.0
                cut = DynamicSlice(size)(part, here.literal(0, I32), here.literal(0, I32))
                x = UPDATE(x, cut, *at)
            elif rng.integers(2) and max(size) < 3:  # in a slice without some first elements
                first = (int(rng.integers(2)), int(rng.integers(2)))
                inner = Slice(first, x.shape, (1, 1))(x)
                results.append(DynamicSlice(size)(inner, *at))
            else:
                results.append(DynamicSlice(size)(x, *at))
        return [*results, x]

    numbers = ("i32", "i64", "u8", "u64")[seed % 4]
    names = ", ".join(f"{name}: {numbers}" for name in "ijk")
    sizes = "n" if "n" in shape else ""
    facts = ("n >= 3",) if sizes else ()
    return program("f", sizes, f"x: f64[{shape}], part: f64[3 3], {names}", build, *facts)


@pytest.mark.parametrize("shape", ["3 4", "n 3"])
def test_random_stores_and_reads_keep_their_meaning(shape: str) -> None:
    rng = np.random.default_rng(0)
    sizes = {"n": 4} if "n" in shape else {}
    for seed in range(150):
        function = of_parts(seed, shape)
        simple = simplify(function)
        verify(simple)
        assert simplify(simple) is simple, seed
        dtype = (np.int32, np.int64, np.uint8, np.uint64)[seed % 4]
        x = rng.normal(size=(3, 4) if shape == "3 4" else (4, 3))
        for _ in range(4):
            places = rng.integers(0 if seed % 4 > 1 else -2, 6, 3).astype(dtype)
            given = [x, rng.normal(size=(3, 3)), *map(np.asarray, places)]
            found, wanted = (evaluate(each, sizes, given) for each in (simple, function))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def counts(build: Callable[..., Results]) -> tuple[int, int]:
    """How many stores and reads are left."""
    made = simplify(program("f", "n", "x: f64[n n], y: f64, i: i32, j: i32", build, "n >= 1"))
    kinds = [type(each.primitive) for each in walk(made.body)]
    return kinds.count(DynamicUpdate), kinds.count(DynamicSlice)


def element(x: Value, *at: Value) -> Value:
    return DynamicSlice((1, 1))(x, *at)


def test_a_read_of_what_was_stored_is_what_was_stored() -> None:
    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        x = UPDATE(x, element(x, i, j) - y, i, j)
        return [UPDATE(x, element(x, i, j) / y, i, j)]

    assert counts(build) == (1, 1)


def test_a_read_at_another_place_needs_no_store() -> None:
    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        x = UPDATE(x, element(x, i, j) - y, i, j)
        return [UPDATE(x, element(x, i, j) / element(x, j, j), i, j)]

    assert counts(build) == (1, 2)


def test_a_part_that_may_overlap_is_read_after_the_store() -> None:
    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        x = UPDATE(x, element(x, i, j) - y, i, j)
        return [DynamicSlice((1, x.shape[1]))(x, i, j)]

    assert counts(build) == (1, 2)


def test_a_store_that_stays_is_read() -> None:
    """Else what was there before would be needed as long as the store is."""

    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        x = UPDATE(x, element(x, i, j) - y, i, j)
        return [UPDATE(x, element(x, j, j) / y, j, j)]

    assert counts(build) == (2, 2)


def test_many_stores_into_one_place_are_one() -> None:
    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        for _ in range(100):
            x = UPDATE(x, element(x, i, j) - element(x, j, j), i, j)
        return [x]

    assert counts(build) == (1, 2)


@psc.kernel
def crossed(a: f64["n n"]) -> f64["n n"]:
    a = a.copy()
    for i in range(len(a)):
        for j in range(len(a)):
            a[i, j] -= 1.0
            a[j, i] *= 2.0
            a[i, j] += a[j, j]
    return a


@psc.kernel
def at_indices(x: f64["n"], i: i32, j: i32) -> f64["n"]:
    x = x.copy()
    x[i] = 1.0
    x[j] = x[i] + x[j]
    x[i] += x[j]
    return x


NUMPY: dict[str, Any] = {
    name: vars(each)["__wrapped__"]
    for name, each in (("crossed", crossed), ("at_indices", at_indices))
}
"""The functions that are kernels."""


def test_a_part_of_a_slice_is_one_of_the_array() -> None:
    def build(x: Value, y: Value, i: Value, j: Value) -> Results:
        inner = Slice((0, 0), x.shape, (1, 1))(x)
        below = Slice((1, 0), x.shape, (1, 1))(inner)
        return [DynamicSlice((x.shape[0] - 1, 1))(below, i, j), element(below, i, j)]

    made = simplify(program("f", "n", "x: f64[n n], y: f64, i: i32, j: i32", build, "n >= 2"))
    verify(made)
    assert not any(isinstance(each.primitive, Slice) for each in walk(made.body))


def test_kernels_compute_what_numpy_computes() -> None:
    a = np.random.default_rng(1).integers(-9, 9, (20, 20)).astype(np.float64)
    np.testing.assert_array_equal(crossed(a), NUMPY["crossed"](a))
    x = np.arange(4.0)
    for i in range(-4, 4):
        for j in range(-4, 4):
            wanted = NUMPY["at_indices"](x, np.int32(i), np.int32(j))
            np.testing.assert_array_equal(at_indices(x, np.int32(i), np.int32(j)), wanted)


def test_derivatives_are_the_same() -> None:
    x = np.array([0.5, 2.0, 1.5, 3.0])

    def total(i: int, j: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        step = 1e-6
        found = np.empty(4)
        for k in range(4):
            ahead, behind = x.copy(), x.copy()
            ahead[k] += step
            behind[k] -= step
            runs = [NUMPY["at_indices"](each, np.int32(i), np.int32(j)) for each in (ahead, behind)]
            found[k] = (runs[0].sum() - runs[1].sum()) / (2 * step)
        return found

    @psc.kernel
    def summed(x: f64["n"], i: i32, j: i32) -> f64:
        return at_indices(x, i, j).sum()

    for i in range(4):
        for j in range(4):
            slopes = psc.grad(summed)(x, np.int32(i), np.int32(j))
            np.testing.assert_allclose(slopes, total(i, j), atol=1e-6)
