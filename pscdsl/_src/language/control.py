# mypy: disable-error-code="empty-body"
"""Combinators and solvers: public names with the compiler's meaning, also outside of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar, TypeVarTuple, overload

from pscdsl._src.language.declarations import declaring, declaring_bodies
from pscdsl.arrays import Array, c64, i32

as_in_kernels = declaring("pscdsl")
declared = declaring_bodies("pscdsl")

# The combinators' public names.


# The initial carry of a loop and the final one are two variables: to a type checker
# `np.zeros(3)` and `np.zeros(3) + x` differ in dtype, and whether they do is for `pscdsl check`.
C = TypeVar("C")
D = TypeVar("D")
X = TypeVar("X")
Y = TypeVar("Y")
Ts = TypeVarTuple("Ts")


@overload
def scan(
    f: Callable[[C, X], tuple[D, Y]],
    init: C,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[D, Y]: ...
@overload
def scan(
    f: Callable[[C, None], tuple[D, Y]],
    init: C,
    *,
    length: int,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[D, Y]: ...
@as_in_kernels
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Loop over rows with a carry: `carry, y = f(carry, x)`.

    Args:
        f: A function of the carry and a row of `xs`. It returns the next carry, with the types of
            the first one, and a result for this row.
        init: The first carry, a tree of arrays.
        xs: A tree of arrays with the same leading axis; None for a loop without rows.
        length: The number of steps; required if `xs` is None.
        reverse: Whether to go from the last row to the first. Row i of the results belongs to row i
            of `xs` either way.
        unroll: Accepted for compatibility with JAX; it has no effect.

    Returns:
        The last carry, and the results of all rows, stacked along a leading axis.

    Examples:
        >>> psc.scan(lambda total, x: (total + x, total + x), 0.0, np.array([1.0, 2.0, 3.0]))
        (pscdsl.Array(6., dtype=float64), pscdsl.Array([1., 3., 6.], dtype=float64))
    """
    ...


@as_in_kernels
def map(f: Callable[[X, *Ts], Y], xs: X, *more: *Ts) -> Y:  # noqa: A001
    """Apply a function to each row: `f(x)` for x along the leading axis of `xs`.

    With several trees, rows are taken together: `f(x, y)` for x of `xs` and y of `ys`.

    Returns:
        The results, stacked along a leading axis.

    Examples:
        >>> psc.map(lambda row: np.sum(row) / row[0], np.array([[1.0, 2.0], [4.0, 4.0]]))
        pscdsl.Array([3., 2.], dtype=float64)
    """
    ...


@as_in_kernels
def associative_scan(fn: Callable[[X, X], Y], elems: X, reverse: bool = False, axis: int = 0) -> Y:
    """Combine all prefixes: `y[0] = x[0]` and `y[i] = fn(y[i-1], x[i])`.

    Args:
        fn: An associative function of two rows, trees like `elems` without the axis. Rows are
            combined in any grouping, in their order. In `jax.lax` this function is called on arrays
            of many rows; most such functions work for rows too.
        elems: A tree of arrays.
        reverse: Whether to combine from the last row to the first: `y[i] = fn(y[i+1], x[i])`.
        axis: The axis of the rows.

    Returns:
        A tree like `elems`.

    Examples:
        >>> psc.associative_scan(lambda x, y: np.maximum(x, y), np.array([3, 1, 4, 1, 5]))
        pscdsl.Array([3, 3, 4, 4, 5], dtype=int64)
    """
    ...


@as_in_kernels
def map_reduce(
    map_fn: Callable[[X], Any], combine: Callable[[Any, Any], D], xs: X, init: Any = None
) -> D:
    """Apply a function to each row and combine the results, a monoidal reduction.

    Args:
        map_fn: A function of a row of `xs`.
        combine: An associative function of two results of `map_fn`. Results are combined in any
            grouping, in their order.
        xs: A tree of arrays with the same leading axis.
        init: Combined before the first result, and the result if there are no rows. Without it
            there must be at least one row.

    Returns:
        The combined result. Large results of single rows are not all in memory together.

    Examples:
        >>> psc.map_reduce(lambda x: x * x, lambda x, y: x + y, np.array([1.0, 2.0, 3.0]))
        pscdsl.Array(14., dtype=float64)
    """
    ...


@as_in_kernels
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[i32, C], D], init_val: C) -> D:
    """Loop over integers from `lower` up to `upper - 1` with a carry: `val = body_fun(i, val)`.

    Returns:
        The last value; `init_val` if there are no steps.

    Examples:
        >>> psc.fori_loop(0, 10, lambda i, x: (x + 2 / x) / 2, 1.0)
        pscdsl.Array(1.4142, dtype=float64)
    """
    ...


@as_in_kernels
def while_loop(
    cond_fun: Callable[[C], Any],
    body_fun: Callable[[C], D],
    init_val: C,
    max_steps: i32 | None = None,
    checkpoint_every: int | None = None,
) -> D:
    """Loop while a condition holds: `val = body_fun(val)` while `cond_fun(val)`.

    Args:
        cond_fun: A function of the value that returns a bool scalar.
        body_fun: A function of the value that returns the next one, with the same types.
        init_val: The first value, a tree of arrays.
        max_steps: The largest number of steps. Reverse mode needs one that is known at check time;
            its time is proportional to the steps taken.
        checkpoint_every: Reverse mode saves the value every so many steps and recomputes those in
            between. 1 saves all. By default all are saved if they are small, otherwise every square
            root of `max_steps`.

    Returns:
        The first value for which `cond_fun` does not hold, or the value after `max_steps` steps.

    Examples:
        >>> psc.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
        pscdsl.Array(192, dtype=int64)
    """
    ...


@as_in_kernels
def cond(
    pred: Any,
    true_fun: Callable[[*Ts], Y],
    false_fun: Callable[[*Ts], Y],
    *operands: *Ts,
) -> Y:
    """Call `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    Both functions return the same types. Only one of them runs, except in a batch of predicates.

    Examples:
        >>> psc.cond(True, lambda x: x + 1, lambda x: x - 1, 10)
        pscdsl.Array(11, dtype=int64)
    """
    ...


@as_in_kernels
def switch(index: Any, branches: Sequence[Callable[[*Ts], Y]], *operands: *Ts) -> Y:
    """Call one of several functions: `branches[index](*operands)`.

    All branches return the same types. An index out of range is clamped.

    Examples:
        >>> psc.switch(1, [lambda x: x, lambda x: x * x, lambda x: -x], 5.0)
        pscdsl.Array(25., dtype=float64)
    """
    ...


@as_in_kernels
def update(
    x: C,
    index: Any,
    value: Any,
    combine: Literal["set", "add", "multiply", "minimum", "maximum"] = "set",
) -> C:
    """Return `x` with `value` at `index`, the functional form of `x[index] = value`.

    Args:
        x: An array.
        index: Anything that can index `x`: integers, slices, integer arrays, boolean masks.
            Computed indices out of range are clamped.
        value: An array or number that broadcasts to `x[index]`.
        combine: How old and new elements are combined: "set", "add", "multiply", "minimum" or
            "maximum".

    Returns:
        A new array; `x` does not change.

    Examples:
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> psc.update(x, 1, 10.0)
        pscdsl.Array([ 1., 10.,  3.], dtype=float64)
        >>> psc.update(x, np.array([0, 0, 2]), 1.0, combine="add")
        pscdsl.Array([3., 2., 4.], dtype=float64)
    """
    ...


@as_in_kernels
def dynamic_slice(x: C, starts: Sequence[Any], sizes: Sequence[int]) -> C:
    """Return the part of `x` that begins at computed indices.

    Args:
        x: An array.
        starts: An integer for each axis. They are clamped so that the part lies inside `x`.
        sizes: The size of the part along each axis, known at check time.

    Examples:
        >>> psc.dynamic_slice(np.arange(6), [2], [3])
        pscdsl.Array([2, 3, 4], dtype=int64)
        >>> psc.dynamic_slice(np.arange(6), [5], [3])
        pscdsl.Array([3, 4, 5], dtype=int64)
    """
    ...


@as_in_kernels
def dynamic_update(x: C, update: Any, starts: Sequence[Any]) -> C:
    """Return `x` with `update` written at computed indices.

    Args:
        x: An array.
        update: An array with as many axes, no larger than `x`.
        starts: An integer for each axis. They are clamped so that `update` lies inside `x`.

    Examples:
        >>> psc.dynamic_update(np.zeros(5), np.array([1.0, 2.0]), [3])
        pscdsl.Array([0., 0., 0., 1., 2.], dtype=float64)
    """
    ...


@as_in_kernels
def complex(x: Any, y: Any) -> c64:  # noqa: A001
    """Return complex numbers with the given real and imaginary parts, which have the same dtype.

    Examples:
        >>> psc.complex(np.array([1.0, 2.0]), np.array([0.0, -1.0]))
        pscdsl.Array([1.+0.j, 2.-1.j], dtype=complex128)
    """
    ...


@as_in_kernels
def top_k(x: C, k: int, *, axis: int = -1) -> tuple[C, i32]:
    """Return the k largest elements along an axis, in descending order, and their indices.

    Examples:
        >>> psc.top_k(np.array([3.0, 9.0, 5.0]), 2)
        (pscdsl.Array([9., 5.], dtype=float64), pscdsl.Array([1, 2], dtype=int32))
    """
    ...


@as_in_kernels
def triangular_solve(
    a: Array,
    b: C,
    *,
    lower: bool = False,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> C:
    """Solve `a @ x = b` for a triangular matrix.

    Args:
        a: Matrices of shape [*batch n n]. Only one triangle is read. A zero on the diagonal gives
            infinities and NaN.
        b: Right-hand sides of shape [n] or [*batch n k]; leading axes broadcast.
        lower: Whether to read the lower triangle.
        transpose: Whether to solve `a.mT @ x = b` instead.
        unit_diagonal: Whether the diagonal of `a` counts as ones.

    Returns:
        The solution x.

    Examples:
        >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
        >>> psc.triangular_solve(a, np.array([2.0, 9.0]), lower=True)
        pscdsl.Array([1., 2.], dtype=float64)
        >>> psc.triangular_solve(a, np.array([2.0, 8.0]), lower=True, transpose=True)
        pscdsl.Array([0., 2.], dtype=float64)
    """
    ...


@as_in_kernels
def conv(
    x: C,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> C:
    """Convolve as neural networks do; the kernel is not flipped.

    Args:
        x: An array of shape [batch, channels, *spatial].
        kernel: An array of shape [outputs, channels / groups, *spatial].
        strides: A step for all spatial axes, or one for each.
        padding: "valid" for none; "same" for as many results as elements, divided by the stride and
            rounded up; or a pair of sizes for each spatial axis.
        dilation: The distance of the elements of a window, for all spatial axes or for each.
        groups: The number of groups that channels and outputs are divided into.

    Returns:
        An array of shape [batch, outputs, *spatial].

    Examples:
        >>> x = np.array([[[1.0, 2.0, 4.0, 8.0]]])
        >>> psc.conv(x, np.array([[[1.0, -1.0]]]))
        pscdsl.Array([[[-1., -2., -4.]]], dtype=float64)
        >>> psc.conv(x, np.array([[[1.0, 1.0, 1.0]]]), padding="same", strides=2)
        pscdsl.Array([[[ 7., 12.]]], dtype=float64)
    """
    ...


@as_in_kernels
def conv_transpose(
    x: C,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> C:
    """Convolve `x` with `strides - 1` zeros inserted between its elements; see `conv`.

    With strides above 1 the result is larger than `x`.

    Examples:
        >>> x = np.array([[[1.0, 2.0]]])
        >>> psc.conv_transpose(x, np.array([[[1.0, 1.0]]]), strides=2, padding=[(1, 1)])
        pscdsl.Array([[[1., 1., 2., 2.]]], dtype=float64)
    """
    ...


@as_in_kernels
def max_pool(
    x: C, window: Any, strides: Any = None, padding: Any = "valid", dilation: Any = 1
) -> C:
    """Return the largest element of each window.

    Args:
        x: An array of shape [batch, channels, *spatial].
        window: The size of a window, for all spatial axes or for each.
        strides: A step for all spatial axes, or one for each; by default the size of the window.
        padding: "valid" for none; "same" for as many results as elements, divided by the stride and
            rounded up; or a pair of sizes for each spatial axis.
        dilation: The distance of the elements of a window, for all spatial axes or for each.

    Examples:
        >>> psc.max_pool(np.array([[[1.0, 5.0, 2.0, 3.0]]]), 2)
        pscdsl.Array([[[5., 3.]]], dtype=float64)
        >>> psc.max_pool(np.array([[[1.0, 5.0, 2.0, 3.0]]]), 2, strides=1)
        pscdsl.Array([[[5., 5., 3.]]], dtype=float64)
    """
    ...


@as_in_kernels
def avg_pool(
    x: C,
    window: Any,
    strides: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    count_padding: bool = False,
) -> C:
    """Return the mean of each window over the spatial axes of `x`; see `max_pool`.

    Padding does not count, unless `count_padding` is set.

    Examples:
        >>> psc.avg_pool(np.array([[[1.0, 5.0, 2.0, 3.0]]]), 2)
        pscdsl.Array([[[3. , 2.5]]], dtype=float64)
    """
    ...


@as_in_kernels
def reduce_window(
    x: C,
    kind: Literal["sum", "prod", "max", "min"],
    window: Any,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
) -> C:
    """Combine the elements of each window over the last axes of `x`.

    Args:
        x: An array.
        kind: How they are combined: "sum", "prod", "max" or "min".
        window: The size of a window along each of the last axes, or one size for all axes.
        strides: A step for all of these axes, or one for each.
        padding: As in `max_pool`.
        dilation: The distance of the elements of a window, for all of these axes or for each.

    Examples:
        >>> psc.reduce_window(np.arange(6.0), "sum", 3)
        pscdsl.Array([ 3.,  6.,  9., 12.], dtype=float64)
        >>> psc.reduce_window(np.arange(6.0), "max", 2, strides=2)
        pscdsl.Array([1., 3., 5.], dtype=float64)
    """
    ...


@declared
def reveal_type(value: C) -> C:
    """Report the type of an expression as a note of `pscdsl check`; return the value.

    Examples:
        >>> @psc.kernel
        ... def scaled(x: f32["n d"]) -> f32["n d"]:
        ...     return x / psc.reveal_type(np.sum(x, axis=1, keepdims=True))
        >>> scaled(np.ones((1, 2), np.float32))
        pscdsl.Array([[0.5, 0.5]], dtype=float32)
    """
    return value


@declared
def scope(name: str) -> AbstractContextManager[None]:
    """Name a part of a kernel, the body of a `with` block. Outside kernels it has no effect.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     with psc.scope("squares"):
        ...         total = np.sum(x * x)
        ...     return np.sqrt(total)
        >>> norm(np.array([3, 4], np.float32))
        pscdsl.Array(5., dtype=float32)
    """
    return nullcontext()


# Solutions of equations with derivatives of their own: public names, used in kernels.


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
@as_in_kernels
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

    Examples:
        >>> def solve(matvec, b):
        ...     return b / matvec(np.ones_like(b))
        >>> def scaled(a: f64, b: f64["n"]) -> f64["n"]:
        ...     return psc.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)
        >>> psc.jvp(scaled, (2.0, np.array([6.0])), (1.0, np.array([0.0])))
        (pscdsl.Array([3.], dtype=float64), pscdsl.Array([-1.5], dtype=float64))
    """
    ...


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
@as_in_kernels
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

    Examples:
        >>> def newton(f, x):
        ...     return psc.fori_loop(0, 20, lambda i, x: x - f(x) / psc.grad(f)(x), x)
        >>> def root(a: f64) -> f64:
        ...     return psc.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> root(4.0), psc.grad(root)(4.0)
        (pscdsl.Array(2., dtype=float64), pscdsl.Array(0.25, dtype=float64))
    """
    ...
