"""Solutions of equations with derivatives of their own: public names, used in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from pscdsl.outside import outside

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
    """`solve(matvec, b)`, with the derivative of the x for which `matvec(x)` is `b`.

    Derivatives, in both modes and to any order, are with respect to `b` and to what `matvec`
    captures, whatever `solve` does: they are solutions of systems with the same `matvec`.  `matvec`
    is linear, and takes and returns trees like `b`.  For reverse mode say how to solve a system
    with its transpose, `transpose_solve(vecmat, b)`, or that it is `symmetric`.  With `has_aux`,
    `solve` returns `(x, aux)`, and so does this; `aux` has no derivative.
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
    """`solve(f, initial_guess)`, with the derivative of the x for which `f(x)` is zero.

    Derivatives, in both modes and to any order, are with respect to what `f` captures, whatever
    `solve` does.  `f` takes and returns trees like the guess; `tangent_solve(g, y)` solves
    `g(x) = y`, where `g` is the linear approximation of `f` at the root: `lambda g, y: y / g(1.0)`
    for a number.  With `has_aux`, `solve` returns `(x, aux)`, and so does this.
    """
    return outside("custom_root", f, initial_guess, solve, tangent_solve, has_aux)
