"""Linear systems and eigenvalues of maps that are given as functions.

No matrix is formed: an operator is a linear function from vectors, or trees of arrays, to others
like them. Solutions have the derivatives of their systems, in both modes: with respect to the right
side and to the captures of the operator, by solving further systems, independent of the number of
steps of the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.precision import widened

T = TypeVar("T")


class Solution(psc.Record, Generic[T]):
    """A solution of a linear system, and its residual.

    Examples:
        >>> @psc.kernel
        ... def solve(b: f64["n"]) -> Solution[f64["n"]]:
        ...     return conjugate_gradients(lambda x: 4 * x - np.roll(x, 1) - np.roll(x, -1), b)
        >>> found = solve(np.array([1.0, 0.0, 0.0, 0.0]))
        >>> found.steps, found.residual < 1e-6
        (pscdsl.Array(3, dtype=int32), np.True_)
    """

    x: T
    """The solution, a tree like the right side."""
    residual: Float
    """The length of `b - operator(x)`, as the recurrence has it."""
    steps: i32
    """The number of products with the operator in the iteration."""


class Krylov(psc.Record, dims="n k"):
    """An orthonormal basis in which a symmetric operator is nearly tridiagonal.

    Examples:
        >>> @psc.kernel
        ... def basis(a: f64["n n"], start: f64["n"]) -> Krylov["n 2"]:
        ...     return lanczos(lambda x: a @ x, start, 2)
        >>> basis(np.diag([1.0, 2.0, 3.0]), np.ones(3)).diagonal
        pscdsl.Array([2., 2.], dtype=float64)
    """

    diagonal: Float["k"]
    """Products of each vector of the basis with its image."""
    beside: Float["k"]
    """The numbers next to the diagonal; the last belongs to `rest`."""
    basis: Float["k n"]
    """One vector a row, each of length 1, or 0 where the basis ended early."""
    rest: Float["n"]
    """The direction in which the operator leaves the basis, of length 1 or 0."""


class Eigenpairs(psc.Record, dims="n k"):
    """Approximate eigenvalues, in ascending order, and eigenvectors.

    Examples:
        >>> @psc.kernel
        ... def pairs(a: f64["n n"], start: f64["n"]) -> Eigenpairs["n 3"]:
        ...     return eigenpairs(lambda x: a @ x, start, 3)
        >>> pairs(np.diag([1.0, 2.0, 3.0]), np.ones(3)).values
        pscdsl.Array([1., 2., 3.], dtype=float64)
    """

    values: Float["k"]
    """The eigenvalues."""
    vectors: Float["k n"]
    """One a row, of length 1."""
    residuals: Float["k"]
    """The lengths of `operator(vector) - value * vector`."""


class _Search(psc.Record):
    """The state of conjugate gradients."""

    x: Any
    residual: Any
    direction: Any
    product: Any
    """The product of the residual with its preconditioned form."""
    square: Any
    """The square of the residual's length."""
    steps: i32


class _Arnoldi(psc.Record, dims="n m"):
    """A basis of the Krylov space, and the least squares problem in it, reduced by rotations."""

    basis: Float["m+1 n"]
    triangle: Float["m m"]
    """Column by column; those still to come are those of the identity."""
    cosines: Float["m"]
    sines: Float["m"]
    right: Float["m+1"]
    size: i32


def conjugate_gradients(
    operator: Callable[[T], Any],
    b: T,
    initial: T | None = None,
    tolerance: Any = 1e-6,
    max_steps: Any = 1000,
    preconditioner: Callable[[T], Any] | None = None,
) -> Solution[T]:
    """Solve `operator(x) = b` for a symmetric positive definite operator.

    Starts at `initial`, or at 0, and stops once the residual is at most `tolerance` times the
    length of `b`, or after `max_steps`: look at `residual` and `steps` (Hestenes, Stiefel 1952).
    `preconditioner` is another such operator, close to the inverse.

    Examples:
        >>> @psc.kernel
        ... def solve(b: f64["n"]) -> f64["n"]:
        ...     return conjugate_gradients(lambda x: 4 * x - np.roll(x, 1) - np.roll(x, -1), b).x
        >>> np.round(solve(np.array([1.0, 0.0, 0.0, 0.0])), 4)
        array([0.2917, 0.0833, 0.0417, 0.0833])
    """

    def solve(operator: Callable[[Any], Any], b: Any) -> tuple[Any, tuple[Any, i32]]:
        scale = _largest(b)  # so that squares neither overflow nor vanish
        target = _scaled(b, 1 / scale)
        if initial is None:
            x, residual = psc.tree.zeros_like(b), target
        else:
            x = _scaled(initial, 1 / scale)
            residual = _plus(target, -1, operator(x))
        limit = tolerance * tolerance * _dot(target, target)

        def conditioned(residual: Any) -> Any:
            return residual if preconditioner is None else preconditioner(residual)

        def unfinished(at: _Search) -> bool_:
            return at.square > limit

        def step(at: _Search) -> _Search:
            image = operator(at.direction)
            length = at.product / _dot(at.direction, image)
            residual = _plus(at.residual, -length, image)
            z = conditioned(residual)
            product = _dot(residual, z)
            return _Search(
                _plus(at.x, length, at.direction),
                residual,
                _plus(z, product / at.product, at.direction),
                product,
                _dot(residual, residual),
                at.steps + 1,
            )

        z = conditioned(residual)
        square = _dot(residual, residual)
        start = _Search(x, residual, z, _dot(residual, z), square, np.int32(0))
        final = psc.while_loop(unfinished, step, start, max_steps=max_steps)
        return _scaled(final.x, scale), (np.sqrt(final.square) * scale, final.steps)

    x, (residual, steps) = psc.custom_linear_solve(operator, b, solve, symmetric=True, has_aux=True)
    return Solution(x, residual, steps)


def gmres(
    operator: Callable[[T], Any],
    b: T,
    tolerance: Any = 1e-6,
    max_steps: Any = 1000,
    restart: int = 20,
    preconditioner: Callable[[T], Any] | None = None,
) -> Solution[T]:
    """Solve `operator(x) = b` for any regular operator.

    The residual is least in the space of all products so far; every `restart` products that space
    starts again from nothing, which bounds the memory, and may prevent progress. Stops once the
    residual is at most `tolerance` times the length of `b`, or at the first restart after
    `max_steps` products (Saad, Schultz 1986). Vectors are orthogonalised twice (Giraud, Langou,
    Rozložník 2005). `preconditioner` is linear, close to the inverse, and applied from the right.

    Examples:
        >>> @psc.kernel
        ... def solve(b: f64["n"]) -> f64["n"]:
        ...     return gmres(lambda x: 4 * x - np.roll(x, 1), b).x
        >>> np.round(solve(np.array([1.0, 0.0, 0.0, 0.0])), 4)
        array([0.251 , 0.0627, 0.0157, 0.0039])
    """
    flat, restored = psc.tree.ravel(b)

    def solve_with(
        preconditioner: Callable[[Any], Any] | None,
    ) -> Callable[[Callable[[Any], Any], Any], tuple[Any, tuple[Any, i32]]]:
        def solve(operator: Callable[[Any], Any], b: Any) -> tuple[Any, tuple[Any, i32]]:
            def conditioned(x: Any) -> Any:
                if preconditioner is None:
                    return x
                return psc.tree.ravel(preconditioner(restored(x)))[0]

            scale = _largest(b)
            target = b / scale
            limit = tolerance * np.sqrt(_dot(target, target))

            def unfinished(at: tuple[Any, Any, i32]) -> bool_:
                return (at[1] > limit) & (at[2] < max_steps)

            def cycle(at: tuple[Any, Any, i32]) -> tuple[Any, Any, i32]:
                x, _, steps = at
                residual = target - operator(conditioned(x))
                along, size = _least_residual(
                    lambda v: operator(conditioned(v)), residual, limit, restart
                )
                x = x + along
                left = target - operator(conditioned(x))
                return x, np.sqrt(_dot(left, left)), steps + size

            zero = np.zeros_like(target)
            start = (zero, np.sqrt(_dot(target, target)), np.int32(0))
            x, residual, steps = psc.while_loop(unfinished, cycle, start)
            return conditioned(x) * scale, (residual * scale, steps)

        return solve

    def back(vecmat: Callable[[Any], Any], b: Any) -> Any:
        if preconditioner is None:
            return solve_with(None)(vecmat, b)[0]
        transpose = psc.linear_transpose(preconditioner, restored(b))
        return solve_with(lambda x: transpose(x)[0])(vecmat, b)[0]

    def on_vectors(x: Any) -> Any:
        return psc.tree.ravel(operator(restored(x)))[0]

    x, (residual, steps) = psc.custom_linear_solve(
        on_vectors, flat, solve_with(preconditioner), transpose_solve=back, has_aux=True
    )
    return Solution(restored(x), residual, steps)


def _least_residual(
    operator: Callable[[Any], Any], residual: Any, limit: Any, most: int
) -> tuple[Any, i32]:
    """The vector with the least residual in a Krylov space of at most this size, and the size."""
    places = np.arange(most)
    length = np.sqrt(_dot(residual, residual))
    first = _divided(residual, length)
    zero: Any = np.zeros(most, residual.dtype)
    identity: Any = np.eye(most, dtype=residual.dtype)
    start = _Arnoldi(
        psc.update(np.zeros((most + 1, residual.shape[0]), residual.dtype), 0, first),
        identity,
        zero + 1,
        zero,
        psc.update(np.zeros(most + 1, residual.dtype), 0, length),
        np.int32(0),
    )

    def unfinished(at: _Arnoldi["n m"]) -> bool_:
        return (at.size < most) & (np.abs(at.right[at.size]) > limit)

    def step(at: _Arnoldi["n m"]) -> _Arnoldi["n m"]:
        j = at.size
        image = operator(at.basis[j])
        once = at.basis @ image
        rest = image - once @ at.basis
        again = at.basis @ rest
        rest = rest - again @ at.basis
        height = np.sqrt(_dot(rest, rest))

        def rotated(i: i32, column: Float["l"]) -> Float["l"]:
            c, s, x, y = at.cosines[i], at.sines[i], column[i], column[i + 1]
            return psc.update(psc.update(column, i, c * x + s * y), i + 1, c * y - s * x)

        column = psc.fori_loop(0, most, rotated, once + again)
        pivot = column[j]
        radius = np.sqrt(pivot * pivot + height * height)
        c, s = _divided(pivot, radius), _divided(height, radius)
        column = np.where(places < j, column[:-1], np.where(places == j, radius, 0))
        value = at.right[j]
        right = psc.update(psc.update(at.right, j, c * value), j + 1, -s * value)
        return _Arnoldi(
            psc.update(at.basis, j + 1, _divided(rest, height)),
            psc.update(at.triangle, (slice(None), j), column),
            psc.update(at.cosines, j, c),
            psc.update(at.sines, j, s),
            right,
            j + 1,
        )

    final = psc.while_loop(unfinished, step, start)
    right = np.where(places < final.size, final.right[:-1], 0)
    weights = psc.triangular_solve(widened(final.triangle), widened(right), lower=False)
    return weights.astype(residual.dtype) @ final.basis[:-1], final.size


def lanczos(
    operator: Callable[[Float["n"]], Float["n"]], start: Float["n"], steps: int
) -> Krylov["n k"]:
    """An orthonormal basis of the span of `start`, `operator(start)`, … (Lanczos 1950).

    The operator is symmetric.  Each vector is made orthogonal to all before it, twice.

    Examples:
        >>> @psc.kernel
        ... def basis(a: f64["n n"], start: f64["n"]) -> Krylov["n 2"]:
        ...     return lanczos(lambda x: a @ x, start, 2)
        >>> found = basis(np.diag([1.0, 2.0, 3.0]), np.ones(3))
        >>> np.abs(np.round(found.basis @ found.basis.T, 4))
        array([[1., 0.],
               [0., 1.]])
    """

    def step(
        at: tuple[Float["k n"], Float["n"]], j: i32
    ) -> tuple[tuple[Float["k n"], Float["n"]], tuple[Float, Float]]:
        basis, vector = at
        basis = psc.update(basis, j, vector)
        image = operator(vector)
        rest = image - (basis @ image) @ basis
        rest = rest - (basis @ rest) @ basis
        height = np.sqrt(_dot(rest, rest))
        noise = 10 * np.finfo(image.dtype).eps * np.sqrt(_dot(image, image))
        height = np.where(height > noise, height, 0)
        return (basis, _divided(rest, height)), (_dot(vector, image), height)

    first = start / _largest(start)
    first = _divided(first, np.sqrt(_dot(first, first)))
    nothing = np.zeros((steps, start.shape[0]), start.dtype)
    (basis, rest), (diagonal, beside) = psc.scan(step, (nothing, first), np.arange(steps))
    return Krylov(diagonal, beside, basis, rest)


def eigenpairs(
    operator: Callable[[Float["n"]], Float["n"]], start: Float["n"], steps: int
) -> Eigenpairs["n k"]:
    """Approximate eigenpairs of a symmetric operator, from the basis of `lanczos`.

    There is one for each step. Those at both ends of the spectrum, and those far from others,
    converge first: look at `residuals`. If the basis ends early, because `start` has a part in few
    eigenvectors, the others are 0 with a vector of zeros.

    Examples:
        >>> @psc.kernel
        ... def smallest(a: f64["n n"], start: f64["n"]) -> f64:
        ...     return eigenpairs(lambda x: a @ x, start, 3).values[0]
        >>> a = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        >>> np.round(smallest(a, np.array([1.0, 2.0, 4.0])), 4)
        np.float64(0.5858)
    """
    krylov = lanczos(operator, start, steps)
    inner = krylov.beside[:-1]
    matrix = np.diag(krylov.diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    values, weights = np.linalg.eigh(matrix)
    return Eigenpairs(values, weights.T @ krylov.basis, np.abs(krylov.beside[-1] * weights[-1]))


def _dot(a: Any, b: Any) -> Any:
    """The sum of products of two trees of one dtype, in that dtype."""
    return psc.tree.dot(a, b).astype(psc.tree.leaves(a)[0].dtype)


def _plus(x: Any, factor: Any, y: Any) -> Any:
    return psc.tree.map(lambda x, y: x + factor * y, x, y)


def _scaled(x: Any, factor: Any) -> Any:
    return psc.tree.map(lambda x: factor * x, x)


def _largest(x: Any) -> Any:
    """The largest absolute value in a tree, or 1 if all are 0."""
    first, *rest = [np.abs(leaf).max() for leaf in psc.tree.leaves(x)]
    for other in rest:
        first = np.maximum(first, other)
    return np.where(first > 0, first, 1)


def _divided(x: Any, length: Any) -> Any:
    """`x / length`, and 0 where the length is."""
    return x * np.where(length > 0, 1 / np.where(length > 0, length, 1), 0)
