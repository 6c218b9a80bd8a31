"""`np.piecewise`: functions of what conditions select, beside NumPy."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32

pytestmark = pytest.mark.quick_code


def numbers(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x < 0.3, x >= 0.7], [-1.0, lambda t: t * 2, 5])


def reduced(x: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    def rooted(t: Any, scale: Any = 2.0, *, shift: Any = 0) -> Any:
        return np.sqrt(np.abs(t)) * scale + shift

    def centred(t: Any, scale: Any, shift: Any) -> Any:
        return t - t.mean() * scale + shift

    a = np.piecewise(x, [x < 0.3, x >= 0.25], [rooted, centred], 3.0, shift=x.sum())
    a += 1
    b = np.piecewise(x, (x < 0.3,), (lambda t: t.sum(), np.exp))
    return a, b


def overlapping(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x > 0.3, x > 0.5], [lambda t: t, np.negative, lambda t: t - t.max()])


def of_matrices(x: f64["n"]) -> f64["n n"]:
    a = np.outer(x, x)
    functions: Any = [np.sin, lambda t: np.where(t > 0.7, t, -t), 0.25]
    return np.piecewise(a, [a < 0.3, a > 0.5], functions)


def where_undefined(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x > 0], [lambda t: np.log(t) / t, 0.0])


def of_integers(x: f64["n"]) -> i32["n"]:
    k = (x * 10).astype(np.int32)
    return np.piecewise(k, [k < 3], [lambda t: t * 3, 2])


@pytest.mark.parametrize(
    "function",
    [numbers, reduced, overlapping, of_matrices, where_undefined, of_integers],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("size", [1, 2, 6])
def test_as_under_numpy(function: Callable[..., Any], size: int) -> None:
    x = np.array([0.3, -0.65, 0.71, 0.1, 0.22, 0.95])[:size]
    wanted, found = function(x.copy()), psc.kernel(function)(x)
    alone = type(wanted) is not tuple
    columns: list[Any] = [(wanted,), (found,)] if alone else [wanted, found]
    for one, other in zip(*columns, strict=True):
        assert np.asarray(other).dtype == one.dtype
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-12, atol=1e-12)


def test_derivatives_are_those_of_the_pieces() -> None:
    def loss(x: f64["n"]) -> f64:
        return np.sum(np.piecewise(x, [x > 0], [np.sqrt, lambda t: t * t]))

    gradient: Any = psc.grad(psc.kernel(loss))
    np.testing.assert_allclose(gradient(np.array([4.0, 0.0, -3.0])), [0.25, 0.0, -6.0])


def running(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x < 0.3], [lambda t: np.cumsum(t)])


def no_list(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, x < 0.3, [1.0, 2.0])


def whole_array(x: f64["n"]) -> f64["n"]:
    functions: Any = [x, 2.0]
    return np.piecewise(x, [x < 0.3], functions)


def too_few(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x < 0.3, x > 0.4, x > 0.5], [1.0, 2.0])


def other_shape(x: f64["n"]) -> f64["n"]:
    return np.piecewise(x, [x[:1] < 0.3], [1.0, 2.0])


def floats_into_integers(x: f64["n"]) -> i32["n"]:
    k = x.astype(np.int32)
    return np.piecewise(k, [k < 3], [lambda t: np.sqrt(t.astype(np.float64)), 2])


def noted(x: f64["n"]) -> f64["n"]:
    log: list[Any] = []

    def note(t: Any) -> Any:
        log.append(1)
        return t

    return np.piecewise(x, [x < 0.3], [note]) + len(log)


@pytest.mark.parametrize(
    "function",
    [running, no_list, whole_array, too_few, other_shape, floats_into_integers, noted],
    ids=lambda x: x.__name__,
)
def test_what_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(psc.CheckError, match=r"PSC120|PSC317|PSC413"):
        psc.kernel(function)(np.ones(3))
