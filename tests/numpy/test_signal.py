"""Convolution, curves, polynomials and mapped functions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import (
    EmptyReduction,
    LengthsDiffer,
    LongerUnknown,
    TooFewElements,
)
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_differential import (
    INF,
    NAN,
    Applied,
    agree,
    at_least,
    check,
    meaning,
    normal,
    refused,
    theirs,
)
from tests.support.numpy_harness import Static, build, run, run_compiled, run_symbolic

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=30, deadline=None)


def longer(left: int, right: int) -> tuple[Fact, ...]:
    """That the longer of two symbolic lengths is the longer one."""
    if 1 in (left, right) or left == right:
        return ()
    low, high = sorted((left, right))
    return (Fact("<=", size_name(f"n{low}"), size_name(f"n{high}")),)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("left", "right"), [(5, 3), (3, 5), (4, 4), (1, 4), (6, 2), (2, 6)])
def test_sliding(mode: str, left: int, right: int) -> None:
    facts = longer(left, right)
    for code in ("f8", "c16", "i4", "?"):
        x, v = normal(left, dtype=code), normal(right, seed=1, dtype=code)
        compiled = (left, right) == (3, 5)
        if code != "?":
            check("numpy.correlate", x, v, mode, facts=facts, compiled=compiled)
        check("numpy.convolve", x, v, mode, facts=facts, compiled=compiled)


def test_sliding_of_lists_and_what_is_refused() -> None:
    x = normal(6)
    check("numpy.convolve", x, [1.0, 2.0, 1.0])
    refused(LongerUnknown, "numpy.convolve", x, normal(3), "same", symbolic=True)
    refused(BadArguments, "numpy.convolve", x, x, "most")
    refused(WrongNumberOfAxes, "numpy.convolve", x[None], x)
    refused(EmptyReduction, "numpy.convolve", x, x[:0])


def test_interp() -> None:
    points, heights = np.sort(normal(7)), normal(7, seed=1)
    x = np.concatenate([normal(20) * 2, points, [NAN, INF, -INF]]).reshape(5, 6)
    check("numpy.interp", x, points, heights, compiled=True)
    check("numpy.interp", x, points, heights, left=-5.0, right=9.0)
    check("numpy.interp", 0.25, points, heights)
    check("numpy.interp", x[:4], points[:1], heights[:1])
    check("numpy.interp", x, points[:1], heights[:1])
    for special in (NAN, INF, -INF):
        for place in (0, 3, 6):
            with_one = heights.copy()
            with_one[place] = special
            check("numpy.interp", x, points, with_one, compiled=True)
            with_one[2:5] = special
            check("numpy.interp", x, points, with_one)
    many = np.sort(normal(100))
    check("numpy.interp", x, many, normal(100), rtol=1e-8)
    finite = x[:3]
    check("numpy.interp", finite, normal(7), heights, period=1.5)
    whole = np.array([1, 4, 9], np.int32)
    agree(run("numpy.interp", whole, whole, whole * 2), np.array([2.0, 8.0, 18.0]), 1e-6)
    refused(LengthsDiffer, "numpy.interp", x, points, heights[:3])
    refused(WrongNumberOfAxes, "numpy.interp", x, points[None], heights)
    refused(EmptyReduction, "numpy.interp", x, points[:0], heights[:0])


def test_trapezoid() -> None:
    x = normal(3, 5)
    check("numpy.trapezoid", x, compiled=True)
    check("numpy.trapezoid", x, normal(5))
    check("numpy.trapezoid", x, dx=0.5, axis=0)
    check("numpy.trapezoid", x, normal(3, 5, seed=1), axis=0)
    check("numpy.trapezoid", normal(1))
    agree(run("numpy.trapezoid", np.arange(4)), 4.5)
    refused(LengthsDiffer, "numpy.trapezoid", x, normal(3))


def test_unwrap() -> None:
    angles = np.cumsum(normal(3, 30), axis=1)
    check("numpy.unwrap", angles % (2 * np.pi), compiled=True)
    check("numpy.unwrap", angles % 4, period=4, axis=0)
    check("numpy.unwrap", normal(30) * 5, discont=4.0)
    steps = (abs(normal(4, 8)) * 3).astype(np.int64)
    for period in (4, 5):
        check("numpy.unwrap", steps, period=period)
        check("numpy.unwrap", steps, period=period, discont=3)
    check("numpy.unwrap", np.array([0.0, np.pi, 0.0, -np.pi]))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order: int) -> None:
    facts = at_least(4, 5, bound=edge_order + 1)
    x = normal(5, 4)
    places = np.cumsum(abs(normal(4)) + 0.1)
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}),
        ((x[:, 0].copy(),), {}),
        ((x, 0.5), {}),
        ((x, 0.5, places), {}),
        ((x, places), {"axis": 1}),
        ((x, 2.0, 3.0), {"axis": (1, 0)}),
    ]
    for args, options in cases:
        check("numpy.gradient", *args, edge_order=edge_order, facts=facts, **options)
    check("numpy.gradient", x, 0.5, places, edge_order=edge_order, facts=facts, compiled=True)
    check("numpy.gradient", x, [0.0, 1.0, 3.0, 4.0], axis=1, edge_order=edge_order, symbolic=False)
    smallest = normal(edge_order + 1)
    check("numpy.gradient", smallest, edge_order=edge_order, symbolic=False)
    finding = refused(TooFewElements, "numpy.gradient", x, symbolic=True, edge_order=edge_order)
    assert f"assert n5 >= {edge_order + 1}" in (finding.help() or "")
    refused(BadArguments, "numpy.gradient", x, 1.0, 2.0, 3.0)
    refused(BadArguments, "numpy.gradient", x, edge_order=3)
    refused(LengthsDiffer, "numpy.gradient", x, places[:3], axis=1)


@FEW
@given(st.integers(0, 6), st.integers(0, 2))
def test_polynomials(count: int, rank: int) -> None:
    p, x = normal(count), normal(*range(2, 2 + rank))
    check("numpy.polyval", p, x)
    if count:
        check("numpy.polyint", p, 2)
        check("numpy.polyadd", p, normal(3))
        check("numpy.polysub", p, normal(3, seed=1))
        check("numpy.polymul", p, normal(2))


def test_long_polynomials_are_loops() -> None:
    p, x = normal(40), np.linspace(-1, 1, 7)
    check("numpy.polyval", p, x, compiled=True)
    assert len(build("numpy.polyval", (p, x), {}).function.body.equations) < 5
    check("numpy.polyval", [1.0, 2.0, 3.0], x)


def test_derivatives_of_polynomials() -> None:
    p, facts = normal(5), at_least(5, bound=3)
    for m in (0, 1, 2, 3):
        check("numpy.polyder", p, m, facts=at_least(5, bound=max(m, 1)))
    check("numpy.polyder", np.array([3, 2, 1]))
    check("numpy.polyint", p, k=3.0)
    check("numpy.polyint", p, 2, k=[1.0, 2.0], facts=facts)
    refused(BadArguments, "numpy.polyder", p, 2, symbolic=True)
    refused(BadArguments, "numpy.polyder", p, -1)
    refused(BadArguments, "numpy.polyint", p, 2, k=[1.0])


@pytest.mark.parametrize(
    "p",
    [
        np.array([1.0, 2.0, 3.0]),
        np.array([2.0, -3.0, 1.0, 5.0]),
        np.array([1.0, 2.0, 0.0, 0.0]),
        np.array([3.0, 1.0]),
        np.array([4.0]),
        np.array([1, 0, 0, -1]),
        np.array([1, 2j, 3]),
        np.poly(np.arange(1.0, 7.0)),
        np.array([1, 2, 3], np.float32),
    ],
)
def test_roots_of_polynomials(p: Any) -> None:
    wanted = np.roots(p)
    for runner in (run, run_compiled):
        found = np.asarray(runner("numpy.roots", p))
        assert found.dtype == np.result_type(p.dtype, wanted, np.complex64)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(wanted), rtol=1e-6)


def test_roots_without_a_first_coefficient_are_nan() -> None:
    assert np.isnan(run("numpy.roots", np.array([0.0, 1.0, 2.0]))).all()
    refused(EmptyReduction, "numpy.roots", np.zeros(0))
    refused(WrongNumberOfAxes, "numpy.roots", np.ones((2, 2)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_apply_along_axis(axis: int) -> None:
    x = normal(2, 3, 4)
    for name in ("cumsum", "max"):
        mine, wanted = meaning(f"numpy.{name}"), getattr(np, name)
        for runner in (run, run_symbolic):
            found = runner("numpy.apply_along_axis", Static(mine), axis, x)
            agree(found, np.apply_along_axis(wanted, axis, x))
    outer = meaning("numpy.multiply.outer")

    def product(row: Any, factor: Any) -> Any:
        return outer(row.builder, row, row * factor)

    agree(
        run("numpy.apply_along_axis", Applied(product), axis, x, 2.0),
        np.apply_along_axis(lambda row: np.multiply.outer(row, row * 2), axis, x),
    )


def test_functions_of_vectors_that_are_none() -> None:
    x = normal(2, 3)

    def constant(row: Any) -> Any:
        return 1.5

    def nothing(row: Any) -> Any:
        return None

    agree(run("numpy.apply_along_axis", Applied(constant), 1, x), np.full(2, 1.5))
    agree(run("numpy.apply_along_axis", Static(meaning("numpy.sum")), 0, x[0]), x[0].sum())
    refused(BadArguments, "numpy.apply_along_axis", 3, 0, x)
    refused(BadArguments, "numpy.apply_along_axis", Applied(nothing), 0, x)


def test_apply_over_axes() -> None:
    x = normal(2, 3, 4)
    found = run_symbolic("numpy.apply_over_axes", Static(meaning("numpy.sum")), x, [0, 2])
    agree(found, theirs("numpy.apply_over_axes", np.sum, x, [0, 2]))

    def whole(x: Any, axis: Any) -> Any:
        return meaning("numpy.sum")(x)

    refused(BadArguments, "numpy.apply_over_axes", Applied(whole), x, 0)
