"""Scatters on devices that apply updates in any order, with the meaning that the language has.

Of several updates that set an element the last counts, and a sum has one order in every run.
StableHLO promises neither, and XLA's device functions for GPUs apply updates as they come.  With
its option for deterministic operations (`gpu.module_options`) it sorts updates and combines those
of one element, but by a sort that may exchange equals, so that another than the last may be left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from pscdsl._src.ir.primitive import Types
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.indexing import Gather, Scatter, counter, front_order
from pscdsl._src.primitives.matrices import cast
from pscdsl._src.primitives.shaping import Broadcast, Iota, Reshape, Transpose, inverted
from pscdsl._src.targets.forms import Context, Rewrite
from pscdsl._src.targets.rewriting import defined
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import I64

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value
    from pscdsl._src.ir.program import Block


@Rewrite
def last_update(scatter: Scatter, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Replace a scatter that sets elements by one that uses the last update of each.

    The last update is the one with the highest number; a maximum does not depend on the order.
    """
    if scatter.combine != "set" or scatter.unique:
        return None
    if any(0 in numbers(each.shape) for each in inputs):
        return None  # nothing is set
    return defined(_by_last_update, scatter, inputs)


def _by_last_update(scatter: Scatter, operands: Sequence[Value]) -> Sequence[Value]:
    x, indices, updates = operands
    shared, picks = scatter.batched, numbers(indices.shape[:-1])
    own = picks[shared:]
    count = prod(own)
    dtype = counter(x.builder.facts, count)
    order = front_order(x.ndim, scatter.axes, shared)
    places = tuple(range(shared + len(scatter.axes)))
    turned = Transpose(order)(x)
    targets = turned.shape[: len(places)]

    (number,) = x.builder.bind(Iota((count,), 0, dtype), ())
    number = Broadcast(picks, tuple(range(shared, len(picks))))(Reshape(own)(number))
    none = x.builder.full(-1, targets, dtype)
    last = Scatter(places[shared:], "maximum", shared)(none, indices, number)

    zero = x.builder.full(0, targets, dtype)
    flat = Reshape((*picks[:shared], count, *updates.shape[len(picks) :]))(updates)
    found = Gather((shared,), shared)(flat, Reshape((*targets, 1))(e.maximum(last, zero)))
    is_set = Broadcast(turned.shape, places)(e.greater_equal(last, zero))
    return (Transpose(inverted(order))(Select()(is_set, found, turned)),)


@Rewrite
def by_long_indices(scatter: Scatter, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Rewrite a scatter to use indices of 64 bits.

    With others XLA emits code of two kinds of integers to sort the updates, and then refuses it:
    "Both operands to a binary operator are not of the same type".
    """
    if scatter.unique or inputs[1].dtype is I64:
        return None
    return defined(_by_long_indices, scatter, inputs)


def _by_long_indices(scatter: Scatter, operands: Sequence[Value]) -> Sequence[Value]:
    x, indices, updates = operands
    return scatter.bind(x, cast(indices, I64), updates)
