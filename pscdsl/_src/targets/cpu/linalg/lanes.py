"""Many small matrices side by side: each operation is done for a few of them at once.

A part of the batch is turned so that its matrices lie along the last axis; elements of matrices
are then vectors, and what is done with them is a loop that becomes a native function.
The sizes of operands are numbers here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.creation import Iota
from pscdsl._src.primitives.dynamic_slicing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.shaping import Reshape, Transpose
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dtypes import I32

BYTES = 13 << 10
"""With more bytes in a part of an operand the loop would be no native function."""


def in_lanes(
    function: Callable[[Sequence[Value]], Sequence[Value]],
    operands: Sequence[Value],
    rank: int,
    results: Sequence[ArrayType],
    lanes: int,
) -> Sequence[Value]:
    """The results of a function of arrays whose last axis are so many elements of a batch.

    Fewer are compiled faster, more may run faster.  The first `rank` axes of operands and results
    are those of the batch.
    """
    batch = _numbers(operands[0].type)[:rank]
    count = prod(batch)
    most = max(prod(_numbers(x.type)[rank:]) * x.dtype.bits // 8 for x in operands)
    lanes = min(count, lanes, BYTES // most // 8 * 8)
    here = operands[0].builder
    given = [Reshape((count, *x.shape[rank:]))(x) for x in operands]
    if count == lanes:
        found: Sequence[Value] = [_first(x) for x in function([_last(x) for x in given])]
    else:
        wanted = [(count, *each.shape[rank:]) for each in results]
        empty = [
            here.full(0, shape, each.dtype) for shape, each in zip(wanted, results, strict=True)
        ]

        def step(index: Value, made: Sequence[Value]) -> Sequence[Value]:
            start = e.multiply(index, lanes)  # the last part may overlap with the one before
            parts = [part(x, 0, start, lanes) for x in given]
            new = [_first(x) for x in function([_last(x) for x in parts])]
            return [changed(x, 0, start, y) for x, y in zip(made, new, strict=True)]

        found = repeated(-(-count // lanes), empty, step)
    return [Reshape(each.shape)(x) for x, each in zip(found, results, strict=True)]


def repeated(
    count: int,
    carry: Sequence[Value],
    step: Callable[[Value, Sequence[Value]], Sequence[Value]],
) -> Sequence[Value]:
    """What becomes of a carry in so many steps, which get their number too."""
    program = carry[0].builder.program
    state = [program.current.literal(0, I32), *carry]
    with program.inside() as inner:
        index, *rest = params = [inner.parameter(each.type) for each in state]
        body, captured = inner.finish(params, [e.add(index, 1), *step(index, rest)])
    with program.inside() as inner:
        params = [inner.parameter(each.type) for each in state]
        cond, _ = inner.finish(params, [e.less(params[0], count)])
    primitive = While(cond, body, 0, len(captured), count)
    return program.current.bind(primitive, (*captured, *state))[1:]


def part(x: Value, axis: int, start: Value, size: int = 1) -> Value:
    """What lies along an axis from a computed place on."""
    sizes = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return DynamicSlice(sizes)(x, *_places(x, axis, start))


def changed(x: Value, axis: int, start: Value, new: Value) -> Value:
    """An array with a part replaced, from a computed place on along an axis."""
    return DynamicUpdate()(x, new, *_places(x, axis, start))


def places(x: Value, axis: int) -> Value:
    """The place of each element along an axis."""
    return x.builder.bind(Iota(x.shape, axis, I32), ())[0]


def _places(x: Value, axis: int, start: Value) -> list[Value]:
    zero = x.builder.literal(0, I32)
    return [start if each == axis else zero for each in range(x.ndim)]


def _last(x: Value) -> Value:
    return Transpose((*range(1, x.ndim), 0))(x)


def _first(x: Value) -> Value:
    return Transpose((x.ndim - 1, *range(x.ndim - 1)))(x)


def _numbers(of: ArrayType) -> tuple[int, ...]:
    return tuple([size for size in of.shape if isinstance(size, int)])
