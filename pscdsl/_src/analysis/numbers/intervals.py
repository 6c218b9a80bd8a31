"""Interval analysis: the range of every integer variable of a function, for all sizes at once.

One pass over the program; the body of a loop is run a few times over, until its carry is inside
the range that was assumed for it.  The ranges of a loop's body are those of its last run, and
hold for every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from pscdsl._src.analysis.numbers.ranges import Order, Range, free, single, unknown
from pscdsl._src.analysis.numbers.refinement import Constraints, Refinement
from pscdsl._src.analysis.numbers.rules_of_arithmetic import ELEMENTWISE, clamp
from pscdsl._src.analysis.numbers.rules_of_structure import STRUCTURE, sorted_ranges, top_places
from pscdsl._src.analysis.warnings.combinations import Combinations
from pscdsl._src.analysis.warnings.loops import Loops, Ranges, row_of, unreached
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import (
    AssociativeScan,
    Call,
    Control,
    MapReduce,
    Scan,
    Switch,
    While,
)
from pscdsl._src.primitives.extreme_places import ArgReduce
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.typing import dims
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import DimTooLarge
from pscdsl.typing.dtypes import BOOL

_SPECIAL = (Control, e.Select, Sort)
_DEPTH = 4
"""How far back a value is worked out again under a condition."""


@lru_cache(maxsize=256)
def intervals(function: Function) -> Intervals:
    """The ranges of a function whose parameters can be anything."""
    return Intervals(function)


def counts(given: ArrayType) -> bool:
    """Whether elements of this type have a range."""
    return given.dtype.is_integer or given.dtype is BOOL


class Intervals:
    """The ranges of a function's variables, those of nested blocks included."""

    def __init__(self, function: Function, known: Mapping[Var, Range] | None = None) -> None:
        self._known = known or {}
        """Ranges that do not follow from those of the operands."""
        self.ranges: dict[Var, Range] = {}
        self.orders: dict[Block, Order] = {}
        """By block, what is known of sizes where it runs."""
        self.definitions: dict[Var, Equation] = {}
        """The equation that each variable is a result of; parameters of blocks have none."""
        self._counting: dict[Block, list[Equation]] = {}
        self.refinement = Refinement(self.definitions, self.ranges)
        self._loops = Loops(self.block, self.refinement)
        self._combinations = Combinations(self._loops)
        params = [free(v.type.dtype, v) if counts(v.type) else None for v in function.body.params]
        self.results = self.block(function.body, Order(function.facts), params)

    def of(self, atom: Atom) -> Range | None:
        """The range of an atom, None if it is no integer."""
        if isinstance(atom, Literal):
            return single(int(atom.value)) if isinstance(atom.value, int) else None
        return self.ranges.get(atom)

    def block(self, block: Block, order: Order, operands: Ranges) -> Ranges:
        """Run a block; the ranges of its results."""
        self.orders[block] = order
        self._bind(block.params, operands)
        for equation in self._relevant(block):
            self._bind(equation.outputs, self._equation(equation, order))
        return [self.of(atom) for atom in block.results]

    def _relevant(self, block: Block) -> list[Equation]:
        """The equations of a block that give integers, or hold blocks."""
        found = self._counting.get(block)
        if found is None:
            found = self._counting[block] = []
            for equation in block.equations:
                primitive = equation.primitive
                if any(counts(v.type) for v in equation.outputs) or (
                    isinstance(primitive, Control) and primitive.blocks()
                ):
                    found.append(equation)
                    for var in equation.outputs:
                        self.definitions[var] = equation
        return found

    def _bind(self, variables: Sequence[Var], ranges: Ranges) -> None:
        for var, found in zip(variables, ranges, strict=True):
            if found is not None:
                self.ranges[var] = self._known.get(var, found)

    def _equation(self, at: Equation, order: Order) -> Ranges:
        primitive = at.primitive
        try:
            if len(at.outputs) == 1 and not isinstance(primitive, _SPECIAL):
                return [self._rule(at, order, self._operands(at))]
            match primitive:
                case e.Select():
                    return [self._select(at, order)]
                case Scan(counted=False):
                    return self._loops.scan(at, primitive, order, self._operands(at))
                case Scan():  # it ends early, nobody knows when
                    return self._ending(at, primitive, order)
                case AssociativeScan():
                    given = self._operands(at)
                    return self._combinations.prefixes(at, primitive, order, given)
                case MapReduce():
                    return self._combinations.total(at, primitive, order, self._operands(at))
                case While():
                    return self._loops.repeat(at, primitive, order, self._operands(at))
                case Switch():
                    return self._switch(at, primitive, order)
                case Call():
                    return self._call(at, primitive, order)
                case Sort():
                    return sorted_ranges(at, self._operands(at))
                case TopK():
                    (x,) = sorted_ranges(at, self._operands(at))
                    return [x and x.unreached(), top_places(order, primitive, at)]
                case _:
                    return self._unknown(at, order)
        except DimTooLarge:
            return self._unknown(at, order)

    def _unknown(self, at: Equation, order: Order) -> Ranges:
        """Nothing of the results, nor of what the blocks of an equation are given."""
        for block in at.primitive.blocks():
            self.block(block, order, _unknown_of(block.params))
        return _unknown_of(at.outputs)

    def _ending(self, at: Equation, primitive: Scan, order: Order) -> Ranges:
        """Nothing of what a loop carries, but what its body is given besides."""
        captured, _, arrays = primitive.roles(self._operands(at))
        carry = _unknown_of(primitive.body.params[primitive.captured :][: primitive.carried])
        rows = [row_of(each, at) for each in arrays]
        given = [*unreached(captured), *carry, *unreached(rows)]
        self.block(primitive.body, order, given)
        return _unknown_of(at.outputs)

    def _operands(self, at: Equation) -> Ranges:
        return [self.of(atom) for atom in at.inputs]

    def _rule(self, at: Equation, order: Order, operands: Ranges) -> Range:
        """The range of the one result of an equation without blocks."""
        primitive, dtype = at.primitive, at.outputs[0].type.dtype
        given = [each for each in operands if each is not None]
        if len(given) < len(operands) and not isinstance(primitive, ArgReduce):
            return unknown(dtype)
        if isinstance(primitive, e.Elementwise):
            elementwise = ELEMENTWISE.get(primitive)
            return unknown(dtype) if elementwise is None else elementwise(order, dtype, given)
        if isinstance(primitive, e.Clamp):
            return clamp(order, dtype, given)
        rule = STRUCTURE.get(type(primitive))
        return unknown(dtype) if rule is None else rule(order, primitive, at, given)

    def _select(self, at: Equation, order: Order) -> Range:
        """Each operand under the condition that it is chosen."""
        condition, *chosen = at.inputs
        dtype = at.outputs[0].type.dtype
        known = self.of(condition)
        if known is not None and known.is_single:
            return self.of(chosen[0 if known.low == 1 else 1]) or unknown(dtype)
        found: list[Range] = []
        for holds, atom in zip((True, False), chosen, strict=True):
            under = self.refinement.constraints(order, condition, holds)
            found.append(self._under(atom, under, order, _DEPTH) or unknown(dtype))
        along = frozenset[object](() if known is None else known.along)
        result = order.join(found, dtype).unreached()
        return result.varying(result.along | along | frozenset(range(at.outputs[0].type.rank)))

    def _under(self, atom: Atom, known: Constraints, order: Order, depth: int) -> Range | None:
        """The range of an atom where something is known of others, element by element."""
        if not isinstance(atom, Var) or atom in known:
            return known.get(atom) if isinstance(atom, Var) else self.of(atom)
        old, at = self.of(atom), self.definitions.get(atom)
        if old is None or at is None or not depth or not known:
            return old
        if not isinstance(at.primitive, e.Elementwise | e.Convert | e.Clamp):
            return old
        operands = [self._under(each, known, order, depth - 1) for each in at.inputs]
        if operands == self._operands(at):
            return old
        return order.meet(old, self._rule(at, order, operands), atom.type.dtype)

    def _switch(self, at: Equation, primitive: Switch, order: Order) -> Ranges:
        index, *rest = at.inputs
        results: list[Ranges] = []
        for number, branch in enumerate(primitive.branches):
            known: Constraints = {}
            if index.type.dtype is BOOL and len(primitive.branches) == 2:
                known = self.refinement.constraints(order, index, bool(number))
            given = [self._under(atom, known, order, _DEPTH) for atom in rest]
            given = [each and each.unreached() for each in given]
            results.append(self.block(branch, order, given))
        joined: Ranges = []
        for var, column in zip(at.outputs, zip(*results, strict=True), strict=True):
            if not counts(var.type):
                joined.append(None)
            else:
                ranges = [each or unknown(var.type.dtype) for each in column]
                joined.append(order.join(ranges, var.type.dtype).unreached())
        return joined

    def _call(self, at: Equation, primitive: Call, order: Order) -> Ranges:
        """What the function gives whatever it is called with."""
        sizes = dict(primitive.sizes)
        found: Ranges = []
        for var, result in zip(at.outputs, intervals(primitive.function).results, strict=True):
            if result is None:
                found.append(None)
                continue
            low, high = (dims.substitute(bound, sizes) for bound in (result.low, result.high))
            along = frozenset((at, *range(var.type.rank)))
            found.append(order.fitted(var.type.dtype, low, high, along=along))
        return found


def _unknown_of(variables: Sequence[Var]) -> Ranges:
    return [unknown(var.type.dtype) if counts(var.type) else None for var in variables]
