"""Derivatives of reductions, contractions and sorts where they need care, and what they cost.

The laws compare derivatives with differences; here stand ties, NaN, nothing to combine, and the
equations that a derivative is made of.
"""

from __future__ import annotations

import numpy as np
import pytest

from pscdsl._src.interpreters.replay import batch_block, jvp_block
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Equation
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Extreme, Reduce
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import BF16, F32, I32
from tests.support.law_rows_structure import facts
from tests.support.pullbacks import NOTHING, gradient, names, program, pullback, run

pytestmark = pytest.mark.quick_code

NAN = float("nan")


def names_it(equation: Equation, label: str) -> bool:
    """Whether an equation is of a primitive."""
    return equation.primitive.label == label


def f64(*numbers: float) -> NDArray:
    """A vector."""
    return np.array(numbers, np.float64)


# What derivatives are made of.


def test_a_product_of_matrices_is_run_backwards_by_two() -> None:
    _, backward, _ = pullback(program(DotGeneral(((1,), (0,))), "f32[m k], f32[k n]"))
    assert names(backward) == ["dot_general", "dot_general"]


@pytest.mark.parametrize(
    ("contract", "types"),
    [
        (((1,), (1,)), "f32[m k], f32[n k]"),
        (((0,), (0,)), "f32[k m], f32[k n]"),
        (((0,), (1,)), "f32[k m], f32[n k]"),
        (((1,), (0,)), "f32[m k], f32[k]"),
        (((0,), (0,)), "f32[k], f32[k n]"),
        (((0,), (0,)), "f32[k], f32[k]"),
    ],
)
def test_no_layout_of_the_operands_needs_a_transposition(
    contract: tuple[tuple[int, ...], tuple[int, ...]], types: str
) -> None:
    _, backward, _ = pullback(program(DotGeneral(contract), types))
    assert set(names(backward)) <= {"dot_general", "multiply"}


def test_shared_axes_need_none_either() -> None:
    dot = DotGeneral(((2,), (1,)), ((0,), (0,)))
    _, backward, _ = pullback(program(dot, "f32[b m k], f32[b k n]"))
    assert names(backward) == ["dot_general", "dot_general"]


def test_a_wide_result_is_rounded_once() -> None:
    dot = DotGeneral(((1,), (0,)), result=F32)
    _, backward, _ = pullback(program(dot, "bf16[m k], bf16[k n]"))
    assert sorted(names(backward)) == ["convert"] * 4 + ["dot_general"] * 2
    assert [each.dtype for each in backward.out_types] == [BF16, BF16]


def test_the_cotangents_of_a_wide_result_are_not_rounded_before_the_products() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(to_numpy(BF16)) for shape in ((3, 4), (4, 2)))
    cotangent = rng.normal(size=(3, 2)).astype(np.float32)
    dot = DotGeneral(((1,), (0,)), result=F32)
    for_x, for_y = gradient(dot, "bf16[m k], bf16[k n]", [x, y], cotangent, m=3, k=4, n=2)
    assert np.array_equal(for_x, (cotangent @ y.astype(np.float32).T).astype(x.dtype))
    assert np.array_equal(for_y, (x.astype(np.float32).T @ cotangent).astype(x.dtype))


def test_a_batch_of_vectors_times_a_matrix_is_one_product() -> None:
    matvec = program(DotGeneral(((1,), (0,))), "f32[m k], f32[k]")
    for batched in ((False, True), (True, False), (True, True)):
        block, _ = batch_block(Assumptions(), matvec, batched, name("batch"))
        assert names(block) == ["dot_general"]


def test_a_sum_is_run_backwards_by_a_broadcast() -> None:
    early, backward, saved = pullback(program(Reduce("sum", (0,)), "f32[n m]"))
    assert names(backward) == ["broadcast"]
    assert not saved
    assert names(early) == ["reduce"]


def test_the_cotangents_of_a_sort_meet_nowhere() -> None:
    for primitive in (Sort(0), TopK(2)):
        derivative, _ = jvp_block(NOTHING, program(primitive, "bf16[n+2]"), (True,))
        (gather,) = [each.primitive for each in derivative.equations if names_it(each, "gather")]
        assert getattr(gather, "unique", False)


def test_one_sort_serves_the_values_and_the_tangents() -> None:
    derivative, _ = jvp_block(Assumptions(), program(Sort(0), "f32[n]"), (True,))
    assert names(derivative).count("sort") == 1


# Ties, NaN, and nothing to combine.


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_ties_share_equally(kind: Extreme) -> None:
    x = f64(1, 3, 3, 2, 3) if kind == "maximum" else f64(4, 1, 1, 2, 1)
    (found,) = gradient(Reduce(kind, (0,)), "f64[n]", [x], np.array(6.0), n=5)
    assert found.tolist() == [0, 2, 2, 0, 2]


def test_ties_share_equally_over_several_axes() -> None:
    x = np.array([[1.0, 2.0], [2.0, 0.0]])
    (found,) = gradient(Reduce("maximum", (0, 1)), "f64[n n]", [x], np.array(1.0), n=2)
    assert found.tolist() == [[0, 0.5], [0.5, 0]]


def test_many_ties_of_a_narrow_dtype_are_counted_right() -> None:
    x = np.zeros(100_000, np.float16)
    cotangent = np.array(100.0, np.float16)
    (found,) = gradient(Reduce("maximum", (0,)), "f16[n]", [x], cotangent, n=100_000)
    assert np.all(found == np.float16(100 * np.float16(1e-5)))


def test_an_extreme_that_is_nan_comes_from_what_is_nan() -> None:
    x = f64(1, NAN, 3, NAN)
    (found,) = gradient(Reduce("maximum", (0,)), "f64[n]", [x], np.array(2.0), n=4)
    assert found.tolist() == [0, 1, 0, 1]


def test_nothing_has_an_extreme_without_tangent() -> None:
    where = facts("n >= 0")
    block, _ = jvp_block(where, program(Reduce("maximum", (0,)), "f64[n m]", where), (True,))
    empty = np.zeros((0, 2))
    _, tangent = run(block, [empty, empty], where, {"n": 0, "m": 2})
    assert tangent.tolist() == [0, 0]


def test_zeros_are_no_exception_to_products() -> None:
    cases = [
        ((2, 0, 3), (0, 6, 0)),
        ((0, 0, 3), (0, 0, 0)),
        ((0, 5, 0), (0, 0, 0)),
        ((2, 4, 3), (12, 6, 8)),
    ]
    for given, wanted in cases:
        x = f64(*given)
        (found,) = gradient(Reduce("product", (0,)), "f64[n]", [x], np.array(1.0), n=3)
        assert found.tolist() == list(wanted)


def test_an_infinite_factor_does_not_hide_the_others_tangents() -> None:
    x = f64(np.inf, 2)
    (found,) = gradient(Cumulative("product", 0), "f64[n]", [x], f64(1, 0), n=2)
    assert found[0] == 1


@pytest.mark.parametrize(
    ("kind", "reverse", "x", "wanted"),
    [
        ("maximum", False, (1, 3, 3, 2, 5), (1, 3, 0, 0, 1)),
        ("minimum", False, (2, 3, 2, 1, 1), (3, 0, 0, 2, 0)),
        ("maximum", True, (1, 3, 3, 2, 1), (0, 0, 3, 1, 1)),
        ("maximum", False, (1, NAN, 3, NAN, 5), (1, 4, 0, 0, 0)),
        ("minimum", True, (4, 1, NAN, 3, 3), (0, 0, 3, 0, 2)),
    ],
)
def test_a_cumulative_extreme_comes_from_where_it_was_first_reached(
    kind: Extreme, reverse: bool, x: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    cumulative = Cumulative(kind, 0, reverse)
    (found,) = gradient(cumulative, "f64[n]", [f64(*x)], np.ones(5), n=5)
    assert found.tolist() == list(wanted)


def test_equal_elements_are_sorted_in_their_order() -> None:
    x = f64(2, 1, 2, 1)
    (found,) = gradient(Sort(0), "f64[n]", [x], f64(1, 2, 3, 4), n=4)
    assert found.tolist() == [3, 1, 4, 2]


def test_the_largest_elements_take_the_cotangents() -> None:
    block = program(TopK(2), "f64[n+2]")
    derivative, kept = jvp_block(Assumptions(), block, (True,))
    assert kept == (True, False)
    x, t = f64(1, 9, 3, 9), f64(10, 20, 30, 40)
    values, places, tangents = run(derivative, [x, t], Assumptions(), {"n": 2})
    assert values.tolist() == [9, 9]
    assert places.tolist() == [1, 3]
    assert tangents.tolist() == [20, 40]


def test_a_place_has_no_tangent() -> None:
    block = program(ArgReduce("maximum", 0, I32), "f64[n]")
    _, kept = jvp_block(Assumptions(), block, (True,))
    assert kept == (False,)
