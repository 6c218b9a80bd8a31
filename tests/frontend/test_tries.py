"""`try` of what raises nothing under NumPy, and `finally`."""

# pyright: reportPossiblyUnboundVariable=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32
from pscdsl._src.frontend.interpreter.arrangements import inputs_of_ufunc
from pscdsl._src.frontend.interpreter.masks import is_elementwise
from pscdsl.typing.diagnostics import Failure
from tests.support.numpy_differential import meaning
from tests.support.numpy_harness import run
from tests.support.sample_calls import functions, real

pytestmark = pytest.mark.quick_code


def quotient(x: f64["n"]) -> f64["n"]:
    try:
        y = 1 / x
    except ZeroDivisionError:
        y = x
    return y


def several(x: f64["n"]) -> f64["n"]:
    try:
        s = np.sum(x)
        y: Any = np.sqrt(x) / s
    except (ZeroDivisionError, ValueError) as error:
        print(error)
        raise
    else:
        y += 1
    finally:
        y *= 2
    return y


def after_the_return(x: f64["n"]) -> f64["n"]:
    y = x.copy()
    try:
        return y
    finally:
        y[0] = 7


def in_a_loop(x: f64["n"]) -> f64["n"]:
    for i in range(40):
        try:
            x = x / (x - x + i)
        except ZeroDivisionError:
            x = -x
    return x


def in_branches(x: f64["n"]) -> f64["n"]:
    if x[0] > 0:
        try:
            return x / 0
        except ZeroDivisionError:
            return x
    try:
        z = x
    finally:
        if x[0] < -1:
            x = x + 1
    return x - z


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [quotient, several, after_the_return, in_a_loop, in_branches],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("first", [0.3, 0.0, -3.0])
def test_as_under_numpy(function: Callable[..., Any], first: float) -> None:
    for size in (1, 2, 3):
        x = np.array([first, 0.0, 0.71])[:size]
        wanted = function(x.copy())
        np.testing.assert_allclose(np.asarray(psc.kernel(function)(x)), wanted)


def of_numbers(x: f64["n"], t: f64) -> f64["n"]:
    try:
        y = 1 / t
    except ZeroDivisionError:
        y = 0
    return x * y


def anything(x: f64["n"], t: f64) -> f64["n"]:
    try:
        y = x / t
    except Exception:
        y = x
    return y


def of_integers(x: f64["n"], t: f64) -> i32["n"]:
    k = x.astype(np.int32)
    try:
        y = k ** (-k)
    except ValueError:
        y = k
    return y


def of_matrices(x: f64["n"], t: f64) -> f64["n"]:
    try:
        y = np.linalg.solve(np.outer(x, x), x)
    except np.linalg.LinAlgError:
        y = x
    return y


def of_facts(x: f64["n"], t: f64) -> f64["n"]:
    try:
        assert x.shape[0] > 3
        y = x
    except AssertionError:
        y = -x
    return y


def with_a_jump(x: f64["n"], t: f64) -> f64["n"]:
    for _ in range(3):
        try:
            break
        finally:
            x = x + 1
    return x


def halved_in_try(t: Any) -> Any:
    return 1 / t


def of_calls(x: f64["n"], t: f64) -> f64["n"]:
    try:
        y = x * halved_in_try(t)
    except ZeroDivisionError:
        y = x
    return y


@pytest.mark.parametrize(
    "function",
    [of_numbers, anything, of_integers, of_matrices, of_facts, with_a_jump, of_calls],
    ids=lambda x: x.__name__,
)
def test_what_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(psc.CheckError, match="PSC101"):
        psc.kernel(function)(np.ones(5), 2.0)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, 1.7e308, -0.5])
OPERANDS = SPECIAL, SPECIAL[::-1], np.array([0, np.inf] * 5, np.float32), np.arange(10) * 1j, 2, -1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [each for each in functions() if is_elementwise(each)])
def test_functions_of_elements_raise_nothing(name: str) -> None:
    function: Any = real(name)
    given = [(x, y)[: inputs_of_ufunc(name) or 2] for x, y in product(OPERANDS, OPERANDS)]
    given = [(x == x, *args) if name == "numpy.where" else args for args in given for x in args[:1]]
    for args in given:
        arrays = [x for x in args if isinstance(x, np.ndarray)]
        if arrays:
            try:
                function(*args)
            except TypeError:  # a dtype that kernels do not take either
                with pytest.raises((Failure, TypeError)):
                    run(lambda *xs: meaning(name).of_mixed(None, xs, {}), *args)
