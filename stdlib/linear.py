"""Linear systems and eigenvalues by iteration and substitution.

`pscdsl.stdlib.solvers` takes matrices as functions, for kernels that never form them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.solvers import conjugate_gradients


class Solution(psc.Record, dims="n"):
    """The result of an iterative solver.

    Examples:
        >>> found = solve_cg(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
        >>> found.steps
        pscdsl.Array(2, dtype=int32)
    """

    x: Float["n"]
    """The solution."""
    residual: Float
    """The length of `b - a @ x`, as the recurrence has it."""
    steps: i32
    """The number of products with the matrix in the iteration."""


class Eigenpair(psc.Record, dims="n"):
    """An eigenvalue, its eigenvector, and how well they fit.

    Examples:
        >>> found = power_iteration(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0]))
        >>> np.round(found.vector, 3)
        array([0.707, 0.707])
    """

    value: Float
    """The eigenvalue."""
    vector: Float["n"]
    """The eigenvector, of length 1."""
    residual: Float
    """The length of `a @ vector - value * vector`."""
    steps: i32
    """The number of products with the matrix in the iteration."""


@psc.kernel
def solve_cg(
    a: Float["n n"], b: Float["n"], tolerance: Float = 1e-6, max_steps: i32 = 1000
) -> Solution["n"]:
    """Solve `a @ x = b` for a symmetric positive definite `a` by `conjugate_gradients`.

    Examples:
        >>> solve_cg(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])).x
        pscdsl.Array([0.0909, 0.6364], dtype=float64)

    Cost: 2*n*n + 16*n + 15 flops, with one step of its loop.
    """
    solution = conjugate_gradients(lambda v: a @ v, b, None, tolerance, max_steps)
    return Solution(solution.x, solution.residual, solution.steps)


@psc.kernel
def power_iteration(
    a: Float["n n"], start: Float["n"], tolerance: Float = 1e-6, max_steps: i32 = 1000
) -> Eigenpair["n"]:
    """The eigenvalue of largest absolute value of a symmetric `a`, with its eigenvector.

    `start` must not be orthogonal to the eigenvector.  Stops once the residual is at most
    `tolerance` times the absolute value, or after `max_steps` (von Mises, Pollaczek-Geiringer
    1929).

    Examples:
        >>> found = power_iteration(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0]))
        >>> np.round(found.value, 4)
        np.float64(3.0)

    Cost: 6*n*n + 30*n + 25 flops, with one step of its loop.
    """

    def rated(vector: Float["n"], steps: i32) -> Eigenpair["n"]:
        image = a @ vector
        value = vector @ image
        difference = image - value * vector
        return Eigenpair(value, vector, _length(difference), steps)

    def unfinished(pair: Eigenpair["n"]) -> bool_:
        return pair.residual > tolerance * np.abs(pair.value)

    def step(pair: Eigenpair["n"]) -> Eigenpair["n"]:
        return rated(_unit(a @ pair.vector), pair.steps + 1)

    return psc.while_loop(unfinished, step, rated(_unit(start), np.int32(0)), max_steps=max_steps)


@psc.kernel
def solve_triangular(
    a: Float["n n"], b: Float["n *k"], lower: psc.Static[bool] = True
) -> Float["n *k"]:
    """Solve `a @ x = b` by substitution, where `a` is lower or upper triangular.

    Only that triangle is read; its diagonal has no zeros.  `b` is a vector, or has one column
    for each system.

    Examples:
        >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
        >>> solve_triangular(a, np.array([2.0, 9.0]))
        pscdsl.Array([1., 2.], dtype=float64)
        >>> solve_triangular(a.T, np.array([2.0, 8.0]), lower=False)
        pscdsl.Array([0., 2.], dtype=float64)

    Cost: 2*k*n*n + 2*k*n + 2*n*n + 3*n flops.
    """
    triangle = np.tril(a) if lower else np.triu(a)

    def step(
        x: Float["n *k"], row: tuple[Float["n"], Float["*k"], i32]
    ) -> tuple[Float["n *k"], None]:
        coefficients, right, i = row
        # The entries of x that are still to come are 0.
        entry = (right - np.tensordot(coefficients, x, 1)) / coefficients[i]
        return psc.update(x, i, entry), None

    rows = (triangle, b, np.arange(a.shape[0]))
    x, _ = psc.scan(step, np.zeros_like(b), rows, reverse=not lower)
    return x


@psc.kernel
def solve_tridiagonal(
    below: Float["n"], diagonal: Float["n"], above: Float["n"], b: Float["n *k"]
) -> Float["n *k"]:
    """Solve a tridiagonal system by elimination without pivoting (Thomas 1949).

    Row i is `below[i]`, `diagonal[i]`, `above[i]`; `below[0]` and `above[-1]` are not read.
    Safe for diagonally dominant and for symmetric positive definite matrices.

    Examples:
        >>> below, above = np.array([0.0, 1, 1]), np.array([1.0, 1, 0])
        >>> solve_tridiagonal(below, np.full(3, 4.0), above, np.array([5.0, 6.0, 5.0]))
        pscdsl.Array([1., 1., 1.], dtype=float64)

    Cost: 5*k*n + 7*n flops.
    """

    def eliminate(
        previous: tuple[Float, Float["*k"]], row: tuple[Float, Float, Float, Float["*k"]]
    ) -> tuple[Any, Any]:
        ratio, right = previous
        low, middle, high, value = row
        pivot = middle - low * ratio
        current = (high / pivot, (value - low * right) / pivot)
        return current, current

    def substitute(
        following: Float["*k"], row: tuple[Float, Float["*k"]]
    ) -> tuple[Float["*k"], Float["*k"]]:
        ratio, right = row
        x = right - ratio * following
        return x, x

    edge = np.arange(diagonal.shape[0])
    low = np.where(edge == 0, 0, below)
    high = np.where(edge == diagonal.shape[0] - 1, 0, above)
    nothing = (np.zeros_like(diagonal[0]), np.zeros_like(b[0]))
    _, reduced = psc.scan(eliminate, nothing, (low, diagonal, high, b))
    _, x = psc.scan(substitute, np.zeros_like(b[0]), reduced, reverse=True)
    return x


def _length(x: Float["n"]) -> Float:
    """The Euclidean length, without overflow."""
    largest = np.abs(x).max()
    z = x / np.where(largest > 0, largest, 1)
    return largest * np.sqrt(z @ z)


def _unit(x: Float["n"]) -> Float["n"]:
    """The vector of length 1 in the same direction; 0 stays 0."""
    largest = np.abs(x).max()
    z = x / np.where(largest > 0, largest, 1)
    square = z @ z
    return z / np.sqrt(np.where(square > 0, square, 1))
