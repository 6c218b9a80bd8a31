"""Means, variances and covariances: weighted, and as sums that can be taken in any grouping.

`Moments` and `Comoments` are those of some rows; `merged` and `comerged` combine those of two sets
of rows (Chan, Golub, LeVeque 1983), without the cancellation of sums of squares. So rows that come
in parts, or are on several devices, need one pass:

    psc.map_reduce(moments_of, merged, rows)
    psc.map_reduce(comoments_of, comerged, blocks_of_rows)

Rows may be trees; then so are means and squares. A variance divides by the weight of all rows, less
`ddof`: 0 for the variance of these rows, 1 to estimate that of the distribution that they are drawn
from.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float
from pscdsl.stdlib.precision import widened

T = TypeVar("T")


class Moments(psc.Record, Generic[T]):
    """Weight, mean and sum of squares of numbers: an array or a tree.

    Examples:
        >>> m = moments_of(np.array([1.0, 10.0]))
        >>> m.weight, m.mean, m.square
        (array(1.), array([ 1., 10.]), array([0., 0.]))
    """

    weight: Float
    """The weight of all rows; their number if each has the weight 1."""
    mean: T
    """The weighted mean."""
    square: T
    """The sum of the weighted squares of differences from the mean."""


class Comoments(psc.Record, dims="d"):
    """Weight, mean and sum of outer products of vectors.

    Examples:
        >>> m = comoments_of(np.array([[1.0, 2.0], [3.0, 6.0]]))
        >>> m.mean, m.product / m.weight
        (array([2., 4.]), array([[1., 2.],
               [2., 4.]]))
    """

    weight: Float
    """The weight of all rows."""
    mean: Float["d"]
    """The weighted mean."""
    product: Float["d d"]
    """The sum of the weighted products of differences from the mean."""


def moments_of(row: T, weight: Any = 1.0) -> Moments[T]:
    """The moments of one row; of 16-bit numbers in f32.

    Examples:
        >>> moments_of(np.array([1.0, 10.0]), weight=2.0)
        Moments(weight=array(2.), mean=array([ 1., 10.]), square=array([0., 0.]))
    """
    wide = psc.tree.map(widened, row)
    dtype = psc.tree.leaves(wide)[0].dtype
    counted: Any = np.asarray(weight).astype(dtype)
    return Moments(counted, wide, psc.tree.zeros_like(wide))


def merged(a: Moments[T], b: Moments[T]) -> Moments[T]:
    """The moments of the rows of both; those of no rows have the weight 0.

    Examples:
        >>> a, b = moments_of(np.array(1.0)), moments_of(np.array(3.0))
        >>> merged(a, b)
        Moments(weight=np.float64(2.0), mean=np.float64(2.0), square=np.float64(2.0))
    """
    weight, share = _shared(a.weight, b.weight)

    def mean(x: Any, y: Any) -> Any:
        return x + share.astype(x.dtype) * (y - x)

    def square(one: Any, two: Any, x: Any, y: Any) -> Any:
        return one + two + (a.weight * share).astype(x.dtype) * (y - x) ** 2

    return Moments(
        weight,
        psc.tree.map(mean, a.mean, b.mean),
        psc.tree.map(square, a.square, b.square, a.mean, b.mean),
    )


def variance_of(moments: Moments[T], ddof: float = 0) -> T:
    """The variance, an array or a tree.

    Examples:
        >>> m = merged(moments_of(np.array(1.0)), moments_of(np.array(3.0)))
        >>> variance_of(m), variance_of(m, ddof=1)
        (np.float64(1.0), np.float64(2.0))
    """

    def divided(square: Any) -> Any:
        return square / (moments.weight - ddof).astype(square.dtype)

    return psc.tree.map(divided, moments.square)


def comoments_of(rows: Float["n d"], weights: Float["n"] | None = None) -> Comoments["d"]:
    """The comoments of a block of vectors, by a matrix product of 2 * n * d**2 operations.

    Examples:
        >>> m = comoments_of(np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]]))
        >>> m.product / m.weight
        array([[ 2.6667, -0.6667],
               [-0.6667,  4.6667]])
    """
    wide: Float["n d"] = widened(rows)
    counts: Float["n"] = np.ones_like(wide[:, 0]) if weights is None else widened(weights)
    weight = counts.sum()
    mean = counts @ wide / weight
    apart = wide - mean
    return Comoments(weight, mean, apart.T @ (counts[:, None] * apart))


def comerged(a: Comoments["d"], b: Comoments["d"]) -> Comoments["d"]:
    """The comoments of the vectors of both.

    Examples:
        >>> x = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0], [0.0, 0.0]])
        >>> m = comerged(comoments_of(x[:2]), comoments_of(x[2:]))
        >>> np.allclose(m.product / m.weight, np.cov(x.T, ddof=0))
        True
    """
    weight, share = _shared(a.weight, b.weight)
    apart = b.mean - a.mean
    product = a.product + b.product + a.weight * share * np.outer(apart, apart)
    return Comoments(weight, a.mean + share * apart, product)


@psc.kernel
def weighted_mean(x: Float["n *s"], weights: Float["n"]) -> Float["*s"]:
    """The mean over the first axis, with weights that are not negative and not all 0.

    Examples:
        >>> weighted_mean(np.array([[1.0, 10.0], [3.0, 20.0]]), np.array([1.0, 3.0]))
        pscdsl.Array([ 2.5, 17.5], dtype=float64)

    Cost: 2*n*s + 2*n flops.
    """
    wide, shares = widened(x), _shares(weights)
    return np.tensordot(shares, wide, 1).astype(x.dtype)


@psc.kernel
def weighted_variance(x: Float["n *s"], weights: Float["n"]) -> Float["*s"]:
    """The variance over the first axis; rows of weight 2 count as two rows.

    Examples:
        >>> weighted_variance(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
        pscdsl.Array(0.75, dtype=float64)

    Cost: 6*n*s + 2*n flops.
    """
    wide, shares = widened(x), _shares(weights)
    apart = wide - np.tensordot(shares, wide, 1)
    return np.tensordot(shares, apart * apart, 1).astype(x.dtype)


@psc.kernel
def weighted_covariance(x: Float["n d"], weights: Float["n"]) -> Float["d d"]:
    """The covariance of the columns; rows of weight 2 count as two rows.

    Examples:
        >>> x = np.array([[1.0, 10.0], [3.0, 20.0], [5.0, 0.0]])
        >>> weighted_covariance(x, np.array([1.0, 2.0, 1.0]))
        pscdsl.Array([[ 2.  , -5.  ],
                      [-5.  , 68.75]], dtype=float64)

    Cost: 2*d*d*n + 4*d*n + 2*n flops.
    """
    wide, shares = widened(x), _shares(weights)
    apart = wide - shares @ wide
    return (apart.T @ (shares[:, None] * apart)).astype(x.dtype)


@psc.kernel
def weighted_correlation(x: Float["n d"], weights: Float["n"]) -> Float["d d"]:
    """The correlations of the columns, from -1 to 1; NaN for a column that does not vary.

    Examples:
        >>> x = np.array([[1.0, 10.0], [3.0, 20.0], [5.0, 0.0]])
        >>> weighted_correlation(x, np.array([1.0, 2.0, 1.0]))
        pscdsl.Array([[ 1.    , -0.4264],
                      [-0.4264,  1.    ]], dtype=float64)

    Cost: at most 2*d*d*n + 3*d*d + 8*d*n + 2*n flops.
    """
    wide, shares = widened(x), _shares(weights)
    apart = wide - shares @ wide
    standard = apart / np.sqrt(shares @ (apart * apart))
    correlation = standard.T @ (shares[:, None] * standard)
    return np.clip(correlation, -1, 1).astype(x.dtype)


def _shares(weights: Float["n"]) -> Any:
    """Weights that sum to 1."""
    wide = widened(weights)
    return wide / wide.sum()


def _shared(a: Any, b: Any) -> tuple[Any, Any]:
    """The weight of two lots together, and the share of the second; 0 of nothing."""
    weight = a + b
    return weight, b / np.where(weight > 0, weight, 1)
