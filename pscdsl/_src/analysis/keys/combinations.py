"""Rows combined by a function: walked as if one after the other, several times, like a loop.

But a row may come first or second, whichever it is: where keys of rows are consumed on either
side of the combination, one key may be consumed twice.  So may what others were combined to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.analysis.keys.loops import Loop, Often, Places
from pscdsl._src.ir.program import Atom, Block, Equation, Var
from pscdsl._src.primitives.control import AssociativeScan, MapReduce
from pscdsl.typing.dtypes import KEY

if TYPE_CHECKING:
    from pscdsl._src.analysis.keys.walk import Walk


def prefixes(walk: Walk, primitive: AssociativeScan, equation: Equation) -> None:
    """All prefixes of rows."""
    captured, arrays = primitive.roles(equation.inputs)
    held, pair = primitive.roles(primitive.combine.params)
    firsts, seconds = pair[: len(arrays)], pair[len(arrays) :]
    _enter_rows(walk, firsts, arrays)
    begun = _bound(walk, firsts)
    often = Often.of(primitive.length, walk.ledger.facts)
    loop = Loop(walk, firsts, begun, often, equation.outputs)
    grouped = _Grouped(walk, primitive.combine, firsts, seconds)
    for turn in loop.turns():
        walk.enter(held, captured)
        _enter_carry(walk, loop, firsts)
        for var, array in zip(seconds, arrays, strict=True):
            loop.enter_row(var, array, turn)
        loop.gave(primitive.combine, walk.block(primitive.combine))
        if loop.often.several:
            grouped.again()
    loop.stack(equation.outputs, loop.results[-1], begun)


def total(walk: Walk, primitive: MapReduce, equation: Equation) -> None:
    """What is made of rows, combined."""
    by_body, by_combine, initial, arrays = primitive.roles(equation.inputs)
    body, combine = primitive.body.params, primitive.combine.params
    held, rows = body[: primitive.body_captured], body[primitive.body_captured :]
    own, pair = combine[: len(by_combine)], combine[len(by_combine) :]
    count = len(primitive.body.results)
    state, values = pair[:count], pair[count:]
    if initial:
        walk.enter(state, initial)
    else:
        _enter_new(walk, state)
    often = Often.of(primitive.length, walk.ledger.facts)
    loop = Loop(walk, state, _bound(walk, state), often)
    grouped = _Grouped(walk, primitive.combine, state, values)
    for turn in loop.turns():
        walk.enter(held, by_body)
        for var, array in zip(rows, arrays, strict=True):
            loop.enter_row(var, array, turn)
        found = walk.block(primitive.body)
        walk.enter(own, by_combine)
        _enter_carry(walk, loop, state)
        _bind(walk, values, found)
        loop.gave(primitive.combine, walk.block(primitive.combine))
        if loop.often.several:
            grouped.again()
    loop.leave(equation.outputs)


class _Grouped:
    """A row combined with what others were combined to, which then comes second.

    A combination may not give back a key of its second row that it consumes.  Keys are taken from
    nowhere here, as those of different rows differ.
    """

    def __init__(
        self, walk: Walk, combine: Block, firsts: Sequence[Var], seconds: Sequence[Var]
    ) -> None:
        self._walk = walk
        self._combine = combine
        self._firsts = firsts
        self._seconds = seconds
        self._found: Places | None = None

    def again(self) -> None:
        """Combine a row with what was found before, or with another one."""
        _enter_new(self._walk, self._firsts)
        if self._found is None:
            _enter_new(self._walk, self._seconds)
        else:
            _bind(self._walk, self._seconds, self._found)
        self._found = self._walk.block(self._combine)


def _bound(walk: Walk, params: Sequence[Var]) -> Places:
    """The keys that parameters are bound to."""
    return [walk.place(var) if var.type.dtype is KEY else None for var in params]


def _enter_carry(walk: Walk, loop: Loop, params: Sequence[Var]) -> None:
    """Bind what was combined so far; of its integers nothing is known."""
    loop.enter_keys(params)
    for var in params:
        if var.type.dtype is not KEY:
            walk.unknown(var)


def _enter_new(walk: Walk, params: Sequence[Var]) -> None:
    """Bind parameters to keys of their own, and to numbers of which nothing is known."""
    for var in params:
        if var.type.dtype is KEY:
            walk.new(var)
        else:
            walk.unknown(var)


def _bind(walk: Walk, params: Sequence[Var], places: Places) -> None:
    """Bind parameters to what was computed."""
    for var, place in zip(params, places, strict=True):
        walk.unknown(var)
        if place is not None:
            walk.bind(var, place)


def _enter_rows(walk: Walk, params: Sequence[Var], arrays: Sequence[Atom]) -> None:
    """Bind parameters to rows, any of them."""
    for var, array in zip(params, arrays, strict=True):
        place = walk.place(array)
        walk.unknown(var)
        if place is not None:
            walk.new(var, sources=[(place, ())], agent=object())
