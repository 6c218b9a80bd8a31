"""Solutions of equations with derivatives of their own: public names, used in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from pscdsl._src.language.outside import outside

X = TypeVar("X")
Aux = TypeVar("Aux")
Map = Callable[[X], X]


@overload
def custom_linear_solve(
    matvec: Map[X],
    b: X,
    solve: Callable[[Map[X], X], X],
    transpose_solve: Callable[[Map[X], X], X] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> X: ...
@overload
def custom_linear_solve(
    matvec: Map[X],
    b: X,
    solve: Callable[[Map[X], X], tuple[X, Aux]],
    transpose_solve: Callable[[Map[X], X], X] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[X, Aux]: ...
def custom_linear_solve(
    matvec: Map[Any],
    b: Any,
    solve: Callable[[Map[Any], Any], Any],
    transpose_solve: Callable[[Map[Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear system with any solver, with the derivatives of the system.

    The result is that of `solve(matvec, b)`. Derivatives, in both modes and to any order, are those
    of the x with `matvec(x) = b`, with respect to `b` and to what `matvec` captures. They are
    solutions of systems with the same `matvec`.

    Args:
        matvec: A linear function of trees like `b`.
        b: The right-hand side, a tree of arrays.
        solve: A function of `matvec` and `b`.
        transpose_solve: The same for the transpose, `transpose_solve(vecmat, b)`. Reverse mode
            needs it, unless `symmetric` is set.
        symmetric: Whether `matvec` is its own transpose.
        has_aux: Whether `solve` returns `(x, aux)`; then this function does, too. `aux` has no
            derivative.
    """
    return outside("custom_linear_solve", matvec, b, solve, transpose_solve, symmetric, has_aux)


@overload
def custom_root(
    f: Map[X],
    initial_guess: X,
    solve: Callable[[Map[X], X], X],
    tangent_solve: Callable[[Map[X], X], X],
    has_aux: Literal[False] = False,
) -> X: ...
@overload
def custom_root(
    f: Map[X],
    initial_guess: X,
    solve: Callable[[Map[X], X], tuple[X, Aux]],
    tangent_solve: Callable[[Map[X], X], X],
    has_aux: Literal[True],
) -> tuple[X, Aux]: ...
def custom_root(
    f: Map[Any],
    initial_guess: Any,
    solve: Callable[[Map[Any], Any], Any],
    tangent_solve: Callable[[Map[Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find a root with any solver, with the derivatives of the equation.

    The result is that of `solve(f, initial_guess)`. Derivatives, in both modes and to any order,
    are those of the x with `f(x) = 0`, with respect to what `f` captures.

    Args:
        f: A function of trees like the guess.
        initial_guess: A tree of arrays.
        solve: A function of `f` and `initial_guess`.
        tangent_solve: A function that solves `g(x) = y`, where `g` is the linearization of `f` at
            the root: `lambda g, y: y / g(1.0)` for a number.
        has_aux: Whether `solve` returns `(x, aux)`; then this function does, too.
    """
    return outside("custom_root", f, initial_guess, solve, tangent_solve, has_aux)
