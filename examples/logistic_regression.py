"""Logistic regression on real data: tumours, told apart by measurements of their cell nuclei.

Each training run is one kernel.  Minibatch gradient descent is a `scan` over the batches.
Newton's method is a `while_loop` whose steps find their direction by conjugate gradients, so that
the matrix of second derivatives is never formed.  Gradients are written by hand.
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
from pscdsl import bool_, f32, i32
from pscdsl.stdlib.activations import sigmoid
from pscdsl.stdlib.losses import logistic_loss
from pscdsl.stdlib.solvers import conjugate_gradients

TOLERANCE = 2e-3
"""How far weights may be from scikit-learn's, in numbers of 24 bits."""


class Scaling(psc.Record, dims="d"):
    """What makes each measurement have mean 0 and deviation 1."""

    mean: f32["d"]
    deviation: f32["d"]


@psc.kernel
def fit_scaling(x: f32["n d"]) -> Scaling["d"]:
    """The mean and the standard deviation of each column."""
    return Scaling(x.mean(axis=0), x.std(axis=0))


@psc.kernel
def features(scaling: Scaling["d"], x: f32["n d"]) -> f32["n d+1"]:
    """The scaled measurements, and a column of ones, whose weight is the intercept."""
    scaled = (x - scaling.mean) / scaling.deviation
    ones = np.ones((x.shape[0], 1))
    return np.concatenate([scaled, ones], axis=1)


@psc.kernel
def penalties(w: f32["d"], strength: f32) -> f32["d"]:
    """The strength of regularisation for each weight; the intercept, the last, has none."""
    n = w.shape[0]
    return np.where(np.arange(n) < n - 1, strength, 0)


@psc.kernel
def loss(w: f32["d"], x: f32["n d"], y: f32["n"], strength: f32) -> f32:
    """The mean loss of the examples, and half the penalised squares of the weights."""
    return logistic_loss(x @ w, y).mean() + (penalties(w, strength) * w * w).sum() / 2


@psc.kernel
def gradient(w: f32["d"], x: f32["n d"], y: f32["n"], strength: f32) -> f32["d"]:
    """The derivative of `loss` with respect to the weights."""
    return x.T @ (sigmoid(x @ w) - y) / x.shape[0] + penalties(w, strength) * w


@psc.kernel
def descend(
    w: f32["d"], x: f32["n d"], y: f32["n"], batches: i32["t b"], rate: f32, strength: f32
) -> tuple[f32["d"], f32["t"]]:
    """One step of gradient descent for each batch of rows; also the loss after each step."""

    def step(w: f32["d"], rows: i32["b"]) -> tuple[f32["d"], f32]:
        w = w - rate * gradient(w, x[rows], y[rows], strength)
        return w, loss(w, x, y, strength)

    return psc.scan(step, w, batches)


class Search(psc.Record, dims="d"):
    """Where Newton's method stands."""

    w: f32["d"]
    slope: f32["d"]
    steps: i32


@psc.kernel
def newton(w: f32["d"], x: f32["n d"], y: f32["n"], strength: f32) -> Search["d"]:
    """Newton's method, until the gradient is tiny, for at most 20 steps."""

    def unfinished(at: Search["d"]) -> bool_:
        return np.abs(at.slope).max() > 1e-6

    def step(at: Search["d"]) -> Search["d"]:
        p = sigmoid(x @ at.w)
        curvature = p * (1 - p) / x.shape[0]

        def hessian(v: f32["d"]) -> f32["d"]:
            return x.T @ (curvature * (x @ v)) + penalties(at.w, strength) * v

        w = at.w - conjugate_gradients(hessian, at.slope).x
        return Search(w, gradient(w, x, y, strength), at.steps + 1)

    start = Search(w, gradient(w, x, y, strength), np.int32(0))
    return psc.while_loop(unfinished, step, start, max_steps=20)


@psc.kernel
def predict(w: f32["d"], x: f32["n d"]) -> bool_["n"]:
    """Whether each example is more likely than not in class 1."""
    return x @ w > 0


class Result(NamedTuple):
    """What the runs achieved."""

    losses: np.ndarray
    """After each step of gradient descent."""
    steps: int
    """Of Newton's method."""
    slope: float
    """The largest derivative where Newton's method ended."""
    difference: float
    """The largest between the weights it found and scikit-learn's."""
    accuracies: dict[str, float]
    """On examples that were not used in training."""


def run() -> Result:
    """Train both ways, and with scikit-learn."""
    data: Any = load_breast_cancer()
    split: list[Any] = train_test_split(
        *(part.astype(np.float32) for part in (data.data, data.target)),
        test_size=0.3,
        random_state=0,
        stratify=data.target,
    )
    train, test, y, test_y = split
    scaling = fit_scaling(train)
    x, test_x = features(scaling, train), features(scaling, test)
    n, d = x.shape
    strength = np.float32(1 / n)  # scikit-learn adds up the losses of n examples, and takes 1
    start = np.zeros(d, np.float32)

    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(n)[: n // 32 * 32] for _ in range(100)])
    batches = order.reshape(-1, 32).astype(np.int32)
    descended, losses = descend(start, x, y, batches, np.float32(0.1), strength)
    found = newton(start, x, y, strength)

    theirs: Any = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    theirs.fit(np.asarray(x)[:, :-1], y)
    reference = np.append(theirs.coef_[0], theirs.intercept_).astype(np.float32)

    np.testing.assert_allclose(np.asarray(found.w), reference, rtol=0, atol=TOLERANCE)

    weights = {
        "gradient descent": descended,
        "Newton's method": found.w,
        "scikit-learn": reference,
    }
    return Result(
        losses=np.asarray(losses),
        steps=int(found.steps),
        slope=float(np.abs(found.slope).max()),
        difference=float(np.abs(np.asarray(found.w) - reference).max()),
        accuracies={
            name: float((np.asarray(predict(w, test_x)) == (test_y == 1)).mean())
            for name, w in weights.items()
        },
    )


def main() -> None:
    """Print what the runs achieved."""
    result = run()
    losses = result.losses
    print(f"gradient descent: {len(losses)} steps, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    print(f"Newton's method: {result.steps} steps, largest derivative {result.slope:.0e}")
    print(f"its weights differ from scikit-learn's by {result.difference:.0e}, ", end="")
    print(f"at most {TOLERANCE:.0e} is allowed")
    for name, accuracy in result.accuracies.items():
        print(f"accuracy on unseen examples, {name}: {accuracy:.1%}")


if __name__ == "__main__":
    main()
