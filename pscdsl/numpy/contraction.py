"""Sums of products over labelled axes: what `matmul`, `tensordot` and `einsum` have in common.

Each axis of each operand has a label.  Axes of one label have one size, or size 1, which is
repeated; labels that the result does not have are summed over.  Operands are combined two at a
time, those first whose product is smallest.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.diagonals import Diagonal
from pscdsl._src.primitives.elementwise import equal, multiply
from pscdsl._src.primitives.indexing import Gather
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.shorthand import (
    at_least,
    cast,
    counting,
    filled,
    iota,
    joined,
    reshaped,
    spread,
    transposed,
    truth,
    where,
)
from pscdsl.typing.arrays import Shape
from pscdsl.typing.dims import Size, evaluate, names
from pscdsl.typing.dtypes import BOOL, I32

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
        """Where labels stand."""
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
