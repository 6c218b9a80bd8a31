"""Ordinary differential equations `dy/dt = field(t, y)`: steps of fixed and of adapted length.

A field is a function of a time and a state, an array or a tree of arrays with the dtype of the
times, and returns another one; it captures its other parameters. Everything here can be
differentiated: with respect to the start, to the captures of the field, and to the times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import bool_, i32
from pscdsl.stdlib.choosing import chosen

T = TypeVar("T")

EULER: Any = ((), (), (1.0,))
"""The method of order 1, as its nodes, its rows, and its weights (Euler 1768)."""
MIDPOINT: Any = ((1 / 2,), ((1 / 2,),), (0.0, 1.0))
"""A method of order 2 (Runge 1895)."""
RK4: Any = (
    (1 / 2, 1 / 2, 1.0),
    ((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    (1 / 6, 1 / 3, 1 / 3, 1 / 6),
)
"""The classical method of order 4 (Kutta 1901)."""
DORMAND_PRINCE: Any = (
    (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""The method of order 5 (Dormand, Prince 1980)."""

_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""Its weights less those of the method of order 4 that is embedded in it."""
_DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)
"""The weights of the term of highest degree between the ends of a step (Shampine; Hairer, Nørsett,
Wanner)."""


class Trajectory(psc.Record, Generic[T]):
    """The states of an adaptive method, and how many steps it took.

    Examples:
        >>> @psc.kernel
        ... def decay(times: f64["t"]) -> Trajectory[f64["t"]]:
        ...     return dormand_prince(lambda t, y: -y, np.float64(1), times)
        >>> found = decay(np.array([0.0, 1.0, 2.0]))
        >>> found.states, found.reached
        (pscdsl.Array([1.    , 0.3679, 0.1353], dtype=float64), pscdsl.Array(True, dtype=bool))
    """

    states: T
    """The states, with a row for each time; NaN from the first time that was not reached."""
    reached: bool_
    """Whether all times were reached; False if steps ran out or became too short."""
    steps: i32
    """The number of accepted steps."""
    rejected: i32
    """The number of rejected steps."""


class _At(psc.Record):
    """The state of an adaptive method."""

    time: Any
    state: Any
    slope: Any
    """The field here."""
    length: Any
    """The length of the next step to try; positive."""
    error: Any
    """The error of the last accepted step, relative to the tolerance."""
    refused: bool_
    """Whether the last step tried was rejected."""
    since: Any
    """When the last step that was taken began."""
    width: Any
    """The length of that step, with a sign."""
    pieces: Any
    """The parts of the states in the course of that step."""
    steps: i32
    rejected: i32


def fixed_steps(
    method: Any,
    field: Callable[[Any, T], Any],
    start: T,
    times: Any,
    substeps: int = 1,
) -> T:
    """The states at all times by a method with `substeps` equal steps between two times.

    `method` is one of the tables above.  The times may fall, too, and need not be equidistant.

    Examples:
        >>> @psc.kernel
        ... def decay(times: f64["t"]) -> f64["t"]:
        ...     return fixed_steps(MIDPOINT, lambda t, y: -y, np.float64(1), times, substeps=10)
        >>> decay(np.array([0.0, 1.0, 2.0]))
        pscdsl.Array([1.    , 0.3685, 0.1358], dtype=float64)
    """

    def advance(state: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        begin, end = ends
        length = (end - begin) / substeps

        def step(i: Any, state: Any) -> Any:
            time = begin + length * i.astype(times.dtype)
            slopes = _stages(method, field, time, state, field(time, state), length)
            return _moved(state, length, slopes, method[2])

        state = psc.fori_loop(0, substeps, step, state)
        return state, state

    _, rest = psc.scan(advance, start, (times[:-1], times[1:]))
    states: T = _with_first(start, rest)
    return states


def euler(field: Callable[[Any, T], Any], start: T, times: Any, substeps: int = 1) -> T:
    """`fixed_steps` by Euler's method.

    Examples:
        >>> @psc.kernel
        ... def decay(times: f64["t"]) -> f64["t"]:
        ...     return euler(lambda t, y: -y, np.float64(1), times, substeps=100)
        >>> decay(np.array([0.0, 1.0, 2.0]))
        pscdsl.Array([1.   , 0.366, 0.134], dtype=float64)
    """
    return fixed_steps(EULER, field, start, times, substeps)


def rk4(field: Callable[[Any, T], Any], start: T, times: Any, substeps: int = 1) -> T:
    """`fixed_steps` by the classical Runge-Kutta method.

    Examples:
        >>> @psc.kernel
        ... def oscillate(times: f64["t"]) -> f64["t 2"]:
        ...     return rk4(lambda t, y: np.stack([y[1], -y[0]]), np.array([1.0, 0.0]), times, 10)
        >>> np.round(oscillate(np.array([0.0, np.pi / 3, np.pi])), 3)
        array([[ 1.   ,  0.   ],
               [ 0.5  , -0.866],
               [-1.   , -0.   ]])
    """
    return fixed_steps(RK4, field, start, times, substeps)


def dormand_prince(
    field: Callable[[Any, T], Any],
    start: T,
    times: Any,
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    max_steps: int = 4000,
) -> Trajectory[T]:
    """The states at all times by the Dormand-Prince method with adaptive steps.

    The root mean square of the errors, each over `atol + rtol * abs(state)`, is kept below 1 in
    each step (Dormand, Prince 1980), by a controller that looks at two steps (Gustafsson 1991).
    States at times within a step are interpolated, to order 4.  The times rise or fall.
    At most `max_steps` are tried, counting rejected ones; a stiff equation needs more than it
    deserves: look at `reached`.  The lengths of steps have no derivative.

    Examples:
        >>> @psc.kernel
        ... def lotka_volterra(times: f64["t"]) -> f64["t 2"]:
        ...     def field(t: f64, y: f64["2"]) -> f64["2"]:
        ...         prey, predators = y[0], y[1]
        ...         return np.stack([prey * (1 - predators), predators * (prey - 1)])
        ...
        ...     return dormand_prince(field, np.array([2.0, 1.0]), times).states
        >>> lotka_volterra(np.array([0.0, 1.0, 5.0]))
        pscdsl.Array([[2.    , 1.    ],
                      [1.1565, 1.9777],
                      [1.0051, 0.4064]], dtype=float64)
    """
    origin, end = times[0], psc.stop_gradient(times[-1])
    direction = np.where(end < origin, -1, 1).astype(times.dtype)
    slope = field(origin, start)
    zero = psc.tree.zeros_like(start)
    first = _At(
        origin,
        start,
        slope,
        psc.stop_gradient(_first_length(field, origin, start, slope, end, rtol, atol)),
        np.full_like(end, 1e-4),
        False,
        origin,
        np.ones_like(end),
        (start, zero, zero, zero, zero),
        np.int32(0),
        np.int32(0),
    )

    def advance(at: _At, time: Any) -> tuple[_At, tuple[Any, Any]]:
        def unfinished(at: _At) -> bool_:
            possible = at.length > 10 * np.finfo(times.dtype).eps * np.abs(at.time)
            return (
                (direction * (time - at.time) > 0) & (at.steps + at.rejected < max_steps) & possible
            )

        at = psc.while_loop(
            unfinished,
            lambda at: _attempt(field, at, direction, end, rtol, atol),
            at,
            max_steps=max_steps,
        )
        reached = direction * (time - at.time) <= 0
        state = _between(at.pieces, (time - at.since) / at.width)
        return at, (psc.tree.map(lambda x: np.where(reached, x, np.nan), state), reached)

    last, (rest, reached) = psc.scan(advance, first, times[1:])
    return Trajectory(_with_first(start, rest), np.all(reached), last.steps, last.rejected)


def _attempt(
    field: Callable[[Any, Any], Any], at: _At, direction: Any, end: Any, rtol: Any, atol: Any
) -> _At:
    """Try a step; stay where it fails."""
    left = psc.stop_gradient(direction * (end - at.time))
    last = 1.01 * at.length >= left  # the last step is not left with a bit to do
    width = direction * chosen(last, left, at.length)
    slopes = _stages(DORMAND_PRINCE, field, at.time, at.state, at.slope, width)
    state = _moved(at.state, width, slopes, DORMAND_PRINCE[2])
    time = at.time + width
    time = chosen(last, time + psc.stop_gradient(end - time), time)
    slope = field(time, state)
    slopes = (*slopes, slope)

    estimate = _moved(psc.tree.zeros_like(state), width, slopes, _ERROR)
    error = psc.stop_gradient(_norm(estimate, at.state, state, rtol, atol))
    accepted = error <= 1  # not if it is NaN
    floor = np.maximum(error, 1e-7)
    growth: Any = np.clip(0.9 * floor**-0.14 * at.error**0.08, 0.2, np.where(at.refused, 1, 10))
    shrinking = np.where(error < np.inf, np.maximum(0.9 * floor**-0.2, 0.2), 0.2)

    change = psc.tree.map(lambda new, old: new - old, state, at.state)
    bend = psc.tree.map(lambda k, c: width * k - c, at.slope, change)
    curve = psc.tree.map(lambda c, k, b: c - width * k - b, change, slope, bend)
    fourth = _moved(psc.tree.zeros_like(state), width, slopes, _DENSE)
    taken = _At(
        time,
        state,
        slope,
        width * direction * growth,
        np.maximum(error, 1e-4),
        False,
        at.time,
        width,
        (at.state, change, bend, curve, fourth),
        at.steps + 1,
        at.rejected,
    )
    shorter = width * direction * shrinking
    stayed = at.replace(length=shorter, refused=True, rejected=at.rejected + 1)
    at = chosen(accepted, taken, stayed)
    return at


def _between(pieces: Any, share: Any) -> Any:
    """The state when this share of a step has passed."""
    rest = 1 - share

    def at(start: Any, change: Any, bend: Any, curve: Any, fourth: Any) -> Any:
        return start + share * (change + rest * (bend + share * (curve + rest * fourth)))

    return psc.tree.map(at, *pieces)


def _stages(
    method: Any, field: Callable[[Any, Any], Any], time: Any, state: Any, slope: Any, length: Any
) -> tuple[Any, ...]:
    """The slopes in the course of a step; the first one is given."""
    nodes, rows, _ = method
    slopes: tuple[Any, ...] = (slope,)
    for node, row in zip(nodes, rows, strict=True):
        slopes = (*slopes, field(time + node * length, _moved(state, length, slopes, row)))
    return slopes


def _moved(state: Any, length: Any, slopes: tuple[Any, ...], weights: tuple[float, ...]) -> Any:
    """The state moved along a combination of slopes."""
    used = [weight for weight in weights if weight != 0]
    along = [slope for weight, slope in zip(weights, slopes, strict=True) if weight != 0]

    def moved(x: Any, *slopes: Any) -> Any:
        first, *rest = [weight * slope for weight, slope in zip(used, slopes, strict=True)]
        return x + length * sum(rest, first)

    return psc.tree.map(moved, state, *along)


def _norm(tree: Any, first: Any, second: Any, rtol: Any, atol: Any) -> Any:
    """The root mean square of a tree, relative to the tolerance for two states."""

    def squares(x: Any, one: Any, other: Any) -> Any:
        size: Any = np.maximum(np.abs(one), np.abs(other))
        scaled = x / (atol + rtol * size)
        return (scaled * scaled).sum()

    total = sum(psc.tree.leaves(psc.tree.map(squares, tree, first, second)))
    return np.sqrt(total / psc.tree.size(tree))


def _first_length(
    field: Callable[[Any, Any], Any],
    time: Any,
    state: Any,
    slope: Any,
    end: Any,
    rtol: Any,
    atol: Any,
) -> Any:
    """The largest first step (Hairer, Nørsett, Wanner 1993, section II.4)."""
    span = np.abs(end - time)
    size, speed = _norm(state, state, state, rtol, atol), _norm(slope, state, state, rtol, atol)
    little = (size < 1e-5) | (speed < 1e-5)
    trial = np.minimum(np.where(little, 1e-6, 0.01 * size / np.where(little, 1, speed)), span)
    signed = np.where(end < time, -trial, trial)
    away = field(time + signed, _moved(state, signed, (slope,), (1.0,)))
    turn = psc.tree.map(lambda new, old: new - old, away, slope)
    bend = _norm(turn, state, state, rtol, atol) / np.where(trial > 0, trial, 1)
    most = np.maximum(speed, bend)
    flat = most <= 1e-15
    by_bend = np.where(
        flat, np.maximum(1e-6, 1e-3 * trial), (0.01 / np.where(flat, 1, most)) ** 0.2
    )
    return np.minimum(np.minimum(100 * trial, by_bend), span)


def _with_first(first: Any, rest: Any) -> Any:
    return psc.tree.map(lambda x, xs: np.concatenate([x[None], xs]), first, rest)
