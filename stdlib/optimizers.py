"""First-order optimizers: steps from parameters, a state and a gradient to new parameters.

    state = adam_start(params)
    params, state = adam(params, state, gradient, rate)

Parameters are any tree of real arrays; where the gradient has None, as for integers and keys, they
stay. A rate is a number or a 0-dimensional array, such as a schedule gives. These are functions for
kernels and know nothing of a loss: gradients come from `psc.grad`, perhaps clipped. States of
parameters of 16 bits begin with 32, which take in shares of 0.001; others keep their dtype.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

import pscdsl as psc
from pscdsl import i32
from pscdsl.stdlib.precision import widened

T = TypeVar("T")


class Moments(psc.Record, Generic[T]):
    """Running means over steps, for `adam` and `adamw`: trees like the parameters.

    Examples:
        >>> state = adam_start(np.zeros(2))
        >>> state.mean, state.steps
        (array([0., 0.]), np.int32(0))
    """

    mean: T
    """The mean of gradients."""
    square: T
    """The mean of their squares."""
    steps: i32
    """The number of steps."""


def sgd(params: T, gradient: Any, rate: Any) -> T:
    """A step of gradient descent, against the gradient (Cauchy 1847; Robbins, Monro 1951).

    Examples:
        >>> sgd({"w": np.array([1.0, 2.0])}, {"w": np.array([10.0, -10.0])}, 0.1)
        {'w': array([0., 3.])}
    """
    return psc.tree.map(lambda p, g: _moved(p, g, rate), params, gradient)


def momentum_start(params: T) -> T:
    """The velocity before the first step.

    Examples:
        >>> momentum_start((np.array([1.0, 2.0]), np.array(3.0)))
        (array([0., 0.]), array(0.))
    """
    return _nothing(params)


def momentum(
    params: T,
    velocity: T,
    gradient: Any,
    rate: Any,
    *,
    decay: Any = 0.9,
    nesterov: bool = False,
) -> tuple[T, T]:
    """A step of gradient descent with momentum, a decaying sum of gradients.

    Polyak 1964; with `nesterov` the velocity that the next step would have (Nesterov 1983, as in
    Sutskever, Martens, Dahl, Hinton 2013).

    Examples:
        >>> params, velocity = np.array([1.0, 2.0]), np.zeros(2)
        >>> for _ in range(2):
        ...     params, velocity = momentum(params, velocity, np.array([1.0, -1.0]), 0.1)
        >>> params
        array([0.71, 2.29])
    """

    def gathered(v: Any, g: Any) -> Any:
        if g is None:
            return v
        wide = widened(v)
        return (_as(decay, wide) * wide + widened(g)).astype(v.dtype)

    velocity = psc.tree.map(gathered, velocity, gradient)
    ahead = psc.tree.map(gathered, velocity, gradient) if nesterov else velocity
    return psc.tree.map(lambda p, v, g: _moved(p, g, rate, v), params, ahead, gradient), velocity


def adam_start(params: T) -> Moments[T]:
    """The state before the first step.

    Examples:
        >>> adam_start(np.array([1.0, 2.0]))
        Moments(mean=array([0., 0.]), square=array([0., 0.]), steps=np.int32(0))
    """
    return Moments(_nothing(params), _nothing(params), np.int32(0))


def adam(
    params: T,
    state: Moments[T],
    gradient: Any,
    rate: Any,
    *,
    decay: Any = 0.9,
    square_decay: Any = 0.999,
    epsilon: Any = 1e-8,
) -> tuple[T, Moments[T]]:
    """A step of Adam: the mean of gradients over the root of the mean of their squares.

    Both are corrected for starting at 0 (Kingma, Ba 2015).

    Examples:
        >>> @psc.kernel
        ... def step(p: f64["n"], state: Moments[f64["n"]]) -> tuple[f64["n"], Moments[f64["n"]]]:
        ...     gradient = psc.grad(lambda p: np.sum((p - 3) ** 2))(p)
        ...     return adam(p, state, gradient, 0.1)
        >>> p = np.zeros(2)
        >>> p, state = step(p, adam_start(p))
        >>> p
        pscdsl.Array([0.1, 0.1], dtype=float64)
    """
    return adamw(
        params,
        state,
        gradient,
        rate,
        weight_decay=0.0,
        decay=decay,
        square_decay=square_decay,
        epsilon=epsilon,
    )


def adamw(
    params: T,
    state: Moments[T],
    gradient: Any,
    rate: Any,
    *,
    weight_decay: Any = 0.01,
    decay: Any = 0.9,
    square_decay: Any = 0.999,
    epsilon: Any = 1e-8,
) -> tuple[T, Moments[T]]:
    """A step of AdamW: `adam` after decay by `rate * weight_decay` (Loshchilov, Hutter 2019).

    Examples:
        >>> params = np.array([1.0, 2.0])
        >>> params, state = adamw(params, adam_start(params), np.array([0.5, -0.5]), 0.1)
        >>> params
        array([0.899, 2.098])
    """
    mean = psc.tree.map(lambda m, g: _mixed(m, g, decay), state.mean, gradient)
    square = psc.tree.map(lambda s, g: _mixed(s, g, square_decay, power=2), state.square, gradient)
    steps = state.steps + 1

    def step(p: Any, m: Any, s: Any, g: Any) -> Any:
        if g is None:
            return p
        m, s = widened(m), widened(s)
        m = m / _complement(decay, steps, m)
        s = s / _complement(square_decay, steps, s)
        return _moved(p, g, rate, m / (np.sqrt(s) + _as(epsilon, s)), weight_decay)

    return psc.tree.map(step, params, mean, square, gradient), Moments(mean, square, steps)


def lion_start(params: T) -> T:
    """The mean of gradients before the first step.

    Examples:
        >>> lion_start(np.array([1.0, 2.0]))
        array([0., 0.])
    """
    return _nothing(params)


def lion(
    params: T,
    mean: T,
    gradient: Any,
    rate: Any,
    *,
    weight_decay: Any = 0.0,
    decay: Any = 0.9,
    mean_decay: Any = 0.99,
) -> tuple[T, T]:
    """A step of Lion: the sign of a mean of gradients (Chen et al. 2023).

    The mean that decides is mixed with `decay`, the stored one with `mean_decay`.

    Examples:
        >>> params = np.array([1.0, 2.0])
        >>> params, mean = lion(params, lion_start(params), np.array([0.5, -0.5]), 0.1)
        >>> params
        array([0.9, 2.1])
    """

    def step(p: Any, m: Any, g: Any) -> Any:
        return _moved(p, g, rate, np.sign(_mixed(m, g, decay)), weight_decay)

    moved = psc.tree.map(step, params, mean, gradient)
    return moved, psc.tree.map(lambda m, g: _mixed(m, g, mean_decay), mean, gradient)


def _nothing(params: T) -> T:
    """Zeros like the parameters, in the dtype for sums."""
    return psc.tree.map(lambda p: np.zeros_like(_wide(p)), params)


def _wide(x: Any) -> Any:
    return widened(x) if np.issubdtype(x.dtype, np.inexact) else x


def _as(number: Any, x: Any) -> Any:
    """A number in the dtype of an array."""
    return np.asarray(number, x.dtype)


def _mixed(mean: Any, g: Any, decay: Any, power: int = 1) -> Any:
    """A running mean with the gradient, or a power of it."""
    if g is None:
        return mean
    wide = widened(mean)
    share = _as(decay, wide)
    return (share * wide + (1 - share) * widened(g) ** power).astype(mean.dtype)


def _complement(decay: Any, steps: Any, x: Any) -> Any:
    """The total weight in a mean that began at 0, after some steps."""
    return 1 - _as(decay, x) ** steps.astype(x.dtype)


def _moved(p: Any, g: Any, rate: Any, direction: Any = None, weight_decay: Any = 0.0) -> Any:
    """A parameter moved against a direction, or its gradient, and towards 0."""
    if g is None:
        return p
    wide = widened(p)
    step = widened(g if direction is None else direction)
    return (wide - _as(rate, wide) * (step + _as(weight_decay, wide) * wide)).astype(p.dtype)
