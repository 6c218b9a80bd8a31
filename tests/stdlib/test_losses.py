"""Losses: against SciPy and scikit-learn, laws, and extreme arguments."""

# SciPy, scikit-learn and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special
from sklearn import metrics
from sklearn.metrics.pairwise import cosine_similarity

from pscdsl.stdlib import losses

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(7)
DTYPES = [np.float32, np.float64]
SHAPES = [(1,), (5,), (3, 4), (2, 3, 4)]


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(7).bit_generator.state


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    """The result of a kernel as a NumPy array."""
    return np.asarray(kernel(*args))


def pair(shape: tuple[int, ...], dtype: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = 3 * RANDOM.normal(size=(2, *shape))
    return x.astype(dtype), y.astype(dtype)


def close(found: NDArray[Any], expected: Any, factor: float = 20) -> None:
    eps = np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=factor * eps, atol=factor * eps)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_regression(shape: tuple[int, ...], dtype: type[Any]) -> None:
    x, y = pair(shape, dtype)
    d = x - y
    close(run(losses.squared_error, x, y), d * d)
    close(run(losses.absolute_error, x, y), np.abs(d))
    close(run(losses.huber, x, y), special.huber(1, d))
    close(run(losses.huber, x, y, 0.5), special.huber(0.5, d))
    close(run(losses.log_cosh, x, y), np.log(np.cosh(d)))
    quantile = 0.9
    pinball = np.where(d < 0, -quantile * d, (1 - quantile) * d)
    close(run(losses.quantile_loss, x, y, quantile), pinball)


def test_regression_of_extremes() -> None:
    x, y = np.array([1e38, -1e38], np.float32), np.zeros(2, np.float32)
    np.testing.assert_allclose(run(losses.huber, x, y), 1e38, rtol=1e-6)
    np.testing.assert_allclose(run(losses.log_cosh, x, y), 1e38, rtol=1e-6)


def test_quantile_loss_is_least_at_the_quantile() -> None:
    samples = np.sort(RANDOM.normal(size=101))
    total = [
        run(losses.quantile_loss, np.full(101, guess), samples, 0.25).sum() for guess in samples
    ]
    assert samples[np.argmin(total)] == np.quantile(samples, 0.25)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_logistic(shape: tuple[int, ...], dtype: type[Any]) -> None:
    scores, _ = pair(shape, dtype)
    ones = (RANDOM.random(shape) < 0.5).astype(dtype)
    expected = -special.log_expit(np.where(ones == 1, scores, -scores).astype(np.float64))
    close(run(losses.logistic_loss, scores, ones), expected)
    close(run(losses.logistic_margin_loss, scores, (2 * ones - 1).astype(dtype)), expected)


def test_logistic_of_extremes() -> None:
    scores = np.array([1e4, 1e4, -1e4, -1e4], np.float32)
    labels = np.array([1, 0, 1, 0], np.float32)
    np.testing.assert_array_equal(run(losses.logistic_loss, scores, labels), [0, 1e4, 1e4, 0])
    np.testing.assert_array_equal(
        run(losses.logistic_margin_loss, scores, 2 * labels - 1), [0, 1e4, 1e4, 0]
    )


def test_logistic_agrees_with_scikit_learn() -> None:
    scores, labels = RANDOM.normal(size=50), RANDOM.integers(0, 2, 50)
    found = run(losses.logistic_loss, scores, labels.astype(np.float64)).mean()
    assert found == pytest.approx(metrics.log_loss(labels, special.expit(scores)))


def test_hinge() -> None:
    scores = 2 * RANDOM.normal(size=40)
    labels = np.where(RANDOM.random(40) < 0.5, -1.0, 1.0)
    found = run(losses.hinge, scores, labels)
    assert found.mean() == pytest.approx(metrics.hinge_loss(labels, scores))
    close(run(losses.squared_hinge, scores, labels), found**2)


def test_multiclass_hinge() -> None:
    scores, labels = 2 * RANDOM.normal(size=(40, 5)), RANDOM.integers(0, 5, 40)
    found = run(losses.multiclass_hinge, scores, labels)
    expected = metrics.hinge_loss(labels, scores, labels=np.arange(5))
    assert found.mean() == pytest.approx(expected)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("integer", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy(shape: tuple[int, ...], dtype: type[Any], integer: type[Any]) -> None:
    logits, _ = pair(shape, dtype)
    labels = RANDOM.integers(0, shape[-1], shape[:-1]).astype(integer)
    one_hot = (np.arange(shape[-1]) == labels[..., None]).astype(dtype)
    expected = -(special.log_softmax(logits.astype(np.float64), axis=-1) * one_hot).sum(axis=-1)
    close(run(losses.cross_entropy, logits, labels), expected)
    close(run(losses.cross_entropy_with_probabilities, logits, one_hot), expected)


def test_cross_entropy_of_extremes() -> None:
    logits = np.array([[1e30, 0, -1e30], [0, -np.inf, 0]], np.float32)
    labels = np.array([1, 0], np.int32)
    expected = np.array([1e30, np.log(2)], np.float32)
    np.testing.assert_allclose(run(losses.cross_entropy, logits, labels), expected, rtol=1e-6)
    soft = np.array([[0, 1, 0], [0.5, 0, 0.5]], np.float32)
    found = run(losses.cross_entropy_with_probabilities, logits, soft)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_cross_entropy_agrees_with_scikit_learn() -> None:
    logits, labels = RANDOM.normal(size=(50, 4)), RANDOM.integers(0, 4, 50)
    found = run(losses.cross_entropy, logits, labels).mean()
    expected = metrics.log_loss(labels, special.softmax(logits, axis=-1), labels=np.arange(4))
    assert found == pytest.approx(expected)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_divergence(shape: tuple[int, ...], dtype: type[Any]) -> None:
    p, q = (special.softmax(x, axis=-1) for x in pair(shape, dtype))
    expected = special.rel_entr(p.astype(np.float64), q.astype(np.float64)).sum(axis=-1)
    close(run(losses.kl_divergence, p, q), expected, 100)
    close(run(losses.kl_divergence_of_logs, np.log(p), np.log(q)), expected, 100)
    close(run(losses.entropy, p), special.entr(p).sum(axis=-1), 100)
    close(run(losses.kl_divergence, p, p), 0)


def test_divergence_of_impossible_events() -> None:
    p, q = np.array([[0, 1.0], [0.5, 0.5], [0, 1]]), np.array([[0, 1.0], [0, 1], [0.5, 0.5]])
    expected = [0, np.inf, np.log(2)]
    np.testing.assert_allclose(run(losses.kl_divergence, p, q), expected)
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(p), np.log(q)
    np.testing.assert_allclose(run(losses.kl_divergence_of_logs, log_p, log_q), expected)
    np.testing.assert_allclose(run(losses.entropy, p), [0, np.log(2), 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosine(dtype: type[Any]) -> None:
    x, y = pair((6, 5), dtype)
    expected = np.diag(cosine_similarity(x, y))
    close(run(losses.cosine_similarity, x, y), expected)
    close(run(losses.cosine_distance, x, x), 0)
    close(run(losses.cosine_distance, x, -x), 2)


def test_cosine_of_extremes() -> None:
    x = np.array([[1e30, 1e30], [1e-30, 0], [0, 0]], np.float32)
    y = np.array([[1e30, 0], [1e-30, 0], [1, 1]], np.float32)
    close(run(losses.cosine_similarity, x, y), [np.sqrt(0.5), 1, 0])
