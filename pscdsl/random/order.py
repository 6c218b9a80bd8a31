"""Random orders, and choices among what there is."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.random import RandomBits
from pscdsl._src.primitives.sorting import Sort
from pscdsl.numpy.arguments import as_count, normalize_axis
from pscdsl.numpy.indexing import require_elements
from pscdsl.numpy.reductions import cumsum
from pscdsl.numpy.shorthand import at, at_least, counting, part, reshaped
from pscdsl.numpy.sorting import argmax, places
from pscdsl.numpy.updating import take
from pscdsl.random.distributions import standard_gumbel
from pscdsl.random.drawing import array_of, float_dtype, integers, of_key, operand, shape_of, unit
from pscdsl.typing.array_types import Shape, size_of
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import UnprovenSize, disagreement
from pscdsl.typing.codes.shapes_of_arguments import LengthsDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import I32, KEY, U64
from pscdsl.typing.python_containers import is_integer_scalar


def shuffled(key: Value, x: Value, axis: int) -> Value:
    """Each row along an axis in an order of its own: that of random numbers of 64 bits.

    Two of n numbers are equal, and their elements in order, with a probability below n**2 / 2**65.
    """
    return Sort(axis).bind(RandomBits(x.shape, U64)(key), x)[1]


def order(key: Value, size: Size) -> Value:
    """The i32 numbers below a size in a random order."""
    return shuffled(key, key.builder.program.current.bind(Iota((size,), 0, I32), ())[0], 0)


def _counted(here: Builder, name: str, x: Any) -> Size | None:
    """The size that is to be counted up to; None for an array."""
    counted = isinstance(x, int | Dim) or is_integer_scalar(x)
    return as_count(x, f"psc.random.{name}", here.facts) if counted else None


def _array(here: Builder, x: Any) -> Value:
    found = array_of(here, x)
    return found.default() if isinstance(found, Weak) else found


@of_key("permutation")
def permutation(
    here: Builder, key: Value, x: Any, axis: int = 0, independent: bool = False
) -> Value:
    """`x` in a random order along an axis, of the numbers below `x` if that is a size."""
    size = _counted(here, "permutation", x)
    if size is not None:
        return order(key, size)
    array = _array(here, x)
    along = normalize_axis(axis, array.ndim, "psc.random.permutation")
    if array.dtype is not KEY and (independent or array.ndim == 1):
        return shuffled(key, array, along)
    if independent and array.ndim > 1:
        problem = "orders keys along one axis for all rows alike"
        raise Failure(BadArguments(function="psc.random.permutation", problem=problem))
    return _taken(array, order(key, array.shape[along]), along)


def _taken(array: Value, indices: Value, axis: int) -> Value:
    found: Value = take(array, indices, axis)
    return found


@of_key("choice")
def choice(
    here: Builder,
    key: Value,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Value:
    """Parts of `a` along an axis, or numbers below it if that is a size."""
    size, array, along = _counted(here, "choice", a), None, 0
    if size is None:
        array = _array(here, a)
        along = normalize_axis(axis, array.ndim, "psc.random.choice")
        size = array.shape[along]
    require_elements(here.facts, size, along)
    sizes = shape_of("choice", here.facts, shape)
    chances = None if p is None else _chances(here, p, size)
    if replace:
        found = _with_replacement(here, key, sizes, size, chances)
    else:
        found = _without_replacement(here, key, sizes, size, chances)
    return found if array is None else _taken(array, found, along)


def _chances(here: Builder, p: Any, size: Size) -> Value:
    chances = operand(here, p, float_dtype("choice", None, (p,)))
    if chances.ndim != 1 or not here.facts.equal(chances.shape[0], size):
        given = chances.shape[0] if chances.ndim == 1 else chances.ndim
        why = disagreement(here.facts, given, size) if chances.ndim == 1 else "`p` has 1 axis"
        raise Failure(
            LengthsDiffer(function="psc.random.choice", left="`p`", right="what there is", why=why)
        )
    return chances


def _with_replacement(
    here: Builder, key: Value, shape: Shape, size: Size, chances: Value | None
) -> Value:
    if chances is None:
        return integers(here, key, shape, 0, size, I32)
    sums: Value = cumsum(chances, 0)
    total = at(sums, 0, size - 1)
    # Above 0, so that what has no chance is not found.
    reached = e.multiply(e.subtract(1.0, unit(key, shape, chances.dtype)), total)
    return places(sums, reached, "left")


def _without_replacement(
    here: Builder, key: Value, shape: Shape, size: Size, chances: Value | None
) -> Value:
    count = size_of(shape)
    if not at_least(here.facts, size, count):
        what = "`psc.random.choice` without replacement"
        raise Failure(UnprovenSize.of(here.facts, what, Fact("<=", count, size)))
    if chances is None:
        found = order(key, size)
    else:  # the largest of Gumbel numbers raised by the logarithms: one after the other
        raised = e.add(standard_gumbel(key, (size,), chances.dtype), e.log(chances))
        found = Sort(0, descending=True).bind(raised, counting(raised, 0))[1]
    return reshaped(part(found, 0, 0, count), shape)


@of_key("categorical")
def categorical(here: Builder, key: Value, logits: Any, axis: int = -1, shape: Any = None) -> Value:
    """Places along an axis, with probabilities whose logarithms are `logits` but for a constant."""
    given = operand(here, logits, float_dtype("categorical", None, (logits,)))
    along = normalize_axis(axis, given.ndim, "psc.random.categorical")
    batch = (*given.shape[:along], *given.shape[along + 1 :])
    wanted = batch if shape is None else shape_of("categorical", here.facts, shape)
    extra = len(wanted) - len(batch)
    if extra < 0:
        problem = f"takes a shape with at least {len(batch)} axes, those of the logits"
        raise Failure(BadArguments(function="psc.random.categorical", problem=problem))
    place = extra + along
    sizes = (*wanted[:place], given.shape[along], *wanted[place:])
    raised = e.add(standard_gumbel(key, sizes, given.dtype), broadcast_to(given, sizes))
    found: Value = argmax(here, raised, place)
    return found
