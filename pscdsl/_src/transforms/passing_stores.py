"""Stores that are overwritten in the same block, and replacements for the reads in between.

Loops store and read in turn: `a[i, j] -= x` and then `a[i, j] /= a[j, j]`. XLA fuses a store into
each read that follows, and changes a copy of the array for it. If every read gets either the stored
value or the earlier element, the first of the stores is not needed, and a step changes the array
once, in place: a factorisation of a 120x120 matrix by such loops takes 0.05 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    Var,
    is_plain,
    rebuilt,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.shaping import SizeValue
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, I64, KEY, U64

_NUMBER: Final = ArrayType(I64)
_TRUTH: Final = ArrayType(BOOL)


class StoresPass:
    """The pass; a block that is held twice stays one block."""

    def __init__(self) -> None:
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """Return the block without passing stores; the block itself if there are none."""
        cached = self._blocks.get(block)
        if cached is None:
            cached = self._blocks[block] = self._change(block)
        return cached

    def _change(self, block: Block) -> Block:
        equations = [self._nested(each) for each in block.equations]
        passing = passing_stores(block)
        if passing:
            equations = _Rewriting(passing).run(equations)
        elif all(a is b for a, b in zip(equations, block.equations, strict=True)):
            return block
        return Block(block.params, tuple(equations), block.results)

    def _nested(self, equation: Equation) -> Equation:
        if is_plain(equation.primitive):
            return equation
        return equation.with_primitive(rebuilt(equation.primitive, self.block, _same))


def _same(function: Function) -> Function:
    return function


def passing_stores(block: Block) -> frozenset[Atom]:
    """Return the arrays whose every read is entirely inside or outside of the stored part.

    The last use of such an array may be a store into the same place.
    """
    stores = {
        each.outputs[0]: each
        for each in block.equations
        if isinstance(each.primitive, DynamicUpdate)
    }
    users: dict[Atom, list[Equation]] = {atom: [] for atom in stores}
    if not users:
        return frozenset()
    for each in block.equations:
        for atom in {*each.inputs}:
            if atom in users:
                users[atom].append(each)
    for atom in block.results:
        users.pop(atom, None)
    return frozenset(
        atom
        for atom, store in stores.items()
        if atom in users and all(_passes(store, user) for user in users[atom])
    )


def _passes(store: Equation, user: Equation) -> bool:
    """Return whether a user of a store's result can do without the store."""
    (array,), (_, part, *places) = store.outputs, store.inputs
    if not places or part.type.dtype is KEY or user.inputs.count(array) > 1:
        return False
    if user.inputs[0] is not array:
        return False
    if isinstance(user.primitive, DynamicSlice):
        same_kind = user.outputs[0].type == part.type
        return same_kind and _all_or_nothing(part.type.shape, user.inputs[1:], places)
    if isinstance(user.primitive, DynamicUpdate):
        return user.inputs[1].type == part.type and _are_same(user.inputs[2:], places)
    return False


def _are_same(starts: Sequence[Atom], others: Sequence[Atom]) -> bool:
    """Return whether two places are equal for all numbers."""
    return all(map(_is_same, starts, others))


def _is_same(a: Atom, b: Atom) -> bool:
    if isinstance(a, Literal) and isinstance(b, Literal):
        return a.value == b.value
    return a is b


def _all_or_nothing(shape: Shape, starts: Sequence[Atom], others: Sequence[Atom]) -> bool:
    """Return whether two parts of a shape are equal or have nothing in common."""
    return all(
        _is_same(start, other) or (size == 1 and U64 not in (start.type.dtype, other.type.dtype))
        for size, start, other in zip(shape, starts, others, strict=True)
    )


class _Rewriting:
    """The equations of a block, with reads that go past stores."""

    def __init__(self, passing: frozenset[Atom]) -> None:
        self.passing: Final = passing
        self.stores: Final[dict[Atom, Sequence[Atom]]] = {}
        """The operands of the stores that have been met, as they are now."""
        self.equations: Final[list[Equation]] = []

    def run(self, equations: Sequence[Equation]) -> list[Equation]:
        """Return all equations; the passing stores are still among them."""
        for equation in equations:
            primitive, inputs = equation.primitive, equation.inputs
            store = self.stores.get(inputs[0]) if inputs else None
            if store is not None:
                if isinstance(primitive, DynamicSlice):
                    self._pass_read(equation, primitive, store)
                    continue
                inputs = (store[0], *inputs[1:])
                equation = Equation(primitive, inputs, equation.outputs, equation.span)
            if isinstance(primitive, DynamicUpdate) and equation.outputs[0] in self.passing:
                self.stores[equation.outputs[0]] = inputs
            self.equations.append(equation)
        return self.equations

    def _pass_read(
        self, equation: Equation, primitive: DynamicSlice, store: Sequence[Atom]
    ) -> None:
        """Replace a read by a choice between the stored part and the earlier elements."""
        (_, *starts), (before, part, *places) = equation.inputs, store
        (output,) = equation.outputs
        same = self._same_place(starts, places, before.type.shape, equation)
        old = self._add(primitive, (before, *starts), output.type, equation)
        made = Equation(e.Select(), (same, part, old), (output,), equation.span)
        self.equations.append(made)

    def _same_place(
        self, starts: Sequence[Atom], places: Sequence[Atom], whole: Shape, equation: Equation
    ) -> Atom:
        """Return whether two places are equal after clamping, as reads and stores clamp them."""
        found: Atom = Literal(True, BOOL)
        for start, place, size in zip(starts, places, whole, strict=True):
            if not _is_same(start, place):
                pair = [self._clamp(each, size, equation) for each in (start, place)]
                same = self._add(e.equal, pair, _TRUTH, equation)
                found = self._add(e.bitwise_and, (found, same), _TRUTH, equation)
        return found

    def _clamp(self, start: Atom, size: Size, equation: Equation) -> Atom:
        if start.type.dtype is not I64:
            start = self._add(e.Convert(I64), (start,), _NUMBER, equation)
        last = self._add(SizeValue(size - 1, I64), (), _NUMBER, equation)
        return self._add(e.Clamp(), (Literal(0, I64), start, last), _NUMBER, equation)

    def _add(
        self, primitive: Primitive, inputs: Sequence[Atom], result: ArrayType, equation: Equation
    ) -> Var:
        var = Var(result)
        self.equations.append(Equation(primitive, tuple(inputs), (var,), equation.span))
        return var


__all__ = ["StoresPass", "passing_stores"]
