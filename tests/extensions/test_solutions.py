"""`psc.custom_linear_solve` and `psc.custom_root`: derivatives of equations, not of what solves."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64, i32

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)
A = np.eye(3) + 0.3 * RANDOM.normal(size=(3, 3))
B = RANDOM.normal(size=3)
P = RANDOM.uniform(1, 2, size=3)


def richardson(matvec: Callable[[Any], Any], b: Any) -> tuple[Any, i32]:
    """A loop that nobody bounds: reverse mode would refuse to run it backwards."""

    def unfinished(state: tuple[Any, i32]) -> Any:
        difference = b - matvec(state[0])
        return np.sum(difference * difference) > 1e-26

    def step(state: tuple[Any, i32]) -> tuple[Any, i32]:
        x, steps = state
        return x + 0.3 * (b - matvec(x)), steps + 1

    return psc.while_loop(unfinished, step, (np.zeros_like(b), np.int32(0)))


@psc.kernel
def solved(a: f64["n n"], b: f64["n"]) -> tuple[f64["n"], i32]:
    """The solution of a system that is not symmetric, and how many steps it took."""

    def back(vecmat: Callable[[Any], Any], b: Any) -> Any:
        return richardson(vecmat, b)[0]

    return psc.custom_linear_solve(
        lambda x: np.sin(a) @ x, b, richardson, transpose_solve=back, has_aux=True
    )


@psc.kernel
def of_solution(a: f64["n n"], b: f64["n"]) -> f64:
    return np.sum(np.sin(solved(a, b)[0]) * b)


@psc.kernel
def of_solution_directly(a: f64["n n"], b: f64["n"]) -> f64:
    return np.sum(np.sin(np.linalg.solve(np.sin(a), b)) * b)


@psc.kernel
def roots(p: f64["n"]) -> f64["n"]:
    """Of a cubic in several unknowns, by a fixed point."""

    def f(x: f64["n"]) -> f64["n"]:
        return x * x * x + p * x - np.roll(p, 1)

    def solve(f: Callable[[Any], Any], x: f64["n"]) -> f64["n"]:
        return psc.while_loop(lambda x: np.any(np.abs(f(x)) > 1e-14), lambda x: x - f(x) / 10, x)

    def tangent(g: Callable[[Any], Any], y: f64["n"]) -> f64["n"]:
        return np.linalg.solve(psc.jacfwd(g)(y), y)

    return psc.custom_root(f, np.ones_like(p), solve, tangent)


@psc.kernel
def of_roots(p: f64["n"]) -> f64:
    return np.sum(np.cos(roots(p)))


def test_the_solution_is_what_solve_finds() -> None:
    x, steps = solved(A, B)
    np.testing.assert_allclose(x, np.linalg.solve(np.sin(A), B), rtol=1e-11)
    assert int(steps) > 10
    x = np.asarray(roots(P))
    np.testing.assert_allclose(x**3 + P * x, np.roll(P, 1), rtol=1e-13)


def test_derivatives_of_linear_systems_to_second_order() -> None:
    """Hessians are forwards over backwards."""
    found = psc.grad(of_solution, argnums=(0, 1))(A, B)
    expected = psc.grad(of_solution_directly, argnums=(0, 1))(A, B)
    for mine, direct in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, direct, rtol=1e-9)
    found, expected = (psc.hessian(each)(A, B) for each in (of_solution, of_solution_directly))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_derivatives_of_roots_to_second_order() -> None:
    step = 1e-5
    slope = psc.grad(of_roots)
    differences = [
        (of_roots(P + step * e) - of_roots(P - step * e)) / (2 * step) for e in np.eye(3)
    ]
    np.testing.assert_allclose(slope(P), differences, rtol=1e-7)
    rows = [(slope(P + step * e) - slope(P - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(psc.hessian(of_roots)(P), rows, rtol=1e-7)


def test_batches() -> None:
    matrices = np.stack([A, A + 0.01 * np.eye(3)])
    rows = psc.vmap(psc.grad(of_solution), in_axes=(0, None))(matrices, B)
    for matrix, row in zip(matrices, rows, strict=True):
        np.testing.assert_allclose(row, psc.grad(of_solution)(matrix, B), rtol=1e-9)
    several = np.stack([P, P + 1])
    values = psc.vmap(roots)(several)
    np.testing.assert_allclose(values, [roots(p) for p in several], rtol=1e-12)


def test_symmetric_systems_are_their_own_transpose() -> None:
    @psc.kernel
    def of_tree(a: f64["n n"], b: f64["n"], s: f64) -> f64:
        """Two unknowns, a vector and a number, by elimination."""

        def matvec(x: tuple[Any, Any]) -> tuple[Any, Any]:
            return a @ x[0] + x[1] * b, b @ x[0] + s * x[1]

        def solve(_: object, right: tuple[Any, Any]) -> tuple[Any, Any]:
            along, own = np.linalg.solve(a, b), np.linalg.solve(a, right[0])
            last = (right[1] - b @ own) / (s - b @ along)
            return own - last * along, last

        x, y = psc.custom_linear_solve(matvec, (np.cos(b), s * s), solve, symmetric=True)
        return np.sum(x * x) * y

    @psc.kernel
    def of_tree_as_a_square(a: f64["n n"], b: f64["n"], s: f64) -> f64:
        return of_tree(a @ a.T, b, s)

    psc.check_grads(of_tree_as_a_square, (A, B, 5.0), order=1)


@psc.kernel
def of_one_side(a: f64["n n"], b: f64["n"], c: f64["n"]) -> f64:
    """A system with two right sides, of which only the first one depends on `b`."""

    def matvec(x: tuple[Any, Any]) -> tuple[Any, Any]:
        return a @ x[0] + x[1], 2.0 * x[1]

    def solve(_: object, right: tuple[Any, Any]) -> tuple[Any, Any]:
        y = right[1] / 2.0
        return np.linalg.solve(a, right[0] - y), y

    def back(_: object, right: tuple[Any, Any]) -> tuple[Any, Any]:
        x = np.linalg.solve(a.T, right[0])
        return x, (right[1] - x) / 2.0

    x, y = psc.custom_linear_solve(matvec, (np.cos(b), c), solve, transpose_solve=back)
    return np.sum(np.sin(x) * y)


def test_a_right_side_that_does_not_move_is_no_capture() -> None:
    """Reverse mode took it for one of the solver's."""
    (by_b,) = psc.grad(of_one_side, argnums=(1,))(A, B, P)
    x = np.linalg.solve(A, np.cos(B) - P / 2)
    wanted = -np.linalg.solve(A.T, np.cos(x) * P / 2) * np.sin(B)
    np.testing.assert_allclose(np.asarray(by_b), wanted, rtol=1e-10)


@psc.kernel
def nothing_said(a: f64["n n"], b: f64["n"]) -> f64["n"]:
    def loss(b: f64["n"]) -> f64:
        x = psc.custom_linear_solve(lambda x: a @ x, b, lambda _, b: np.linalg.solve(a, b))
        return np.sum(x)

    return psc.grad(loss)(b)


@psc.kernel
def other_type(a: f64["n n"], b: f64["n"]) -> f64:
    return psc.custom_root(lambda x: a @ x, b, lambda f, x: np.sum(f(x)), lambda g, y: y)


@psc.kernel
def integers(b: i32["n"]) -> i32["n"]:
    return psc.custom_root(lambda x: x, b, lambda f, x: x, lambda g, y: y)


@psc.kernel
def no_pair(b: f64["n"]) -> f64["n"]:
    def solve(f: object, x: Any) -> Any:
        return x

    return psc.custom_root(lambda x: x, b, solve, lambda g, y: y, has_aux=True)[0]


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (nothing_said, "give it `transpose_solve`, or say that it is `symmetric`"),
        (
            other_type,
            r"`solve` of `psc.custom_root` gives f64, but the equation is one of f64\[n\]",
        ),
        (integers, "floating-point or complex arrays as the guess"),
        (no_pair, "a pair from `solve`"),
    ],
)
def test_refusals(kernel: Any, says: str) -> None:
    with pytest.raises(psc.CheckError, match=says):
        kernel.check()
