"""Truncated Newton steps on three problems: a quadratic, a classifier, a hidden Markov model.

They are the problems with which Frostig, Johnson and Leary present their system ("Compiling machine
learning programs via high-level tracing", SysML 2018), on real data where there is some:
scikit-learn's measurements of tumours, and the prose of its descriptions of datasets.  `newton_cg`
of the standard library is given nothing but the losses, and each fit is one compiled kernel.
Beside it stands what NumPy's users write: the same steps, with products of the Hessian derived by
hand; and what others find: NumPy's solver, scikit-learn, and SciPy.
"""

# scikit-learn and SciPy come without types, or with some only.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.linear_model import LogisticRegression

import pscdsl as psc
from pscdsl import f64, i32
from pscdsl.stdlib.hmm import HMM, log_likelihood
from pscdsl.stdlib.newton import newton_cg

ALPHABET = " abcdefghijklmnopqrstuvwxyz"


class Fit(psc.Record, dims="n"):
    """Where a loss is least, and what it took to find out."""

    x: f64["n"]
    value: f64
    slope: f64
    """The length of the gradient."""
    steps: i32
    products: i32
    """Of a Hessian with a vector."""


class Chain(psc.Record, dims="s o"):
    """A hidden Markov model in numbers that need not add up to anything."""

    start: f64["s"]
    transition: f64["s s"]
    emission: f64["s o"]


class Report(NamedTuple):
    """How one problem went."""

    name: str
    unknowns: int
    steps: int
    products: int
    slope: float
    seconds: float
    """Of the second run; the first one compiles."""
    numpy_seconds: float | None
    """Of the same steps in NumPy."""
    error: float
    """How far from what the oracle found."""
    tolerance: float
    """How far it may be."""
    oracle: str


# A convex quadratic of condition 1e5, for several right sides.


@psc.kernel
def quadratic(a: f64["n n"], bs: f64["k n"]) -> tuple[f64["k n"], f64["k"], i32["k"], i32["k"]]:
    """Where `x @ a @ x / 2 - b @ x` is least, for each b."""

    def one(b: f64["n"]) -> tuple[f64["n"], f64, i32, i32]:
        def loss(x: f64["n"]) -> f64:
            return x @ (a @ x) / 2 - b @ x

        found = newton_cg(loss, np.zeros_like(b), 1e-5, 50, 1000)
        return found.params, found.slope, found.steps, found.products

    return psc.map(one, bs)


# Logistic regression.


@psc.kernel
def logistic_loss(w: f64["d"], x: f64["n d"], signs: f64["n"], strength: f64) -> f64:
    """The mean loss of the examples, labelled -1 and 1; the last weight is not penalised."""
    margins = signs * (x @ w)
    return np.mean(np.logaddexp(0, -margins)) + strength * np.sum(w[:-1] * w[:-1]) / 2


@psc.kernel
def logistic(x: f64["n d"], signs: f64["n"], strength: f64) -> Fit["d"]:
    """The weights with which `logistic_loss` is least."""
    start = np.zeros(x.shape[1], np.float64)
    found = newton_cg(lambda w: logistic_loss(w, x, signs, strength), start, 1e-10, 50, 200)
    return Fit(found.params, found.value, found.slope, found.steps, found.products)


# A hidden Markov model of text.


@psc.kernel
def chain_loss(p: Chain["s o"], text: i32["t"], strength: f64) -> f64:
    """How improbable a text is, in nats for each letter, and half the penalised squares."""
    model = HMM(
        psc.special.log_softmax(p.start),
        psc.special.log_softmax(p.transition, axis=1),
        psc.special.log_softmax(p.emission, axis=1),
    )
    square = psc.tree.dot(p, p)
    return strength * square / 2 - log_likelihood(model, text) / text.shape[0]


@psc.kernel
def chain(
    start: Chain["s o"], text: i32["t"], strength: f64
) -> tuple[Chain["s o"], f64, f64, i32, i32]:
    """The model with which `chain_loss` is least, near the start."""
    found = newton_cg(lambda p: chain_loss(p, text, strength), start, 1e-8, 100, 100)
    return found.params, found.value, found.slope, found.steps, found.products


@psc.kernel
def chain_slope(p: Chain["s o"], text: i32["t"], strength: f64) -> tuple[f64, Chain["s o"]]:
    """The loss and its gradient, for SciPy."""
    value, slope = psc.value_and_grad(chain_loss)(p, text, strength)
    return value, slope


# The same steps in NumPy.


def newton_cg_in_numpy(
    loss: Callable[[Any], Any],
    gradient: Callable[[Any], Any],
    product: Callable[[Any, Any], Any],
    x: np.ndarray,
    tolerance: float,
    most: int,
) -> np.ndarray:
    """`newton_cg`, given derivatives that were found by hand."""
    g = gradient(x)
    while np.linalg.norm(g) > tolerance:
        size = np.linalg.norm(g)
        enough = min(0.5, np.sqrt(size)) * size
        z, r, d = np.zeros_like(g), g, -g
        for i in range(most):
            if np.linalg.norm(r) <= enough:
                break
            image = product(x, d)
            curvature, square = d @ image, r @ r
            if curvature <= 0:
                z = d if i == 0 else z
                break
            z, r = z + square / curvature * d, r + square / curvature * image
            d = (r @ r) / square * d - r
        length, here = 1.0, loss(x)
        while loss(x + length * z) > here + 1e-4 * length * (g @ z) + 1e-15 * abs(here):
            length /= 2
        x = x + length * z
        g = gradient(x)
    return x


def seconds(f: Callable[[], Any]) -> tuple[float, Any]:
    """How long the second call takes until all is there, and what it gives."""
    f()
    begin = time.perf_counter()
    found = f()
    for each in psc.tree.leaves(found):
        np.asarray(each)
    return time.perf_counter() - begin, found


# The runs.


def run_quadratic(n: int = 100, sides: int = 20) -> Report:
    """Against NumPy's solver."""
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a = (q * np.logspace(0, -5, n)) @ q.T
    a = (a + a.T) / 2
    bs = rng.normal(size=(sides, n))
    took, (xs, slopes, steps, products) = seconds(lambda: quadratic(a, bs))

    def in_numpy() -> list[np.ndarray]:
        return [
            newton_cg_in_numpy(
                lambda x: x @ (a @ x) / 2 - b @ x,  # noqa: B023
                lambda x: a @ x - b,  # noqa: B023
                lambda _, d: a @ d,
                np.zeros(n),
                1e-5,
                1000,
            )
            for b in bs
        ]

    theirs, _ = seconds(in_numpy)
    exact = np.linalg.solve(a, bs.T).T
    error = np.linalg.norm(np.asarray(xs) - exact) / np.linalg.norm(exact)
    return Report(
        "quadratic",
        n,
        int(np.sum(np.asarray(steps))),
        int(np.sum(np.asarray(products))),
        float(np.max(np.asarray(slopes))),
        took,
        theirs,
        float(error),
        1e-4,
        "numpy.linalg.solve, relative",
    )


def run_logistic() -> Report:
    """Against scikit-learn."""
    data: Any = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    x = np.hstack([x, np.ones((len(x), 1))])
    signs = 2.0 * data.target - 1
    n, d = x.shape
    strength = 1 / n  # scikit-learn adds up the losses of n examples, and takes 1
    took, found = seconds(lambda: logistic(x, signs, strength))
    penalty = np.append(np.full(d - 1, strength), 0)

    def in_numpy() -> np.ndarray:
        def chances(w: np.ndarray) -> np.ndarray:
            return np.asarray(1 / (1 + np.exp(signs * (x @ w))))

        def product(w: np.ndarray, v: np.ndarray) -> np.ndarray:
            p = chances(w)
            return np.asarray(x.T @ (p * (1 - p) * (x @ v)) / n + penalty * v)

        return newton_cg_in_numpy(
            lambda w: np.logaddexp(0, -signs * (x @ w)).mean() + penalty @ (w * w) / 2,
            lambda w: -x.T @ (signs * chances(w)) / n + penalty * w,
            product,
            np.zeros(d),
            1e-10,
            200,
        )

    theirs, _ = seconds(in_numpy)
    reference: Any = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    reference.fit(x[:, :-1], data.target)
    expected = np.append(reference.coef_[0], reference.intercept_)
    return Report(
        "logistic regression",
        d,
        int(found.steps),
        int(found.products),
        float(found.slope),
        took,
        theirs,
        float(np.abs(np.asarray(found.x) - expected).max()),
        1e-6,
        "scikit-learn's weights",
    )


def read_text() -> str:
    """Real prose: lower-case words with one space between any two."""
    loaders = (load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine)
    datasets: list[Any] = [load() for load in loaders]
    descriptions = " ".join(dataset.DESCR for dataset in datasets)
    phrases = re.findall(r"[A-Za-z][a-z]+(?:,?\s+[a-z]+){3,}", descriptions)
    return re.sub("[^a-z]+", " ", " ".join(phrases).lower())


def run_chain(letters: int = 1500, states: int = 3) -> Report:
    """Against SciPy, which is to find the same minimum from nearby."""
    text = np.array([ALPHABET.index(letter) for letter in read_text()[:letters]], np.int32)
    rng = np.random.default_rng(1)
    shapes = (states,), (states, states), (states, len(ALPHABET))
    start = Chain(*(rng.normal(size=shape) * 0.1 for shape in shapes))
    strength = 1e-3
    took, (best, value, slope, steps, products) = seconds(lambda: chain(start, text, strength))
    tables = [np.asarray(table) for table in (best.start, best.transition, best.emission)]
    ends = np.cumsum([0, *(table.size for table in tables)])

    def for_scipy(x: np.ndarray) -> tuple[float, np.ndarray]:
        parts = zip(ends[:-1], ends[1:], shapes, strict=True)
        p = Chain(*(x[low:high].reshape(shape) for low, high, shape in parts))
        loss, g = chain_slope(p, text, strength)
        return float(loss), np.concatenate(
            [np.asarray(table).ravel() for table in (g.start, g.transition, g.emission)]
        )

    flat = np.concatenate([table.ravel() for table in tables])
    nearby = flat + 0.03 * rng.normal(size=flat.size)
    theirs: Any = minimize(for_scipy, nearby, jac=True, method="BFGS", options={"gtol": 1e-7})
    return Report(
        "hidden Markov model",
        flat.size,
        int(steps),
        int(products),
        float(slope),
        took,
        None,
        abs(float(value) - float(theirs.fun)),
        1e-9,
        "the loss of SciPy's BFGS",
    )


def run() -> list[Report]:
    """All three."""
    reports = [run_quadratic(), run_logistic(), run_chain()]
    for report in reports:
        np.testing.assert_array_less(report.error, report.tolerance, report.name)
    return reports


def main() -> None:
    """Print how each problem went."""
    for report in run():
        print(f"{report.name}: {report.unknowns} unknowns, {report.steps} steps", end=", ")
        print(f"{report.products} products with the Hessian, slope {report.slope:.0e}")
        beside = "" if report.numpy_seconds is None else f", NumPy {report.numpy_seconds:.4f} s"
        print(f"  {report.seconds:.4f} s{beside}; differs from {report.oracle} by ", end="")
        print(f"{report.error:.0e}, at most {report.tolerance:.0e} is allowed")


if __name__ == "__main__":
    main()
