"""Minimisation without second derivatives: golden sections, simplices, and steps downhill.

`pscdsl.stdlib.lbfgs` and `pscdsl.stdlib.newton` take fewer steps where losses are smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.choosing import chosen
from pscdsl.stdlib.solvers import conjugate_gradients

T = TypeVar("T")


class Minimum(psc.Record, Generic[T]):
    """A minimum, and whether the iteration converged.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["n"]) -> Minimum[f64["n"]]:
        ...     return gradient_descent(lambda x: np.sum((x - 3) ** 2), start)
        >>> found = lowest(np.zeros(2))
        >>> found.params, found.converged
        (pscdsl.Array([3., 3.], dtype=float64), pscdsl.Array(True, dtype=bool))
    """

    params: T
    """The minimizer, a tree like the start, or like the bounds."""
    value: Float["..."]
    """The loss there."""
    steps: i32
    """The number of steps."""
    converged: bool_
    """Whether the tolerance was met."""


class _Simplex(psc.Record, dims="n"):
    """Corners, the best of them first, and the loss at each."""

    corners: Float["n+1 n"]
    values: Float["n+1"]


class _Section(psc.Record):
    """Elementwise: an interval, two points in it, and the function there."""

    low: Any
    left: Any
    right: Any
    high: Any
    at_left: Any
    at_right: Any


def golden_section(
    f: Callable[[T], Any], low: T, high: T, rtol: float = 0.0, max_steps: int = 100
) -> Minimum[T]:
    """The minimum of an elementwise function between `low` and `high` (Kiefer 1953).

    The function must fall before the minimum and rise after it; otherwise the result is one of
    several such places, or an end. Ends within `rtol` of the interval's length, but not below the
    root of the dtype's epsilon, where values differ only by rounding. The derivative is that of the
    equation that the slope is 0, with respect to the captures of `f`.

    Examples:
        >>> @psc.kernel
        ... def lowest(low: f64, high: f64) -> f64:
        ...     return golden_section(lambda x: x * x - 2 * x, low, high).params
        >>> np.round(lowest(-5.0, 5.0), 4)
        np.float64(1.0)
    """
    share = (5**0.5 - 1) / 2
    begin: Any = low
    length: Any = high - begin
    least = max(rtol, float(np.finfo(begin.dtype).eps) ** 0.5)

    def slope(x: Any) -> Any:
        return psc.jvp(f, (x,), (np.ones_like(x),))[1]

    def solve(_: object, middle: Any) -> tuple[Any, tuple[i32, bool_]]:
        left, right = high - share * length, begin + share * length
        start = _Section(begin, left, right, high, f(left), f(right))

        def wide(at: _Section) -> bool_:
            return np.any(at.high - at.low > least * length)

        def unfinished(state: tuple[_Section, i32]) -> bool_:
            return wide(state[0])

        def step(state: tuple[_Section, i32]) -> tuple[_Section, i32]:
            at, steps = state
            new = at.right - share * (at.right - at.low)
            value = f(new)
            falling = _Section(at.low, new, at.left, at.right, value, at.at_left)
            far = at.left + share * (at.high - at.left)
            rising = _Section(at.left, at.right, far, at.high, at.at_right, f(far))
            return chosen(at.at_left < at.at_right, falling, rising), steps + 1

        section, steps = psc.while_loop(unfinished, step, (start, np.int32(0)), max_steps=max_steps)
        x = chosen(section.at_left < section.at_right, section.left, section.right)
        return x, (steps, np.logical_not(wide(section)))

    def tangent(linear: Callable[[Any], Any], y: Any) -> Any:
        return y / linear(np.ones_like(y))

    middle = begin + length / 2
    x, (steps, converged) = psc.custom_root(slope, middle, solve, tangent, has_aux=True)
    return Minimum(x, f(x), steps, converged)


def gradient_descent(
    loss: Callable[[T], Any],
    start: T,
    tolerance: Any = 1e-5,
    max_steps: int = 1000,
    first: Any = 1.0,
) -> Minimum[T]:
    """A local minimum of a differentiable loss over a vector or tree of one dtype.

    Each step goes down the gradient, twice as far for its length as the last one did, and half of
    that until the loss falls enough (Armijo 1966).  Ends once the gradient is at most `tolerance`
    long, after `max_steps`, or where no step lowers the loss; `first` is the first rate.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["2"]) -> f64["2"]:
        ...     return gradient_descent(lambda x: np.sum((x - np.array([1, 2])) ** 2), start).params
        >>> lowest(np.zeros(2))
        pscdsl.Array([1., 2.], dtype=float64)
    """
    flat, restored = psc.tree.ravel(start)

    def on_vectors(x: Any) -> Any:
        return loss(restored(x))

    def unfinished(at: tuple[Any, Any, Any, Any, i32]) -> bool_:
        _, _, gradient, rate, _ = at
        return (gradient @ gradient > tolerance * tolerance) & (rate > 0)

    def step(at: tuple[Any, Any, Any, Any, i32]) -> tuple[Any, Any, Any, Any, i32]:
        x, value, gradient, rate, steps = at
        square = gradient @ gradient
        least = np.finfo(x.dtype).smallest_normal

        def too_far(rate: Any) -> bool_:
            fallen = on_vectors(x - rate * gradient) <= value - rate * square / 2
            return np.logical_not(fallen) & (rate > least)

        rate = psc.while_loop(too_far, lambda rate: rate / 2, 2 * rate)
        rate = chosen(rate > least, rate, 0 * rate)
        x = x - rate * gradient
        value, gradient = psc.value_and_grad(on_vectors)(x)
        return x, value, gradient, rate, steps + 1

    value, gradient = psc.value_and_grad(on_vectors)(flat)
    rate = np.zeros_like(value) + first / 2
    x, value, gradient, _, steps = psc.while_loop(
        unfinished, step, (flat, value, gradient, rate, np.int32(0)), max_steps=max_steps
    )
    return Minimum(restored(x), value, steps, gradient @ gradient <= tolerance * tolerance)


def nelder_mead(
    loss: Callable[[T], Any],
    start: T,
    xtol: Any = 1e-4,
    ftol: Any = 1e-4,
    max_steps: int = 1000,
    adaptive: bool = False,
) -> Minimum[T]:
    """A local minimum of a loss over a vector or tree of one dtype, by its values alone.

    A simplex is turned over, stretched and shrunk (Nelder, Mead 1965); its first corners are the
    start and, for each number, the start with that number larger by 5 %, or 0.00025 instead of 0.
    Ends once all corners are within `xtol` of the best in each number, and their losses within
    `ftol`, or after `max_steps`; a place where the loss is NaN is no minimum. `adaptive` stretches
    and shrinks less the more numbers there are (Gao, Han 2012). The derivative, with respect to the
    captures of `loss`, is that of the equation that the gradient is 0: it needs a loss that has
    second derivatives, and is as accurate as the minimum.

    Examples:
        >>> @psc.kernel
        ... def lowest(start: f64["2"]) -> f64["2"]:
        ...     return nelder_mead(lambda x: np.sum(np.abs(x - np.array([1, 2]))), start).params
        >>> np.round(lowest(np.zeros(2)), 3)
        array([1., 2.])
    """
    flat, restored = psc.tree.ravel(start)
    count = flat.shape[0]
    stretch, contract, shrink = 2.0, 0.5, 0.5
    if adaptive:
        stretch, contract, shrink = 1 + 2 / count, 0.75 - 0.5 / count, 1 - 1 / count

    def on_vectors(x: Any) -> Any:
        return loss(restored(x))

    def value_at(x: Any) -> Any:
        value = on_vectors(x)
        return np.where(np.isnan(value), np.inf, value)

    def near(at: _Simplex["n"]) -> bool_:
        apart = np.abs(at.corners[1:] - at.corners[0]).max()
        return (apart <= xtol) & (at.values[-1] - at.values[0] <= ftol)

    def unfinished(state: tuple[_Simplex["n"], i32]) -> bool_:
        return np.logical_not(near(state[0]))

    def step(state: tuple[_Simplex["n"], i32]) -> tuple[_Simplex["n"], i32]:
        at, steps = state
        worst, value_there = at.corners[-1], at.values[-1]
        middle = at.corners[:-1].mean(axis=0)
        turned = middle + (middle - worst)
        value = value_at(turned)
        best, good, better = value < at.values[0], value < at.values[-2], value < value_there
        share = np.where(best, stretch, np.where(better, contract, -contract))
        other = middle + share.astype(flat.dtype) * (middle - worst)
        reflected = good & np.logical_not(best)
        value_of_other = psc.cond(reflected, lambda: value, lambda: value_at(other))
        as_good = chosen(better, value_of_other <= value, value_of_other < value_there)
        improved = chosen(best, value_of_other < value, as_good)
        x, value = chosen(
            improved & np.logical_not(reflected), (other, value_of_other), (turned, value)
        )

        def replaced() -> _Simplex["n"]:
            return _Simplex(psc.update(at.corners, -1, x), psc.update(at.values, -1, value))

        def shrunk() -> _Simplex["n"]:
            corners = at.corners[0] + shrink * (at.corners - at.corners[0])
            return _Simplex(corners, psc.vmap(value_at)(corners))

        return _sorted(psc.cond(good | improved, replaced, shrunk)), steps + 1

    def solve(_: object, x: Any) -> tuple[Any, tuple[i32, bool_]]:
        moved = np.where(x == 0, 0.00025, 1.05 * x)
        corners = np.concatenate([x[None], np.where(np.eye(count, dtype=np.bool_), moved, x)])
        first = _sorted(_Simplex(corners, psc.vmap(value_at)(corners)))
        simplex, steps = psc.while_loop(unfinished, step, (first, np.int32(0)), max_steps=max_steps)
        return simplex.corners[0], (steps, near(simplex))

    def tangent(hessian: Callable[[Any], Any], y: Any) -> Any:
        eps = float(np.finfo(y.dtype).eps)
        return conjugate_gradients(hessian, y, None, eps**0.75, 10 * count).x

    x, (steps, converged) = psc.custom_root(
        psc.jacfwd(on_vectors), flat, solve, tangent, has_aux=True
    )
    return Minimum(restored(x), on_vectors(x), steps, converged)


def _sorted(at: _Simplex["n"]) -> _Simplex["n"]:
    """With the corners in ascending order of the loss."""
    order = np.argsort(at.values)
    return _Simplex(at.corners[order], at.values[order])
