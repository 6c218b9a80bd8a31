"""The same elements counted by other axes."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl.numpy.arguments import as_items
from pscdsl.numpy.axes import normalize_axes
from pscdsl.numpy.calling import of_arrays
from pscdsl.numpy.openness import as_operand, lifted
from pscdsl.numpy.shorthand import raveled, reshaped, simplified
from pscdsl.numpy.sizes import as_count, as_size
from pscdsl.typing.arrays import ArrayType, Shape, size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement, instance
from pscdsl.typing.codes.shapes_manipulation import ImpossibleReshape, NotOfSizeOne, UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size, as_terms
from pscdsl.typing.python_containers import is_sequence


@of_arrays("numpy.reshape", together=("a",), traced=("shape",))
def reshape(a: Value, /, shape: Any, *, copy: bool | None = None) -> Value:
    """Another shape with as many elements; one size may be -1 and follows from the others."""
    return reshaped(a, reshaped_shape(a.builder.facts, a.type, shape))


def reshaped_shape(facts: Assumptions, given: ArrayType, wanted: Any) -> Shape:
    """The shape that `reshape` gives, with -1 replaced; a Failure if there is none."""
    items = list(as_items(wanted))
    sizes: list[Size] = []
    open_axes = [axis for axis, item in enumerate(items) if as_size(item, "numpy.reshape") == -1]
    for axis, item in enumerate(items):
        sizes.append(-1 if axis in open_axes else as_count(item, "numpy.reshape", facts))
    total = size_of(given.shape)
    if not open_axes:
        if not facts.equal(total, size_of(tuple(sizes))):
            product = size_of(tuple(sizes))
            missing = _missing(facts, total, product)
            raise _impossible(given, sizes, disagreement(facts, total, product), missing)
        return tuple(sizes)
    if len(open_axes) > 1:
        raise Failure(
            BadArguments(function="numpy.reshape", problem="takes -1 for one size at most")
        )
    known = size_of(tuple(size for axis, size in enumerate(sizes) if axis not in open_axes))
    positive = Fact("<=", 1, known)
    if not facts.proves(positive):
        if known == 0:
            raise _impossible(given, sizes, "any size would do for -1")
        raise Failure(UnprovenSize.of(facts, "the sizes beside -1 in `reshape`", positive))
    found = simplified(facts, total // known)
    if not facts.equal(found * known, total):
        divides = Fact("==", total % known, 0)
        why = f"{total} is not a multiple of {known}{instance(facts, divides)}"
        raise _impossible(given, sizes, why, None if isinstance(divides.left, int) else divides)
    sizes[open_axes[0]] = found
    return tuple(sizes)


def _impossible(
    given: ArrayType, wanted: list[Size], why: str, missing: Fact | None = None
) -> Failure:
    return Failure(ImpossibleReshape(given=given, wanted=tuple(wanted), why=why, missing=missing))


def _missing(facts: Assumptions, total: Size, product: Size) -> Fact | None:
    """A division in the wanted sizes that would have to leave no remainder."""
    for monomial, _ in as_terms(product):
        for atom in monomial:
            if atom.kind == "//":
                exact = Fact("==", atom.args[0] % atom.args[1], 0)
                if facts.assume(exact).equal(total, product):
                    return exact
    return None


@of_arrays("numpy.ravel", together=("a",))
def ravel(a: Value) -> Value:
    """All elements along one axis."""
    return raveled(a)


@of_arrays("numpy.expand_dims", together=("a",))
def expand_dims(a: Value, axis: Any) -> Value:
    """New axes of size 1, at places counted in the result."""
    count = len(as_items(axis))
    places = normalize_axes(axis, a.ndim + count, "numpy.expand_dims")
    sizes = iter(a.shape)
    return reshaped(a, tuple([1 if p in places else next(sizes) for p in range(a.ndim + count)]))


@of_arrays("numpy.squeeze", together=("a",))
def squeeze(a: Value, axis: Any = None) -> Value:
    """Without axes of size 1; without an argument, those that have size 1 for all sizes."""
    facts = a.builder.facts
    if axis is None:
        axes = tuple(place for place, size in enumerate(a.shape) if facts.equal(size, 1))
    else:
        axes = normalize_axes(axis, a.ndim, "numpy.squeeze")
    for place in axes:
        if not facts.equal(a.shape[place], 1):
            raise Failure(NotOfSizeOne(function="numpy.squeeze", given=a.type, axis=place))
    return reshaped(a, tuple([size for place, size in enumerate(a.shape) if place not in axes]))


def deepened(a: Value, rank: int) -> Value:
    """With axes of size 1 as NumPy's `atleast_1d`, `atleast_2d` and `atleast_3d` add them."""
    if a.ndim >= rank:
        return a
    if rank == 3 and a.ndim:
        return reshaped(a, (1, *a.shape, 1) if a.ndim == 1 else (*a.shape, 1))
    return reshaped(a, ((1,) * (rank - a.ndim) + a.shape))


def _at_least(here: Builder, rank: int, arrays: tuple[Any, ...]) -> Any:
    deep = tuple([lifted(here, x, lambda v: deepened(v, rank)) for x in arrays])
    return deep[0] if len(deep) == 1 else deep


@function("numpy.atleast_1d")
def atleast_1d(here: Builder, *arys: Any) -> Any:
    """Scalars with one axis; several arguments give a tuple."""
    return _at_least(here, 1, arys)


@function("numpy.atleast_2d")
def atleast_2d(here: Builder, *arys: Any) -> Any:
    """With axes of size 1 in front, up to two; several arguments give a tuple."""
    return _at_least(here, 2, arys)


@function("numpy.atleast_3d")
def atleast_3d(here: Builder, *arys: Any) -> Any:
    """With axes of size 1 around, up to three; several arguments give a tuple."""
    return _at_least(here, 3, arys)


@function("numpy.shape")
def shape_(here: Builder, a: Any) -> Shape:
    """The sizes of the axes; static."""
    return _array(here, a).shape


@function("numpy.ndim")
def ndim(here: Builder, a: Any) -> int:
    """How many axes there are; static."""
    return _array(here, a).ndim


@function("numpy.size")
def size_(here: Builder, a: Any, axis: Any = None) -> Size:
    """How many elements there are, over all axes or some; a size."""
    array = _array(here, a)
    axes = normalize_axes(axis, array.ndim, "numpy.size")
    return size_of(tuple([array.shape[place] for place in axes]))


def _array(here: Builder, a: Any) -> Value | Weak:
    from pscdsl.numpy.conversion import asarray

    array: Value | Weak = asarray(here, a) if is_sequence(a) else as_operand(here, a)
    return array
