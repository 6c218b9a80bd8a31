"""Losses: one number per example, never averaged, so that the caller chooses weights and mean.

Those of scores (`logits`) are stable: they stay finite wherever their value is.
"""

from __future__ import annotations

import numpy as np

import pscdsl as psc
from pscdsl import Float, Int
from pscdsl.stdlib.activations import log_softmax, softplus


@psc.kernel
def squared_error(prediction: Float["*s"], target: Float["*s"]) -> Float["*s"]:
    """The square of the difference, elementwise.

    Examples:
        >>> squared_error(np.array([1.0, 2.5]), np.array([1.0, 2.0]))
        pscdsl.Array([0.  , 0.25], dtype=float64)

    Cost: 2*s flops.
    """
    difference = prediction - target
    return difference * difference


@psc.kernel
def absolute_error(prediction: Float["*s"], target: Float["*s"]) -> Float["*s"]:
    """The absolute value of the difference, elementwise.

    Examples:
        >>> absolute_error(np.array([1.0, 2.5]), np.array([1.0, 3.0]))
        pscdsl.Array([0. , 0.5], dtype=float64)

    Cost: 2*s flops.
    """
    return np.abs(prediction - target)


@psc.kernel
def huber(prediction: Float["*s"], target: Float["*s"], delta: Float = 1.0) -> Float["*s"]:
    """Half the squared error up to a difference of `delta` > 0, linear beyond (Huber 1964).

    Examples:
        >>> huber(np.array([0.5, 10.0]), np.array([0.0, 0.0]))
        pscdsl.Array([0.125, 9.5  ], dtype=float64)

    Cost: 6*s flops.
    """
    difference = np.abs(prediction - target)
    inner = np.minimum(difference, delta)  # not where(): its square overflows beyond
    return inner * (difference - inner / 2)


@psc.kernel
def log_cosh(prediction: Float["*s"], target: Float["*s"]) -> Float["*s"]:
    """`log(cosh(prediction - target))`: half the square near 0, linear far away.

    Examples:
        >>> log_cosh(np.array([0.5, 100.0]), np.array([0.0, 0.0]))
        pscdsl.Array([ 0.1201, 99.3069], dtype=float64)

    Cost: 47*s flops.
    """
    difference = prediction - target
    near = np.abs(difference) < 1
    half = np.sinh(np.where(near, difference, 0) * 0.5)
    size = np.abs(np.where(near, 1, difference))
    far = size - np.log(2) + np.log1p(np.exp(-2 * size))
    return np.where(near, np.log1p(2 * half * half), far)


@psc.kernel
def quantile_loss(prediction: Float["*s"], target: Float["*s"], quantile: Float) -> Float["*s"]:
    """The loss that the `quantile` (in [0, 1]) minimises (Koenker, Bassett 1978).

    Examples:
        >>> quantile_loss(np.array([1.0, 1.0]), np.array([3.0, 0.0]), 0.9)
        pscdsl.Array([1.8, 0.1], dtype=float64)

    Cost: 4*s + 1 flops.
    """
    difference = target - prediction
    return np.maximum(quantile * difference, (quantile - 1) * difference)


@psc.kernel
def logistic_loss(logits: Float["*s"], labels: Float["*s"]) -> Float["*s"]:
    """The negative log-likelihood, in nats, of `labels` in [0, 1] where 1 has odds `exp(logits)`.

    `-labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits))`.

    Examples:
        >>> logistic_loss(np.array([2.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.5]))
        pscdsl.Array([0.1269, 1.3133, 0.6931], dtype=float64)

    Cost: 23*s flops.
    """
    return softplus(logits) - logits * labels


@psc.kernel
def logistic_margin_loss(scores: Float["*s"], labels: Float["*s"]) -> Float["*s"]:
    """`log(1 + exp(-labels * scores))`: the logistic loss of labels that are -1 or 1.

    Examples:
        >>> logistic_margin_loss(np.array([2.0, -1.0]), np.array([1.0, 1.0]))
        pscdsl.Array([0.1269, 1.3133], dtype=float64)

    Cost: 23*s flops.
    """
    return softplus(-labels * scores)


@psc.kernel
def hinge(scores: Float["*s"], labels: Float["*s"]) -> Float["*s"]:
    """`max(0, 1 - labels * scores)` of labels that are -1 or 1 (Cortes, Vapnik 1995).

    Examples:
        >>> hinge(np.array([2.0, 0.5, -1.0]), np.array([1.0, 1.0, 1.0]))
        pscdsl.Array([0. , 0.5, 2. ], dtype=float64)

    Cost: 3*s flops.
    """
    return np.maximum(1 - labels * scores, 0)


@psc.kernel
def squared_hinge(scores: Float["*s"], labels: Float["*s"]) -> Float["*s"]:
    """The square of `hinge`, differentiable everywhere.

    Examples:
        >>> squared_hinge(np.array([2.0, 0.5, -1.0]), np.array([1.0, 1.0, 1.0]))
        pscdsl.Array([0.  , 0.25, 4.  ], dtype=float64)

    Cost: 4*s flops.
    """
    loss = hinge(scores, labels)
    return loss * loss


@psc.kernel
def multiclass_hinge(scores: Float["*batch k"], labels: Int["*batch"]) -> Float["*batch"]:
    """The margin of the best wrong class, plus 1, over the labelled one (Crammer, Singer 2001).

    `labels` are the indices of classes along the last axis of `scores`, in 0..k-1.

    Examples:
        >>> multiclass_hinge(np.array([[3.0, 0.5, 1.0], [0.0, 2.0, 0.0]]), np.array([0, 2]))
        pscdsl.Array([0., 3.], dtype=float64)

    Cost: 6*batch*k + batch flops.
    """
    right = np.arange(scores.shape[-1]) == labels[..., None]
    labelled = np.where(right, scores, 0).sum(axis=-1)
    margins = np.where(right, scores, scores + 1)
    return margins.max(axis=-1) - labelled


@psc.kernel
def cross_entropy(logits: Float["*batch k"], labels: Int["*batch"]) -> Float["*batch"]:
    """The negative log-likelihood, in nats, of classes with probabilities `softmax(logits)`.

    `labels` are the indices of classes along the last axis of `logits`, in 0..k-1.

    Examples:
        >>> logits = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> cross_entropy(logits, np.array([0, 2]))
        pscdsl.Array([0.2395, 1.0986], dtype=float64)

    Cost: 9*batch*k + 16*batch flops.
    """
    return -np.take_along_axis(log_softmax(logits), labels[..., None], axis=-1)[..., 0]


@psc.kernel
def cross_entropy_with_probabilities(
    logits: Float["*batch k"], probabilities: Float["*batch k"]
) -> Float["*batch"]:
    """`-sum(probabilities * log(softmax(logits)))` over the last axis, in nats.

    A class of probability 0 counts nothing, also where its logit is -inf.

    Examples:
        >>> logits = np.array([[2.0, 0.0, 0.0]])
        >>> cross_entropy_with_probabilities(logits, np.array([[0.9, 0.05, 0.05]]))
        pscdsl.Array([0.4395], dtype=float64)

    Cost: 13*batch*k + 13*batch flops.
    """
    log_predicted = log_softmax(logits)
    terms = np.where(probabilities > 0, probabilities * log_predicted, 0)
    return -terms.sum(axis=-1)


@psc.kernel
def entropy(probabilities: Float["*batch k"]) -> Float["*batch"]:
    """`-sum(p * log(p))` over the last axis, in nats, with `0 * log(0) = 0` (Shannon 1948).

    Examples:
        >>> entropy(np.array([[0.5, 0.5], [0.9, 0.1]]))
        pscdsl.Array([0.6931, 0.3251], dtype=float64)

    Cost: 12*batch*k + batch flops.
    """
    positive = probabilities > 0
    logarithm = np.log(np.where(positive, probabilities, 1))
    return -(probabilities * logarithm).sum(axis=-1)


@psc.kernel
def kl_divergence(p: Float["*batch k"], q: Float["*batch k"]) -> Float["*batch"]:
    """`sum(p * log(p / q))` over the last axis, in nats (Kullback, Leibler 1951).

    Terms with `p = 0` are 0; where `p > 0 = q` the divergence is inf.

    Examples:
        >>> kl_divergence(np.array([0.5, 0.5]), np.array([0.9, 0.1]))
        pscdsl.Array(0.5108, dtype=float64)

    Cost: 22*batch*k flops.
    """
    positive = p > 0
    terms = p * (np.log(np.where(positive, p, 1)) - np.log(np.where(positive, q, 1)))
    return terms.sum(axis=-1)


@psc.kernel
def kl_divergence_of_logs(log_p: Float["*batch k"], log_q: Float["*batch k"]) -> Float["*batch"]:
    """`kl_divergence`, in nats, of probabilities that are given by their logarithms.

    Terms with `log_p = -inf` are 0; where only `log_q` is -inf the divergence is inf.

    Examples:
        >>> kl_divergence_of_logs(np.log(np.array([0.5, 0.5])), np.log(np.array([0.9, 0.1])))
        pscdsl.Array(0.5108, dtype=float64)

    Cost: 14*batch*k flops.
    """
    possible = log_p > -np.inf
    difference = np.where(possible, log_p, 0) - np.where(possible, log_q, 0)
    return (np.exp(log_p) * difference).sum(axis=-1)


@psc.kernel
def cosine_similarity(x: Float["*batch n"], y: Float["*batch n"]) -> Float["*batch"]:
    """The cosine of the angle between vectors along the last axis; 0 where one of them is 0.

    Examples:
        >>> cosine_similarity(
        ...     np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [1.0, 0.0]])
        ... )
        pscdsl.Array([1.    , 0.7071], dtype=float64)

    Cost: 14*batch*n + 10*batch flops.
    """
    return (_direction(x) * _direction(y)).sum(axis=-1)


@psc.kernel
def cosine_distance(x: Float["*batch n"], y: Float["*batch n"]) -> Float["*batch"]:
    """`1 - cosine_similarity(x, y)`.

    Examples:
        >>> cosine_distance(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [1.0, 0.0]]))
        pscdsl.Array([0.    , 0.2929], dtype=float64)

    Cost: 14*batch*n + 11*batch flops.
    """
    return 1 - cosine_similarity(x, y)


def _direction(x: Float["*batch n"]) -> Float["*batch n"]:
    """Vectors of length 1 with the directions of these; 0 stays 0."""
    largest = np.abs(x).max(axis=-1, keepdims=True)
    z = x / np.where(largest > 0, largest, 1)  # so that the squares neither overflow nor vanish
    square = (z * z).sum(axis=-1, keepdims=True)
    return z / np.sqrt(np.where(square > 0, square, 1))
