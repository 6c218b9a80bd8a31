"""Logistic regression on real data: tumours, told apart by measurements of their cell nuclei.

Each training run is one kernel: minibatch gradient descent is a `scan` over the batches, Newton's
method a `scan` whose steps solve for their direction by conjugate gradients, so that the matrix
of second derivatives is never formed.  Gradients are written by hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import pscdsl as psc
from pscdsl import bool_, f32, i32
from pscdsl.stdlib.activations import sigmoid
from pscdsl.stdlib.linear import conjugate_gradients
from pscdsl.stdlib.losses import logistic_loss


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

    def step(w, rows):
        w = w - rate * gradient(w, x[rows], y[rows], strength)
        return w, loss(w, x, y, strength)

    return psc.scan(step, w, batches)


@psc.kernel
def newton(
    w: f32["d"], x: f32["n d"], y: f32["n"], strength: f32, steps: psc.Static[int] = 8
) -> tuple[f32["d"], f32["steps"]]:
    """Newton's method; also the length of the gradient before each step."""

    def step(w, _):
        slope = gradient(w, x, y, strength)
        p = sigmoid(x @ w)
        curvature = p * (1 - p) / x.shape[0]

        def hessian(v):
            return x.T @ (curvature * (x @ v)) + penalties(w, strength) * v

        direction = conjugate_gradients(hessian, slope).x
        return w - direction, np.sqrt(slope @ slope)

    return psc.scan(step, w, length=steps)


@psc.kernel
def predict(w: f32["d"], x: f32["n d"]) -> bool_["n"]:
    """Whether each example is more likely than not in class 1."""
    return x @ w > 0


class Result(NamedTuple):
    """What one run achieved."""

    losses: np.ndarray
    gradients: np.ndarray
    accuracies: dict[str, float]
    farthest: float


def run() -> Result:
    """Train both ways, and with scikit-learn."""
    data = load_breast_cancer()
    inputs, labels = data.data.astype(np.float32), data.target.astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        inputs, labels, test_size=0.3, random_state=0, stratify=labels
    )
    scaling = fit_scaling(train_x)
    x, unseen = features(scaling, train_x), features(scaling, test_x)
    n, d = x.shape
    strength = np.float32(1 / n)  # scikit-learn adds the losses up, and so has 1
    start = np.zeros(d, np.float32)

    shuffled = np.random.default_rng(0).permuted(np.tile(np.arange(n, dtype=np.int32), (100, 1)), axis=1)
    batches = shuffled[:, : n // 32 * 32].reshape(-1, 32)
    descended, losses = descend(start, x, train_y, batches, np.float32(0.1), strength)
    found, gradients = newton(start, x, train_y, strength)

    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    theirs.fit(np.asarray(x)[:, :-1], train_y)
    weights = np.append(theirs.coef_[0], theirs.intercept_)

    def accuracy(w: object) -> float:
        return float(np.mean(np.asarray(predict(w, unseen)) == (test_y > 0.5)))

    return Result(
        np.asarray(losses),
        np.asarray(gradients),
        {
            "gradient descent": accuracy(descended),
            "Newton's method": accuracy(found),
            "scikit-learn": accuracy(weights.astype(np.float32)),
        },
        float(np.abs(np.asarray(found) - weights).max()),
    )


def main() -> None:
    """Print what the runs achieved."""
    result = run()
    losses = result.losses
    print(f"gradient descent: {len(losses)} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    lengths = " ".join(f"{length:.0e}" for length in result.gradients)
    print(f"Newton's method: length of the gradient {lengths}")
    print(f"its weights and scikit-learn's differ by at most {result.farthest:.1e}")
    for name, accuracy in result.accuracies.items():
        print(f"test accuracy of {name}: {accuracy:.1%}")


if __name__ == "__main__":
    main()
