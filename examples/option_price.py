"""The price of an option by simulation: random keys that are split, looped over and used once each.

Paths of a share follow a geometric Brownian motion.  What a European call is worth is known in
closed form, which says how right the simulation is; for an Asian call, which pays by the mean of
the path, there is no such formula.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import Key, f32, f64

ERRORS = 4
"""How many standard errors a price may be from what it is compared with."""


class Market(psc.Record):
    """What is known of a share and of its option."""

    price: f32
    strike: f32
    rate: f32
    volatility: f32
    years: f32


class Estimate(psc.Record):
    """A mean over paths, and the standard error of it."""

    mean: f64
    error: f64


@psc.kernel
def estimate(values: f32["n"]) -> Estimate:
    """The mean of independent values; there are at least 2."""
    n = values.shape[0]
    assert n >= 2
    wide = values.astype(psc.f64)
    mean = wide.mean()
    variance = ((wide - mean) ** 2).sum() / (n - 1)
    return Estimate(mean, np.sqrt(variance / n))


@psc.kernel
def paths(key: Key, market: Market, like: f32["t n"]) -> f32["t n"]:
    """The prices of n shares after each of t steps; every step draws from a key of its own."""
    steps, n = like.shape
    span = market.years / steps
    drift = (market.rate - market.volatility**2 / 2) * span
    spread = market.volatility * np.sqrt(span)

    def step(log_price: f32["n"], key: Key) -> tuple[f32["n"], f32["n"]]:
        log_price = log_price + drift + spread * psc.random.normal(key, (n,))
        return log_price, log_price

    start = np.log(market.price) + np.zeros(n, np.float32)
    _, logs = psc.scan(step, start, psc.random.split(key, steps))
    return np.exp(logs)


@psc.kernel
def prices(key: Key, market: Market, like: f32["t n"]) -> tuple[Estimate, Estimate]:
    """What the European and the Asian call are worth, each by paths of its own."""
    assert like.shape[1] >= 2
    european, asian = psc.random.split(key)
    discount = np.exp(-market.rate * market.years)
    last = paths(european, market, like)[-1]
    mean = np.mean(paths(asian, market, like), axis=0)
    return (
        estimate(discount * np.maximum(last - market.strike, 0)),
        estimate(discount * np.maximum(mean - market.strike, 0)),
    )


class Result(NamedTuple):
    """What the simulation gave, and what is known."""

    european: Estimate
    asian: Estimate
    exact: float
    by_numpy: tuple[float, float]
    """What the Asian call is worth by NumPy's random numbers, and the standard error of it."""


def black_scholes(market: Market) -> float:
    """The price of the European call in closed form."""
    price, strike, rate, volatility, years = (
        float(each)
        for each in (market.price, market.strike, market.rate, market.volatility, market.years)
    )
    root = volatility * math.sqrt(years)
    upper = (math.log(price / strike) + (rate + volatility**2 / 2) * years) / root

    def below(x: float) -> float:
        return (1 + math.erf(x / math.sqrt(2))) / 2

    return price * below(upper) - strike * math.exp(-rate * years) * below(upper - root)


def asian_in_numpy(market: Market, n: int, steps: int) -> tuple[float, float]:
    """The price of the Asian call by other paths, and its standard error."""
    price, strike, rate, volatility, years = (
        float(each)
        for each in (market.price, market.strike, market.rate, market.volatility, market.years)
    )
    span = years / steps
    moves = np.random.default_rng(0).normal(size=(steps, n)) * volatility * math.sqrt(span)
    logs = np.cumsum(moves + (rate - volatility**2 / 2) * span, axis=0)
    mean = (price * np.exp(logs)).mean(axis=0)
    values = math.exp(-rate * years) * np.maximum(mean - strike, 0)
    return float(values.mean()), float(values.std() / math.sqrt(n))


def run(n: int = 100_000, steps: int = 50, seed: int = 0) -> Result:
    """Simulate so many paths."""
    market = Market(*map(np.float32, (100.0, 105.0, 0.03, 0.2, 1.0)))
    like = np.zeros((steps, n), np.float32)
    european, asian = prices(psc.random.key(seed), market, like)
    exact, by_numpy = black_scholes(market), asian_in_numpy(market, n, steps)
    error, spread = float(european.error), math.hypot(asian.error, by_numpy[1])
    np.testing.assert_allclose(european.mean, exact, rtol=0, atol=ERRORS * error)
    np.testing.assert_allclose(asian.mean, by_numpy[0], rtol=0, atol=ERRORS * spread)
    return Result(european, asian, exact, by_numpy)


def main() -> None:
    """Print the prices."""
    result = run()
    european, asian = result.european, result.asian
    print(f"European call: {european.mean:.3f} +- {european.error:.3f}, exactly {result.exact:.3f}")
    print(f"Asian call: {asian.mean:.3f} +- {asian.error:.3f}", end=", ")
    print("by NumPy {:.3f} +- {:.3f}".format(*result.by_numpy))
    print(f"at most {ERRORS} standard errors apart are allowed")


if __name__ == "__main__":
    main()
