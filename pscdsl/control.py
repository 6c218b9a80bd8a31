"""The combinators' public names: their meanings are the compiler's, also outside of kernels."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar, TypeVarTuple, overload

from pscdsl.arrays import Array, c64, i32
from pscdsl.outside import outside

# What goes around a loop and what comes out of it are two variables: to a type checker
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
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` over the leading axis of `xs`: the final carry, and all y stacked.

    `length` is needed where there are no `xs`.  With `reverse`, from the last row to the first;
    row i of the result belongs to row i of `xs` either way.
    """
    return outside("scan", f, init, xs, length, reverse, unroll)


def map(f: Callable[[X], Y], xs: X) -> Y:  # noqa: A001
    """`f(x)` for each x along the leading axis of `xs`, results stacked."""
    return outside("map", f, xs)


def associative_scan(fn: Callable[[X, X], Y], elems: X, reverse: bool = False, axis: int = 0) -> Y:
    """All prefixes combined: `y[0] = x[0]` and `y[i] = fn(y[i-1], x[i])` along an axis of `elems`.

    `fn` must be associative; rows are then combined in any grouping, in their order.  It is given
    two rows (trees like `elems`, without the axis), and returns another one; in `jax.lax` it is
    given arrays of many rows, and most functions of these work for rows too.  With `reverse`, from
    the last row to the first: `y[i] = fn(y[i+1], x[i])`.
    """
    return outside("associative_scan", fn, elems, reverse, axis)


def map_reduce(
    map_fn: Callable[[X], Any], combine: Callable[[Any, Any], D], xs: X, init: Any = None
) -> D:
    """`map_fn(x)` for each x along the leading axis of `xs`, combined: a monoidal reduction.

    `combine` must be associative; results are then combined in any grouping, in their order.  It
    is given two results of `map_fn` and returns another one.  `init` comes before the first, and
    is the result where there are no rows; without it there must be at least one.  The results of
    all rows are never there at once if they are large.
    """
    return outside("map_reduce", map_fn, combine, xs, init)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[i32, C], D], init_val: C) -> D:
    """`val = body_fun(i, val)` for i from `lower` to `upper` (excluded)."""
    return outside("fori_loop", lower, upper, body_fun, init_val)


def while_loop(
    cond_fun: Callable[[C], Any],
    body_fun: Callable[[C], D],
    init_val: C,
    max_steps: i32 | None = None,
    checkpoint_every: int | None = None,
) -> D:
    """`val = body_fun(val)` while `cond_fun(val)`, at most `max_steps` times if that is given.

    Reverse mode needs a `max_steps` that is known while checking; its time is proportional to the
    steps taken.  It saves the state every `checkpoint_every` steps and computes what is between
    once more: 1 saves everything; by default everything if that is little, else the square root
    of `max_steps`.
    """
    return outside("while_loop", cond_fun, body_fun, init_val, max_steps, checkpoint_every)


def cond(
    pred: Any,
    true_fun: Callable[[*Ts], Y],
    false_fun: Callable[[*Ts], Y],
    *operands: *Ts,
) -> Y:
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`; only one of them is run."""
    return outside("cond", pred, true_fun, false_fun, *operands)


def switch(index: Any, branches: Sequence[Callable[[*Ts], Y]], *operands: *Ts) -> Y:
    """`branches[index](*operands)`; the index is clamped to the branches there are."""
    return outside("switch", index, branches, *operands)


def update(
    x: C,
    index: Any,
    value: Any,
    combine: Literal["set", "add", "multiply", "minimum", "maximum"] = "set",
) -> C:
    """`x` with `value` at `index`: what `x[index] = value` would leave behind.

    `combine` is "set", "add", "multiply", "minimum" or "maximum".
    """
    return outside("update", x, index, value, combine)


def dynamic_slice(x: C, starts: Sequence[Any], sizes: Sequence[int]) -> C:
    """The part of `x` of these sizes that begins at `starts`, which are clamped so that it fits."""
    return outside("dynamic_slice", x, starts, sizes)


def dynamic_update(x: C, update: Any, starts: Sequence[Any]) -> C:
    """`x` with `update` written at `starts`, which are clamped so that it fits."""
    return outside("dynamic_update", x, update, starts)


def complex(x: Any, y: Any) -> c64:  # noqa: A001
    """The complex numbers with these real and imaginary parts, which have one dtype."""
    return outside("complex", x, y)


def top_k(x: C, k: int) -> tuple[C, i32]:
    """The k largest values along the last axis, in falling order, and their indices."""
    return outside("top_k", x, k)


def triangular_solve(
    a: Array,
    b: C,
    *,
    lower: bool = False,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> C:
    """The x with `a @ x = b`, or `a.mT @ x = b`, reading only the upper or the lower triangle of a.

    a is [*batch n n] and b [n] or [*batch n k]; leading axes broadcast.  With `unit_diagonal` the
    diagonal of a counts as ones, whatever it is.  A zero on it gives infinities and NaN.
    """
    return outside(
        "triangular_solve", a, b, lower=lower, transpose=transpose, unit_diagonal=unit_diagonal
    )


def conv(
    x: C,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> C:
    """Correlate `x` [N C *spatial] with `kernel` [O C/groups *spatial]: [N O *spatial]."""
    return outside("conv", x, kernel, strides, padding, dilation, groups)


def conv_transpose(
    x: C,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> C:
    """The same with `stride - 1` zeros between the elements of `x`."""
    return outside("conv_transpose", x, kernel, strides, padding, dilation, groups)


def max_pool(x: C, window: Any, strides: Any = None, padding: Any = "valid") -> C:
    """The largest value of each window over the spatial axes of `x` [N C *spatial]."""
    return outside("max_pool", x, window, strides, padding)


def avg_pool(x: C, window: Any, strides: Any = None, padding: Any = "valid") -> C:
    """The mean of each window over the spatial axes of `x` [N C *spatial]."""
    return outside("avg_pool", x, window, strides, padding)


def reveal_type(value: C) -> C:
    """Report the type of an expression while checking."""
    return value


def scope(name: str) -> AbstractContextManager[None]:
    """Name a part of a kernel; outside of kernels there is nothing to name."""
    return nullcontext()
