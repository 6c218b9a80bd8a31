"""Ordinary differential equations against SciPy, and against the orders that methods have."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import pscdsl as psc
from pscdsl import Float, bool_, f64, i32
from pscdsl.stdlib import ode

pytestmark = pytest.mark.quick_code

TIMES = np.linspace(0, 7, 40)
START = np.array([2.0, 0.0])
MU = 1.5


@psc.kernel
def oscillator(time: Float, y: Float["2"], mu: Float) -> Float["2"]:
    """Van der Pol's oscillator, pushed by a force that depends on time."""
    return np.stack([y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0] + np.sin(time) / 8])


@psc.kernel
def adapted(
    y: Float["2"], times: Float["t"], mu: Float, tolerance: Float
) -> tuple[Float["t 2"], bool_, i32, i32]:
    """The oscillator by steps of adapted length."""

    def field(time: Float, y: Float["2"]) -> Float["2"]:
        return oscillator(time, y, mu)

    found = ode.dormand_prince(field, y, times, tolerance, tolerance, max_steps=600)
    return found.states, found.reached, found.steps, found.rejected


@psc.kernel
def fixed(y: Float["2"], times: Float["t"], mu: Float) -> tuple[Float["t 2"], ...]:
    """The oscillator by methods of orders 1, 2, 4 and 5; the last by two steps at a time."""

    def field(time: Float, y: Float["2"]) -> Float["2"]:
        return oscillator(time, y, mu)

    return (
        ode.euler(field, y, times),
        ode.fixed_steps(ode.MIDPOINT, field, y, times),
        ode.rk4(field, y, times),
        ode.fixed_steps(ode.DORMAND_PRINCE, field, y, times),
        ode.rk4(field, y, times, substeps=2),
    )


@psc.kernel
def spread(y: Float["2"], times: Float["t"], mu: Float) -> Float:
    """A number that depends on all of a trajectory."""
    return np.sum(np.sin(adapted(y, times, mu, 1e-9)[0]))


def field(time: float, y: NDArray[Any], mu: float = MU) -> NDArray[Any]:
    return np.array([y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0] + np.sin(time) / 8])


def exact(times: NDArray[Any], start: NDArray[Any] = START, mu: float = MU) -> NDArray[Any]:
    ends = (times[0], times[-1])
    found: Any = solve_ivp(field, ends, start, "DOP853", times, args=(mu,), rtol=1e-13, atol=1e-13)
    return np.asarray(found.y.T)


@pytest.mark.parametrize(
    ("dtype", "tolerances"), [(np.float64, [1e-3, 1e-5, 1e-7, 1e-9]), (np.float32, [1e-4])]
)
def test_errors_follow_the_tolerance(dtype: Any, tolerances: list[float]) -> None:
    truth = exact(TIMES)
    for tolerance in tolerances:
        given = START.astype(dtype), TIMES.astype(dtype), MU, tolerance
        states, reached, steps, rejected = map(np.asarray, adapted(*given))
        assert states.dtype == dtype
        assert reached
        assert np.abs(states - truth).max() < 100 * tolerance
        scipy: Any = solve_ivp(field, (0, 7), START, rtol=tolerance, atol=tolerance)
        assert 6 * (steps + rejected) < 1.3 * scipy.nfev


def test_orders() -> None:
    """Half the step divides the error by two to the power of the order."""
    coarse, fine = np.linspace(0, 2, 41), np.linspace(0, 2, 81)
    truth = exact(coarse)
    errors = [
        [np.abs(np.asarray(states)[::every] - truth).max() for states in fixed(START, times, MU)]
        for every, times in ((1, coarse), (2, fine))
    ]
    orders = np.log2(np.array(errors[0]) / errors[1])
    np.testing.assert_allclose(orders, [1, 2, 4, 5, 4], atol=0.25)
    np.testing.assert_allclose(errors[0][4], errors[1][2], rtol=1e-6)


def test_times_may_fall_and_repeat() -> None:
    back = np.repeat(TIMES[::-1][:20], 2)
    truth = exact(TIMES[::-1][:20], exact(TIMES)[-1])
    states, reached, *_ = adapted(exact(TIMES)[-1], back, MU, 1e-9)
    assert reached
    np.testing.assert_allclose(states, np.repeat(truth, 2, axis=0), rtol=0, atol=1e-7)


def test_what_was_not_reached_is_nan() -> None:
    """A stiff equation takes more steps than there are; one that explodes, steps ever shorter."""
    states, reached, steps, rejected = map(np.asarray, adapted(START, TIMES, 1e4, 1e-9))
    assert not reached
    assert steps + rejected == 600
    np.testing.assert_array_equal(states[0], START)
    assert np.isnan(states[1:]).all()

    @psc.kernel
    def explosion(times: f64["t"]) -> ode.Trajectory[f64["t"]]:
        return ode.dormand_prince(lambda _, y: y * y, np.ones_like(times[0]), times)

    found = explosion(np.array([0.0, 0.5, 0.9, 1.5, 2.0]))
    assert not found.reached
    assert int(found.steps) + int(found.rejected) < 4000
    np.testing.assert_allclose(found.states, [1, 2, 10, np.nan, np.nan], rtol=1e-4)


def test_derivatives() -> None:
    """With respect to the start, the times, and what the field captures; batches of all."""
    times = TIMES[:5] ** 1.5
    found = psc.grad(spread, argnums=(0, 1, 2))(START, times, MU)
    step = 1e-4

    def slope(start: Any, moved: Any, mu: float) -> float:
        ends = (
            np.sin(exact(times + s * moved, START + s * start, MU + s * mu)) for s in (step, -step)
        )
        return float(np.subtract(*map(np.sum, ends))) / (2 * step)

    zero, none = np.zeros(2), np.zeros(5)
    by_start = [slope(along, none, 0) for along in np.eye(2)]
    by_times = [slope(zero, along, 0) for along in np.eye(5)]
    np.testing.assert_allclose(found[0], by_start, rtol=1e-5)
    np.testing.assert_allclose(found[1], by_times, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2], slope(zero, none, 1), rtol=1e-5)
    starts = np.array([[2.0, 0.0], [0.5, -1.0], [0.0, 0.1]])
    rows = psc.vmap(adapted, in_axes=(0, None, None, None))(starts, times, MU, 1e-9)
    for row, start in zip(np.asarray(rows[0]), starts, strict=True):
        np.testing.assert_allclose(row, exact(times, start), rtol=0, atol=1e-7)


def test_states_are_trees_of_any_shape() -> None:
    """The exponential of a matrix solves a differential equation; beside it, a number."""

    @psc.kernel
    def exponential(a: f64["n n"], times: f64["t"]) -> tuple[f64["t n n"], f64["t"], f64["t n n"]]:
        start = np.eye(a.shape[0], dtype=np.float64), np.zeros_like(times[0])

        def field(time: f64, state: tuple[f64["n n"], f64]) -> tuple[f64["n n"], f64]:
            return a @ state[0], 2 * time

        found = ode.dormand_prince(field, start, times, 1e-10, 1e-12)
        return found.states[0], found.states[1], ode.rk4(field, start, times, 20)[0]

    a, times = np.array([[0.0, 1.0], [-4.0, 0.0]]), np.array([0.0, 0.3, 1.0])
    adaptive, squares, classical = exponential(a, times)
    cos, sin = np.cos(2 * times), np.sin(2 * times)
    truth = np.stack([np.stack([cos, sin / 2], 1), np.stack([-2 * sin, cos], 1)], 1)
    np.testing.assert_allclose(adaptive, truth, rtol=0, atol=1e-8)
    np.testing.assert_allclose(classical, truth, rtol=0, atol=1e-5)
    np.testing.assert_allclose(squares, times**2, rtol=1e-12, atol=1e-14)
