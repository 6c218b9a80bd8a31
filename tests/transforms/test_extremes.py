"""Largest elements that are only subtracted before exponentials need not keep NaN themselves."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Block, Equation, evaluate, walk
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.reductions import Largest, Reduce
from pscdsl.typing.dtypes import dtype

INF, NAN = np.inf, np.nan


@psc.kernel
def shares(x: Float["n m"]) -> Float["n m"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def shares_of_columns(x: Float["n m"]) -> Float["n m"]:
    e = np.exp(x - np.max(x, axis=0))
    return e / np.sum(e, axis=0)


@psc.kernel
def shares_of_all(x: Float["n m"]) -> Float["n m"]:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@psc.kernel
def logarithms(x: Float["n m"]) -> Float["n"]:
    largest = np.max(x, axis=1)
    return np.log(np.sum(np.exp(x - largest[:, None]), axis=1)) + largest


@psc.kernel
def kept_axis(x: Float["n m"]) -> Float["n 1"]:
    largest = np.max(x, axis=1, keepdims=True)
    return largest + np.log(np.sum(np.exp(x - largest), axis=1, keepdims=True))


@psc.kernel
def logarithm_of_all(x: Float["n m"]) -> Float:
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


@psc.kernel
def logarithmic_shares(x: Float["n m"]) -> Float["n m"]:
    y = x - np.max(x, axis=1, keepdims=True)
    return y - np.log(np.sum(np.exp(y), axis=1, keepdims=True))


@psc.kernel
def mean_by_shares(x: Float["n m"]) -> Float["n"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e @ np.ones_like(x[0]) / np.sum(e, axis=1)


@psc.kernel
def in_a_function(x: Float["n m"]) -> Float["n m"]:
    def share(y: Any) -> Any:
        e = np.exp(y - np.max(y))
        return e / np.sum(e)

    return psc.vmap(share)(x)


@psc.kernel
def in_a_loop(x: Float["n m"]) -> Float["n m"]:
    def step(_: Any, y: Any) -> Any:
        e = np.exp(y - np.max(y))
        return _, e / np.sum(e)

    return psc.scan(step, x[0, 0], x)[1]


UNSEEN = (
    shares,
    shares_of_columns,
    shares_of_all,
    logarithms,
    kept_axis,
    logarithm_of_all,
    logarithmic_shares,
    mean_by_shares,
    in_a_function,
    in_a_loop,
)


@psc.kernel
def result_itself(x: Float["n m"]) -> tuple[Float["n m"], Float["n"]]:
    largest = np.max(x, axis=1)
    e = np.exp(x - largest[:, None])
    return e / np.sum(e, axis=1, keepdims=True), largest


@psc.kernel
def terms(x: Float["n m"]) -> Float["n m"]:
    return np.exp(x - np.max(x, axis=1, keepdims=True))


@psc.kernel
def other_axis(x: Float["n n"]) -> Float["n n"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=0)


@psc.kernel
def other_rows(x: Float["n n"]) -> Float["n n"]:
    e = np.exp(x - np.max(x, axis=1))
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def other_array(x: Float["n m"]) -> Float["n m"]:
    y = np.where(np.isnan(x), 0.0, x)
    e = np.exp(y - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def chosen(x: Float["n m"]) -> Float["n m"]:
    largest = np.max(x, axis=1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(largest), largest, 0.0))
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def clipped(x: Float["n m"]) -> Float["n m"]:
    e = np.maximum(np.exp(x - np.max(x, axis=1, keepdims=True)), 1e-3)
    return e / np.sum(e, axis=1, keepdims=True)


@psc.kernel
def turned(x: Float["n n"]) -> Float["n n"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e.T / np.sum(e, axis=1)


@psc.kernel
def contracted_elsewhere(x: Float["n n"]) -> Float["n n"]:
    return np.exp(x - np.max(x, axis=1, keepdims=True)).T @ np.ones_like(x)


@psc.kernel
def smallest(x: Float["n m"]) -> Float["n m"]:
    e = np.exp(np.min(x, axis=1, keepdims=True) - x)
    return e / np.sum(e, axis=1, keepdims=True)


SEEN = (
    result_itself,
    terms,
    other_axis,
    other_rows,
    other_array,
    chosen,
    clipped,
    turned,
    contracted_elsewhere,
    smallest,
)


def equations(block: Block) -> Iterator[Equation]:
    """All that are computed, in functions that are called too."""
    for each in walk(block):
        yield each
        if isinstance(each.primitive, Call):
            yield from equations(each.primitive.function.body)


def largest(kernel: Kernel[Any, Any], x: Any) -> tuple[int, int]:
    """How many largest elements keep NaN, and how many need not."""
    made = [each.primitive for each in equations(kernel.lower_for(x).program.body)]
    kept = [each for each in made if isinstance(each, Reduce) and each.kind != "sum"]
    return len(kept), sum(isinstance(each, Largest) for each in made)


@pytest.mark.parametrize("kernel", UNSEEN, ids=lambda kernel: kernel.name)
def test_where_nan_is_seen_anyway_it_is_not_kept(kernel: Kernel[Any, Any]) -> None:
    assert largest(kernel, np.ones((4, 4), np.float32)) == (0, 1)


@pytest.mark.parametrize("kernel", SEEN, ids=lambda kernel: kernel.name)
def test_where_it_may_be_missed_it_is_kept(kernel: Kernel[Any, Any]) -> None:
    assert largest(kernel, np.ones((4, 4), np.float32)) == (1, 0)


@psc.kernel
def gradient(x: f32["n m"]) -> f32["n m"]:
    def total(y: Any) -> Any:
        e = np.exp(y - np.max(y, axis=1, keepdims=True))
        return np.sum((e / np.sum(e, axis=1, keepdims=True)) ** 2)

    return psc.grad(total)(x)


def test_of_derivatives_it_is_kept() -> None:
    assert largest(gradient, np.ones((4, 4), np.float32))[1] == 0


def numbers(n: int, m: int) -> Any:
    """Rows with NaN at each end, with infinities, with nothing but one number, and plain ones."""
    x = np.random.default_rng(0).normal(size=(n, m)) * 3
    x[1, 0] = x[2, -1] = x[3, m // 2] = NAN
    x[4] = NAN
    x[5] = -INF
    x[6, 1] = -INF
    x[7, 0] = INF
    x[8] = INF
    x[9, 0], x[9, 1], x[9, 2] = INF, -INF, NAN
    x[10], x[10, 3] = -INF, NAN
    x[11] = 0.0
    x[12] = -0.0
    return x


@pytest.mark.parametrize("shape", [(14, 5), (40, 200)])
@pytest.mark.parametrize(("name", "fine"), [("f32", 1e-5), ("f64", 1e-12), ("bf16", 6e-2)])
@pytest.mark.parametrize("kernel", UNSEEN, ids=lambda kernel: kernel.name)
def test_results_are_those_of_extremes_that_keep_nan(
    kernel: Kernel[Any, Any], name: str, fine: float, shape: tuple[int, int]
) -> None:
    rows = numbers(*shape).astype(to_numpy(dtype(name)))
    for x in (rows, np.ascontiguousarray(rows.T), rows[13:]):
        n, m = x.shape
        (wanted,) = evaluate(kernel.ir(Float=name), {"n": n, "m": m}, [x])
        found, wanted = (np.asarray(each).astype(np.float64) for each in (kernel(x), wanted))
        np.testing.assert_allclose(found, wanted, rtol=fine, atol=fine)
