"""Sums over more rows than fit into memory together: of any tree, and gradients of means.

Rows are trees of arrays along a first axis, for instance minibatches: `data[minibatch, row, …]`.
Only the results of some rows exist at a time, never those of all rows. Sums of 16-bit numbers are
taken in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pscdsl as psc
from pscdsl.stdlib.precision import widened


def total(f: Callable[[Any], Any], rows: Any) -> Any:
    """The sum of `f(row)`, a tree, over all rows; of 16-bit numbers in f32.

    Examples:
        >>> total(lambda row: row**2, np.array([1.0, 2.0, 3.0]))
        pscdsl.Array(14., dtype=float64)
    """
    return psc.map_reduce(lambda row: psc.tree.map(widened, f(row)), _added, rows)


def mean(f: Callable[[Any], Any], rows: Any) -> Any:
    """The mean of `f(row)`, a tree, over all rows; of 16-bit numbers in f32.

    Examples:
        >>> mean(lambda row: (row, row**2), np.array([1.0, 2.0, 3.0]))
        (np.float64(2.0), np.float64(4.666666666666667))
    """
    count = psc.tree.leaves(rows)[0].shape[0]
    return psc.tree.map(lambda each: each / count, total(f, rows))


def value_and_grad(
    loss: Callable[[Any, Any], Any], parameters: Any, batches: Any
) -> tuple[Any, Any]:
    """The mean of `loss(parameters, batch)` over the batches, and its gradient.

    Each batch is differentiated on its own, so that the memory is that of one of them: the
    gradient of a batch as large as all together.  The gradient is like the parameters.

    Examples:
        >>> @psc.kernel
        ... def gradient(w: f64["d"], batches: f64["b n d"]) -> tuple[f64, f64["d"]]:
        ...     return value_and_grad(lambda w, x: np.mean((x @ w) ** 2), w, batches)
        >>> gradient(np.array([1.0, -1.0]), np.arange(12.0).reshape(3, 2, 2))
        (pscdsl.Array(1., dtype=float64), pscdsl.Array([-10., -12.], dtype=float64))
    """

    def of_batch(batch: Any) -> Any:
        return psc.value_and_grad(loss)(parameters, batch)

    value, gradient = mean(of_batch, batches)
    return value, psc.tree.map(lambda g, p: g.astype(p.dtype), gradient, parameters)


def _added(one: Any, other: Any) -> Any:
    """The sum of two trees."""
    return psc.tree.map(lambda x, y: x + y, one, other)
