"""What generated programs mean under plain NumPy: Python itself, and combinators as plain loops."""

# Programs are text, so what they compute has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import types
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

import pscdsl


def items(tree: Any) -> list[Any] | None:
    """The parts of a tuple or record; None for a leaf."""
    if isinstance(tree, tuple | list):
        return list(tree)
    if isinstance(tree, pscdsl.Record) or (
        dataclasses.is_dataclass(tree) and not isinstance(tree, type)
    ):
        return [getattr(tree, name) for name in type(tree).__annotations__]
    return None


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a tree, in order."""
    parts = items(tree)
    if parts is None:
        if tree is not None:
            yield tree
        return
    for part in parts:
        yield from leaves(part)


def flat(tree: Any) -> tuple[Any, ...]:
    """The arrays of a tree, in order, as a tuple."""
    return tuple(leaves(tree))


def mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """A function of the leaves of trees of one structure."""
    parts = [items(tree) for tree in trees]
    first = parts[0]
    if first is None:
        return None if trees[0] is None else function(*trees)
    inner = [mapped(function, *row) for row in zip(*(p or [] for p in parts), strict=True)]
    if type(trees[0]) in (tuple, list):
        return type(trees[0])(inner)
    return type(trees[0])(*inner)


def _stack(*rows: Any) -> Any:
    return np.stack([np.asarray(x) for x in rows])


def _row_of(index: int) -> Callable[[Any], Any]:
    def pick(x: Any) -> Any:
        return x[index]

    return pick


def _stacked(rows: Sequence[Any]) -> Any:
    return mapped(_stack, *rows)


def _length(xs: Any) -> int:
    return len(next(leaves(xs)))


def _row(xs: Any, index: int) -> Any:
    return mapped(_row_of(index), xs)


def scan(
    f: Any, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> Any:
    """A Python loop over rows."""
    count = _length(xs) if length is None else length
    carry, rows = mapped(_carried, init), []
    order = range(count)[::-1] if reverse else range(count)
    for index in order:
        carry, row = f(carry, None if xs is None else _row(xs, index))
        rows.append(row)
    return carry, _stacked(rows[::-1] if reverse else rows)


def map_(f: Any, xs: Any) -> Any:
    """A Python loop over rows."""
    return _stacked([f(_row(xs, index)) for index in range(_length(xs))])


def associative_scan(fn: Any, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """A Python loop over rows."""

    def front(x: Any) -> Any:
        return np.moveaxis(x, axis, 0)

    def back(y: Any) -> Any:
        return np.moveaxis(y, 0, axis)

    xs = mapped(front, elems)
    order = range(_length(xs))[::-1] if reverse else range(_length(xs))
    rows: list[Any] = []
    for index in order:
        x = _row(xs, index)
        rows.append(fn(rows[-1], x) if rows else x)
    return mapped(back, _stacked(rows[::-1] if reverse else rows))


def map_reduce(map_fn: Any, combine: Any, xs: Any, init: Any = None) -> Any:
    """A Python loop over rows."""
    for index in range(_length(xs)):
        value = map_fn(_row(xs, index))
        init = value if init is None else combine(init, value)
    return init


def fori_loop(lower: Any, upper: Any, body_fun: Any, init_val: Any) -> Any:
    """A Python loop over numbers."""
    init_val = mapped(_carried, init_val)
    for index in range(int(lower), int(upper)):
        init_val = body_fun(np.int32(index), init_val)
    return init_val


def _carried(x: Any) -> Any:
    """A number as a loop carries it: an array, in the dtype of what nothing decides."""
    dtype = {bool: np.bool_, int: np.int64, float: np.float64}.get(type(x))
    return x if dtype is None else dtype(x)


def while_loop(cond_fun: Any, body_fun: Any, init_val: Any, max_steps: Any = None) -> Any:
    """A Python loop, which ends after some time even if a mutant made it endless."""
    limit = 1000 if max_steps is None else int(max_steps)
    init_val = mapped(_carried, init_val)
    for _ in range(limit):
        if not cond_fun(init_val):
            return init_val
        init_val = body_fun(init_val)
    if max_steps is None:
        raise Endless
    return init_val


class Endless(Exception):
    """A loop does not end."""


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
    """One of two functions."""
    return (true_fun if pred else false_fun)(*operands)


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    """One of several functions."""
    return branches[max(0, min(int(index), len(branches) - 1))](*operands)


def update(x: Any, index: Any, value: Any, combine: str = "set") -> Any:
    """What assignment leaves behind."""
    x = np.array(x)
    if combine == "set":
        x[index] = value
    else:
        ufunc: Any = getattr(np, combine)
        ufunc.at(x, index, np.asarray(value).astype(x.dtype))
    return x


def _start(x: Any, starts: Any, sizes: Sequence[int]) -> tuple[slice, ...]:
    """The part of an array at a place that is moved until the part lies inside."""
    found: list[slice] = []
    for start, size, length in zip(starts, sizes, x.shape, strict=False):
        begin = int(start) + (length if start < 0 else 0)
        begin = max(0, min(begin, length - size))
        found.append(slice(begin, begin + size))
    return tuple(found)


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    """A part of an array that begins at a computed place."""
    return x[_start(x, starts, sizes)]


def dynamic_update(x: Any, part: Any, starts: Any) -> Any:
    """An array with a part of it replaced."""
    return update(x, _start(x, starts, part.shape), part)


def top_k(x: Any, k: int) -> Any:
    """The largest elements of each row, and their places."""
    last = x.shape[-1] - 1  # what is largest comes first, and of equal ones the first
    order = last - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)[..., :k]
    return np.take_along_axis(x, order, axis=-1), order


class Special:
    """The functions of `psc.special` by SciPy's, computed in double precision."""

    def __getattr__(self, name: str) -> Any:
        function: Any = getattr(scipy.special, name)

        def computed(*args: Any, **options: Any) -> Any:
            given = next(np.asarray(x).dtype for x in args if hasattr(x, "dtype"))
            wider: Any = np.float64 if given.itemsize == 8 else np.float32
            dtype = wider if given.kind in "iub" else given
            wide = [np.asarray(x, np.float64) if hasattr(x, "dtype") else x for x in args]
            return np.asarray(function(*wide, **options)).astype(dtype)

        return computed


def triangular_solve(a: Any, b: Any, *, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """A solution of a triangular system."""
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - np.diag(np.diagonal(a)) + np.eye(len(a), dtype=a.dtype)
    return np.linalg.solve(a, b)


def _windows(x: Any, window: Sequence[int], strides: Sequence[int], filled: float) -> Any:
    """The windows of the last axes, padded so that there is one for each step."""
    widths = [(0, 0)] * (x.ndim - len(window))
    for size, extent, step in zip(x.shape[-len(window) :], window, strides, strict=True):
        total = (-(-size // step) - 1) * step + extent - size
        low = total // 2 if extent >= step else max(total, 0) // 2
        widths.append((low, max(total - low, 0)))
    padded = np.pad(x.astype(np.float64), widths, constant_values=filled)
    axes = tuple(range(-len(window), 0))
    found = np.lib.stride_tricks.sliding_window_view(padded, tuple(window), axes)
    steps: Any = (..., *(slice(None, None, step) for step in strides), *[slice(None)] * len(window))
    return found[steps]


def _sizes(window: Any, count: int) -> list[int]:
    return [int(window)] * count if np.ndim(window) == 0 else [int(each) for each in window]


def _pooled(x: Any, window: Any, strides: Any, padding: str, filled: float) -> Any:
    assert padding == "same"
    count = x.ndim - 2
    return _windows(x, _sizes(window, count), _sizes(strides, count), filled)


def conv(x: Any, kernel: Any, padding: str) -> Any:
    """A correlation with padding."""
    assert padding == "same"
    windows = _windows(x, kernel.shape[2:], (1, 1), 0)
    found = np.einsum("ncyxij,ocij->noyx", windows, kernel.astype(np.float64))
    return found.astype(x.dtype)


def max_pool(x: Any, window: Any, strides: Any, padding: str) -> Any:
    """The largest element of each window."""
    axes = tuple(range(2 - x.ndim, 0))
    return _pooled(x, window, strides, padding, -np.inf).max(axis=axes).astype(x.dtype)


def avg_pool(x: Any, window: Any, strides: Any, padding: str) -> Any:
    """The mean of those elements of each window that are no padding."""
    axes = tuple(range(2 - x.ndim, 0))
    found = np.nanmean(_pooled(x, window, strides, padding, np.nan), axis=axes)
    return found.astype(np.float32 if x.dtype.kind in "iu" and x.dtype.itemsize < 8 else x.dtype)


def identity(function: Any = None, *, writes: Any = ()) -> Any:
    """What `psc.kernel` means to plain NumPy."""
    return functools.partial(identity, writes=writes) if function is None else function


def checkpoint(function: Any = None, policy: str = "nothing") -> Any:
    """The function itself."""
    return functools.partial(checkpoint, policy=policy) if function is None else function


def vmap(function: Any, in_axes: Any = 0, out_axes: int = 0) -> Any:
    """A Python loop over rows of arrays, each with an axis of its own or none."""

    def over(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        pairs = list(zip(args, axes, strict=True))
        count = next(np.shape(x)[axis] for x, axis in pairs if axis is not None)
        rows = [
            function(*(x if axis is None else np.take(x, index, axis) for x, axis in pairs))
            for index in range(count)
        ]
        return mapped(placed, _stacked(rows))

    def placed(x: Any) -> Any:
        return np.moveaxis(x, 0, out_axes)

    return over


@contextlib.contextmanager
def scope(name: str) -> Generator[None]:
    """A block."""
    assert name
    yield


class Ruled:
    """A function whose rules for derivatives say nothing about its values."""

    def __init__(self, function: Any, nondiff_argnums: Sequence[int] = ()) -> None:
        self.function = function
        self.nondiff_argnums = nondiff_argnums

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The function's value."""
        return self.function(*args, **options)

    def defjvp(self, rule: Any) -> Any:
        """The rule itself."""
        return rule

    def defvjp(self, forward: Any, backward: Any) -> None:
        """Nothing."""


def custom_linear_solve(
    matvec: Any,
    b: Any,
    solve: Any,
    transpose_solve: Any = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """What `solve` finds."""
    return solve(matvec, b)


def custom_root(
    f: Any, initial_guess: Any, solve: Any, tangent_solve: Any, has_aux: bool = False
) -> Any:
    """What `solve` finds."""
    return solve(f, initial_guess)


class Package(types.ModuleType):
    """Stands for `pscdsl` while a program runs under plain NumPy."""

    def __init__(self) -> None:
        super().__init__("pscdsl")
        self.__dict__.update(
            kernel=identity,
            scan=scan,
            map=map_,
            associative_scan=associative_scan,
            map_reduce=map_reduce,
            fori_loop=fori_loop,
            while_loop=while_loop,
            cond=cond,
            switch=switch,
            update=update,
            dynamic_slice=dynamic_slice,
            dynamic_update=dynamic_update,
            top_k=top_k,
            special=Special(),
            triangular_solve=triangular_solve,
            conv=conv,
            max_pool=max_pool,
            avg_pool=avg_pool,
            checkpoint=checkpoint,
            stop_gradient=identity,
            vmap=vmap,
            scope=scope,
            custom_jvp=Ruled,
            custom_vjp=Ruled,
            custom_linear_solve=custom_linear_solve,
            custom_root=custom_root,
            tree=types.SimpleNamespace(map=mapped, leaves=flat),
            bf16=np.dtype(ml_dtypes.bfloat16),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(pscdsl, name)


def loaded(text: str) -> dict[str, Any]:
    """The names of a module whose `pscdsl` is the reference."""
    tree = ast.parse(text)
    names: dict[str, Any] = {"__name__": __name__}  # where dataclasses look up their module
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import) and node.names[0].name == "pscdsl":
            names[node.names[0].asname or "pscdsl"] = Package()
        else:
            kept.append(node)
    tree.body = kept
    exec(compile(tree, "reference", "exec"), names)
    return names


def run(names: Mapping[str, Any], kernel: str, args: Sequence[Any]) -> list[Any]:
    """The arrays that a kernel's Python function returns."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(leaf) for leaf in leaves(names[kernel](*args))]
