"""Minimisation without second derivatives: of one number by golden sections, of trees downhill.

`pscdsl.stdlib.lbfgs` and `pscdsl.stdlib.newton` take fewer steps where losses are smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import bool_, i32
from pscdsl.stdlib.choosing import chosen


class Minimum(psc.Record):
    """Where a loss is least, as far as was found."""

    params: Any
    """Where it is, a tree like the start, or like the bounds."""
    value: Any
    steps: i32
    converged: bool_


class _Section(psc.Record):
    """Elementwise: an interval, two points in it, and the function there."""

    low: Any
    left: Any
    right: Any
    high: Any
    at_left: Any
    at_right: Any


def golden_section(
    f: Callable[[Any], Any], low: Any, high: Any, rtol: float = 0.0, max_steps: int = 100
) -> Minimum:
    """Where an elementwise function is least between `low` and `high` (Kiefer 1953).

    It must fall up to there and rise from there on; else what is found is one of several such
    places, or an end.  Ends within `rtol` of the interval's length, but not below the root of the
    dtype's epsilon, where values differ by their rounding alone.  The derivative is that of the
    equation that the slope is 0, with respect to what `f` captures.
    """
    share = (5**0.5 - 1) / 2
    least = max(rtol, float(np.finfo(low.dtype).eps) ** 0.5)

    def slope(x: Any) -> Any:
        return psc.jvp(f, (x,), (np.ones_like(x),))[1]

    def solve(_: object, middle: Any) -> tuple[Any, tuple[i32, bool_]]:
        left, right = high - share * (high - low), low + share * (high - low)
        start = _Section(low, left, right, high, f(left), f(right))

        def wide(at: _Section) -> bool_:
            return np.any(at.high - at.low > least * (high - low))

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

        found, steps = psc.while_loop(unfinished, step, (start, np.int32(0)), max_steps=max_steps)
        x = chosen(found.at_left < found.at_right, found.left, found.right)
        return x, (steps, np.logical_not(wide(found)))

    def tangent(linear: Callable[[Any], Any], y: Any) -> Any:
        return y / linear(np.ones_like(y))

    middle = low + (high - low) / 2
    x, (steps, converged) = psc.custom_root(slope, middle, solve, tangent, has_aux=True)
    return Minimum(x, f(x), steps, converged)


def gradient_descent(
    loss: Callable[[Any], Any],
    start: Any,
    tolerance: Any = 1e-5,
    max_steps: int = 1000,
    first: Any = 1.0,
) -> Minimum:
    """A local minimum of a differentiable loss over a vector or tree of one dtype.

    Each step goes down the gradient, twice as far for its length as the last one did, and half of
    that until the loss falls enough (Armijo 1966).  Ends once the gradient is at most `tolerance`
    long, after `max_steps`, or where no step lowers the loss; `first` is the first rate.
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
