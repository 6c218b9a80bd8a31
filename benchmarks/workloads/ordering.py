"""Sorting, places, prefixes, and parts read and replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pscdsl as psc
from benchmarks.workload import Derived, Workload, normal
from pscdsl import Float, bool_, f32, i32

MANY = 1 << 20
"""The elements of the larger arrays."""


@psc.kernel
def sort(x: f32["*b n"]) -> f32["*b n"]:
    """The elements of each row in order."""
    return np.sort(x, axis=-1)


@psc.kernel
def sort_integers(x: i32["n"]) -> i32["n"]:
    """Integers in order."""
    return np.sort(x)


@psc.kernel
def argsort(x: f32["*b n"]) -> i32["*b n"]:
    """The places of the elements of each row in order."""
    return np.argsort(x, axis=-1, kind="stable")


@psc.kernel
def weighted_order(x: f32["*b n"], w: f32["n"]) -> f32:
    """A sum that depends on the order."""
    return np.sum(np.sort(x, axis=-1) * w)


@psc.kernel
def median(x: f32["m n"]) -> f32["m"]:
    """The median of each row."""
    return np.median(x, axis=1)


@psc.kernel
def top_10(x: f32["m n"]) -> tuple[f32["m 10"], i32["m 10"]]:
    """The largest few of each row, and their places."""
    assert x.shape[1] >= 10
    return psc.top_k(x, 10)


@psc.kernel
def argmax(x: f32["*b n"]) -> i32["*b"]:
    """The first place of the largest element of each row."""
    return np.argmax(x, axis=-1)


@psc.kernel
def argmax_columns(x: f32["n m"]) -> i32["m"]:
    """The first place of the largest element of each column."""
    return np.argmax(x, axis=0)


@psc.kernel
def cumsum(x: f32["*b n"]) -> f32["*b n"]:
    """Prefix sums of each row."""
    return np.cumsum(x, axis=-1)


@psc.kernel
def cumsum_columns(x: f32["n m"]) -> f32["n m"]:
    """Prefix sums of each column."""
    return np.cumsum(x, axis=0)


@psc.kernel
def cumprod(x: f32["*b n"]) -> f32["*b n"]:
    """Prefix products of each row."""
    return np.cumprod(x, axis=-1)


@psc.kernel
def cummax(x: f32["*b n"]) -> f32["*b n"]:
    """The largest element so far in each row."""
    return np.maximum.accumulate(x, axis=-1)


@psc.kernel
def cummax_columns(x: f32["n m"]) -> f32["n m"]:
    """The largest element so far in each column."""
    return np.maximum.accumulate(x, axis=0)


@psc.kernel
def area(x: f32["*b n"]) -> f32["*b"]:
    """The area under evenly spaced samples."""
    return np.trapezoid(x, dx=0.1)


@psc.kernel
def places(a: Float["k"], v: Float["n"]) -> i32["n"]:
    """Where elements go into a sorted array."""
    return np.searchsorted(a, v)


@psc.kernel
def stencil(u: f32["m n"]) -> f32["m n"]:
    """One step of Jacobi's method for Laplace's equation; the border stays."""
    assert u.shape[0] >= 3
    assert u.shape[1] >= 3
    inner = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
    return psc.update(u, np.s_[1:-1, 1:-1], inner)


@psc.kernel
def rows(x: f32["m n"], index: i32["k"]) -> f32["k n"]:
    """Rows at computed places."""
    return x[index]


@psc.kernel
def ordered_rows(x: f32["m n"]) -> f32["m n"]:
    """Rows in the order of their first elements: places that are known to be there."""
    return x[np.argsort(x[:, 0])]


@psc.kernel
def count(x: bool_["*b n"]) -> i32["*b"]:
    """How many are true in each row."""
    return np.sum(x, axis=-1)


@psc.kernel
def some(x: bool_["*b n"]) -> bool_["*b"]:
    """Whether one is true in each row."""
    return np.max(x, axis=-1)


@psc.kernel
def finite(x: f32["*b"]) -> bool_:
    """Whether all elements are finite."""
    return np.all(np.isfinite(x))


@psc.kernel
def largest_integers(x: i32["*b n"]) -> i32["*b"]:
    """The largest of each row."""
    return np.max(x, axis=-1)


def _finite(jax: Any) -> Callable[..., Any]:
    def all_finite(x: Any) -> Any:
        return jax.numpy.all(jax.numpy.isfinite(x))

    return all_finite


def _whole_numbers(n: int) -> tuple[Any, ...]:
    return ((1000 * normal(n, n)).astype(np.int32),)


def _stencil(jax: Any) -> Callable[..., Any]:
    def step(u: Any) -> Any:
        inner = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
        return u.at[1:-1, 1:-1].set(inner)

    return step


def _weighted_order(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(jnp.sort(x, axis=-1) * w)

    found: Callable[..., Any] = jax.grad(loss)
    return found


def _row(n: int) -> tuple[Any, ...]:
    return (normal(n, scale=1.0),)


def _long(n: int) -> tuple[Any, ...]:
    return (normal(1, n, scale=1.0),)


def _square(n: int) -> tuple[Any, ...]:
    return (normal(n, n, scale=1.0),)


def _short(n: int) -> tuple[Any, ...]:
    return (normal(n, 16, scale=1.0),)


def _integers(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).integers(-(2**31), 2**31, n).astype(np.int32),)


def _weighted(n: int) -> tuple[Any, ...]:
    return normal(n, n, scale=1.0), normal(n)


def _near_one(n: int) -> tuple[Any, ...]:
    return (1 + normal(n, n, scale=0.01),)


def _sorted(count: int, n: int) -> tuple[Any, ...]:
    return np.sort(normal(count, scale=1.0)), normal(n, scale=1.0)


def _picked(n: int) -> tuple[Any, ...]:
    return normal(n, n), np.random.default_rng(n).integers(0, n, n).astype(np.int32)


def _short_rows(n: int) -> tuple[Any, ...]:
    return (normal(20_000, n),)


def _truths(n: int) -> tuple[Any, ...]:
    return (normal(n, n) > 0.5,)


def _method(name: str, *arguments: Any, **keywords: Any) -> Callable[[Any], Callable[..., Any]]:
    """Jax's function of a name from NumPy, with more arguments."""
    return lambda jax: lambda *arrays: getattr(jax.numpy, name)(*arrays, *arguments, **keywords)


def _cummax(axis: int) -> Callable[[Any], Callable[..., Any]]:
    return lambda jax: partial(jax.lax.cummax, axis=axis)


def _top(jax: Any) -> Callable[..., Any]:
    def top(x: Any) -> Any:
        return jax.lax.top_k(x, 10)

    return top


def _rows(jax: Any) -> Callable[..., Any]:
    def picked(x: Any, index: Any) -> Any:
        return x[index]

    return picked


def _ordered_rows(jax: Any) -> Callable[..., Any]:
    def ordered(x: Any) -> Any:
        return x[jax.numpy.argsort(x[:, 0])]

    return ordered


WORKLOADS = (
    Workload("sort 1M", sort, _row, MANY, _method("sort"), goal=0.25),
    Workload("sort 1M i32", sort_integers, _integers, MANY, _method("sort"), goal=0.6),
    Workload("sort rows", sort, _square, 1024, _method("sort"), goal=0.25),
    Workload("sort 10k rows of 16", sort, _short, 10_000, _method("sort"), goal=0.25),
    Workload(
        "sort rows, gradient",
        psc.grad(weighted_order),
        _weighted,
        1024,
        _weighted_order,
        derived=Derived(weighted_order, psc.grad),
        choices={"b": 1},
    ),
    Workload("argsort 1M", argsort, _row, MANY, _method("argsort"), goal=0.5),
    Workload("argsort rows", argsort, _square, 1024, _method("argsort"), goal=0.5),
    Workload("argsort 10k rows of 16", argsort, _short, 10_000, _method("argsort"), goal=0.5),
    Workload("median of rows", median, _square, 1024, _method("median", axis=1), goal=0.25),
    Workload("top 10 of rows", top_10, _square, 1024, _top, goal=0.5),
    Workload("top 10 of 1M", top_10, _long, MANY, _top, goal=0.3),
    Workload("argmax 1M", argmax, _row, MANY, _method("argmax"), goal=0.3),
    Workload("argmax rows", argmax, _square, 1024, _method("argmax", axis=1), goal=0.3),
    Workload("argmax, rows of 32", argmax, _short_rows, 32, _method("argmax", axis=1), goal=0.3),
    Workload("argmax, rows of 48", argmax, _short_rows, 48, _method("argmax", axis=1), goal=0.3),
    Workload("argmax columns", argmax_columns, _square, 1024, _method("argmax", axis=0), goal=0.5),
    Workload("cumsum 1M", cumsum, _row, MANY, _method("cumsum"), goal=0.35, tolerance=1e-3),
    Workload("cumsum rows", cumsum, _square, 1024, _method("cumsum", axis=1), goal=0.35),
    Workload(
        "trapezoid 1M", area, _row, MANY, _method("trapezoid", dx=0.1), goal=1.05, tolerance=1e-3
    ),
    Workload("trapezoid rows", area, _square, 1024, _method("trapezoid", dx=0.1), goal=1.05),
    Workload("cumsum columns", cumsum_columns, _square, 1024, _method("cumsum", axis=0), goal=0.35),
    Workload("cumprod rows", cumprod, _near_one, 1024, _method("cumprod", axis=1), goal=0.5),
    Workload("cummax 1M", cummax, _row, MANY, _cummax(0), goal=0.5),
    Workload("cummax rows", cummax, _square, 1024, _cummax(1), goal=0.5),
    Workload("cummax columns", cummax_columns, _square, 1024, _cummax(0), goal=0.5),
    Workload(
        "searchsorted 1k in 50",
        places,
        partial(_sorted, 50),
        1000,
        _method("searchsorted"),
        goal=0.9,
    ),
    Workload(
        "searchsorted 1M in 64",
        places,
        partial(_sorted, 64),
        MANY,
        _method("searchsorted"),
        goal=0.25,
    ),
    Workload(
        "searchsorted 1M in 100k",
        places,
        partial(_sorted, 100_000),
        MANY,
        _method("searchsorted"),
        goal=1.0,
    ),
    Workload("stencil update", stencil, _square, 1024, _stencil, goal=1.05),
    Workload("rows picked", rows, _picked, 1024, _rows, goal=0.8),
    Workload(
        "rows in order",
        ordered_rows,
        _square,
        1024,
        _ordered_rows,
        goal=0.8,
    ),
    Workload("count of rows", count, _truths, 1024, _method("sum", axis=1), goal=1.0),
    Workload("maximum of truths", some, _truths, 1024, _method("max", axis=1), goal=1.0),
    Workload("all finite", finite, _square, 1024, _finite, goal=1.0),
    Workload(
        "integers, maximum of rows",
        largest_integers,
        _whole_numbers,
        1024,
        _method("max", axis=1),
        goal=1.0,
    ),
)
