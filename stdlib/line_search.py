"""Line searches for minimizers: how far to go along a direction.

A length is accepted where the value has fallen enough (Armijo 1966), and, for the conditions of
Wolfe 1969 in their strong form, where the slope along the direction has become flat enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, bool_, i32
from pscdsl.stdlib.choosing import chosen


class Place(psc.Record, dims="n"):
    """A point on the line.

    Examples:
        >>> @psc.kernel
        ... def lower(x: f64["n"]) -> Place["n"]:
        ...     value_and_slope = psc.value_and_grad(lambda x: np.sum(x**2))
        ...     value, gradient = value_and_slope(x)
        ...     return line_search(value_and_slope, x, -gradient, value, gradient).low
        >>> place = lower(np.array([1.0, 2.0]))
        >>> place.length, place.value
        (pscdsl.Array(0.5, dtype=float64), pscdsl.Array(0., dtype=float64))
    """

    length: Float
    """The distance from the start."""
    value: Float
    """The function there."""
    slope: Float
    """The derivative along the line."""
    gradient: Float["n"]
    """The gradient there."""


class Search(psc.Record, dims="n"):
    """The state of a search: between two lengths, once `bracketed`, or beyond the lower.

    Examples:
        >>> @psc.kernel
        ... def search(x: f64["n"]) -> Search["n"]:
        ...     value_and_slope = psc.value_and_grad(lambda x: np.sum(x**2))
        ...     value, gradient = value_and_slope(x)
        ...     return line_search(value_and_slope, x, -gradient, value, gradient)
        >>> search(np.array([1.0, 2.0])).found
        pscdsl.Array(True, dtype=bool)
    """

    low: Place["n"]
    """The lowest value found, among those that have fallen enough; at first the start."""
    high: Place["n"]
    """The other end."""
    bracketed: bool_
    """Whether a good length is known to be between the two."""
    trial: Float
    """The length to look at next."""
    found: bool_
    """Whether `low` is accepted."""
    evaluations: i32
    """The number of evaluations of the function and its gradient."""


def line_search(
    value_and_slope: Callable[[Any], tuple[Any, Any]],
    x: Float["n"],
    direction: Float["n"],
    value: Float,
    gradient: Float["n"],
    length: Float | float = 1.0,
    wolfe: bool = True,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    max_evaluations: int = 20,
) -> Search["n"]:
    """Look for a length along a direction in which the function falls, at first at `length`.

    `value_and_slope` gives a value and its gradient. The value must fall by `decrease` times the
    linear prediction from the start, up to rounding; with `wolfe` the slope must be at most
    `flatness` times that at the start. Lengths double until they enclose an acceptable one; cubics
    through both ends then propose the next (Nocedal, Wright 2006, algorithms 3.5 and 3.6). Look at
    `found`; `low` is the best place either way.

    Examples:
        >>> @psc.kernel
        ... def step(x: f64["n"]) -> f64["n"]:
        ...     value_and_slope = psc.value_and_grad(lambda x: np.sum(x**2))
        ...     value, gradient = value_and_slope(x)
        ...     found = line_search(value_and_slope, x, -gradient, value, gradient)
        ...     return x - found.low.length * gradient
        >>> step(np.array([1.0, 2.0]))
        pscdsl.Array([0., 0.], dtype=float64)
    """
    start = Place(np.zeros_like(value), value, direction @ gradient, gradient)
    rounding = 4 * np.finfo(x.dtype).eps * np.abs(value)

    def unfinished(search: Search["n"]) -> bool_:
        return ~search.found

    def step(search: Search["n"]) -> Search["n"]:
        low, high, length = search.low, search.high, search.trial
        value, gradient = value_and_slope(x + length * direction)
        here = Place(length, value, direction @ gradient, gradient)
        enough = start.value + decrease * length * start.slope + rounding
        # A value that is not a number has not fallen.
        fallen = (here.value <= enough) & (here.value <= low.value + rounding)
        flat = np.abs(here.slope) <= -flatness * start.slope if wolfe else fallen
        outwards = np.where(search.bracketed, high.length - low.length, 1)
        turned = fallen & (here.slope * outwards >= 0)
        high = chosen(fallen, chosen(turned, low, high), here)
        low = chosen(fallen, here, low)
        bracketed = search.bracketed | ~fallen | turned
        trial = np.where(bracketed, _between(low, high), 2 * length)
        return Search(low, high, bracketed, trial, fallen & flat, search.evaluations + 1)

    begun = Search(
        start,
        start,
        np.bool_(False),
        np.asarray(length, value.dtype),
        np.bool_(False),
        np.int32(0),
    )
    return psc.while_loop(unfinished, step, begun, max_steps=max_evaluations)


def _between(low: Any, high: Any) -> Any:
    """The least point of the cubic through both ends with their slopes, away from the ends.

    The middle if the cubic has none, or if a value is infinite.
    """
    width = high.length - low.length
    mean = 3 * (low.value - high.value) / np.where(width == 0, 1, width) + low.slope + high.slope
    square = mean * mean - low.slope * high.slope
    root = np.sign(width) * np.sqrt(np.maximum(square, 0))
    below = high.slope - low.slope + 2 * root
    share = 1 - (high.slope + root - mean) / np.where(below == 0, 1, below)
    usable = (square >= 0) & (below != 0) & np.isfinite(share)
    return low.length + width * np.where(usable, np.clip(share, 0.1, 0.9), 0.5)
