"""Roots of functions of one number, and of many; fixed points.

Functions of one number are applied to arrays of any shape, each element of which is a separate
problem: they must be elementwise. All roots have the derivatives of the equations that they solve,
in both modes, with respect to the captures of the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Bool, Float, bool_, i32
from pscdsl.stdlib.choosing import chosen
from pscdsl.stdlib.solvers import gmres

T = TypeVar("T")
U = TypeVar("U")


class Root(psc.Record, Generic[T, U]):
    """A root, and whether the iteration converged.

    Examples:
        >>> @psc.kernel
        ... def root(a: f64) -> Root[f64, f64]:
        ...     return brent(lambda x: x * x - a, 0.0 * a, a)
        >>> found = root(2.0)
        >>> np.round(found.x, 4), found.converged
        (np.float64(1.4142), pscdsl.Array(True, dtype=bool))
    """

    x: T
    """The root, like the guess or the bounds."""
    value: U
    """The function there, which is near 0; for fixed points, the change in a step."""
    converged: Bool["..."]
    """Whether the tolerance was met: for each element, or for a whole system."""
    steps: i32
    """The number of steps."""


class _Brent(psc.Record):
    """Elementwise: the last point but one, the one nearest to a root, one of opposite sign."""

    a: Any
    b: Any
    c: Any
    fa: Any
    fb: Any
    fc: Any
    move: Any
    """The last move of b."""
    before: Any
    """The one before it."""


class _Bracket(psc.Record):
    """Elementwise: the last point, one of opposite sign, the one before, and the next step."""

    a: Any
    b: Any
    c: Any
    fa: Any
    fb: Any
    fc: Any
    share: Any
    """The next trial as a share of the interval from a to b."""
    done: Any


def bisect(
    f: Callable[[T], Any],
    low: T,
    high: T,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_steps: int = 200,
) -> Root[T, T]:
    """A root of f between `low` and `high` by bisection; NaN where its sign does not change.

    Each step gains a binary digit (Bolzano 1817).  Ends within `atol + rtol * abs(x)` of the place,
    or as near as the dtype tells numbers apart; near 0, as near as the square of its epsilon, times
    the interval.

    Examples:
        >>> @psc.kernel
        ... def root(a: f64["n"]) -> f64["n"]:
        ...     return bisect(lambda x: x * x - a, np.zeros_like(a), a).x
        >>> root(np.array([2.0, 4.0]))
        pscdsl.Array([1.4142, 2.    ], dtype=float64)
    """

    def halve(at: _Bracket) -> Any:
        return np.full_like(at.a, 0.5)

    return _bracketed(f, low, high, rtol, atol, max_steps, halve)


def chandrupatla(
    f: Callable[[T], Any],
    low: T,
    high: T,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_steps: int = 200,
) -> Root[T, T]:
    """The place where f changes its sign between `low` and `high`; NaN where it does not.

    It is as safe as `bisect`, and on smooth functions much faster, by inverse quadratic
    interpolation where that is safe (Chandrupatla 1997).

    Examples:
        >>> @psc.kernel
        ... def root(a: f64["n"]) -> f64["n"]:
        ...     return chandrupatla(lambda x: x * x - a, np.zeros_like(a), a).x
        >>> root(np.array([2.0, 9.0]))
        pscdsl.Array([1.4142, 3.    ], dtype=float64)
    """

    def interpolated(at: _Bracket) -> Any:
        a, b, c, fa, fb, fc = at.a, at.b, at.c, at.fa, at.fb, at.fc
        place, height = _ratio(a - b, c - b), _ratio(fa - fb, fc - fb)
        safe = (height * height < place) & ((1 - height) * (1 - height) < 1 - place)
        first = _ratio(fa, fb - fa) * _ratio(fc, fb - fc)
        second = _ratio(c - a, b - a) * _ratio(fa, fc - fa) * _ratio(fb, fc - fb)
        return np.where(safe, first + second, 0.5)

    return _bracketed(f, low, high, rtol, atol, max_steps, interpolated)


def brent(
    f: Callable[[T], Any],
    low: T,
    high: T,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_steps: int = 200,
) -> Root[T, T]:
    """The place where f changes its sign between `low` and `high`; NaN where it does not.

    By lines through two points, inverse parabolas through three, and halving where those do not
    close in fast enough (Brent 1973, chapter 4; the method behind `scipy.optimize.brentq`). Ends as
    `bisect` does.

    Examples:
        >>> @psc.kernel
        ... def root(a: f64) -> f64:
        ...     return brent(lambda x: np.cos(x) - a * x, 0.0 * a, a).x
        >>> np.round(root(1.0), 4)
        np.float64(0.7391)
    """
    first: Any = low
    last: Any = high
    tolerance = _tolerance(first, last, rtol, atol)

    def solve(f: Callable[[Any], Any], _: object) -> tuple[Any, tuple[Bool["*s"], i32]]:
        f_low, f_high, changes = _ends(f, first, last)
        span = last - first
        begin = _Brent(first, last, first, f_low, f_high, f_low, span, span)

        def found(at: _Brent) -> Any:
            return (np.abs(at.c - at.b) <= tolerance(at.b)) | (at.fb == 0)

        def unfinished(state: tuple[_Brent, i32]) -> bool_:
            return np.any(changes & np.logical_not(found(state[0])))

        def step(state: tuple[_Brent, i32]) -> tuple[_Brent, i32]:
            at, steps = state
            return chosen(found(at), at, _brent_step(f, at, tolerance(at.b) / 2)), steps + 1

        start = _nearest_first(begin), np.int32(0)
        at, steps = psc.while_loop(unfinished, step, start, max_steps=max_steps)
        return chosen(changes, at.b, at.b * np.nan), (changes & found(at), steps)

    return _rooted(f, low, high, solve)


def newton(
    f: Callable[[T], Any], guess: T, rtol: float = 0.0, atol: float = 0.0, max_steps: int = 50
) -> Root[T, T]:
    """A root of an elementwise function near each guess, by Newton's method.

    Converged are the elements whose last step was at most `atol + rtol * abs(x)`, or a few units
    in the last place; far from a root, or where the function is flat, there may be none.

    Examples:
        >>> @psc.kernel
        ... def root(a: f64["n"]) -> f64["n"]:
        ...     return newton(lambda x: x**3 - a, np.ones_like(a)).x
        >>> root(np.array([8.0, 27.0]))
        pscdsl.Array([2., 3.], dtype=float64)
    """
    first: Any = guess
    least = 4 * np.finfo(first.dtype).eps

    def solve(f: Callable[[Any], Any], guess: Any) -> tuple[Any, tuple[Any, i32]]:
        def unfinished(at: tuple[Any, Any, i32]) -> bool_:
            return np.logical_not(np.all(at[1]))

        def step(at: tuple[Any, Any, i32]) -> tuple[Any, Any, i32]:
            x, done, steps = at
            value, slope = psc.jvp(f, (x,), (np.ones_like(x),))
            new = x - _ratio(value, slope)
            near = np.abs(new - x) <= atol + (rtol + least) * np.abs(new)
            return chosen(done, x, new), done | (near & (slope != 0)) | (value == 0), steps + 1

        start = guess, np.zeros_like(guess) != 0, np.int32(0)
        x, done, steps = psc.while_loop(unfinished, step, start, max_steps=max_steps)
        return x, (done, steps)

    x, (converged, steps) = psc.custom_root(f, first, solve, _elementwise, has_aux=True)
    return Root(x, f(x), converged, steps)


def newton_system(
    f: Callable[[T], U], guess: T, tolerance: Any = 1e-8, max_steps: int = 50
) -> Root[T, U]:
    """A root of a function of a tree, as many equations as unknowns, by Newton's method.

    Each step forms the matrix of derivatives and solves a linear system with it.  Converged once a
    step is at most `tolerance` times the length of the unknowns, or the function is 0.

    Examples:
        >>> @psc.kernel
        ... def crossing(guess: f64["2"]) -> f64["2"]:
        ...     def circle_and_line(p: f64["2"]) -> f64["2"]:
        ...         return np.stack([p[0] ** 2 + p[1] ** 2 - 25, p[1] - p[0] - 1])
        ...
        ...     return newton_system(circle_and_line, guess).x
        >>> np.round(crossing(np.array([1.0, 1.0])), 4)
        array([3., 4.])
    """
    flat, restored = psc.tree.ravel(guess)

    def on_vectors(x: Any) -> Any:
        return psc.tree.ravel(f(restored(x)))[0]

    def solve(f: Callable[[Any], Any], guess: Any) -> tuple[Any, tuple[bool_, i32]]:
        def step(x: Any) -> tuple[Any, Any]:
            move = _solved(f, x, f(x))
            return x - move, move

        return _until_still(step, guess, tolerance, max_steps)

    def tangent(linear: Callable[[Any], Any], y: Any) -> Any:
        return _solved(linear, y, y)

    x, (converged, steps) = psc.custom_root(on_vectors, flat, solve, tangent, has_aux=True)
    return Root(restored(x), f(restored(x)), converged, steps)


def fixed_point(
    f: Callable[[T], Any], guess: T, tolerance: Any = 1e-6, max_steps: int = 1000
) -> Root[T, T]:
    """The fixed point of a contraction of trees, by iteration.

    Converged once a step is at most `tolerance` times the length of its result (Banach 1922). The
    derivative solves a linear system by `gmres`, to the same tolerance.

    Examples:
        >>> @psc.kernel
        ... def meeting(guess: f64) -> f64:
        ...     return fixed_point(lambda x: np.cos(x), guess).x
        >>> np.round(meeting(1.0), 4)
        np.float64(0.7391)
    """
    flat, restored = psc.tree.ravel(guess)

    def moved(x: Any) -> Any:
        return psc.tree.ravel(f(restored(x)))[0]

    def solve(_: object, guess: Any) -> tuple[Any, tuple[bool_, i32]]:
        def step(x: Any) -> tuple[Any, Any]:
            new = moved(x)
            return new, new - x

        return _until_still(step, guess, tolerance, max_steps)

    def tangent(linear: Callable[[Any], Any], y: Any) -> Any:
        return gmres(linear, y, tolerance, max_steps).x

    x, (converged, steps) = psc.custom_root(
        lambda x: x - moved(x), flat, solve, tangent, has_aux=True
    )
    root = restored(x)
    distance = psc.tree.map(lambda new, old: new - old, f(root), root)
    return Root(root, distance, converged, steps)


def _bracketed(
    f: Callable[[Any], Any],
    low: Any,
    high: Any,
    rtol: float,
    atol: float,
    max_steps: int,
    next_share: Callable[[_Bracket], Any],
) -> Root[Any, Any]:
    """Shrink intervals at whose ends the signs differ."""
    tolerance = _tolerance(low, high, rtol, atol)

    def solve(f: Callable[[Any], Any], middle: Any) -> tuple[Any, tuple[Bool["*s"], i32]]:
        f_low, f_high, changes = _ends(f, low, high)
        done = np.logical_not(changes) | (f_low == 0) | (f_high == 0)
        half = np.full_like(middle, 0.5)
        start = _Bracket(high, low, high, f_high, f_low, f_high, half, done)

        def unfinished(at: tuple[_Bracket, i32]) -> bool_:
            return np.logical_not(np.all(at[0].done))

        def step(state: tuple[_Bracket, i32]) -> tuple[_Bracket, i32]:
            at, steps = state
            x = at.a + at.share * (at.b - at.a)
            value = f(x)
            same = (value > 0) == (at.fa > 0)
            old, older = (at.a, at.fa), (at.b, at.fb)
            b, fb = chosen(same, older, old)
            c, fc = chosen(same, old, older)
            best = chosen(np.abs(value) < np.abs(fb), x, b)
            least, width = tolerance(best), np.abs(b - x)
            done = at.done | (width <= least) | (value == 0)
            near: Any = np.minimum(_ratio(least / 2, width), 0.5)
            moved = _Bracket(x, b, c, value, fb, fc, half, done)
            moved = moved.replace(share=np.clip(next_share(moved), near, 1 - near))
            return chosen(at.done, at, moved), steps + 1

        bracket, steps = psc.while_loop(unfinished, step, (start, np.int32(0)), max_steps=max_steps)
        best = chosen(np.abs(bracket.fa) < np.abs(bracket.fb), bracket.a, bracket.b)
        return chosen(changes, best, best * np.nan), (changes & bracket.done, steps)

    return _rooted(f, low, high, solve)


def _brent_step(f: Callable[[Any], Any], at: _Brent, least: Any) -> _Brent:
    """Move to where a line or parabola is 0, or half of the way, and at least so far."""
    half: Any = (at.c - at.b) / 2
    slope, first, second = _ratio(at.fb, at.fa), _ratio(at.fa, at.fc), _ratio(at.fb, at.fc)
    line = at.a == at.c
    curved = slope * (2 * half * first * (first - second) - (at.b - at.a) * (second - 1))
    p = chosen(line, 2 * half * slope, curved)
    q = chosen(line, 1 - slope, (first - 1) * (second - 1) * (slope - 1))
    q, p = chosen(p > 0, -q, q), np.abs(p)
    most: Any = np.minimum(3 * half * q - np.abs(least * q), np.abs(at.before * q))
    safe = (np.abs(at.before) >= least) & (np.abs(at.fa) > np.abs(at.fb)) & (2 * p < most)
    move, before = chosen(safe, (_ratio(p, q), at.move), (half, half))

    x = at.b + chosen(np.abs(move) > least, move, np.sign(half) * least)
    value = f(x)
    same = (value > 0) == (at.fc > 0)
    c, fc = chosen(same, (at.b, at.fb), (at.c, at.fc))
    move, before = chosen(same, (x - at.b, x - at.b), (move, before))
    return _nearest_first(_Brent(at.b, x, c, at.fb, value, fc, move, before))


def _nearest_first(at: _Brent) -> _Brent:
    """With b and c exchanged where c is nearer to a root."""
    turned = at.replace(a=at.b, b=at.c, c=at.b, fa=at.fb, fb=at.fc, fc=at.fb)
    nearest: _Brent = chosen(np.abs(at.fc) < np.abs(at.fb), turned, at)
    return nearest


def _tolerance(low: Any, high: Any, rtol: float, atol: float) -> Callable[[Any], Any]:
    """The distance from a root x that is small enough."""
    least = 2 * np.finfo(low.dtype).eps
    floor = atol + psc.stop_gradient(np.abs(high - low)) * least * least
    return lambda x: floor + (rtol + least) * np.abs(x)


def _ends(f: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any, Any]:
    """The function at both ends, and whether it changes its sign between them."""
    f_low, f_high = f(low), f(high)
    return f_low, f_high, np.sign(f_low) * np.sign(f_high) <= 0


def _rooted(f: Callable[[Any], Any], low: Any, high: Any, solve: Any) -> Root[Any, Any]:
    """The root between two ends, with the derivative of the equation."""
    middle = low + (high - low) / 2
    x, (converged, steps) = psc.custom_root(f, middle, solve, _elementwise, has_aux=True)
    return Root(x, f(x), converged, steps)


def _elementwise(linear: Callable[[Any], Any], y: Any) -> Any:
    """Solve a system of equations that have one unknown each."""
    return y / linear(np.ones_like(y))


def _solved(f: Callable[[Any], Any], x: Any, y: Float["n"]) -> Float["n"]:
    """The place where the linear approximation of f at x, without the constant, is y."""
    matrix: Float["n n"] = psc.jacfwd(f)(x)
    return np.linalg.solve(matrix, y)


def _ratio(x: Float["*s"], y: Float["*s"]) -> Any:
    """`x / y`, and 0 where y is 0."""
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y))


def _until_still(
    step: Callable[[Any], tuple[Any, Any]], guess: Any, tolerance: Any, max_steps: int
) -> tuple[Any, tuple[bool_, i32]]:
    """The end of the steps, whether the last was relatively short, and their number.

    A step gives the new vector, and its change.
    """

    def stepped(at: tuple[Any, bool_, i32]) -> tuple[Any, bool_, i32]:
        x, move = step(at[0])
        return x, move @ move <= tolerance * tolerance * (x @ x), at[2] + 1

    start = guess, False, np.int32(0)
    x, converged, steps = psc.while_loop(
        lambda at: np.logical_not(at[1]), stepped, start, max_steps=max_steps
    )
    return x, (converged, steps)
