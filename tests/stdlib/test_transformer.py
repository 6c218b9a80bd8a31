"""Transformers: a block against NumPy, and who may see whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pscdsl as psc
from pscdsl import Key
from pscdsl.stdlib import transformer
from pscdsl.stdlib.activations import gelu
from pscdsl.stdlib.attention import self_attention

pytestmark = pytest.mark.quick_code

D, H, K, F = 6, 2, 4, 10


@psc.kernel
def draw(key: Key) -> transformer.Block["6 2 4 10"]:
    return transformer.transformer_block(key, 6, 2, 4, 10)


@pytest.fixture(scope="module")
def block() -> Any:
    return psc.tree.map(lambda x: np.asarray(x, np.float64), draw(psc.random.key(0)))


def numbers(*shape: int) -> NDArray[Any]:
    return np.random.default_rng(0).normal(size=shape)


def normal(x: NDArray[Any]) -> NDArray[Any]:
    centred = x - x.mean(axis=-1, keepdims=True)
    found: NDArray[Any] = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return found


def test_a_block_is_what_the_paper_says(block: Any) -> None:
    x = numbers(3, 5, D)
    bias = numbers(F)
    p = block.replace(hidden=block.hidden.replace(bias=bias))
    y = x + np.asarray(self_attention(p.attention, normal(x)))
    hidden = np.asarray(gelu(normal(y) @ p.hidden.weights + bias))
    np.testing.assert_allclose(
        transformer.transform(p, x), y + hidden @ p.out.weights, rtol=1e-9, atol=1e-12
    )
    limit = np.sqrt(6 / (D + F))
    assert 0.9 * limit < np.abs(block.hidden.weights).max() < limit


def test_rows_see_what_is_there_and_came_before(block: Any) -> None:
    x = numbers(2, 6, D)
    present = np.arange(6) < np.array([[4], [6]])
    found = np.asarray(transformer.transform(block, x, present, True, True))
    later = x + np.where(np.arange(6) >= 3, 1, 0)[:, None] * numbers(D)
    np.testing.assert_array_equal(
        np.asarray(transformer.transform(block, later, present, True, True))[:, :3], found[:, :3]
    )
    short = np.asarray(transformer.transform(block, x[0, :4], None, True, True))
    np.testing.assert_allclose(short, found[0, :4], rtol=1e-9, atol=1e-12)


def test_without_positions_the_order_says_nothing(block: Any) -> None:
    x = numbers(5, D)
    order = np.array([3, 0, 4, 1, 2])
    plain = np.asarray(transformer.transform(block, x))
    np.testing.assert_allclose(transformer.transform(block, x[order]), plain[order], rtol=1e-9)
    turned = np.asarray(transformer.transform(block, x, None, False, True))
    found = np.asarray(transformer.transform(block, x[order], None, False, True))
    assert np.abs(found - turned[order]).max() > 1e-3
