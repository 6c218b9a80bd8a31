"""Reductions in loops, against NumPy: of as many elements as vectors have, more, and a few."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Num, f64
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.xla.runtime.devices import to_numpy


@psc.kernel
def sums(xs: Num["t *s n"]) -> tuple[Num["t *s"], Num["t *s"]]:
    return psc.map(lambda x: (np.sum(x, axis=-1), np.prod(x, axis=-1)), xs)


@psc.kernel
def extremes(xs: Float["t *s n"]) -> tuple[Float["t *s"], Float["t *s"]]:
    return psc.map(lambda x: (np.max(x, axis=-1), np.min(x, axis=-1)), xs)


@psc.kernel
def over_two(xs: Float["t r n m"]) -> tuple[Float["t r"], Float["t n m"], Float["t"]]:
    return psc.map(lambda x: (np.sum(x, axis=(1, 2)), np.sum(x, axis=0), np.sum(x)), xs)


@psc.kernel
def products(xs: Num["t n"], ys: Num["t n"]) -> Num["t"]:
    return psc.map(lambda each: each[0] @ each[1], (xs, ys))


@psc.kernel
def of_matrices(xs: Float["t n m"], ys: Float["t m n"]) -> Float["t"]:
    return psc.map(lambda each: np.einsum("ij,ji->", each[0], each[1]), (xs, ys))


@psc.kernel
def normalised(xs: Float["t *s n"]) -> tuple[Float["t *s n"], Float["t *s"]]:
    return psc.map(
        lambda x: (psc.special.softmax(x, axis=-1), psc.special.logsumexp(x, axis=-1)), xs
    )


COUNTS = (1, 7, 16, 33, 97, 1000)
ROWS = ((), (2, 5), (17,))
FLOATS = (
    *[(np.float32, rows, COUNTS) for rows in ROWS],
    (np.float64, (), (8, 17, 250)),
    (np.float64, (3,), (64,)),
    (np.float16, (), (35,)),
    (ml_dtypes.bfloat16, (2,), (64,)),
)


def numbers(dtype: Any, *shape: int) -> Any:
    """Numbers near 1, so that their products are moderate; small integers."""
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return (np.exp(rng.normal(size=shape) / 10) * rng.choice([-1, 1], shape)).astype(dtype)


def close(found: Any, wanted: Any, scale: Any, count: int) -> None:
    """Whether sums are right, but for what adding up one after another may lose at most."""
    found = to_numpy(found)
    bits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[found.dtype.name]
    bound = scale * (2.0**-bits + count * 2.0 ** -max(bits, 24)) + 1e-300
    assert (np.abs(found.astype(np.float64) - wanted) <= 2 * bound).all()


@pytest.mark.parametrize(("dtype", "rows", "counts"), FLOATS)
def test_floats(dtype: Any, rows: tuple[int, ...], counts: tuple[int, ...]) -> None:
    for count in counts:
        x = numbers(dtype, 3, *rows, count)
        wide = x.astype(np.float64)
        total, product = sums(x)
        close(total, wide.sum(-1), np.abs(wide).sum(-1), count)
        close(product, wide.prod(-1), np.abs(wide.prod(-1)), 4 * count)
        largest, least = extremes(x)
        assert to_numpy(largest).tolist() == x.max(-1).tolist()
        assert to_numpy(least).tolist() == x.min(-1).tolist()
        if not rows:
            terms = wide * wide[::-1]
            close(products(x, x[::-1]), terms.sum(-1), np.abs(terms).sum(-1), 2 * count)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers(dtype: Any) -> None:
    for count in (17, 97):
        x = numbers(dtype, 3, count)
        total, product = sums(x)
        assert to_numpy(total).tolist() == x.sum(-1, dtype=dtype).tolist()
        assert to_numpy(product).tolist() == x.prod(-1, dtype=dtype).tolist()
        assert to_numpy(products(x, x)).tolist() == (x * x).sum(-1, dtype=dtype).tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_sums_of_bytes_wrap(dtype: Any) -> None:
    x = 37 * numbers(dtype, 3, 97)
    assert to_numpy(products(x, x)).tolist() == (x * x).sum(-1, dtype=dtype).tolist()


@pytest.mark.sampled
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", ROWS)
def test_what_is_not_finite_wherever_it_stands(bad: float, rows: tuple[int, ...]) -> None:
    for count in (17, 64):
        x = np.broadcast_to(numbers(np.float32, count), (count, *rows, count)).copy()
        for place in range(count):
            x[place, ..., place] = bad
        with np.errstate(invalid="ignore"):
            for found, wanted in zip(
                (*extremes(x), sums(x)[0]), (x.max(-1), x.min(-1), x.sum(-1)), strict=True
            ):
                np.testing.assert_allclose(to_numpy(found), wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("shape", [(1, 16, 4), (4, 7, 11), (20, 4, 4)])
def test_along_several_axes(shape: tuple[int, ...]) -> None:
    x = numbers(np.float64, 3, *shape)
    found = over_two(x)
    for each, axes in zip(found, ((2, 3), (1,), (1, 2, 3)), strict=True):
        np.testing.assert_allclose(to_numpy(each), x.sum(axes), 1e-12, 1e-13)


@pytest.mark.parametrize("shape", [(3, 5), (1, 40), (17, 6)])
def test_inner_products_of_matrices(shape: tuple[int, ...]) -> None:
    x, y = numbers(np.float64, 3, *shape), numbers(np.float64, 3, *shape[::-1])
    wanted = np.einsum("tij,tji->t", x, y)
    np.testing.assert_allclose(to_numpy(of_matrices(x, y)), wanted, 1e-12, 1e-13)


@pytest.mark.parametrize("rows", ROWS)
def test_softmax(rows: tuple[int, ...]) -> None:
    for count in (33, 64):
        x = 30 * numbers(np.float64, 3, *rows, count)
        share, total = normalised(x)
        e = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(to_numpy(share), e / e.sum(-1, keepdims=True), 1e-12)
        np.testing.assert_allclose(to_numpy(total), np.log(e.sum(-1)) + x.max(-1), 1e-12)


@psc.kernel
def loss(x: f64["4 33"]) -> f64:
    total, product = sums(x)
    return np.sum(total**2) + np.sum(product) + np.sum(products(x, x) ** 2)


def test_derivatives() -> None:
    psc.check_grads(loss, (numbers(np.float64, 4, 33),), order=2)


def test_it_is_a_form_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = loss.lower()
    text = lowered.text()
    monkeypatch.setenv(VARIABLE, "folded_reductions")
    assert "stablehlo.slice" in text
    assert "stablehlo.slice" not in lowered.text()


def test_accuracy_does_not_suffer() -> None:
    """Sums by slices are more accurate than one after another."""
    x = np.random.default_rng(1).random((50, 1000)).astype(np.float32)
    error = np.abs(to_numpy(sums(x)[0]) - x.astype(np.float64).sum(-1)).max()
    one_by_one = np.abs(np.cumsum(x, -1)[:, -1] - x.astype(np.float64).sum(-1)).max()
    assert error < one_by_one / 4
