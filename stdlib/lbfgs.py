"""Minimization with curvature that is learnt from gradients, in little memory.

    found = lbfgs(loss, start)

L-BFGS (Nocedal 1980; Liu, Nocedal 1989): each direction is the gradient times an approximation of
the inverse of the second derivatives, made of the last few steps and of how gradients changed in
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.choosing import chosen
from pscdsl.stdlib.line_search import line_search

T = TypeVar("T")


class Minimum(psc.Record, Generic[T]):
    """A minimum, and how it was found.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["n"]) -> Minimum[f64["n"]]:
        ...     return lbfgs(lambda x: np.sum((x - 3) ** 4), start)
        >>> found = lowest(np.zeros(2))
        >>> found.value < 1e-6, found.slope < 1e-5
        (np.True_, np.True_)
    """

    params: T
    """The minimizer, a tree like the start."""
    value: Float
    """The loss there."""
    slope: Float
    """The largest absolute value in the gradient."""
    steps: i32
    """The number of steps."""
    evaluations: i32
    """The number of evaluations of the function and its gradient."""


class Curvature(psc.Record, dims="m n"):
    """The last m steps, the oldest first; those that were not made yet are 0.

    Examples:
        >>> none = Curvature(steps=np.zeros((5, 2)), changes=np.zeros((5, 2)), scales=np.zeros(5))
        >>> remembered(none, np.array([1.0, 0.0]), np.array([2.0, 0.0])).steps[-1]
        array([1., 0.])
    """

    steps: Float["m n"]
    """The change of position in each step."""
    changes: Float["m n"]
    """Changes of the gradient in each step."""
    scales: Float["m"]
    """1 over the product of each step and its change; 0 for no step."""


class _Descent(psc.Record, dims="m n"):
    """The state of a run."""

    x: Float["n"]
    value: Float
    gradient: Float["n"]
    curvature: Curvature["m n"]
    stuck: bool_
    """Whether the last step lowered neither the value nor the gradient."""
    steps: i32
    evaluations: i32


def lbfgs(
    loss: Callable[[T], Any],
    start: T,
    memory: int = 10,
    search: Literal["wolfe", "armijo"] = "wolfe",
    tolerance: Any = 1e-5,
    max_steps: Any = 500,
) -> Minimum[T]:
    """A local minimum of a smooth function of a tree of real arrays of one dtype; for kernels.

    Stops once no element of the gradient is above `tolerance`, after `max_steps`, or where a step
    lowers neither the value nor the gradient, as happens once rounding is all that is left: look at
    `slope`.
    `memory` is how many steps are remembered.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["2"]) -> f64["2"]:
        ...     def rosenbrock(x: f64["2"]) -> f64:
        ...         return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        ...
        ...     return lbfgs(rosenbrock, start).params
        >>> np.round(lowest(np.array([-1.0, 2.0])), 4)
        array([1., 1.])
    """
    first, restored = psc.tree.ravel(start)

    def of_vector(x: Any) -> Any:
        return loss(restored(x))

    def at(x: Any) -> tuple[Any, Any]:
        value_and_gradient: tuple[Any, Any] = psc.value_and_grad(of_vector)(x)
        return value_and_gradient

    def unfinished(run: Any) -> Any:
        return (np.abs(run.gradient).max() > tolerance) & ~run.stuck

    def step(run: Any) -> Any:
        direction = -newton_direction(run.curvature, run.gradient)
        # Without curvature the first length is that of a step of length at most 1.
        known = run.curvature.scales[-1] > 0
        length = np.where(known, 1, np.minimum(1, 1 / np.abs(run.gradient).sum()))
        result = line_search(
            at, run.x, direction, run.value, run.gradient, length, search == "wolfe"
        )
        moved = result.low.length * direction
        change = result.low.gradient - run.gradient
        flatter = np.abs(result.low.gradient).max() < np.abs(run.gradient).max()
        return _Descent(
            run.x + moved,
            result.low.value,
            result.low.gradient,
            remembered(run.curvature, moved, change),
            ~((result.low.value < run.value) | flatter),
            run.steps + 1,
            run.evaluations + result.evaluations,
        )

    value, gradient = at(first)
    table = np.zeros((memory, first.shape[0]), first.dtype)
    nothing = Curvature(table, table, table[:, 0])
    begun = _Descent(first, value, gradient, nothing, np.bool_(False), np.int32(0), np.int32(1))
    run = psc.while_loop(unfinished, step, begun, max_steps=max_steps)
    slope = np.abs(run.gradient).max()
    return Minimum(restored(run.x), run.value, slope, run.steps, run.evaluations)


def remembered(
    curvature: Curvature["m n"], moved: Float["n"], change: Float["n"]
) -> Curvature["m n"]:
    """The curvature with one more step in place of the oldest.

    A step along which gradients do not grow, which says nothing of a minimum, is left out.

    Examples:
        >>> none = Curvature(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2))
        >>> remembered(none, np.array([1.0]), np.array([4.0]))
        Curvature(steps=array([[0.],
               [1.]]), changes=array([[0.],
               [4.]]), scales=array([0.  , 0.25]))
    """
    product = moved @ change
    enough = product > np.finfo(moved.dtype).eps * (change @ change)
    scale = 1 / np.where(enough, product, 1)
    newer = Curvature(
        _shifted(curvature.steps, moved),
        _shifted(curvature.changes, change),
        _shifted(curvature.scales, scale),
    )
    known: Curvature["m n"] = chosen(enough, newer, curvature)
    return known


def _shifted(rows: Any, row: Any) -> Any:
    """The rows without the first, and with another one at the end."""
    shifted: Any = np.concatenate([rows[1:], row[None]])
    return shifted


@psc.kernel
def newton_direction(curvature: Curvature["m n"], gradient: Float["n"]) -> Float["n"]:
    """The gradient times the approximate inverse of the second derivatives, by two loops.

    The gradient itself where no step was made.

    Examples:
        >>> none = Curvature(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2))
        >>> newton_direction(remembered(none, np.array([1.0]), np.array([4.0])), np.array([8.0]))
        pscdsl.Array([2.], dtype=float64)

    Cost: 8*m*n + 3*m + 3*n + 5 flops.
    """

    def back(q: Any, row: Any) -> Any:
        step, change, scale = row
        share = scale * (step @ q)
        return q - share * change, share

    def forth(q: Any, row: Any) -> Any:
        (step, change, scale), share = row
        return q + (share - scale * (change @ q)) * step, None

    rows = (curvature.steps, curvature.changes, curvature.scales)
    q, shares = psc.scan(back, gradient, rows, reverse=True)
    last = curvature.changes[-1]
    square, scale = last @ last, curvature.scales[-1]
    known = scale > 0
    # The size of second derivatives along the last step.
    q = q * np.where(known, 1 / np.where(known, scale * square, 1), 1)
    q, _ = psc.scan(forth, q, (rows, shares))
    return q
