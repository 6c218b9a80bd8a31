"""Sizes and shapes as arguments: static integers and symbolic sizes, never computed ones."""

from __future__ import annotations

import math
import operator

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import describe
from pscdsl.typing.arrays import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape, UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.python_containers import is_sequence, is_tuple


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
