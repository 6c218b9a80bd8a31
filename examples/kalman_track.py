"""A noisy track is smoothed: a Kalman smoother whose noise levels are learnt from the track itself.

Something flies a figure of eight, which the model does not know: to it velocities change at random.
A sensor sees positions with noise, and nothing for a while.  How strong both kinds of noise are is
found by Newton's method on the log-likelihood, differentiated through the filter.  The
first argument on the command line names the picture, `track.png` without one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

import pscdsl as psc
from pscdsl import f64
from pscdsl.stdlib.kalman import (
    Filtered,
    Gaussians,
    Model,
    kalman_filter,
    log_likelihood,
    smooth,
)
from pscdsl.stdlib.kalman_parallel import parallel_smooth

NOISE = 0.15
"""The true standard deviation of the sensor."""
TOLERANCE = 1e-6
"""How far the smoother may be from NumPy, which conditions all states at once."""


@psc.kernel
def constant_velocity(levels: f64["2"], dt: f64) -> Model["4 2"]:
    """Positions and velocities in the plane, given the logarithms of two standard deviations.

    The first is that of the sensor, the second that of the acceleration, which is white noise.
    """
    sensor, acceleration = np.exp(2 * levels[0]), np.exp(2 * levels[1])
    one, nothing = np.eye(2), np.zeros((2, 2))
    transition = np.concatenate(
        [np.concatenate([one, dt * one], axis=1), np.concatenate([nothing, one], axis=1)]
    )
    corner, edge = dt**3 / 3 * one, dt**2 / 2 * one
    noise = np.concatenate(
        [np.concatenate([corner, edge], axis=1), np.concatenate([edge, dt * one], axis=1)]
    )
    emission = np.concatenate([one, nothing], axis=1)
    return Model(
        transition=transition,
        transition_noise=acceleration * noise,
        emission=emission,
        emission_noise=sensor * one,
        start_mean=np.zeros(4),
        start_covariance=10 * np.eye(4),
    )


@psc.kernel
def fit(start: f64["2"], seen: f64["t 2"], dt: f64) -> tuple[f64["2"], f64["8"]]:
    """The levels of most likelihood, by Newton's method, and the likelihood before each step."""

    def objective(levels: f64["2"]) -> f64:
        return log_likelihood(constant_velocity(levels, dt), seen)

    def slope_and_value(levels: f64["2"]) -> tuple[f64["2"], tuple[f64["2"], f64]]:
        value, slope = psc.value_and_grad(objective)(levels)
        return slope, (slope, value)

    def step(levels: f64["2"], _: None) -> tuple[f64["2"], f64]:
        curvature, (slope, value) = psc.jacfwd(slope_and_value, has_aux=True)(levels)
        # Uphill also where the likelihood is not concave, and by at most a factor of e.
        values, vectors = np.linalg.eigh(curvature)
        move = vectors @ ((slope @ vectors) / np.maximum(np.abs(values), 1e-3))
        return levels + np.clip(move, -1, 1), value

    return psc.scan(step, start, length=8)


@psc.kernel
def estimate(
    levels: f64["2"], seen: f64["t 2"], dt: f64
) -> tuple[Filtered["t 4"], Gaussians["t 4"], Gaussians["t 4"]]:
    """What is known as observations come in, and afterwards; the latter in two ways."""
    p = constant_velocity(levels, dt)
    return kalman_filter(p, seen), smooth(p, seen), parallel_smooth(p, seen)


class Track(NamedTuple):
    """A flight."""

    truth: np.ndarray
    seen: np.ndarray
    """With NaN where the sensor saw nothing."""
    dt: float


class Result(NamedTuple):
    """What was found out."""

    track: Track
    smoothed: np.ndarray
    """Positions."""
    spread: np.ndarray
    """The standard deviations of the coordinates of each."""
    levels: np.ndarray
    """The standard deviations of the sensor and of the acceleration."""
    likelihoods: np.ndarray
    errors: dict[str, float]
    """The root of the mean square distance from the truth."""
    covered: float
    """How often a coordinate is within 1.96 standard deviations of the truth."""
    difference: float
    """Between the smoother that goes step by step and the other one."""
    from_numpy: float
    """Between the former and `smooth_in_numpy`."""


def fly(steps: int, seed: int = 0) -> Track:
    """A figure of eight, seen with noise, and not at all for a twelfth of the time."""
    time = np.linspace(0, 2 * np.pi, steps)
    truth = np.stack([4 * np.sin(time + 0.3), 2.2 * np.sin(2 * time)], axis=1)
    seen = truth + NOISE * np.random.default_rng(seed).normal(size=truth.shape)
    seen[steps // 2 : steps // 2 + steps // 12] = np.nan
    return Track(truth, seen, float(time[1] - time[0]))


def smooth_in_numpy(p: Model[Any, Any], seen: np.ndarray) -> np.ndarray:
    """The means of all states given all that was seen: one normal distribution, conditioned."""
    transition, noise, emission, emission_noise = (
        np.asarray(each)
        for each in (p.transition, p.transition_noise, p.emission, p.emission_noise)
    )
    t, s = len(seen), len(transition)
    # Each state is the one before, moved, and something new: together, lower @ all that is new.
    powers = [np.eye(s)]
    for _ in range(t - 1):
        powers.append(transition @ powers[-1])
    blocks = [[powers[i - j] if i >= j else np.zeros((s, s)) for j in range(t)] for i in range(t)]
    lower = np.block(blocks)
    new = np.kron(np.eye(t), noise)
    new[:s, :s] = np.asarray(p.start_covariance)
    start = np.concatenate([power @ np.asarray(p.start_mean) for power in powers])
    covariance = lower @ new @ lower.T

    there = ~np.isnan(seen).ravel()
    read = np.kron(np.eye(t), emission)[there]
    spread = read @ covariance @ read.T + np.kron(np.eye(t), emission_noise)[np.ix_(there, there)]
    missed = seen.ravel()[there] - read @ start
    means = start + covariance @ read.T @ np.linalg.solve(spread, missed)
    return np.asarray(means.reshape(t, s))


def run(steps: int = 240) -> Result:
    """Smooth a flight."""
    track = fly(steps)
    levels, likelihoods = fit(np.array([0.0, 0.0]), track.seen, track.dt)
    filtered, smoothed, other = estimate(levels, track.seen, track.dt)
    found, at_first = np.asarray(smoothed.mean)[:, :2], np.asarray(filtered.mean)[:, :2]
    variances = np.asarray(smoothed.covariance)[:, [0, 1], [0, 1]]
    spread: np.ndarray = np.sqrt(variances)
    means = np.asarray(smoothed.mean)
    exact = smooth_in_numpy(constant_velocity(levels, track.dt), track.seen)
    np.testing.assert_allclose(means, exact, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(means, np.asarray(other.mean), rtol=0, atol=TOLERANCE)

    def error(places: np.ndarray) -> float:
        squares: np.ndarray = ((places - track.truth) ** 2).sum(axis=1)
        return float(np.sqrt(np.nanmean(squares)))

    return Result(
        track=track,
        smoothed=found,
        spread=spread,
        levels=np.exp(np.asarray(levels)),
        likelihoods=np.asarray(likelihoods),
        errors={"sensor": error(track.seen), "filter": error(at_first), "smoother": error(found)},
        covered=float((np.abs(found - track.truth) < 1.96 * spread).mean()),
        difference=float(np.abs(means - np.asarray(other.mean)).max()),
        from_numpy=float(np.abs(means - exact).max()),
    )


def picture(result: Result, scale: int = 80) -> Image.Image:
    """The true track, what was seen of it, and the smoothed one with its uncertainty."""
    image = Image.new("RGB", (10 * scale, 6 * scale), "white")
    draw = ImageDraw.Draw(image)

    def pixel(places: np.ndarray) -> list[tuple[float, float]]:
        shifted = (places * [1, -1] + [5, 3]) * scale
        return [(float(x), float(y)) for x, y in shifted]

    corners = [result.smoothed - 1.96 * result.spread, result.smoothed + 1.96 * result.spread]
    for (left, low), (right, high) in zip(*map(pixel, corners), strict=True):
        draw.ellipse((left, high, right, low), fill="#d6e6f5")
    draw.line(pixel(result.track.truth), fill="#999999", width=2)
    seen = result.track.seen[~np.isnan(result.track.seen).any(axis=1)]
    for x, y in pixel(seen):
        draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill="#d1495b")
    draw.line(pixel(result.smoothed), fill="#00509d", width=3)
    return image


def main() -> None:
    """Print what was found out, and draw it."""
    result = run()
    before, after = result.likelihoods[[0, -1]]
    sensor, acceleration = result.levels
    print(f"log-likelihood: {before:.1f} before training, {after:.1f} after")
    print(f"noise of the sensor: {sensor:.3f} learnt, {NOISE} in truth")
    print(f"noise of the acceleration: {acceleration:.2f}")
    for name, error in result.errors.items():
        print(f"distance from the truth, {name}: {error:.3f}")
    print(f"within the bounds of 95%: {result.covered:.0%}")
    print(f"smoothers differ by {result.difference:.0e}", end=", ")
    print(f"from NumPy by {result.from_numpy:.0e}, at most {TOLERANCE:.0e} is allowed")
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "track.png")
    picture(result).save(target)
    print(f"{target}: {len(result.smoothed)} places")


if __name__ == "__main__":
    main()
