"""A neural network learns how a pendulum swings: gradients go through an adaptive solver.

The track of a damped pendulum was measured with noise.  The network is to say how fast the
pendulum accelerates, at each angle and speed; a solver with steps of adapted length makes tracks of
that, and the network is changed until these are like the ones measured (Chen, Rubanova,
Bettencourt, Duvenaud, "Neural ordinary differential equations", 2018).  The long track is cut into
windows, so that first errors do not grow.  In the end the network predicts a swing from where it
never saw one begin.
"""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import pscdsl as psc
from pscdsl import bool_, f64, i32
from pscdsl.stdlib.lbfgs import lbfgs
from pscdsl.stdlib.ode import dormand_prince

GRAVITY_BY_LENGTH, FRICTION = 9.81, 0.3
NOISE = 0.02
TOLERANCE = 1e-3
"""How far the solver may be from SciPy's, and a derivative from differences, relative."""


class Network(psc.Record, dims="h"):
    """An acceleration for each angle and speed."""

    first: f64["h 2"]
    offset: f64["h"]
    last: f64["h"]


class Track(psc.Record, dims="t"):
    """Angles and speeds at all times, and how the solver fared."""

    states: f64["t 2"]
    reached: bool_
    steps: i32


class Fit(psc.Record, dims="h"):
    """The network that was found, the loss with it, and how many steps it took."""

    network: Network["h"]
    loss: f64
    steps: i32


@psc.kernel
def acceleration(p: Network["h"], state: f64["2"]) -> f64:
    """What the network says."""
    return p.last @ np.tanh(p.first @ state + p.offset)


@psc.kernel
def swing(p: Network["h"], start: f64["2"], times: f64["t"]) -> Track["t"]:
    """The track that begins like this, if the network is right."""

    def field(time: f64, state: f64["2"]) -> f64["2"]:
        return np.stack([state[1], acceleration(p, state)])

    found = dormand_prince(field, start, times, 1e-5, 1e-7, max_steps=100)
    return Track(found.states, found.reached, found.steps)


@psc.kernel
def loss(p: Network["h"], windows: f64["k t 2"], times: f64["t"]) -> f64:
    """The mean square of what tracks miss, each from where its window begins."""
    tracks = psc.vmap(swing, in_axes=(None, 0, None))(p, windows[:, 0], times)
    missed = tracks.states - windows
    return np.mean(missed * missed)


slope = psc.grad(loss)
"""How the loss changes with each parameter."""


@psc.kernel
def fit(start: Network["h"], windows: f64["k t 2"], times: f64["t"], most: i32) -> Fit["h"]:
    """The network with which the loss is least, near the start."""
    found = lbfgs(lambda p: loss(p, windows, times), start, tolerance=1e-7, max_steps=most)
    return Fit(found.params, found.value, found.steps)


def swing_in_scipy(p: Network[Any], start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """`swing` by another solver, which takes much shorter steps."""
    first, offset, last = (np.asarray(each) for each in (p.first, p.offset, p.last))

    def field(_: float, state: np.ndarray) -> list[float]:
        return [state[1], float(last @ np.tanh(first @ state + offset))]

    return solved(field, start, times)


def truth(start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The track of the real pendulum."""

    def field(_: float, state: np.ndarray) -> list[float]:
        return [state[1], -GRAVITY_BY_LENGTH * np.sin(state[0]) - FRICTION * state[1]]

    return solved(field, start, times)


def solved(field: Any, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The states at all times, by SciPy."""
    found: Any = solve_ivp(
        field, (times[0], times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-12
    )
    return np.asarray(found.y.T)


class Result(NamedTuple):
    """How well the network learned."""

    before: float
    """The loss of the untrained network."""
    after: float
    steps: int
    difference: float
    """Between the derivative of the loss along a direction, and differences; relative."""
    from_scipy: float
    """How far the predicted track is from that of SciPy's solver."""
    prediction: float
    """The root mean square of what a prediction from a new start misses."""
    solver_steps: int
    """That it took."""


def run(samples: int = 120, window: int = 12, most: int = 150, hidden: int = 12) -> Result:
    """Measure, learn, predict."""
    rng = np.random.default_rng(0)
    times = 0.05 * np.arange(samples)
    measured = truth(np.array([2.0, 0.0]), times) + NOISE * rng.normal(size=(samples, 2))
    windows = measured.reshape(-1, window, 2)
    short = times[:window]
    start = Network(
        rng.normal(size=(hidden, 2)) / 2,
        rng.normal(size=hidden) / 2,
        rng.normal(size=hidden) / 4,
    )
    along = Network(*(rng.normal(size=np.shape(each)) for each in psc.tree.leaves(start)))

    def moved(step: float) -> float:
        parts = zip(psc.tree.leaves(start), psc.tree.leaves(along), strict=True)
        return float(
            loss(
                Network(*(np.asarray(x) + step * np.asarray(d) for x, d in parts)),
                windows,
                short,
            )
        )

    pairs = zip(psc.tree.leaves(slope(start, windows, short)), psc.tree.leaves(along), strict=True)
    derivative = sum(float(np.sum(np.asarray(g) * np.asarray(d))) for g, d in pairs)
    difference = (moved(1e-5) - moved(-1e-5)) / 2e-5

    found = fit(start, windows, short, np.int32(most))
    new = np.array([-1.2, 1.0])
    predicted = swing(found.network, new, times)
    states = np.asarray(predicted.states)
    expected = swing_in_scipy(found.network, new, times)
    np.testing.assert_allclose(states, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(derivative, difference, rtol=TOLERANCE)
    missed = states - truth(new, times)
    return Result(
        before=float(loss(start, windows, short)),
        after=float(found.loss),
        steps=int(found.steps),
        difference=abs(derivative / difference - 1),
        from_scipy=float(np.abs(states - expected).max()),
        prediction=float(np.sqrt(np.mean(missed**2))),
        solver_steps=int(predicted.steps),
    )


def main() -> None:
    """Print how well the network learned."""
    result = run()
    print(
        f"derivative through the solver, and by differences: {result.difference:.0e} apart", end=""
    )
    print(f", at most {TOLERANCE:.0e} is allowed")
    print(
        f"loss {result.before:.3f} to {result.after:.5f} in {result.steps} steps",
        end=" ",
    )
    print(f"(noise alone: {2 * NOISE**2:.5f})")
    print(f"a swing of 6 s from a new start: missed by {result.prediction:.3f} (noise: {NOISE})")
    print(f"the solver took {result.solver_steps} steps for it; SciPy's is ", end="")
    print(f"{result.from_scipy:.0e} away, at most {TOLERANCE:.0e} is allowed")


if __name__ == "__main__":
    main()
