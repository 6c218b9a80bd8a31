"""What a condition says of the integers that it compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from pscdsl._src.analysis.numbers.ranges import Order, Range, limits
from pscdsl._src.ir.program import Atom, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e

Constraints: TypeAlias = dict[Var, Range]
"""Ranges that variables have where a condition holds."""

_OPPOSITE: dict[object, e.Elementwise] = {
    e.less: e.greater_equal,
    e.less_equal: e.greater,
    e.greater: e.less_equal,
    e.greater_equal: e.less,
    e.equal: e.not_equal,
    e.not_equal: e.equal,
}


class Refinement:
    """Reads conditions; `definitions` and `ranges` are those of the program around them."""

    def __init__(self, definitions: Mapping[Var, Equation], ranges: Mapping[Var, Range]) -> None:
        self.definitions = definitions
        self.ranges = ranges

    def constraints(self, order: Order, condition: Atom, holds: bool) -> Constraints:
        """What is known where a condition holds, or does not."""
        found: Constraints = {}
        self._read(order, condition, holds, found, 6)
        return found

    def _read(
        self, order: Order, condition: Atom, holds: bool, found: Constraints, depth: int
    ) -> None:
        at = self.definitions.get(condition) if isinstance(condition, Var) else None
        if at is None or not depth:
            return
        primitive = at.primitive
        if primitive is e.invert:
            self._read(order, at.inputs[0], not holds, found, depth - 1)
        elif primitive is (e.bitwise_and if holds else e.bitwise_or):
            for each in at.inputs:
                self._read(order, each, holds, found, depth - 1)
        elif primitive in _OPPOSITE:
            relation = primitive if holds else _OPPOSITE[primitive]
            left, right = at.inputs
            self._compare(order, relation, left, right, found)

    def _compare(
        self, order: Order, relation: object, left: Atom, right: Atom, found: Constraints
    ) -> None:
        a, b = self._range(left, found), self._range(right, found)
        if a is None or b is None:
            return
        if relation is e.greater or relation is e.greater_equal:
            left, right, a, b = right, left, b, a
            relation = e.less if relation is e.greater else e.less_equal
        least, most = limits(left.type.dtype)
        if relation is e.equal:
            self._narrow(order, left, a, b, found)
            self._narrow(order, right, b, a, found)
        elif relation is e.less or relation is e.less_equal:
            gap = 1 if relation is e.less else 0
            self._narrow(order, left, a, Range(least, b.high - gap), found)
            self._narrow(order, right, b, Range(a.low + gap, most), found)
        elif relation is e.not_equal and b.is_single:
            if order.at_most(b.low, a.low):
                self._narrow(order, left, a, Range(b.low + 1, most), found)
            elif order.at_most(a.high, b.high):
                self._narrow(order, left, a, Range(least, b.high - 1), found)

    def _range(self, atom: Atom, found: Constraints) -> Range | None:
        if isinstance(atom, Literal):
            value = atom.value
            return Range(value, value) if isinstance(value, int) else None
        return found.get(atom) or self.ranges.get(atom)

    def _narrow(
        self, order: Order, atom: Atom, old: Range, bound: Range, found: Constraints
    ) -> None:
        if isinstance(atom, Var):
            found[atom] = replace(order.meet(old, bound, atom.type.dtype), along=old.along)
