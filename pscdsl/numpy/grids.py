"""Arrays of indices and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pscdsl.builder import Builder, Value, Weak, broadcast_to
from pscdsl.meanings import function
from pscdsl.numpy.openness import as_dtype, as_operand, lifted
from pscdsl.numpy.shorthand import joined, reshaped
from pscdsl.numpy.sizes import as_shape
from pscdsl.primitives.creation import Iota
from pscdsl.typing.arrays import Shape, size_of
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType, Kind


@function("numpy.meshgrid")
def meshgrid(
    here: Builder, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Value | Weak, ...]:
    """Coordinates of a grid: each vector along an axis of its own, repeated along the others."""
    if indexing not in ("xy", "ij"):
        problem = f"takes `indexing` as 'xy' or 'ij', not {indexing!r}"
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
    return meshgrid(here, *args, sparse=True, indexing="ij")  # type: ignore[no-any-return]


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
