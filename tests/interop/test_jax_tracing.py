"""What is traced, and what needs a concrete value: jax agrees with our lists of functions."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from pscdsl._src.dialects.jax.arrays import ARRANGING, METHODS, OPERATIONS
from pscdsl._src.dialects.jax.concrete import NUMBERS, OF_NUMPY

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy
errors: Any = jax.errors

X = np.ones((3, 3), np.float32)
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    *((X,), (X, X), (X > 0, X, X), (3,), (3, 1), ((3,), 1.0), (X, 1), (X, 0, 1)),
    *((X, (3, 3)), (X, 0.0, 1.0)),
)


def of_jax(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = reduce(getattr, name.split(".")[1:], jax)
    return found


def traced(function: Callable[[], Any]) -> Any:
    """Return what a function gives while another one is traced."""
    found: list[Any] = []

    def around(x: Any) -> Any:
        found.append(function())
        return x

    jax.jit(around)(1.0)
    return found[0]


def result(function: Callable[..., Any]) -> Any:
    """Return what a function gives for the first of those arguments that it takes."""
    for given in ARGUMENTS:
        args = [jnp.asarray(each) if isinstance(each, np.ndarray) else each for each in given]
        try:
            return function(*args)
        except (TypeError, ValueError):
            continue
    raise AssertionError("it takes none of the arguments")


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_gives_a_traced_array_for_constants_too(name: str) -> None:
    if name.startswith("jax.random."):
        key = jax.random.key(0)
        extra = {"randint": ((2,), 0, 3), "categorical": (jnp.ones(3),)}
        rest = extra.get(name.rpartition(".")[2], ())
        found = traced(lambda: of_jax(name)(key, *rest))
    else:
        found = traced(lambda: result(of_jax(name)))
    assert isinstance(found, jax.core.Tracer)


@pytest.mark.parametrize("name", sorted(ARRANGING))
def test_a_function_gives_an_array_that_takes_no_stores(name: str) -> None:
    found = result(of_jax(name))
    assert isinstance(found, jax.Array)
    with pytest.raises(TypeError):
        operator.setitem(found, 0, 1)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_of_an_array_gives_a_traced_one(name: str) -> None:
    x = jnp.asarray(X)
    args = (x,) if name == "dot" else ()
    assert isinstance(traced(lambda: getattr(x, name)(*args)), jax.core.Tracer)


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_no_number_of_python_is_made_of_a_traced_one(name: str) -> None:
    function = getattr(builtins, name.removeprefix("builtins."))

    def converted(x: Any) -> Any:
        return function(x) and x

    with pytest.raises((errors.ConcretizationTypeError, TypeError)):
        jax.jit(converted)(1)


@pytest.mark.parametrize("name", sorted(OF_NUMPY))
def test_numpy_does_not_read_a_traced_array(name: str) -> None:
    function = getattr(np, name.removeprefix("numpy."))
    count = {"maximum": 2, "minimum": 2, "dot": 2, "where": 3}.get(name.removeprefix("numpy."), 1)

    def computed(x: Any) -> Any:
        return function(*[x] * count)

    with pytest.raises(errors.TracerArrayConversionError):
        jax.jit(computed)(X)
