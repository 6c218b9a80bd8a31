"""Arrays of indices and coordinates, and indices of places counted through all axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak, broadcast_to
from pscdsl._src.language.meanings import describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Iota
from pscdsl.numpy.calling import as_array, of_arrays
from pscdsl.numpy.choosing import items
from pscdsl.numpy.conversion import array
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.openness import as_dtype, as_operand, lifted
from pscdsl.numpy.shorthand import cast, joined, reshaped
from pscdsl.numpy.sizes import as_count, as_integer, as_shape, as_times
from pscdsl.typing.arrays import Shape, size_of
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.shapes_manipulation import DataDependentShape, WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, DType, Kind


@function("numpy.meshgrid")
def meshgrid(
    here: Builder, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Value | Weak, ...]:
    """Coordinates of a grid: each vector along an axis of its own, repeated along the others."""
    if indexing not in ("xy", "ij"):
        problem = f"takes `indexing` as 'xy' or 'ij', not {describe(indexing)}"
        raise Failure(BadArguments(function="numpy.meshgrid", problem=problem))
    vectors = [as_operand(here, x) for x in xi]
    sizes: list[Size] = []
    for x in vectors:
        if x.ndim > 1:
            wanted = "vectors and scalars"
            raise Failure(WrongNumberOfAxes(function="numpy.meshgrid", given=x.type, wanted=wanted))
        sizes.append(size_of(x.shape))
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    shape = tuple([sizes[places[axis]] for axis in range(len(vectors))])

    def laid(x: Value, axis: int) -> Value:
        own: Shape = tuple([shape[axis] if a == axis else 1 for a in range(len(shape))])
        x = reshaped(x, own)
        return x if sparse else broadcast_to(x, shape)

    return tuple(
        [lifted(here, x, lambda v, a=places[i]: laid(v, a)) for i, x in enumerate(vectors)]  # type: ignore[misc]
    )


@function("numpy.ix_")
def ix_(here: Builder, *args: Any) -> tuple[Value | Weak, ...]:
    """Vectors of indices, each along an axis of its own."""
    vectors = [as_operand(here, x) for x in args]
    for x in vectors:
        if x.ndim != 1:
            raise Failure(WrongNumberOfAxes(function="numpy.ix_", given=x.type, wanted="vectors"))
        if x.dtype is BOOL:
            instead = "give the indices themselves, as in `np.ix_([0, 2], [1])`"
            raise Failure(DataDependentShape(what="`np.ix_` of a mask", instead=instead))
    return meshgrid(here, *vectors, sparse=True, indexing="ij")  # type: ignore[no-any-return]


@function("numpy.indices")
def indices(here: Builder, dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of an array of this shape, one axis after the other along the first axis."""
    shape = as_shape(dimensions, "numpy.indices", here.facts)
    given = as_dtype(dtype)

    def counted(axis: int, wanted: DType) -> Value:
        own = tuple([size if a == axis or not sparse else 1 for a, size in enumerate(shape)])
        return here.bind(Iota(own, axis, wanted), ())[0]

    def stacked(wanted: DType) -> Value:
        if not shape:
            return here.full(0, (0,), wanted)
        return joined([reshaped(counted(a, wanted), (1, *shape)) for a in range(len(shape))], 0)

    def made(own: Shape, at: Callable[[DType], Value]) -> Value | Weak:
        return Weak(here, Kind.INT, own, at) if given is None else at(given)

    if not sparse:
        return made((len(shape), *shape), stacked)
    lone = [
        tuple([s if a == axis else 1 for a, s in enumerate(shape)]) for axis in range(len(shape))
    ]
    return tuple([made(own, partial(counted, axis)) for axis, own in enumerate(lone)])


@function("numpy.diag_indices")
def diag_indices(here: Builder, n: Any, ndim: int = 2) -> tuple[Weak, ...]:
    """The places on the diagonal of an array with axes of one size."""
    size = as_count(n, "numpy.diag_indices", here.facts)

    def at(dtype: DType) -> Value:
        return here.bind(Iota((size,), 0, dtype), ())[0]

    axes = as_times(ndim, "numpy.diag_indices")
    return tuple([Weak(here, Kind.INT, (size,), at) for _ in range(axes)])


@function("numpy.tril_indices")
def tril_indices(here: Builder, n: Any, k: Any = 0, m: Any = None) -> Any:
    """The places at and below a diagonal; of sizes that are numbers."""
    return _triangle(here, "numpy.tril_indices", np.tril_indices, n, k, m)


@function("numpy.triu_indices")
def triu_indices(here: Builder, n: Any, k: Any = 0, m: Any = None) -> Any:
    """The places at and above a diagonal; of sizes that are numbers."""
    return _triangle(here, "numpy.triu_indices", np.triu_indices, n, k, m)


MOST_PLACES = 1_000_000
"""No larger matrix is gone through while checking."""


def _triangle(
    here: Builder, name: str, places: Callable[..., Any], n: Any, k: Any, m: Any
) -> tuple[Value | Weak, ...]:
    rows, diagonal, columns = (as_integer(x, name) for x in (n, k, n if m is None else m))
    if max(rows, 1) * max(columns, 1) > MOST_PLACES:
        raise Failure(TooLarge(what=f"`{name}` of a matrix with more than {MOST_PLACES} places"))
    given = rows, diagonal, columns
    return tuple([array(here, each.tolist()) for each in places(*given)])


@of_arrays("numpy.unravel_index", alone=("indices",), traced=("shape",))
def unravel_index(indices: Value, shape: Any) -> tuple[Value, ...]:
    """Places among all elements as places on each axis."""
    require("numpy.unravel_index", indices, "integer")
    sizes = as_shape(shape, "numpy.unravel_index", indices.builder.facts)
    indices = _counting(indices)
    places: list[Value] = []
    for size in reversed(sizes):
        places.insert(0, e.remainder(indices, size))
        indices = e.floor_divide(indices, size)
    return tuple(places)


@function("numpy.ravel_multi_index", alone=("multi_index",))
def ravel_multi_index(multi_index: Any, dims: Any) -> Value:
    """Places on each axis as places among all elements."""
    name = "numpy.ravel_multi_index"
    places = [as_array(each, name, "multi_index") for each in items(name, multi_index)]
    sizes = as_shape(dims, name, places[0].builder.facts)
    if len(places) != len(sizes):
        problem = f"takes places for each of {len(sizes)} axes, not {len(places)}"
        raise Failure(BadArguments(function=name, problem=problem))
    for place in places:
        require(name, place, "integer")
    count = size_of(sizes)
    wide = isinstance(count, int) and count - 1 > I32.range[1]
    result, *rest = [cast(each, I64) if wide else _counting(each) for each in places]
    for place, size in zip(rest, sizes[1:], strict=True):
        result = e.add(e.multiply(result, size), place)
    return result


def _counting(places: Value) -> Value:
    """Places as counts are: in i32, in i64 where that may not hold them."""
    dtype = places.dtype
    return cast(places, I32 if dtype.bits < 32 or dtype is I32 else I64)
