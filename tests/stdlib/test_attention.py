"""Attention, positions and dropout: against NumPy row by row, and the laws that define them."""

# SciPy and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

import pscdsl as psc
from pscdsl import Key, bool_, f32, f64
from pscdsl._src.analysis.cost import cost
from pscdsl.stdlib import attention, dropout, positions

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(0).bit_generator.state


def numbers(*shape: int) -> NDArray[Any]:
    return RANDOM.normal(size=shape)


def in_numpy(
    queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], admitted: NDArray[Any]
) -> NDArray[Any]:
    """One query after the other, over the keys that it may look at."""
    found = np.zeros((len(queries), values.shape[-1]))
    for i, (query, row) in enumerate(zip(queries, admitted, strict=True)):
        if row.any():
            found[i] = softmax(keys[row] @ query / np.sqrt(len(query))) @ values[row]
    return found


@pytest.mark.parametrize(
    ("dtype", "batch", "t", "s", "causal"),
    [
        (np.float32, (), 5, 5, True),
        (np.float64, (2,), 3, 6, True),
        (np.float32, (2, 2), 6, 3, True),
        (np.float64, (2,), 4, 3, False),
    ],
)
def test_against_numpy(dtype: Any, batch: tuple[int, ...], t: int, s: int, causal: bool) -> None:
    sizes = ((t, 4), (s, 4), (s, 3))
    queries, keys, values = (numbers(*batch, *each).astype(dtype) for each in sizes)
    mask = RANDOM.random((*batch, t, s)) < 0.5
    mask[..., -1, :] = False  # nobody to look at
    past = np.tri(t, s, s - t, dtype=bool) | (not causal)
    found = np.asarray(attention.dot_product_attention(queries, keys, values, mask, causal))
    free = np.asarray(attention.dot_product_attention(queries, keys, values, None, causal))
    assert found.dtype == dtype
    tolerance = 40 * float(np.finfo(dtype).eps)
    for i in np.ndindex(batch):
        one = queries[i], keys[i], values[i]
        expected = in_numpy(*one, mask[i] & past)
        np.testing.assert_allclose(found[i], expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(free[i], in_numpy(*one, past), rtol=tolerance, atol=tolerance)


@psc.kernel
def total(queries: f64["t k"], keys: f64["s k"], values: f64["s v"], mask: bool_["t s"]) -> f64:
    found = attention.dot_product_attention(queries, keys, values, mask)
    return (found**2).sum()


def test_gradients_of_masked_queries() -> None:
    args = numbers(4, 3), numbers(5, 3), numbers(5, 2)
    mask = np.array([[1, 1, 1, 0, 1], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 0, 0, 1]], bool)
    psc.check_grads(total, (*args, mask), order=1, modes=("rev",))
    slopes = psc.grad(total, argnums=(0, 1, 2))(*args, mask)
    assert not np.any(np.asarray(slopes[0])[1])
    assert not np.any(np.asarray(slopes[2])[3])
    assert all(np.all(np.isfinite(slope)) for slope in slopes)


@psc.kernel
def plain(q: f32["t k"], k: f32["s k"], v: f32["s v"]) -> f32["t v"]:
    return attention.dot_product_attention(q, k, v)


def test_it_costs_what_is_said() -> None:
    flops = cost(plain.ir()).at({"t": 50, "s": 70, "k": 1000, "v": 2000}).flops
    assert flops == pytest.approx(2 * 70 * 50 * (1000 + 2000), rel=0.01)


def test_scores_that_overflow_16_bits_are_finite() -> None:
    x = np.full((3, 64), 15, np.float16)
    found = attention.dot_product_attention(x, x, x)
    np.testing.assert_array_equal(found, x)


@psc.kernel
def draw(
    key: Key,
) -> tuple[attention.Heads["6 6 2 4"], attention.Heads["6 5 3 2"]]:
    first, second = psc.random.split(key)
    return (
        attention.attention_layer(first, 6, 6, 2, 4),
        attention.attention_layer(second, 6, 5, 3, 2),
    )


def heads_in_numpy(
    p: Any, x: NDArray[Any], memory: NDArray[Any], admitted: NDArray[Any]
) -> NDArray[Any]:
    p = [np.asarray(each) for each in (p.query, p.key, p.value, p.out)]
    found = np.zeros_like(x)
    for i in range(p[0].shape[1]):
        q, k, v = x @ p[0][:, i], memory @ p[1][:, i], memory @ p[2][:, i]
        found += in_numpy(q, k, v, admitted) @ p[3][i]
    return found


def test_heads() -> None:
    own, other = draw(psc.random.key(0))
    assert np.abs(own.query).max() <= np.sqrt(6 / (6 + 8))
    x, memory = (numbers(2, n, d).astype(np.float32) for n, d in ((5, 6), (4, 5)))
    lengths, theirs = np.array([5, 3]), np.array([2, 4])
    seen = attention.self_attention(own, x, np.arange(5) < lengths[:, None], True)
    across = attention.cross_attention(other, x, memory, np.arange(4) < theirs[:, None])
    for i in range(2):
        past = np.tri(5, dtype=bool) & (np.arange(5) < lengths[i])
        expected = heads_in_numpy(own, x[i], x[i], past)
        np.testing.assert_allclose(np.asarray(seen)[i], expected, rtol=1e-4, atol=1e-5)
        present = np.broadcast_to(np.arange(4) < theirs[i], (5, 4))
        expected = heads_in_numpy(other, x[i], memory[i], present)
        np.testing.assert_allclose(np.asarray(across)[i], expected, rtol=1e-4, atol=1e-5)


@psc.kernel
def turned(
    p: attention.Heads["d d h k"], x: f32["t d"], queries: f64["t k"], keys: f64["t k"]
) -> tuple[f32["t d"], f64["t t"], f32["t d"]]:
    assert p.query.shape[2] % 2 == 0
    assert x.shape[1] % 2 == 0
    t, d = x.shape
    products = positions.rotary(queries, 3) @ positions.rotary(keys, 3).T
    moved = attention.multi_head(p, x, x, turn=positions.rotary)
    return moved, products, positions.sinusoidal_positions(t, d)


def test_positions() -> None:
    own, _ = draw(psc.random.key(0))
    t, k = 50, 4
    x = numbers(t, 6).astype(np.float32)
    query, key = numbers(k), numbers(k)
    moved, products, places = turned(own, x, np.tile(query, (t, 1)), np.tile(key, (t, 1)))
    plain = np.asarray(attention.self_attention(own, x))
    assert np.abs(np.asarray(moved) - plain).max() > 1e-3

    steps = np.arange(t)[:, None] - np.arange(t)
    angles = steps[..., None] * 10000.0 ** (-np.arange(0, k, 2) / k)
    pairs = query.reshape(-1, 2).view(complex)[:, 0] * key.reshape(-1, 2).view(complex)[:, 0].conj()
    np.testing.assert_allclose(products, np.real(pairs * np.exp(1j * angles)).sum(-1), atol=1e-4)

    angles = np.arange(t)[:, None] * 10000.0 ** (-np.arange(0, 6, 2) / 6)
    np.testing.assert_allclose(np.asarray(places)[:, ::2], np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(np.asarray(places)[:, 1::2], np.cos(angles), atol=1e-5)


def test_dropout() -> None:
    x = numbers(20, 30, 10)
    found = np.asarray(dropout.dropout(psc.random.key(0), x, 0.25))
    kept = found != 0
    np.testing.assert_allclose(found[kept], x[kept] / 0.75)
    assert abs(kept.mean() - 0.75) < 4 * np.sqrt(0.25 * 0.75 / x.size)
    np.testing.assert_array_equal(dropout.dropout(psc.random.key(0), x, 0.0), x)

    found = np.asarray(dropout.channel_dropout(psc.random.key(1), x, 0.25))
    kept = found != 0
    assert np.all(kept.all(axis=2) | ~kept.any(axis=2))
    assert abs(kept.mean() - 0.75) < 4 * np.sqrt(0.25 * 0.75 / 600)
    np.testing.assert_allclose(found[kept], x[kept] / 0.75)
