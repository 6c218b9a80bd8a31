"""Products of matrices and vectors, and `einsum`: sums of products over labelled axes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pscdsl._src.ir.broadcasting import broadcast_shapes
from pscdsl._src.ir.builder import Builder, Value, Weak, promote
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import Meaning, describe, function, require_no_integers
from pscdsl._src.language.results import Result, new_if
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.elementwise import conjugate, equal, multiply
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.matrices import Diagonal
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy import creation, reductions
from pscdsl.numpy.calling import normalize_axes, normalize_axis, of_numbers
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.shorthand import (
    at,
    at_least,
    cast,
    counting,
    filled,
    iota,
    joined,
    listed,
    moved,
    raveled,
    reshaped,
    spread,
    transposed,
    truth,
    where,
)
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import WrongNumberOfAxes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import BadSubscripts, InnerSizesDiffer, LengthsDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, evaluate, names
from pscdsl.typing.dtypes import BOOL, I32, DType

# Sums of products over labelled axes: what `matmul`, `tensordot` and `einsum` have in common.
#
# Each axis of each operand has a label.  Axes of one label have one size, or size 1, which is
# repeated; labels that the result does not have are summed over.  Operands are combined two at a
# time, those first whose product is smallest.


Label: TypeAlias = Hashable
Labels: TypeAlias = tuple[Label, ...]

TYPICAL = 64
"""What a symbolic size is taken to be when the order of products is chosen."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array whose axes have labels."""

    value: Value
    labels: Labels

    def axes(self, labels: Sequence[Label]) -> tuple[int, ...]:
        """Return where labels stand."""
        return tuple([self.labels.index(label) for label in labels])


def contract(operands: Sequence[Labelled], output: Labels) -> Value:
    """The sum of products whose axes are those of `output`; the sizes must have been checked."""
    truths = operands[0].value.dtype is BOOL
    if truths:
        operands = [Labelled(cast(each.value, I32), each.labels) for each in operands]
    sizes = label_sizes(operands)
    remaining = [_single(_squeezed(each, sizes)) for each in operands]
    remaining = [
        _summed(each, _needed(remaining, output, {index})) for index, each in enumerate(remaining)
    ]
    if truths:  # numbers of ways could overflow
        remaining = [_any_way(each) for each in remaining]
    while len(remaining) > 1:
        first, second = _cheapest(remaining, output, sizes)
        needed = _needed(remaining, output, {first, second})
        last = output if len(remaining) == 2 else ()
        product = _product(remaining[first], remaining[second], needed, last)
        rest = [x for index, x in enumerate(remaining) if index not in (first, second)]
        remaining = [*rest, _any_way(product) if truths else product]
    (result,) = remaining
    value = transposed(result.value, result.axes(output))
    return truth(value) if truths else value


def _any_way(x: Labelled) -> Labelled:
    """1 in place of each number of ways."""
    return Labelled(cast(truth(x.value), I32), x.labels)


def label_sizes(operands: Sequence[Labelled]) -> dict[Label, Size]:
    """The size of each label: of the first axis that has it and is not 1."""
    sizes: dict[Label, Size] = {}
    for each in operands:
        for label, size in zip(each.labels, each.value.shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes


def _squeezed(x: Labelled, sizes: Mapping[Label, Size]) -> Labelled:
    """Without the axes of size 1 that others repeat."""
    kept = [
        axis
        for axis, (label, size) in enumerate(zip(x.labels, x.value.shape, strict=True))
        if size != 1 or sizes[label] == 1
    ]
    shape = tuple([x.value.shape[axis] for axis in kept])
    return Labelled(reshaped(x.value, shape), tuple([x.labels[axis] for axis in kept]))


def _single(x: Labelled) -> Labelled:
    """With each label once: of axes with the same label, the diagonal."""
    for label in dict.fromkeys(x.labels):
        axes = tuple([axis for axis, other in enumerate(x.labels) if other == label])
        if len(axes) > 1:
            x = _diagonal(x, label, axes)
    return x


def _diagonal(x: Labelled, label: Label, axes: tuple[int, ...]) -> Labelled:
    value, size = x.value, x.value.shape[axes[0]]
    if len(axes) == 2:
        others = [axis for axis in range(value.ndim) if axis not in axes]
        value = Diagonal(len(others), size)(transposed(value, (*others, *axes)))
        return Labelled(value, tuple([*(x.labels[axis] for axis in others), label]))
    if at_least(value.builder.facts, size, 1):
        places = reshaped(iota(value, size), (size, 1))
        value = Gather(axes)(value, joined([places] * len(axes), 1))
        rest = tuple([other for other in x.labels if other != label])
        return Labelled(value, (label, *rest))
    place = counting(value, axes[0])
    for axis in axes[1:]:
        on = equal(place, counting(value, axis))
        value = where(on, value, filled(value, 0, ()))
    dropped = axes[1:]
    rest = tuple([other for axis, other in enumerate(x.labels) if axis not in dropped])
    return Labelled(Reduce("sum", dropped)(value), rest)


def _needed(operands: Sequence[Labelled], output: Labels, own: Collection[int]) -> set[Label]:
    """The labels that the result or another operand has."""
    needed = set(output)
    for index, each in enumerate(operands):
        if index not in own:
            needed.update(each.labels)
    return needed


def _summed(x: Labelled, needed: Collection[Label]) -> Labelled:
    """Without the labels that nobody needs."""
    axes = tuple([axis for axis, label in enumerate(x.labels) if label not in needed])
    if not axes:
        return x
    kept = tuple([label for label in x.labels if label in needed])
    return Labelled(Reduce("sum", axes)(x.value), kept)


def _product(x: Labelled, y: Labelled, needed: Collection[Label], last: Labels) -> Labelled:
    """Two operands combined; `last` is the order of the result if there are no more."""
    summed = [label for label in x.labels if label in y.labels and label not in needed]
    if not summed:
        return _multiplied(x, y, last)
    shared = [label for label in last or x.labels if label in x.labels and label in y.labels]
    shared = [label for label in shared if label in needed]
    left, right = (
        [label for label in each.labels if label not in summed and label not in shared]
        for each in (x, y)
    )
    if last and last == (*shared, *right, *left):
        x, y, left, right = y, x, right, left
    dot = DotGeneral((x.axes(summed), y.axes(summed)), (x.axes(shared), y.axes(shared)))
    return Labelled(dot(x.value, y.value), (*shared, *left, *right))


def _multiplied(x: Labelled, y: Labelled, last: Labels) -> Labelled:
    labels = last or (*x.labels, *(label for label in y.labels if label not in x.labels))
    sizes = label_sizes((x, y))
    shape: Shape = tuple([sizes[label] for label in labels])
    aligned = [_aligned(each, labels, shape) for each in (x, y)]
    result: Value = multiply(*aligned)
    return Labelled(result, labels)


def _aligned(x: Labelled, labels: Labels, shape: Shape) -> Value:
    if not x.labels:
        return x.value
    places = sorted(labels.index(label) for label in x.labels)
    ordered = transposed(x.value, x.axes([labels[place] for place in places]))
    return spread(ordered, shape, places)


def _cheapest(
    operands: Sequence[Labelled], output: Labels, sizes: Mapping[Label, Size]
) -> tuple[int, int]:
    """The two operands whose product takes the least room beyond their own."""

    def room(labels: Collection[Label]) -> int:
        total = 1
        for label in labels:
            total *= typical(sizes[label])
        return total

    def growth(pair: tuple[int, int]) -> int:
        x, y = (set(operands[index].labels) for index in pair)
        product = (x | y) & _needed(operands, output, pair)
        return room(product) - room(x) - room(y)

    return min(combinations(range(len(operands)), 2), key=growth)


def typical(size: Size) -> int:
    """A number to compare sizes by when it only matters which tends to be larger."""
    if isinstance(size, int):
        return size
    try:
        return evaluate(size, dict.fromkeys(names(size), TYPICAL))
    except ZeroDivisionError:
        return TYPICAL


# Products of matrices and vectors.


def conjugated(x: Value) -> Value:
    """The complex conjugate; itself if real."""
    return conjugate(x) if x.dtype.is_complex else x


def times(x: Value, y: Value) -> Value:
    """The product of elements; of truth values, whether both hold."""
    return x & y if x.dtype is BOOL else x * y


def _require_axes(x: Value, least: int, name: str) -> None:
    require(name, x, "any")
    if x.ndim < least:
        wanted = "arrays with 1 axis or more" if least == 1 else "arrays with 2 axes or more"
        raise Failure(WrongNumberOfAxes(function=name, given=x.type, wanted=wanted))


def _require_same(name: str, x: Value, y: Value, sizes: tuple[Size, Size]) -> None:
    facts = x.builder.facts
    if not facts.equal(*sizes):
        why = disagreement(facts, *sizes)
        left, right = f"an axis of {x.type}", f"an axis of {y.type}"
        raise Failure(LengthsDiffer(function=name, left=left, right=right, why=why))


def product_type(facts: Assumptions, left: ArrayType, right: ArrayType) -> ArrayType | None:
    """The type of a matrix product, if the operands fit."""
    if not left.rank or not right.rank:
        return None
    inner = right.shape[-2] if right.rank > 1 else right.shape[-1]
    if not facts.equal(left.shape[-1], inner):
        return None
    try:
        batch = broadcast_shapes(facts, left.shape[:-2], right.shape[:-2])
    except Failure:
        return None
    columns = right.shape[-1:] if right.rank > 1 else ()
    return left.with_shape((*batch, *left.shape[-2:-1], *columns))


def _inner_sizes_differ(name: str, x: Value, y: Value, sizes: tuple[Size, Size]) -> Failure:
    facts = x.builder.facts

    def turned(of: ArrayType) -> tuple[str, ArrayType | None]:
        shape = (*of.shape[:-2], *of.shape[:-3:-1])
        return ".T" if of.rank == 2 else ".mT", of.with_shape(shape) if of.rank > 1 else None

    (left, x_turned), (right, y_turned) = turned(x.type), turned(y.type)
    candidates: tuple[tuple[str, ArrayType | None, ArrayType | None], ...] = (
        ("{1} @ {0}", y.type, x.type),
        (f"{{0}}{left} @ {{1}}", x_turned, y.type),
        (f"{{0}} @ {{1}}{right}", x.type, y_turned),
    )
    works: list[tuple[str, ArrayType]] = []
    for text, one, other in candidates:
        if one is not None and other is not None:
            type_ = product_type(facts, one, other)
            if type_ is not None:
                works.append((text, type_))
    why = disagreement(facts, *sizes)
    short = name.rpartition(".")[2]
    return Failure(
        InnerSizesDiffer(function=short, left=x.type, right=y.type, why=why, works=tuple(works))
    )


def matrix_product(x: Value, y: Value, name: str = "numpy.matmul") -> Value:
    """`x @ y`: the last axis of x against the last but one of y, or its only one."""
    _require_axes(x, 1, name)
    _require_axes(y, 1, name)
    inner = y.shape[-2] if y.ndim > 1 else y.shape[-1]
    if not x.builder.facts.equal(x.shape[-1], inner):
        raise _inner_sizes_differ(name, x, y, (x.shape[-1], inner))
    broadcast_shapes(x.builder.facts, x.shape[:-2], y.shape[:-2])
    rows: Labels = ("row",) if x.ndim > 1 else ()
    columns: Labels = ("column",) if y.ndim > 1 else ()
    left, right = range(2 - x.ndim, 0), range(2 - y.ndim, 0)
    batch = left if len(left) > len(right) else right
    return contract(
        (Labelled(x, (*left, *rows, "inner")), Labelled(y, (*right, "inner", *columns))),
        (*batch, *rows, *columns),
    )


@of_numbers("numpy.matmul", together=("x1", "x2"), widens=True)
def matmul(x1: Value, x2: Value, /) -> Value:
    """The matrix product, `x1 @ x2`; leading axes broadcast."""
    return matrix_product(x1, x2)


@of_numbers("numpy.matvec", together=("x1", "x2"))
def matvec(x1: Value, x2: Value, /) -> Value:
    """Matrices times vectors; leading axes broadcast."""
    _require_axes(x1, 2, "numpy.matvec")
    _require_axes(x2, 1, "numpy.matvec")
    column = reshaped(x2, (*x2.shape, 1))
    result = matrix_product(x1, column, "numpy.matvec")
    return reshaped(result, result.shape[:-1])


@of_numbers("numpy.vecmat", together=("x1", "x2"))
def vecmat(x1: Value, x2: Value, /) -> Value:
    """Vectors, conjugated, times matrices; leading axes broadcast."""
    _require_axes(x1, 1, "numpy.vecmat")
    _require_axes(x2, 2, "numpy.vecmat")
    row = conjugated(reshaped(x1, (*x1.shape[:-1], 1, x1.shape[-1])))
    result = matrix_product(row, x2, "numpy.vecmat")
    return reshaped(result, (*result.shape[:-2], result.shape[-1]))


@of_numbers("numpy.vecdot", together=("x1", "x2"), widens=True)
def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Value:
    """The products of the elements along an axis, the first conjugated, summed; axes broadcast."""
    for x in (x1, x2):
        _require_axes(x, 1, "numpy.vecdot")
    x = moved(x1, normalize_axis(axis, x1.ndim, "numpy.vecdot"), x1.ndim - 1)
    y = moved(x2, normalize_axis(axis, x2.ndim, "numpy.vecdot"), x2.ndim - 1)
    _require_same("numpy.vecdot", x, y, (x.shape[-1], y.shape[-1]))
    broadcast_shapes(x.builder.facts, x.shape[:-1], y.shape[:-1])
    left, right = range(1 - x.ndim, 0), range(1 - y.ndim, 0)
    batch = left if len(left) > len(right) else right
    operands = (Labelled(conjugated(x), (*left, "inner")), Labelled(y, (*right, "inner")))
    return contract(operands, tuple(batch))


def _along(name: str, x: Value, y: Value, left: Sequence[int], right: Sequence[int]) -> Value:
    """Axes of x summed against axes of y; the other axes of x come first."""
    for one, other in zip(left, right, strict=True):
        _require_same(name, x, y, (x.shape[one], y.shape[other]))
    fresh = count()
    x_labels: list[Any] = [next(fresh) for _ in x.shape]
    y_labels: list[Any] = [next(fresh) for _ in y.shape]
    for one, other in zip(left, right, strict=True):
        y_labels[other] = x_labels[one]
    output = [
        label for label in (*x_labels, *y_labels) if label not in set(x_labels) & set(y_labels)
    ]
    return contract((Labelled(x, tuple(x_labels)), Labelled(y, tuple(y_labels))), tuple(output))


@of_numbers("numpy.dot", together=("a", "b"), widens=True)
def dot(a: Value, b: Value) -> Value:
    """The last axis of a against the last but one of b, without broadcasting; scalars multiply."""
    if not a.ndim or not b.ndim:
        return times(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matrix_product(a, b, "numpy.dot")
    return _along("numpy.dot", a, b, [a.ndim - 1], [max(b.ndim - 2, 0)])


@of_numbers("numpy.inner", together=("a", "b"), widens=True)
def inner(a: Value, b: Value, /) -> Value:
    """The last axes against each other; scalars multiply."""
    if not a.ndim or not b.ndim:
        return times(a, b)
    return _along("numpy.inner", a, b, [a.ndim - 1], [b.ndim - 1])


@of_numbers("numpy.vdot", together=("a", "b"), widens=True)
def vdot(a: Value, b: Value, /) -> Value:
    """All elements against each other, in order, those of a conjugated."""
    return _along("numpy.vdot", conjugated(raveled(a)), raveled(b), [0], [0])


@of_numbers("numpy.outer", together=("a", "b"), widens=True)
def outer(a: Value, b: Value) -> Value:
    """Each element of a times each of b, as a matrix."""
    return _along("numpy.outer", raveled(a), raveled(b), (), ())


@of_numbers("numpy.tensordot", together=("a", "b"), result=Result.ARRAY, widens=True)
def tensordot(a: Value, b: Value, axes: Any = 2) -> Value:
    """Axes of a against axes of b: so many of the last and the first, or the pairs named."""
    name = "numpy.tensordot"
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            problem = f"cannot take {describe(axes)} axes of {a.type} and {b.type}"
            raise Failure(BadArguments(function=name, problem=problem))
        return _along(name, a, b, range(a.ndim - axes, a.ndim), range(axes))
    pair = listed(axes)
    if pair is None or len(pair) != 2:
        problem = "takes a number of axes, or the axes of each operand"
        raise Failure(BadArguments(function=name, problem=problem))
    left = normalize_axes(_several(pair[0]), a.ndim, name)
    right = normalize_axes(_several(pair[1]), b.ndim, name)
    if len(left) != len(right):
        problem = f"takes as many axes of the one as of the other, not {len(left)} and {len(right)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return _along(name, a, b, left, right)


def _several(axes: object) -> Sequence[object]:
    items = listed(axes)
    return (axes,) if items is None else items


@of_numbers("numpy.kron", together=("a", "b"), widens=True)
def kron(a: Value, b: Value) -> Value:
    """The Kronecker product: each element of a times all of b, in blocks."""
    rank = max(a.ndim, b.ndim)
    left: Shape = (*(1 for _ in range(rank - a.ndim)), *a.shape)
    right: Shape = (*(1 for _ in range(rank - b.ndim)), *b.shape)
    blocks = times(
        reshaped(a, tuple([size for each in left for size in (each, 1)])),
        reshaped(b, tuple([size for each in right for size in (1, each)])),
    )
    return reshaped(blocks, tuple([x * y for x, y in zip(left, right, strict=True)]))


@of_numbers("numpy.trace", together=("a",), traced=("offset",))
def trace(
    a: Value, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: DType | None = None
) -> Value:
    """The sum along a diagonal; bool and small integers are summed in 32 bits."""
    return _call(reductions.sum, _call(creation.diagonal, a, offset, axis1, axis2), -1, dtype)


def _call(meaning: Meaning, *args: Any) -> Value:
    result: Value = meaning(*args)
    return result


@of_numbers("numpy.cross", together=("a", "b"), result=Result.ARRAY, widens=True)
def cross(
    a: Value,
    b: Value,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Value:
    """The cross product of vectors with 3 elements."""
    name = "numpy.cross"
    if axis is not None:
        axisa = axisb = axisc = axis
    x = moved(a, normalize_axis(axisa, a.ndim, name), a.ndim - 1)
    y = moved(b, normalize_axis(axisb, b.ndim, name), b.ndim - 1)
    for each in (x, y):
        if not each.builder.facts.equal(each.shape[-1], 3):
            size = each.shape[-1]
            problem = f"takes vectors with 3 elements, not {size}"
            instead = "" if isinstance(size, int) else f"add `assert {size} == 3`"
            raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    left, right = ([at(each, each.ndim - 1, i) for i in range(3)] for each in (x, y))
    parts = [
        _determinant(left[i], left[j], right[i], right[j]) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    last = parts[0].ndim
    whole = joined([reshaped(part, (*part.shape, 1)) for part in parts], last)
    return moved(whole, last, normalize_axis(axisc, last + 1, name))


def _determinant(a: Value, b: Value, c: Value, d: Value) -> Value:
    """`a*d - b*c`, broadcast."""
    return a * d - b * c


# `einsum`: every form of its subscripts, translated to one contraction.


NAME = "numpy.einsum"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Symbol: TypeAlias = "str | EllipsisType"


def _has_several(given: Mapping[str, Any]) -> bool:
    """Return whether there are several arrays: the diagonal of one is a view."""
    operands = given.get("operands", ())
    return len(operands) > 2 and isinstance(operands[0], str) and "optimize" not in given


@function(NAME, result=new_if(_has_several))
def einsum(here: Builder, *operands: Any, optimize: Any = False) -> Value:
    """Sums of products over axes named by letters; the order of products is always chosen."""
    if operands and isinstance(operands[0], str):
        text, arrays = operands[0], list(operands[1:])
        terms, output = _parsed(text)
    else:
        text, arrays, terms, output = _interleaved(operands)
    if not arrays:
        _fail(text, "there is no operand")
    if len(terms) != len(arrays):
        _fail(text, f"{len(terms)} groups of letters for {len(arrays)} operands")
    values = _values(here, arrays)
    labelled = [_labelled(text, *each) for each in zip(values, terms, strict=True)]
    _check_sizes(labelled)
    return contract(labelled, _result_labels(text, labelled, terms, output))


def _fail(text: str, problem: str) -> NoReturn:
    raise Failure(BadSubscripts(subscripts=text, problem=problem))


def _values(here: Builder, arrays: Sequence[Any]) -> tuple[Value, ...]:
    for each in arrays:
        if not isinstance(each, Value | Weak | Scalar | Dim | np.ndarray | np.generic):
            raise Failure(
                BadArguments(function=NAME, problem=f"takes arrays, not {describe(each)}")
            )
    if not any(isinstance(each, Value | Weak) for each in arrays):
        arrays = [
            here.constant(x) if isinstance(x, np.ndarray | np.generic) else here.weak(x)
            for x in arrays
        ]
    values = promote(*arrays)
    assert values is not None
    require_no_integers(NAME, arrays, values[0].dtype)
    for each in values:
        require(NAME, each, "any")
    return values


def _parsed(text: str) -> tuple[list[list[Symbol]], list[Symbol] | None]:
    """The symbols of each operand and of the result, if that is given."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = [_symbols(text, term) for term in left.split(",")]
    return terms, _symbols(text, right) if arrow else None


def _symbols(text: str, term: str) -> list[Symbol]:
    symbols: list[Symbol] = []
    before, dots, after = term.partition("...")
    for letter in before:
        symbols.append(_letter(text, letter))
    if dots:
        symbols.append(...)
    for letter in after:
        symbols.append(_letter(text, letter))
    return symbols


def _letter(text: str, letter: str) -> str:
    if letter == ".":
        _fail(text, "`...` has three dots and stands at most once for each operand")
    if letter not in LETTERS:
        _fail(text, f"{describe(letter)} is no letter")
    return letter


def _interleaved(
    operands: Sequence[Any],
) -> tuple[str, list[Any], list[list[Symbol]], list[Symbol] | None]:
    """The form `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    arrays, lists = list(operands[0::2]), list(operands[1::2])
    output = None
    if len(arrays) > len(lists):
        output = _from_numbers(arrays.pop())
    terms = [_from_numbers(each) for each in lists]
    text = ",".join(map(_text, terms)) + ("" if output is None else f"->{_text(output)}")
    return text, arrays, terms, output


def _from_numbers(numbers: object) -> list[Symbol]:
    symbols: list[Symbol] = []
    items = listed(numbers)
    if items is None:
        problem = f"takes a list of integers after each operand, not {describe(numbers)}"
        raise Failure(BadArguments(function=NAME, problem=problem))
    for item in items:
        if item is ...:
            symbols.append(...)
        elif isinstance(item, int) and 0 <= item < len(LETTERS):
            symbols.append(LETTERS[item])
        else:
            problem = f"numbers axes from 0 to {len(LETTERS) - 1}, not by {describe(item)}"
            raise Failure(BadArguments(function=NAME, problem=problem))
    return symbols


def _text(symbols: Sequence[Symbol]) -> str:
    return "".join("..." if symbol is ... else symbol for symbol in symbols)


def _labelled(text: str, value: Value, term: Sequence[Symbol]) -> Labelled:
    """An operand with its labels: those of the axes of `...` count from its end."""
    letters = [symbol for symbol in term if symbol is not ...]
    if len(term) - len(letters) > 1:
        _fail(text, "`...` stands at most once for each operand")
    extra = value.ndim - len(letters)
    if extra < 0 or (extra > 0 and len(term) == len(letters)):
        axes = "1 axis" if value.ndim == 1 else f"{value.ndim} axes"
        _fail(text, f"`{_text(term)}` for {value.type}, which has {axes}")
    labels: list[Label] = []
    for symbol in term:
        if symbol is ...:
            labels.extend(range(-extra, 0))
        else:
            labels.append(symbol)
    return Labelled(value, tuple(labels))


def _check_sizes(operands: Sequence[Labelled]) -> None:
    known: dict[Label, tuple[Size, int]] = {}
    for index, each in enumerate(operands):
        own: dict[Label, Size] = {}
        for label, size in zip(each.labels, each.value.shape, strict=True):
            if label in own:  # a diagonal: here a size of 1 is not repeated
                _require_equal(each, label, (own[label], size), (index, index))
            own[label] = size
            other, place = known.get(label, (1, index))
            if other == 1:
                known[label] = (size, index)
            elif size != 1:
                _require_equal(each, label, (other, size), (place, index))


def _require_equal(
    x: Labelled, label: Label, sizes: tuple[Size, Size], places: tuple[int, int]
) -> None:
    facts = x.value.builder.facts
    if not facts.equal(*sizes):
        name = f"`{label}`" if isinstance(label, str) else "of `...`"
        left, right = (f"axis {name} of operand {place}" for place in places)
        why = disagreement(facts, *sizes)
        raise Failure(LengthsDiffer(function=NAME, left=left, right=right, why=why))


def _result_labels(
    text: str,
    operands: Sequence[Labelled],
    terms: Sequence[Sequence[Symbol]],
    output: Sequence[Symbol] | None,
) -> Labels:
    rest = max(sum(isinstance(label, int) for label in each.labels) for each in operands)
    broadcast: Labels = tuple(range(-rest, 0))
    letters = [symbol for term in terms for symbol in term if symbol is not ...]
    if output is None:
        once = [letter for letter in letters if letters.count(letter) == 1]
        return (*broadcast, *sorted(once))
    labels: list[Label] = []
    for symbol in output:
        if symbol is ...:
            labels.extend(broadcast)
        elif symbol not in letters:
            _fail(text, f"no operand has `{symbol}`")
        else:
            labels.append(symbol)
    if len(set(labels)) < len(labels):
        _fail(text, "the result has an axis twice")
    if broadcast and ... not in output:
        _fail(text, "the result lacks the axes of `...`")
    return tuple(labels)
