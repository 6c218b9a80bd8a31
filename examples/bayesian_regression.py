"""How sure a classifier of tumours can be: Bayesian logistic regression by Hamiltonian Monte Carlo.

Weights of measurements of cell nuclei have normal priors; a batch of Markov chains draws from what
the data leave possible, with gradients of the log-density.  The chains must agree with each other,
and their mean with Laplace's approximation, a normal distribution around scikit-learn's weights.
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import pscdsl as psc
from pscdsl import Key, f64
from pscdsl.stdlib.activations import sigmoid
from pscdsl.stdlib.distributions import normal_log_density
from pscdsl.stdlib.losses import logistic_loss
from pscdsl.stdlib.mcmc import hamiltonian, warm_up
from pscdsl.stdlib.mcmc_diagnostics import effective_sample_size, split_r_hat

INTERCEPT_SCALE = 10.0
TOLERANCE = 1e-3
"""How far the top of the posterior may be from scikit-learn's weights, whose intercept is free."""
BALANCE = 0.05
"""How far the draws may be from what Stein's identity says of them, relative."""
NEAR = 0.5
"""How many deviations the chains' means may be from there: the posterior is not quite normal."""


class Weights(psc.Record, dims="d"):
    """A linear score of measurements."""

    slopes: f64["d"]
    intercept: f64


class Draws(psc.Record, dims="t d"):
    """What one chain drew."""

    slopes: f64["t d"]
    intercept: f64["t"]
    acceptance: f64
    """How probable it was, on average, that a step would be taken."""
    step_size: f64


@psc.kernel
def log_posterior(w: Weights["d"], x: f64["n d"], y: f64["n"]) -> f64:
    """The logarithm of the prior and the likelihood: standard normal slopes, a wide intercept."""
    prior = normal_log_density(w.slopes).sum()
    prior = prior + normal_log_density(w.intercept, 0.0, INTERCEPT_SCALE)
    return prior - logistic_loss(x @ w.slopes + w.intercept, y).sum()


@psc.kernel
def chain(
    key: Key,
    start: Weights["d"],
    x: f64["n d"],
    y: f64["n"],
    warming: psc.Static[int],
    steps: psc.Static[int],
) -> Draws["steps d"]:
    """One Markov chain, after it has found its step size and the variances of the weights."""
    assert warming >= 4
    assert steps >= 1

    def density(w: Weights["d"]) -> f64:
        return log_posterior(w, x, y)

    first, second = psc.random.split(key)
    tuned = warm_up(density, start, first, warming)
    found = hamiltonian(density, tuned.position, second, steps, tuned.step_size, tuned.variance)
    at = found.positions
    return Draws(at.slopes, at.intercept, found.acceptance.mean(), tuned.step_size)


many_chains = psc.vmap(chain, in_axes=(0, 0, None, None, None, None))
"""Several at once, from keys and starts along the first axis."""


@psc.kernel
def laplace(w: Weights["d"], x: f64["n d"], y: f64["n"]) -> tuple[Weights["d"], f64["d"]]:
    """The top of the posterior by Newton's method from w on, and the deviations of slopes there."""
    vector, weights = psc.tree.ravel(w)

    def density(v: f64["k"]) -> f64:
        return log_posterior(weights(v), x, y)

    def step(v: f64["k"], _: None) -> tuple[f64["k"], None]:
        return v - np.linalg.solve(psc.hessian(density)(v), psc.grad(density)(v)), None

    top, _ = psc.scan(step, vector, length=10)
    precision: f64["k k"] = -psc.hessian(density)(top)
    variances = np.diagonal(np.linalg.inv(precision))
    return weights(top), np.sqrt(variances)[: w.slopes.shape[0]]


@psc.kernel
def predictions(slopes: f64["s d"], intercept: f64["s"], x: f64["n d"]) -> f64["n"]:
    """The probability of class 1 by the mean over draws of weights."""
    return sigmoid(x @ slopes.T + intercept).mean(axis=1)


def balance(slopes: np.ndarray, intercept: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """The mean of the products of weights, from their mean, with the slopes of the log-density.

    For draws from the posterior it is minus the number of weights, up to chance (Stein 1972).
    """
    missed = y - 1 / (1 + np.exp(-(slopes @ x.T + intercept[:, None])))
    of_slopes = ((slopes - slopes.mean(axis=0)) * (missed @ x - slopes)).sum(axis=1)
    slope = missed.sum(axis=1) - intercept / INTERCEPT_SCALE**2
    return float((of_slopes + (intercept - intercept.mean()) * slope).mean())


class Result(NamedTuple):
    """What the chains gave, and what is known."""

    draws: int
    r_hat: float
    """The largest of all weights."""
    effective: float
    """The smallest effective sample size."""
    acceptance: float
    balance: float
    """Minus the number of weights, up to chance."""
    from_laplace: float
    """The largest difference of the means from the top of the posterior, in deviations."""
    from_sklearn: float
    """Of the top of the posterior from scikit-learn's weights."""
    log_losses: dict[str, float]
    """Of probabilities for examples not used in training."""


def run(
    chains: int = 4, warming: int = 500, steps: int = 1000, columns: int = 30, seed: int = 0
) -> Result:
    """Draw, and compare."""
    data: Any = load_breast_cancer()
    split: list[Any] = train_test_split(
        data.data[:, :columns], data.target.astype(np.float64), test_size=0.3, random_state=0
    )
    train, test, y, test_y = split
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    x, test_x = (train - mean) / deviation, (test - mean) / deviation

    rng = np.random.default_rng(seed)
    start = Weights(rng.normal(size=(chains, columns)), rng.normal(size=chains))
    keys = psc.random.split(psc.random.key(seed), chains)
    drawn = many_chains(keys, start, x, y, warming, steps)
    slopes, intercept = np.asarray(drawn.slopes), np.asarray(drawn.intercept)
    every = np.concatenate([slopes, intercept[:, :, None]], axis=2)

    theirs: Any = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    theirs.fit(x, y)
    flat, offsets = slopes.reshape(-1, columns), intercept.ravel()
    means = Weights(flat.mean(axis=0), offsets.mean())
    top, deviations = laplace(means, x, y)
    difference = np.abs(means.slopes - top.slopes) / deviations

    np.testing.assert_allclose(np.asarray(top.slopes), theirs.coef_[0], rtol=0, atol=TOLERANCE)
    np.testing.assert_array_less(difference, NEAR)
    balanced = balance(flat, offsets, x, y)
    np.testing.assert_allclose(balanced, -(columns + 1), rtol=BALANCE)

    probabilities = {
        "posterior mean": predictions(flat, offsets, test_x),
        "posterior top": predictions(top.slopes[None], top.intercept[None], test_x),
    }
    return Result(
        draws=chains * steps,
        r_hat=float(np.asarray(split_r_hat(every)).max()),
        effective=float(np.asarray(effective_sample_size(every)).min()),
        acceptance=float(np.asarray(drawn.acceptance).mean()),
        balance=balanced,
        from_laplace=float(difference.max()),
        from_sklearn=float(np.abs(theirs.coef_[0] - top.slopes).max()),
        log_losses={
            name: float(-np.log(np.where(test_y == 1, p, 1 - np.asarray(p))).mean())
            for name, p in probabilities.items()
        },
    )


def main() -> None:
    """Print what the chains gave."""
    result = run()
    print(f"{result.draws} draws of 31 weights, accepted with probability {result.acceptance:.2f}")
    print(f"largest R-hat {result.r_hat:.3f}, effective draws at least {result.effective:.0f}")
    print(f"Stein's identity: {result.balance:.2f} for -31, {BALANCE:.0%} off is allowed")
    print(
        f"means and Laplace's approximation: {result.from_laplace:.2f} deviations apart", end=", "
    )
    print(f"at most {NEAR} is allowed")
    print(f"its top and scikit-learn's weights: {result.from_sklearn:.0e} apart", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")
    for name, loss in result.log_losses.items():
        print(f"log-loss on unseen examples, {name}: {loss:.4f}")


if __name__ == "__main__":
    main()
