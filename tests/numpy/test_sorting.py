"""Sorting, places of extrema and searching against NumPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.primitives.sorting import SearchSorted
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape, WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction, LengthsDiffer, TooFewElements
from tests.support.numpy_differential import (
    INF,
    NAN,
    agree,
    arrays,
    at_least,
    check,
    normal,
    refused,
    theirs,
    with_axis,
)
from tests.support.numpy_harness import S, build, run, run_compiled, run_symbolic
from tests.support.share import some

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=30, deadline=None)
MESSY = np.array([3.0, NAN, -1.0, INF, 0.0, -0.0, -INF, 3.0, NAN, 2.0])


@FEW
@given(with_axis(arrays(least_size=0)))
def test_sort(case: tuple[Any, Any]) -> None:
    x, axis = case
    check("numpy.sort", x, axis=axis)
    check("numpy.argsort", x, axis=axis, wanted=np.argsort(x, axis=axis, stable=True))


@pytest.mark.parametrize("code", ["?", "i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", "c8"])
def test_every_dtype_compiled(code: str) -> None:
    x = normal(3, 6)
    x = (abs(x) if code[0] == "u" else x).astype(code)
    check("numpy.sort", x, axis=1, compiled=True)
    check("numpy.argsort", x, axis=0, wanted=np.argsort(x, axis=0, stable=True), compiled=True)


def test_nan_comes_last() -> None:
    reversed_parts = np.zeros(10, complex)
    reversed_parts.real, reversed_parts.imag = MESSY[::-1], MESSY
    for x in (MESSY, MESSY + 1j, reversed_parts):
        check("numpy.sort", x, compiled=True)
        check("numpy.argsort", x, wanted=np.argsort(x, stable=True), compiled=True)


def test_ways_to_ask_for_a_stable_sort() -> None:
    x = normal(9)
    ways: list[dict[str, Any]] = [{"kind": "stable"}, {"kind": "mergesort"}, {"stable": True}]
    for options in ways:
        check("numpy.sort", x, **options)
        check("numpy.argsort", x, **options)
        for shape, axis in (((40,), 0), ((8, 100), 0), ((8, 100), 1)):
            zeros: Any = (np.sign(normal(*shape)) * np.round(normal(*shape))).astype(np.float32)
            for runner in (run, run_compiled):
                found = runner("numpy.sort", zeros, axis, **options)
                wanted: Any = np.sort(zeros, axis, **options)
                np.testing.assert_array_equal(found, wanted)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    refused(BadArguments, "numpy.sort", x, kind="bubble")
    refused(BadArguments, "numpy.sort", x, kind="stable", stable=True)


def test_sort_complex() -> None:
    check("numpy.sort_complex", normal(3, 4))
    for dtype in (np.int8, np.uint16, np.int32, np.float64, np.complex64):
        check("numpy.sort_complex", np.array([3, 1, 2], dtype))


def test_lexsort() -> None:
    first = np.array([1, 0, 1, 0, 2, 2])
    second = np.array([3.0, 2.0, NAN, 2.0, 0.0, -1.0])
    check("numpy.lexsort", (second, first), compiled=True)
    check("numpy.lexsort", [first, second, first])
    agree(run("numpy.lexsort", np.stack([second, first * 1.0])), np.lexsort((second, first)))
    check("numpy.lexsort", (normal(3, 4) > 0, normal(3, 4, seed=1) > 0), axis=0)
    refused(LengthsDiffer, "numpy.lexsort", (first, second[:3]))
    refused(WrongNumberOfAxes, "numpy.lexsort", (first, np.zeros((2, 2))))


def test_partition_is_a_sort() -> None:
    x = normal(3, 7)
    for kth in (2, -1, (1, 3)):
        agree(run("numpy.partition", x, kth), np.sort(x))
        agree(run_symbolic("numpy.argpartition", x, 0, axis=0), np.argsort(x, axis=0))
    refused(TooFewElements, "numpy.partition", x, 7)
    refused(TooFewElements, "numpy.partition", x, 2, symbolic=True)
    agree(build("numpy.partition", (x, 2), {}, True, at_least(7, bound=3)).evaluated(), np.sort(x))


@FEW
@given(st.sampled_from(("argmax", "argmin")), with_axis(arrays(least_rank=0)), st.booleans())
def test_places_of_extrema(name: str, case: tuple[Any, Any], keepdims: bool) -> None:
    x, axis = case
    check(f"numpy.{name}", x, axis=axis, keepdims=keepdims)


def test_places_of_extrema_without_nan() -> None:
    x = np.array([[NAN, 2.0, 5.0], [INF, NAN, -INF]])
    for name in ("nanargmax", "nanargmin"):
        for axis in (None, 1):
            check(f"numpy.{name}", x, axis=axis, compiled=True)
    agree(run("numpy.nanargmax", np.array([NAN, NAN])), np.int64(0))
    for code in ("?", "i1", "u4"):
        y = abs(normal(3, 4)).astype(code)
        check("numpy.argmax", y, axis=1, compiled=True)
        check("numpy.nanargmin", y, axis=0)


def test_top_k() -> None:
    x = normal(3, 8)
    for axis in (-1, 0):
        k = 2
        wanted = np.flip(np.sort(x, axis=axis), axis).take(range(k), axis)
        for runner in (run, run_compiled):
            values, places = runner("pscdsl.top_k", x, k, axis=axis)
            agree(values, wanted)
            agree(np.take_along_axis(x, places, axis), wanted)
    values, places = run("pscdsl.top_k", np.array([1.0, NAN, 1.0, 2.0]), 4)
    agree(values, np.array([NAN, 2.0, 1.0, 1.0]))
    agree(places, np.array([1, 3, 0, 2]))
    values, _ = run_symbolic("pscdsl.top_k", x, S(8))
    assert values.shape == (3, 8)
    finding = refused(TooFewElements, "pscdsl.top_k", x, 5, symbolic=True)
    assert finding.help() == "add `assert n8 >= 5`"
    refused(TooFewElements, "pscdsl.top_k", x, 9)
    refused(DataDependentShape, "pscdsl.top_k", x, np.array(3))
    refused(DtypeNotAccepted, "pscdsl.top_k", x + 0j, 1)


@pytest.mark.sampled
@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(count: int, side: str) -> None:
    rounded: Any = normal(count).round(1)
    a = np.sort(rounded)
    a[count - count // 10 :] = NAN
    v = np.concatenate([a, a - 0.05, [NAN, INF, -INF]]).reshape(-1, 1)
    check("numpy.searchsorted", a, v, side)
    check("numpy.searchsorted", a, 0.5, side)
    if count in (31, 100):
        check("numpy.searchsorted", a, v, side, compiled=True)


@pytest.mark.sampled
@pytest.mark.parametrize("code", ["f4", "f2", "i4", "u1", "?", "f8"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_by_counting(code: str, side: Any) -> None:
    theirs_of: Any = np.searchsorted
    cases = itertools.product(((), (3,)), (3, 33, 64, 65, 127))
    for lines, count in some(cases, 3, (code, side)):
        a = np.sort((5 * normal(*lines, count)).astype(code), axis=-1)
        v = (5 * normal(*lines, 70)).astype(code)
        if code[0] == "f":
            a[..., count - count // 10 :] = NAN
            a[..., 0], a[..., 1:3] = -INF, -0.0
            a = np.sort(a, axis=-1)
            v[..., :6] = [NAN, INF, -INF, 0.0, -0.0, 1e-7]
        v[..., 6 : 7 + count // 2] = a[..., : 1 + count // 2]
        pairs = zip(a.reshape(-1, count), v.reshape(-1, 70), strict=True)
        wanted: Any = [theirs_of(one, sought, side) for one, sought in pairs]
        found = run_compiled(SearchSorted(side), a, v)
        np.testing.assert_array_equal(found, np.reshape(wanted, v.shape))


@pytest.mark.parametrize("name", ["numpy.partition", "numpy.argpartition"])
def test_partition_has_one_kind(name: str) -> None:
    refused(BadArguments, name, normal(5), 2, kind="quicksort")


def test_searchsorted_in_what_may_be_empty() -> None:
    a, v = np.sort(normal(50)), normal(7)
    facts = at_least(50, bound=0)
    built = build("numpy.searchsorted", (a, v), {}, True, facts)
    agree(built.evaluated(), np.searchsorted(a, v))


def test_searchsorted_of_integers_and_with_a_sorter() -> None:
    a, v = np.array([5, 1, 3, 3, 9], np.int8), np.arange(-2, 12).astype(np.int8)
    check("numpy.searchsorted", a, v, sorter=np.argsort(a))
    refused(LengthsDiffer, "numpy.searchsorted", a, v, sorter=np.arange(3))
    check("numpy.searchsorted", a, v, sorter=[1, 3, 2, 0, 4], symbolic=False)
    refused(BadArguments, "numpy.searchsorted", a, v, sorter=[1, 3, 2, -5, 4])
    refused(EmptyReduction, "numpy.searchsorted", a[:0], v, sorter=np.arange(0))
    refused(BadArguments, "numpy.searchsorted", a, v, side="middle")
    refused(WrongNumberOfAxes, "numpy.searchsorted", a[None], v)
    refused(DtypeNotAccepted, "numpy.searchsorted", a + 0j, v + 0j)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_digitize(right: bool, count: int) -> None:
    bins = np.arange(count) * 1.0
    x = np.array([-1.0, 0.0, 0.5, 1.0, 3.0, 4.0, 5.0, 39.0, 40.0])
    check("numpy.digitize", x, bins, right, compiled=count == 5)
    check("numpy.digitize", x, bins[::-1].copy(), right)
    check("numpy.digitize", x, [0.0, 2.5], right)


def test_isin() -> None:
    x = np.array([[1, 2], [3, 4]])
    for invert in (False, True):
        check("numpy.isin", x, [4, 1], invert=invert, compiled=True)
    check("numpy.isin", x, x[:0])


@pytest.mark.parametrize(
    "name",
    "nonzero flatnonzero argwhere extract unique unique_values union1d intersect1d setdiff1d "
    "setxor1d trim_zeros".split(),
)
def test_shapes_that_depend_on_data(name: str) -> None:
    finding = refused(DataDependentShape, f"numpy.{name}", np.zeros(3))
    assert finding.help()
    refused(DataDependentShape, f"numpy.{name}", np.zeros(3), np.zeros(3))


def test_nothing_to_find() -> None:
    refused(EmptyReduction, "numpy.argmax", np.zeros((0, 3)))
    agree(run("numpy.argmin", np.zeros((0, 3)), axis=1), theirs("numpy.zeros", 0, np.int64))


def test_bincount_of_bytes_has_a_place_for_each() -> None:
    x = np.random.default_rng(0).integers(0, 256, 50).astype(np.uint8)
    check("numpy.bincount", x, minlength=256, compiled=True)
    refused(DataDependentShape, "numpy.bincount", x, minlength=255)
