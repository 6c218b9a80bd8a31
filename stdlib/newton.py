"""Minimisation by truncated Newton steps, which need no matrix of second derivatives.

The method is the one of Frostig, Johnson and Leary, "Compiling machine learning programs via
high-level tracing" (SysML 2018), algorithm 7.1 of Nocedal and Wright, "Numerical optimization"
(2006): each direction is found by conjugate gradients, which are stopped early, and which take
products of the Hessian with vectors, derivatives of the gradient along them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.solvers import conjugate_gradients

T = TypeVar("T")


class Minimum(psc.Record, Generic[T]):
    """A minimum, and whether the iteration converged.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["n"]) -> Minimum[f64["n"]]:
        ...     return newton_cg(lambda x: np.sum(np.exp(x) - 2 * x), start)
        >>> found = lowest(np.zeros(2))
        >>> found.steps, found.converged
        (pscdsl.Array(5, dtype=int32), pscdsl.Array(True, dtype=bool))
    """

    params: T
    """The minimizer, a tree like the start."""
    value: Float
    """The loss there."""
    slope: Float
    """The length of the gradient there."""
    steps: i32
    """The number of steps."""
    products: i32
    """The number of products with the Hessian, in all steps together."""
    converged: bool_
    """Whether the gradient meets the tolerance."""


class _At(psc.Record, dims="n"):
    x: Float["n"]
    gradient: Float["n"]
    steps: i32
    products: i32
    stuck: bool_
    """Whether no length along the last direction made the loss smaller."""


class _Direction(psc.Record, dims="n"):
    """The state of conjugate gradients in the quadratic model of a loss."""

    z: Float["n"]
    residual: Float["n"]
    along: Float["n"]
    bent: bool_
    """Whether the model curves downwards along the last direction."""
    steps: i32


def newton_cg(
    loss: Callable[[T], Any],
    start: T,
    tolerance: Any = 1e-6,
    max_steps: int = 50,
    max_products: int = 200,
    line_search: bool = True,
) -> Minimum[T]:
    """A local minimum of a twice differentiable loss over a vector or tree of one dtype.

    Ends once the gradient is at most `tolerance` long, after `max_steps`, or where no progress can
    be made in this dtype. Each step takes at most `max_products` products with the Hessian, and
    fewer far from the minimum: the residual is reduced to min(1/2, sqrt(slope)) of the slope. With
    `line_search` a step is halved until the loss falls enough (Armijo 1966); without it the loss
    should be convex and the start close. The minimum has a derivative with respect to the captures
    of `loss`: that of the equation that the gradient is zero.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["n"]) -> f64["n"]:
        ...     return newton_cg(lambda x: np.sum(np.exp(x) - 2 * x), start).params
        >>> np.exp(lowest(np.zeros(2)))
        array([2., 2.])
    """
    flat, restored = psc.tree.ravel(start)

    def on_vectors(x: Any) -> Any:
        return loss(restored(x))

    def solve(gradient: Callable[[Any], Any], x: Any) -> tuple[Any, tuple[i32, i32]]:
        def unfinished(at: _At["n"]) -> bool_:
            return (at.gradient @ at.gradient > tolerance * tolerance) & np.logical_not(at.stuck)

        def step(at: _At["n"]) -> _At["n"]:
            _, product = psc.linearize(gradient, at.x)
            descent = _direction(product, at.gradient, max_products)
            length: Any = np.ones_like(at.gradient[0])
            if line_search:
                length = _length(on_vectors, at.x, at.gradient, descent.z)
            x = at.x + length * descent.z
            products = at.products + descent.steps
            return _At(x, gradient(x), at.steps + 1, products, length == 0)

        first = _At(x, gradient(x), np.int32(0), np.int32(0), False)
        final = psc.while_loop(unfinished, step, first, max_steps=max_steps)
        return final.x, (final.steps, final.products)

    def tangent(hessian: Callable[[Any], Any], y: Any) -> Any:
        return conjugate_gradients(hessian, y, None, tolerance, 10 * max_products).x

    x, (steps, products) = psc.custom_root(psc.grad(on_vectors), flat, solve, tangent, has_aux=True)
    value, slope = psc.value_and_grad(on_vectors)(x)
    size = np.sqrt(slope @ slope)
    return Minimum(restored(x), value, size, steps, products, size <= tolerance)


def _direction(product: Callable[[Any], Any], gradient: Float["n"], most: int) -> _Direction["n"]:
    """Towards the minimum of the quadratic model, until that curves downwards."""
    slope = np.sqrt(gradient @ gradient)
    enough = np.minimum(0.5, np.sqrt(slope)) * slope

    def unfinished(at: _Direction["n"]) -> bool_:
        far = at.residual @ at.residual > enough * enough
        return far & np.logical_not(at.bent)

    def step(at: _Direction["n"]) -> _Direction["n"]:
        image = product(at.along)
        curvature = at.along @ image
        bent = curvature <= 0
        square = at.residual @ at.residual
        first = np.where(at.steps == 0, 1, 0)  # of a slope that curves downwards, all
        length = np.where(bent, first, square / np.where(bent, 1, curvature))
        residual = at.residual + length * image
        along = residual @ residual / square * at.along - residual
        return _Direction(at.z + length * at.along, residual, along, bent, at.steps + 1)

    start = _Direction(np.zeros_like(gradient), gradient, -gradient, False, np.int32(0))
    return psc.while_loop(unfinished, step, start, max_steps=most)


def _length(
    loss: Callable[[Any], Any], x: Float["n"], gradient: Float["n"], direction: Float["n"]
) -> Any:
    """The largest of 1, 1/2, 1/4, … with which the loss falls enough; 0 where none does."""
    here, slope = loss(x), gradient @ direction
    least = 4 * np.finfo(x.dtype).eps
    slack = least * np.abs(here)  # differences of losses below this are noise

    def too_far(length: Float) -> bool_:
        fallen = loss(x + length * direction) <= here + 1e-4 * length * slope + slack
        return np.logical_not(fallen) & (length > least)

    accepted: Any = psc.while_loop(too_far, lambda length: length / 2, np.ones_like(here))
    return np.where(accepted > least, accepted, 0)
