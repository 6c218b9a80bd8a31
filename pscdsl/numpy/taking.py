"""Elements taken, left out and put in along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.ir.builder import Value, broadcast_to
from pscdsl._src.ir.program import Literal
from pscdsl._src.language.meanings import describe
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.creation import Constant, SizeValue
from pscdsl._src.primitives.indexing import Gather
from pscdsl.numpy.arguments import as_items, as_known_integer
from pscdsl.numpy.axes import normalize_axis
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.indexing import read
from pscdsl.numpy.joining import concatenated
from pscdsl.numpy.repetition import taken
from pscdsl.numpy.selections import from_front, require_elements, selection
from pscdsl.numpy.shorthand import cast, joined, moved, part, raveled, reshaped, transposed
from pscdsl.numpy.sizes import as_size
from pscdsl.numpy.slices import cut, place
from pscdsl.typing.arrays import Shape
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_indexing import NotAnIndex
from pscdsl.typing.codes.shapes_manipulation import (
    DataDependentShape,
    UnprovenSize,
    WrongNumberOfAxes,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I32, I64, U32, U64
from pscdsl.typing.python_containers import is_known_array, is_sequence, is_slice


@of_arrays("numpy.take", together=("a",), alone=("indices",))
def take(a: Value, indices: Value, axis: int | None = None, *, mode: str = "raise") -> Value:
    """The elements at indices along an axis, by default among all; clamped, or wrapped around."""
    if mode not in ("raise", "wrap", "clip"):
        problem = f"takes `mode` as 'raise', 'wrap' or 'clip', not {describe(mode)}"
        raise Failure(BadArguments(function="numpy.take", problem=problem))
    if axis is None:
        a, along = raveled(a), 0
    else:
        along = normalize_axis(axis, a.ndim, "numpy.take")
    places = _checked(indices)
    size = a.shape[along]
    require_elements(a.builder.facts, size, along)
    if mode == "raise":
        return read(a, selection(a, (*[slice(None)] * along, _known(places))))
    places = _wide(places)
    places = e.remainder(places, size) if mode == "wrap" else _clipped(places, size)
    return taken(a, places, along)


def _known(places: Value) -> Any:
    """Indices that are known while checking, as such: they must be proven to be in range."""
    atom = places.atom
    if isinstance(atom, Literal):
        return atom.value
    for at in reversed(places.builder.equations):
        if atom in at.outputs:
            if isinstance(at.primitive, Constant):
                return at.primitive.array()
            return at.primitive.size if isinstance(at.primitive, SizeValue) else places
    return places


def _wide(places: Value) -> Value:
    """Places in a dtype that holds any size."""
    if places.dtype.bits < 32:
        return cast(places, I32)
    return cast(places, I64) if places.dtype is U32 else places


def _clipped(places: Value, size: Size) -> Value:
    """Places brought into range in so many words, so that they are known to be."""
    here, dtype = places.builder, places.dtype
    return e.Clamp()(here.literal(0, dtype), places, here.size(size - 1, dtype))


def _checked(indices: Value) -> Value:
    if indices.dtype is BOOL or not indices.dtype.is_integer:
        raise Failure(NotAnIndex(what=f"an array of dtype {indices.dtype}"))
    return cast(indices, I64) if indices.dtype is U64 else indices  # as NumPy, from 2**63 on too


@of_arrays("numpy.take_along_axis", together=("arr",), alone=("indices",))
def take_along_axis(arr: Value, indices: Value, axis: int | None = -1) -> Value:
    """Elements along an axis, at places of their own for each row; clamped."""
    name, places = "numpy.take_along_axis", _checked(indices)
    if axis is None:
        if places.ndim != 1:
            wanted = "a vector of indices without an axis"
            raise Failure(WrongNumberOfAxes(function=name, given=places.type, wanted=wanted))
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, name)
    if places.ndim != arr.ndim:
        wanted = f"indices with as many axes as the array, {arr.ndim}"
        raise Failure(WrongNumberOfAxes(function=name, given=places.type, wanted=wanted))
    arr, places = _aligned(arr, places, along)
    require_elements(arr.builder.facts, arr.shape[along], along)
    places = from_front(places, arr.shape[along])
    rank = arr.ndim
    front = [other for other in range(rank) if other != along]
    arr, places = transposed(arr, (*front, along)), transposed(places, (*front, along))
    picked = Gather((rank - 1,), batched=rank - 1)(arr, reshaped(places, (*places.shape, 1)))
    return transposed(picked, (*range(along), rank - 1, *range(along, rank - 1)))


def _aligned(arr: Value, places: Value, along: int) -> tuple[Value, Value]:
    """Both broadcast to one shape, but for the axis along which elements are taken."""
    facts = arr.builder.facts
    sizes: list[Size] = []
    for other, (left, right) in enumerate(zip(arr.shape, places.shape, strict=True)):
        size = right if left == 1 else left
        if other != along and right != 1 and not facts.equal(size, right):
            shapes = (arr.shape, places.shape)
            raise Failure(ShapesDoNotBroadcast.of(facts, shapes, other - arr.ndim, left, right))
        sizes.append(size)

    def shape(own: Value) -> Shape:
        return tuple([own.shape[a] if a == along else size for a, size in enumerate(sizes)])

    return broadcast_to(arr, shape(arr)), broadcast_to(places, shape(places))


@of_arrays("numpy.delete", together=("arr",), traced=("obj",))
def delete(arr: Value, obj: Any, axis: int | None = None) -> Value:
    """Without the elements at static places along an axis, by default among all."""
    if axis is None:
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, "numpy.delete")
    facts, size = arr.builder.facts, arr.shape[along]
    if is_slice(obj):
        gone = cut(facts, obj, size)
        if gone.stride == 1:
            return _without(arr, along, [(gone.start, gone.limit)])
        if not isinstance(size, int):
            raise Failure(NotSupported(what="`delete` of a slice with a step, of a symbolic size"))
        every: Any = range(size)
        obj = list(every[obj])
    places = _static_places("numpy.delete", obj, along, arr)
    return _without(arr, along, [(index, index + 1) for index in places])


def _static_places(name: str, obj: Any, axis: int, arr: Value) -> list[Size]:
    """Static indices in order, each once, counted from the front."""
    facts, size = arr.builder.facts, arr.shape[axis]
    if is_known_array(obj):
        obj = obj.ravel().tolist()
    given = as_items(obj)
    if any(as_known_integer(each) is None for each in given):
        raise Failure(
            DataDependentShape(
                what=f"`{name}` at computed places", instead="give the places as static integers"
            )
        )
    found: list[Size] = []
    for each in given:
        index = place(facts, as_size(each, name), size, axis)
        if index not in found:
            found.append(index)
    if all(isinstance(index, int) for index in found):
        return sorted(found)  # type: ignore[type-var]
    if len(found) > 1:
        raise Failure(NotSupported(what=f"`{name}` at several symbolic places"))
    return found


def _without(arr: Value, axis: int, gone: Sequence[tuple[Size, Size]]) -> Value:
    kept: list[Value] = []
    start: Size = 0
    for begin, end in gone:
        kept.append(part(arr, axis, start, begin))
        start = end
    kept.append(part(arr, axis, start, arr.shape[axis]))
    return joined([x for x in kept if x.shape[axis] != 0] or kept[:1], axis)


@of_arrays(
    "numpy.insert",
    together=("arr", "values"),
    traced=("obj",),
    weak_items=("values",),
    keeps=("arr",),
)
def insert(arr: Value, obj: Any, values: Value, axis: int | None = None) -> Value:
    """With values put in before a static place along an axis, by default among all elements."""
    if axis is None:
        arr, along = raveled(arr), 0
    else:
        along = normalize_axis(axis, arr.ndim, "numpy.insert")
    facts, size = arr.builder.facts, arr.shape[along]
    several = is_sequence(obj)
    if several and len(obj) == 1:
        (obj,) = obj
    at = as_known_integer(obj)
    if at is None:
        raise Failure(
            NotSupported(
                what="`insert` at several or computed places",
                instead="insert one after the other, at static places",
            )
        )
    if facts.proves(Fact("<=", at, -1)):
        at = at + size
    for claim in (Fact("<=", 0, at), Fact("<=", at, size)):
        if not facts.proves(claim):
            raise Failure(UnprovenSize.of(facts, "the place of `insert`", claim))
    values = reshaped(values, (1,) * (arr.ndim - values.ndim) + values.shape)
    if not several:
        values = moved(values, 0, along)  # as NumPy: the values of one place come first
    count = values.shape[along]
    shape = tuple([count if a == along else s for a, s in enumerate(arr.shape)])
    values = broadcast_to(values, shape)
    pieces = [part(arr, along, 0, at), values, part(arr, along, at, size)]
    return concatenated("numpy.insert", pieces, along)
