"""Samples of a distribution whose density is known up to a factor, by Markov chains.

A distribution is a function from a tree of arrays of one dtype (an array, a tuple, a record) to the
logarithm of its density; it captures its other parameters. Places of -inf and NaN are never
entered. Everything here concerns one chain: `psc.vmap` over keys and starts runs several, and
`pscdsl.stdlib.mcmc_diagnostics` measures whether they agree.

    tuned = warm_up(log_density, start, key, 500)
    found = hamiltonian(log_density, tuned.position, other, 1000, tuned.step_size, tuned.variance)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key, i32

T = TypeVar("T")


class Samples(psc.Record, Generic[T]):
    """The positions of a chain after each step.

    Examples:
        >>> @psc.kernel
        ... def draw(key: Key) -> Samples[f32["1000"]]:
        ...     return metropolis(lambda x: -0.5 * x * x, np.float32(0), key, 1000, 2.0)
        >>> found = draw(psc.random.key(0))
        >>> found.positions.shape, np.round(np.mean(found.acceptance), 2)
        ((1000,), np.float32(0.52))
    """

    positions: T
    """A tree like the start, with the steps along the first axis."""
    log_densities: Float["..."]
    """The log-densities of the positions."""
    acceptance: Float["..."]
    """The acceptance probability of each step."""


class Tuned(psc.Record, Generic[T]):
    """The results of a warm-up.

    Examples:
        >>> @psc.kernel
        ... def tune(key: Key) -> Tuned[f32["1"]]:
        ...     return warm_up(
        ...         lambda x: -0.5 * np.sum(x * x) / 25, np.zeros(1, np.float32), key, 500
        ...     )
        >>> np.round(tune(psc.random.key(0)).variance, -1)
        array([20.], dtype=float32)
    """

    position: T
    """The position after the warm-up."""
    step_size: Float
    """The step size with the wanted acceptance rate."""
    variance: T
    """An estimate of the variance of each coordinate."""


class Point(psc.Record, dims="d"):
    """A position, as a vector, with its momentum.

    Examples:
        >>> p = Point(
        ...     np.array([1.0]),
        ...     momentum=np.array([0.5]),
        ...     slope=np.array([-1.0]),
        ...     log_density=np.array(-0.5),
        ... )
        >>> energy(p, np.ones(1))
        np.float64(0.625)
    """

    position: Float["d"]
    """The position."""
    momentum: Float["d"]
    """The mass of each number times its speed."""
    slope: Float["d"]
    """The gradient of the log-density here."""
    log_density: Float
    """The log-density of the position."""


class _Step(psc.Record, dims="d"):
    """A step of a chain: where it ended, and how probable it was to be taken."""

    point: Point["d"]
    acceptance: Float


class _Averaging(psc.Record):
    """The state of dual averaging."""

    count: Float
    error: Float
    """The mean of how much less often than wanted steps were accepted."""
    origin: Float
    """The number that the logarithm of the step size is drawn to."""
    log_step: Float
    log_average: Float


class _Spread(psc.Record, dims="d"):
    """Count, mean and sum of squared differences from it, of positions so far."""

    count: Float
    mean: Float["d"]
    square: Float["d"]


class _WarmUp(psc.Record, dims="d"):
    """The state of warming up."""

    at: Point["d"]
    averaging: _Averaging
    spread: _Spread["d"]
    variance: Float["d"]


def metropolis(
    log_density: Callable[[T], Any], start: T, key: Key, steps: int, scale: Any
) -> Samples[T]:
    """Random-walk Metropolis with normal proposals; `scale` is a scalar or one per coordinate.

    A move is taken with the probability `min(1, density there / density here)`, else the chain
    stays (Metropolis et al. 1953).  For d numbers of similar spread a scale of 2.4 / sqrt(d)
    times that is about right.

    Examples:
        >>> @psc.kernel
        ... def draw(key: Key) -> f32["2000"]:
        ...     normal = lambda x: -0.5 * (x - 3) ** 2
        ...     return metropolis(normal, np.float32(0), key, 2000, 2.0).positions
        >>> np.round(np.mean(draw(psc.random.key(0))), 1)
        np.float32(3.0)
    """
    vector, shaped = psc.tree.ravel(start)
    spread = _spread_of(scale, vector)

    def step(here: tuple[Any, Any], key: Key) -> tuple[Any, Any]:
        position, density = here
        moves, chances = psc.random.split(key)
        there = position + spread * psc.random.normal(moves, position.shape, position.dtype)
        density_there = log_density(shaped(there))
        ratio = _ratio(density_there - density)
        here = _chosen(_taken(chances, ratio), (there, density_there), here)
        return here, (*here, np.exp(ratio))

    first = (vector, log_density(start))
    _, (positions, densities, acceptance) = psc.scan(step, first, psc.random.split(key, steps))
    return Samples(psc.vmap(shaped)(positions), densities, acceptance)


def hamiltonian(
    log_density: Callable[[T], Any],
    start: T,
    key: Key,
    steps: int,
    step_size: Any,
    variance: Any = 1.0,
    moves: int = 16,
) -> Samples[T]:
    """Hamiltonian Monte Carlo with leapfrog trajectories and Metropolis acceptance.

    Each step draws a momentum, and follows the trajectory for 1 to `moves` leaps of `step_size`,
    so that it is no period that they add up to (Duane et al. 1987; Neal 2011).  `variance` is that
    of the distribution, roughly: a number or a tree like `start`; the leaps are in its units.

    Examples:
        >>> @psc.kernel
        ... def draw(key: Key) -> f32["2000 2"]:
        ...     normal = lambda x: -0.5 * np.sum(x * x)
        ...     return hamiltonian(normal, np.ones(2, np.float32), key, 2000, 0.3).positions
        >>> np.round(np.std(draw(psc.random.key(0))), 1)
        np.float32(1.0)
    """
    vector, shaped = psc.tree.ravel(start)
    inverse_mass = _spread_of(variance, vector)

    def of_vector(position: Float["d"]) -> Any:
        return log_density(shaped(position))

    density: Any = psc.value_and_grad(of_vector)

    def step(here: Point["d"], key: Key) -> tuple[Point["d"], tuple[Any, Any, Any]]:
        transition = _hamiltonian_step(density, here, key, step_size, inverse_mass, moves)
        at = transition.point
        return at, (at.position, at.log_density, transition.acceptance)

    _, (positions, densities, acceptance) = psc.scan(
        step, _at(density, vector), psc.random.split(key, steps)
    )
    return Samples(psc.vmap(shaped)(positions), densities, acceptance)


def warm_up(
    log_density: Callable[[T], Any],
    start: T,
    key: Key,
    steps: int,
    step_size: float = 0.1,
    moves: int = 16,
    target: float = 0.8,
) -> Tuned[T]:
    """Warm-up steps that tune the step size and variances for `hamiltonian`.

    The step size is adapted by dual averaging until steps are accepted with probability `target`
    (Hoffman, Gelman 2014), from `step_size` on; variances are those of the middle half of the
    steps, drawn a little towards 0.001 (as Stan has it), and the last quarter uses them.

    Examples:
        >>> @psc.kernel
        ... def draw(key: Key) -> f32["300 2"]:
        ...     normal = lambda x: -0.5 * np.sum(x * x / np.array([1, 100], np.float32))
        ...     first, second = psc.random.split(key)
        ...     tuned = warm_up(normal, np.ones(2, np.float32), first, 300)
        ...     found = hamiltonian(
        ...         normal, tuned.position, second, 300, tuned.step_size, tuned.variance
        ...     )
        ...     return found.positions
        >>> draw(psc.random.key(0)).shape
        (300, 2)
    """
    vector, shaped = psc.tree.ravel(start)

    def of_vector(position: Float["d"]) -> Any:
        return log_density(shaped(position))

    density: Any = psc.value_and_grad(of_vector)
    quarter = steps // 4

    def step(state: _WarmUp["d"], row: tuple[i32, Key]) -> tuple[_WarmUp["d"], None]:
        i, key = row
        size = np.exp(state.averaging.log_step)
        transition = _hamiltonian_step(density, state.at, key, size, state.variance, moves)
        averaging = _averaged(state.averaging, target - transition.acceptance)
        seen = _spread_with(state.spread, transition.point.position)
        spread = _chosen((i >= quarter) & (i < steps - quarter), seen, state.spread)

        change = i == steps - quarter - 1
        share = spread.count / (spread.count + 5)
        new = share * spread.square / np.maximum(spread.count - 1, 1) + (1 - share) * 1e-3
        # In units of deviations, the step that fits the smallest of them is longer by its inverse.
        again = _averaging_from(np.exp(averaging.log_average) / np.sqrt(new.min()))
        averaging = _chosen(change, again, averaging)
        variance = np.where(change, new, state.variance)
        return _WarmUp(transition.point, averaging, spread, variance), None

    one = np.ones_like(vector)
    nothing = _Spread(np.zeros_like(one[0]), np.zeros_like(one), np.zeros_like(one))
    begin = _WarmUp(_at(density, vector), _averaging_from(one[0] * step_size), nothing, one)
    rows = (np.arange(steps), psc.random.split(key, steps))
    last, _ = psc.scan(step, begin, rows)
    size = np.exp(last.averaging.log_average)
    return Tuned(shaped(last.at.position), size, shaped(last.variance))


def leapfrog(
    value_and_slope: Callable[[Any], Any],
    start: Point["d"],
    step_size: Any,
    inverse_mass: Float["d"],
    moves: Any,
) -> Point["d"]:
    """Follow the motion in the potential `-log_density` by leapfrog steps.

    With the momentum reversed it leads back.  The mass is diagonal; `value_and_slope` gives the
    log-density of a vector and its gradient.

    Examples:
        >>> @psc.kernel
        ... def move(start: Point["d"]) -> Point["d"]:
        ...     value_and_slope = psc.value_and_grad(lambda x: -0.5 * np.sum(x * x))
        ...     return leapfrog(value_and_slope, start, 0.1, np.ones_like(start.position), 10)
        >>> end = move(Point(np.array([1.0]), np.array([0.0]), np.array([-1.0]), np.array(-0.5)))
        >>> end.position, np.round(np.cos(1.0), 4)
        (pscdsl.Array([0.54], dtype=float64), np.float64(0.5403))
    """

    def move(i: i32, at: Point["d"]) -> Point["d"]:
        momentum = at.momentum + step_size / 2 * at.slope
        position = at.position + step_size * inverse_mass * momentum
        value, slope = value_and_slope(position)
        return Point(position, momentum + step_size / 2 * slope, slope, value)

    return psc.fori_loop(0, moves, move, start)


def energy(at: Point["d"], inverse_mass: Float["d"]) -> Float:
    """The sum of kinetic and potential energy, which an exact trajectory preserves.

    Examples:
        >>> p = Point(
        ...     np.array([1.0]),
        ...     momentum=np.array([2.0]),
        ...     slope=np.array([-1.0]),
        ...     log_density=np.array(-0.5),
        ... )
        >>> energy(p, np.ones(1))
        np.float64(2.5)
    """
    return (inverse_mass * at.momentum * at.momentum).sum() / 2 - at.log_density


def _hamiltonian_step(
    density: Callable[[Any], Any],
    here: Point["d"],
    key: Key,
    step_size: Any,
    inverse_mass: Float["d"],
    moves: Any,
) -> _Step["d"]:
    """One step of Hamiltonian Monte Carlo."""
    pushes, counts, chances = psc.random.split(key, 3)
    normal = psc.random.normal(pushes, here.position.shape, here.position.dtype)
    start = here.replace(momentum=normal / np.sqrt(inverse_mass))
    count = psc.random.randint(counts, (), 1, moves + 1)
    there = leapfrog(density, start, step_size, inverse_mass, count)
    ratio = _ratio(energy(start, inverse_mass) - energy(there, inverse_mass))
    taken = _taken(chances, ratio)
    return _Step(_chosen(taken, there, start), np.exp(ratio))


def _at(density: Callable[[Any], Any], position: Float["d"]) -> Point["d"]:
    """A position at rest."""
    value, slope = density(position)
    return Point(position, np.zeros_like(position), slope, value)


def _chosen(which: Any, one: Any, other: Any) -> Any:
    """One tree or the other."""

    def chosen(x: Float["*s"], y: Float["*s"]) -> Float["*s"]:
        return np.where(which, x, y)

    return psc.tree.map(chosen, one, other)


def _ratio(difference: Any) -> Any:
    """The logarithm of the probability to take a step; NaN is never taken."""
    return np.where(np.isnan(difference), -np.inf, np.minimum(difference, 0))


def _taken(key: Key, ratio: Any) -> Any:
    """Decide at random whether to take a step, given its log-probability."""
    return psc.random.uniform(key, (), ratio.dtype) < np.exp(ratio)


def _averaging_from(size: Any) -> _Averaging:
    """Dual averaging that starts with this step size."""
    zero, log_size = np.zeros_like(size), np.log(size)
    return _Averaging(zero, zero, log_size + np.log(10), log_size, log_size)


def _averaged(state: _Averaging, error: Any) -> _Averaging:
    """One step of dual averaging, with the constants of Hoffman and Gelman."""
    count = state.count + 1
    share = 1 / (count + 10)
    mean = (1 - share) * state.error + share * error
    log_step = state.origin - np.sqrt(count) / 0.05 * mean
    weight = count**-0.75
    log_average = weight * log_step + (1 - weight) * state.log_average
    return _Averaging(count, mean, state.origin, log_step, log_average)


def _spread_with(spread: _Spread["d"], position: Float["d"]) -> _Spread["d"]:
    """One more position (Welford 1962)."""
    count = spread.count + 1
    difference = position - spread.mean
    mean = spread.mean + difference / count
    return _Spread(count, mean, spread.square + difference * (position - mean))


def _spread_of(value: Any, vector: Float["d"]) -> Float["d"]:
    """A number for each one of a position, given as one for all or as a tree."""
    leaves = psc.tree.leaves(value)
    if len(leaves) == 1 and np.ndim(leaves[0]) == 0:
        return np.ones_like(vector) * leaves[0]
    return psc.tree.ravel(value)[0]
