"""Reductions, moments and running totals against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl.typing import dtypes
from pscdsl.typing.codes.element_types import (
    AccumulatorTooNarrow,
    DtypeNotAccepted,
    DtypesDiffer,
    NoSuchDType,
)
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import AxisOutOfRange, RepeatedAxis
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_differential import (
    INF,
    NAN,
    agree,
    arrays,
    at_least,
    check,
    meaning,
    normal,
    refused,
    theirs,
    with_axis,
)
from tests.support.numpy_harness import build, run, run_compiled, run_symbolic
from tests.support.share import some

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=30, deadline=None)
PLAIN = ("sum", "prod", "max", "min", "mean", "var", "std", "ptp", "all", "any", "count_nonzero")
SKIPPING = ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd")
SEVERAL_AXES = st.sampled_from((*PLAIN, *SKIPPING))


@FEW
@given(SEVERAL_AXES, with_axis(arrays(least_rank=0), several=True), st.booleans())
def test_reductions_over_any_axes(name: str, case: tuple[Any, Any], keepdims: bool) -> None:
    x, axis = case
    check(f"numpy.{name}", x, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("name", [*PLAIN, *SKIPPING])
def test_reductions_compiled(name: str) -> None:
    x = normal(4, 5)
    x[1, 2] = NAN
    check(f"numpy.{name}", x, axis=1, compiled=True)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 40, 41), (160, 3, 9)])
def test_no_nan_is_lost_in_large_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape).astype(dtype)
    x.flat[5] = NAN
    x.flat[-7] = -INF
    for name in ("max", "min"):
        for axis in some((None, 0, 1, 2, (0, 1), (0, 2)), 2, (dtype, shape, name)):
            check(f"numpy.{name}", x, axis=axis, symbolic=False, compiled=True)
    for name in ("sum", "argmax"):
        check(f"numpy.{name}", x, symbolic=False, compiled=True)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "all", "any", "nansum"])
def test_nothing_reduced(name: str) -> None:
    for axis in (None, 0, 1):
        check(f"numpy.{name}", np.zeros((0, 3)), axis=axis)


@pytest.mark.parametrize(
    ("given", "summed", "mean"),
    [
        ("?", "i8", "f8"),
        ("i1", "i8", "f8"),
        ("i2", "i8", "f8"),
        ("i4", "i8", "f8"),
        ("i8", "i8", "f8"),
        ("u1", "u8", "f8"),
        ("u2", "u8", "f8"),
        ("u4", "u8", "f8"),
        ("u8", "u8", "f8"),
        ("f2", "f2", "f2"),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        ("f4", "f4", "f4"),
        ("f8", "f8", "f8"),
        ("c8", "c8", "c8"),
        ("c16", "c16", "c16"),
    ],
)
def test_result_dtypes(given: Any, summed: Any, mean: Any) -> None:
    x = np.ones((3, 2), np.dtype(given))
    for name in ("sum", "prod", "cumsum", "cumprod", "nansum"):
        assert run(f"numpy.{name}", x, axis=0).dtype == np.dtype(summed), name
    for name in ("mean", "nanmean", "average"):
        assert run(f"numpy.{name}", x, axis=0).dtype == np.dtype(mean), name
    real = to_numpy(from_numpy(np.dtype(mean)).real)
    for name in ("var", "std", "nanvar"):
        assert run(f"numpy.{name}", x, axis=0).dtype == real, name
    if np.dtype(given).kind != "c":
        for name in ("max", "min"):
            assert run(f"numpy.{name}", x, axis=0).dtype == x.dtype, name


@pytest.mark.parametrize("code", ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "c8"])
def test_values_in_every_dtype(code: str) -> None:
    x = normal(3, 4) * 20
    x = (abs(x) if code[0] == "u" else x).astype(code)
    rtol = 1e-5 if code in ("f4", "c8") else 1e-6
    for name in ("sum", "mean", "var", "cumsum", "count_nonzero", "all", "any"):
        check(f"numpy.{name}", x, axis=1, rtol=rtol, compiled=name in ("sum", "cumsum"))
    if code != "c8":
        check("numpy.max", x, axis=1, compiled=True)
        check("numpy.ptp", x[:, :1], axis=1) if code != "?" else None


def test_half_precision_is_accumulated_in_single() -> None:
    x = np.full(5000, 0.1, np.float16)
    exact = x.astype(np.float64)
    for runner in (run, run_compiled):
        agree(runner("numpy.sum", x), exact.sum(), 1e-3)
        agree(runner("numpy.mean", x), exact.mean(), 1e-3)
    big = np.full(70000, 2.0, np.float16)  # more elements than f16 can count
    agree(run("numpy.mean", big), np.float16(2.0))
    spread = np.array([300.0, -300.0] * 8, np.float16)  # squares that f16 cannot hold
    agree(run("numpy.std", spread), np.float16(300.0))


def test_two_passes_keep_what_one_would_lose() -> None:
    x = (np.arange(100) + 1e8).astype(np.float64)
    check("numpy.var", x)
    y = (np.arange(64, dtype=np.float32) % 4) + np.float32(4096)
    agree(run_compiled("numpy.var", y), np.var(y.astype(np.float64)), 1e-5)


@FEW
@given(
    st.sampled_from(("var", "std", "nanvar", "nanstd")),
    with_axis(arrays(special=False)),
    st.sampled_from((0, 1, 2, 0.5)),
)
def test_degrees_of_freedom(name: str, case: tuple[Any, Any], ddof: float) -> None:
    x, axis = case
    check(f"numpy.{name}", x, axis=axis, ddof=ddof)
    check(f"numpy.{name}", x, axis=axis, correction=ddof)


def test_moments_of_complex_numbers() -> None:
    x = normal(3, 4, dtype=np.complex128)
    for name in ("mean", "var", "std", "sum", "prod"):
        check(f"numpy.{name}", x, axis=1, compiled=True)


def test_moments_around_a_given_mean() -> None:
    x = normal(3, 4)
    middle = x.mean(axis=1, keepdims=True)
    check("numpy.var", x, axis=1, mean=middle)
    check("numpy.std", x, axis=1, mean=middle)


def test_dtype_of_the_accumulator() -> None:
    x = normal(3, 4, dtype=np.float32)
    for name in ("sum", "mean", "var", "cumsum", "prod"):
        found = run(f"numpy.{name}", x, axis=0, dtype=dtypes.F64)
        agree(found, theirs(f"numpy.{name}", x, axis=0, dtype=np.float64), 1e-6)
        assert found.dtype == np.float64
    agree(run("numpy.sum", x > 0, dtype=dtypes.I8), np.sum(x > 0, dtype=np.int8))
    refused(AccumulatorTooNarrow, "numpy.sum", x, dtype=dtypes.I32)
    refused(AccumulatorTooNarrow, "numpy.mean", x + 0j, dtype=dtypes.F32)
    refused(BadArguments, "numpy.mean", x, dtype=dtypes.I32)
    agree(run("numpy.sum", x, dtype="f8"), np.sum(x, dtype="f8"), 1e-6)
    refused(NoSuchDType, "numpy.sum", x, dtype="f64")


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanmax", "nanmin"])
def test_initial(name: str) -> None:
    x = normal(3, 4)
    x[0, 0] = NAN
    check(f"numpy.{name}", x, axis=1, initial=0.5)
    check(f"numpy.{name}", np.zeros((0, 2)), axis=0, initial=2.0)
    facts = at_least(4, bound=0)
    agree(
        build(f"numpy.{name}", (x,), {"initial": 0.5}, True, facts).evaluated(),
        theirs(f"numpy.{name}", x, initial=0.5),
    )


def test_nothing_to_choose_from() -> None:
    for name in ("max", "min", "ptp", "nanmax", "argmax", "median"):
        refused(EmptyReduction, f"numpy.{name}", np.zeros((0, 2)))
        refused(EmptyReduction, f"numpy.{name}", np.zeros((0, 2)), axis=0)
        run(f"numpy.{name}", np.zeros((0, 2)), axis=1)
        facts = at_least(5, bound=0)
        finding = refused(EmptyReduction, f"numpy.{name}", np.zeros(5), symbolic=True, facts=facts)
        assert "assert n5 >= 1" in (finding.help() or "")


def test_axes_that_do_not_fit() -> None:
    refused(AxisOutOfRange, "numpy.sum", np.zeros((2, 3)), axis=2)
    refused(RepeatedAxis, "numpy.sum", np.zeros((2, 3)), axis=(0, -2))
    refused(BadArguments, "numpy.sum", np.zeros(2), axis=0.5)
    refused(BadArguments, "numpy.sum", np.zeros(2), axis=np.array(0))
    refused(BadArguments, "numpy.sum", np.zeros(2), keepdims=np.array(True))
    refused(BadArguments, "numpy.var", np.zeros(2), ddof=1, correction=1)
    refused(BadArguments, "numpy.sum", None)
    refused(BadArguments, "numpy.sum", np.zeros(2), where=np.array([True, False]))


def test_complex_numbers_have_no_order() -> None:
    for name in ("max", "min", "argmax", "nanmax", "median"):
        refused(DtypeNotAccepted, f"numpy.{name}", np.ones(3, complex))


def test_lists_of_arrays() -> None:
    x, y = normal(3), normal(3, seed=1)
    check("numpy.sum", [x, y], axis=0)
    check("numpy.max", [x, [1.0, 2.0, 3.0]], axis=1, symbolic=False)
    agree(run("numpy.mean", [np.float32(1), 2, 3.5]), np.mean([1, 2, 3.5]), 1e-6)
    refused(DtypesDiffer, "numpy.sum", [x, y.astype(np.float32)])
    refused(BadArguments, "numpy.sum", [])


def test_a_list_of_numbers_is_one_constant() -> None:
    built = build("numpy.average", (normal(2, 3),), {"axis": 1, "weights": [1.0, 2.0, 3.0]})
    constants = [
        each.primitive
        for each in built.function.body.equations
        if each.primitive.name == "constant"
    ]
    assert len(constants) == 1


@FEW
@given(
    st.sampled_from(("cumsum", "cumprod", "nancumsum", "nancumprod")),
    with_axis(arrays(least_rank=0, least_size=0)),
)
def test_running_totals(name: str, case: tuple[Any, Any]) -> None:
    check(f"numpy.{name}", case[0], axis=case[1])


def test_running_totals_of_the_array_standard() -> None:
    x = normal(3, 4)
    for name in ("cumulative_sum", "cumulative_prod"):
        for axis in (0, 1):
            check(f"numpy.{name}", x, axis=axis, include_initial=True, compiled=True)
        check(f"numpy.{name}", x[0])
        refused(BadArguments, f"numpy.{name}", x)


def test_methods_of_functions_of_two_arrays() -> None:
    x = normal(3, 4)
    whole = (x * 10).astype(np.int32)
    for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        check(f"numpy.{name}.reduce", x)
        check(f"numpy.{name}.reduce", x, axis=(0, 1))
        check(f"numpy.{name}.reduce", x, axis=1, keepdims=True)
        check(f"numpy.{name}.accumulate", x, compiled=True)
        check(f"numpy.{name}.accumulate", x, axis=1)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        check(f"numpy.{name}.reduce", whole, compiled=True)
        check(f"numpy.{name}.reduce", whole > 0, axis=None)
    check("numpy.maximum.accumulate", np.array([1.0, NAN, 3.0, -INF]))
    for name in ("add", "subtract", "maximum", "power", "less", "arctan2"):
        check(f"numpy.{name}.outer", np.abs(x[0]), x)


def test_open_operands_stay_open() -> None:
    def mean_of_counts(x: Any) -> Any:
        counts = meaning("numpy.arange").apply(x.builder, (4,), {})
        return x + meaning("numpy.mean").apply(x.builder, (counts,), {})

    for dtype in (np.float32, np.float64):
        assert run(mean_of_counts, np.ones(2, dtype)).dtype == dtype


def test_symbolic_counts() -> None:
    x = normal(3, 4)
    n, m = size_name("n3"), size_name("n4")
    built = build("numpy.mean", (x,), {}, symbolic=True)
    assert str(n * m) in repr([e.primitive for e in built.function.body.equations])
    agree(run_symbolic("numpy.var", x, ddof=1), np.var(x, ddof=1))
