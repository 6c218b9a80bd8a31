"""Static arguments: axes, sizes and shapes, items of lists; never computed numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, TypeGuard

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.shapes import (
    AxisOutOfRange,
    DataDependentShape,
    PiecesDoNotFit,
    RepeatedAxis,
    UnprovenSize,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.python_containers import is_sequence, is_tuple

# What static arguments are: items of lists and tuples, numbers known while checking.


def as_items(x: object) -> Sequence[Any]:
    """The items of a list or tuple; anything else is one item."""
    return x if is_sequence(x) else (x,)


def is_known_float(x: object) -> TypeGuard[float]:
    """Whether an argument is a floating-point number that is known while checking."""
    return isinstance(x, float | np.floating)


def as_known_integer(x: object) -> Size | None:
    """An integer that is known while checking, maybe in terms of sizes; None for anything else."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)  # pyright: ignore[reportUnknownArgumentType]
    return None


# Axis arguments: from NumPy's spelling to axes counted from the front.


Axes: TypeAlias = "int | Sequence[int] | None"


def normalize_axis(axis: object, rank: int, function: str) -> int:
    """One axis, counted from the front; a Failure if an array of this rank does not have it."""
    if isinstance(axis, bool):
        _refuse(axis, function)
    try:
        number = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        _refuse(axis, function)
    if not -rank <= number < rank:
        raise Failure(AxisOutOfRange(function=function, axis=number, rank=rank))
    return number + rank if number < 0 else number


def normalize_axes(axes: object, rank: int, function: str) -> tuple[int, ...]:
    """Axes in the order given, counted from the front; `None` stands for all of them."""
    if axes is None:
        return tuple(range(rank))
    if not is_sequence(axes):
        return (normalize_axis(axes, rank, function),)
    found = tuple([normalize_axis(axis, rank, function) for axis in axes])
    for position, axis in enumerate(found):
        if axis in found[:position]:
            raise Failure(RepeatedAxis(function=function, axis=axis))
    return found


def _refuse(axis: object, function: str) -> NoReturn:
    problem = f"takes an axis that is a static integer, not {describe(axis)}"
    raise Failure(BadArguments(function=function, problem=problem))


# Sizes and shapes as arguments: static integers and symbolic sizes, never computed ones.


class Counted(Weak):
    """An integer in the program that is known to be a size: it can stand for that in a shape."""

    __slots__ = ("size",)

    def __init__(self, here: Builder, size: Size) -> None:
        number = here.weak(size)
        super().__init__(here, number.kind, (), number.at, scalar=True)
        self.size = size


def counted(here: Builder | None, sizes: object) -> Counted | None:
    """The product of a tuple of sizes, as `np.prod` gives it; None if it is something else."""
    if here is None or not is_tuple(sizes) or not sizes:
        return None
    if all(isinstance(x, Dim) or type(x) is int for x in sizes):
        return Counted(here, math.prod(sizes))
    return None


def as_size(x: object, function: str) -> Size:
    """An integer that is known while checking, maybe in terms of sizes; of any sign."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, Counted):
        return x.size
    if isinstance(x, Weak) and x.made_of_sizes:
        raise Failure(
            DataDependentShape(
                what=f"the result of `{function}`",
                by="a number made of sizes, which is no size",
                instead="sizes are made of sizes by `+`, `-`, `*`, `//` and `%`; "
                "another one is passed as `k: psc.Static[int]`",
            )
        )
    if isinstance(x, Value | Weak):
        raise Failure(
            DataDependentShape(
                what=f"the result of `{function}`",
                instead="sizes are static integers, such as a parameter `k: psc.Static[int]`, "
                "or sizes of arrays such as `x.shape[0]`",
            )
        )
    try:
        if not isinstance(x, bool):
            return operator.index(x)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise Failure(
        BadArguments(function=function, problem=f"takes integers as sizes, not {describe(x)}")
    )


LARGEST = 2**40
"""No machine has arrays with more elements than this."""


def as_count(x: object, function: str, facts: Assumptions) -> Size:
    """A size that is not negative, for all that the signature admits."""
    size = as_size(x, function)
    if isinstance(size, int) and size > LARGEST:
        raise Failure(TooLarge(what=f"an array with {size} elements along an axis"))
    claim = Fact("<=", 0, size)
    if not facts.proves(claim):
        raise Failure(UnprovenSize.of(facts, f"a size in `{function}`", claim))
    return size


def as_shape(x: object, function: str, facts: Assumptions) -> Shape:
    """A shape: one size, or several."""
    if not is_sequence(x):
        return (as_count(x, function, facts),)
    return tuple([as_count(size, function, facts) for size in x])


def as_integer(x: object, function: str) -> int:
    """An integer that is a number while checking."""
    size = as_size(x, function)
    if isinstance(size, int):
        return size
    problem = f"takes an integer, not {describe(size)}"
    raise Failure(BadArguments(function=function, problem=problem))


MOST_TIMES = 1000
"""Nothing that becomes equations for each time is done more often."""


def as_times(x: object, function: str, most: int = MOST_TIMES) -> int:
    """How often something is done while checking."""
    times = as_integer(x, function)
    if times > most:
        raise Failure(TooLarge(what=f"the program of `{function}` {times} times"))
    return times


# Shapes of arrays that are put together.


def require_fitting(name: str, pieces: Sequence[Value], along: int | None = None) -> None:
    """Refuse arrays whose shapes differ, other than in the size along an axis."""
    facts, first = pieces[0].builder.facts, pieces[0]
    for each in pieces[1:]:
        shapes = (first.shape, each.shape)
        if each.ndim != first.ndim:
            why = f"they have {first.ndim} and {each.ndim} axes"
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why=why))
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if axis != along and not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))
