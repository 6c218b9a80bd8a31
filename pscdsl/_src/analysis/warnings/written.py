"""A program as the source has it: in place of derivatives and batches, what they were made of.

Warnings are about what the user wrote.  What a derivative computes besides is no concern of theirs,
and what it leaves out, for no result depends on it, is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import cast

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Origin, Var, walk
from pscdsl._src.primitives.control.base import Control


@dataclass(frozen=True)
class Derived(Primitive):
    """What a derivative or a batch gives, of which nothing is known but the types."""

    types: Types


def as_written(function: Function) -> Function:
    """The function with what its derivatives and batches were made of, and `Derived` for these."""
    if not function.origins:
        return function
    return replace(function, body=_Written(function.origins).block(function.body))


class _Written:
    def __init__(self, origins: Mapping[Equation, Origin]) -> None:
        self.origins = origins
        self.values: dict[Atom, Atom] = {}
        """What stands in the new program for variables of the old one, if not they themselves."""

    def block(self, block: Block) -> Block:
        """A block, with other equations."""
        equations = self._equations(block)
        return Block(block.params, tuple(equations), tuple(map(self._value, block.results)))

    def _value(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.values.get(atom, atom)

    def _equations(self, block: Block) -> list[Equation]:
        last = {atom: at for at, each in enumerate(block.equations) for atom in each.inputs}
        last.update(dict.fromkeys(block.results, len(block.equations)))
        found: list[Equation] = []
        end = 0
        for at, equation in enumerate(block.equations):
            origin = self.origins.get(equation)
            if at < end:
                continue
            if origin is None:
                found.append(self._equation(equation))
                continue
            end = at + origin.count
            outputs = [var for each in block.equations[at:end] for var in each.outputs]
            found += self._origin(origin, equation, [v for v in outputs if last.get(v, 0) >= end])
        return found

    def _origin(self, origin: Origin, equation: Equation, wanted: Sequence[Var]) -> list[Equation]:
        """What equations are made of, and an equation for what they give besides."""
        inputs = tuple(map(self._value, origin.inputs))
        found: list[Equation] = []
        if origin.block is not None:
            self.values.update(zip(origin.block.params, inputs, strict=True))
            found = self._equations(origin.block)
            results = tuple(map(self._value, origin.block.results))
            for old, new in zip(origin.outputs, results, strict=True):
                if old in wanted and old.type == new.type:
                    self.values[old] = new
            inputs = (*inputs, *results)
        others = tuple([var for var in wanted if var not in self.values])
        derived = Derived(tuple([var.type for var in others]))
        return [*found, Equation(derived, inputs, others, equation.span)]

    def _equation(self, equation: Equation) -> Equation:
        primitive = equation.primitive
        if isinstance(primitive, Control) and any(
            each in self.origins for block in primitive.blocks() for each in walk(block)
        ):
            primitive = self._control(primitive)
        inputs = tuple(map(self._value, equation.inputs))
        return Equation(primitive, inputs, equation.outputs, equation.span)

    def _control(self, primitive: Control) -> Control:
        changed: dict[str, object] = {}
        for each in fields(primitive):
            value = getattr(primitive, each.name)
            if isinstance(value, Block):
                changed[each.name] = self.block(value)
            elif isinstance(value, tuple):
                items = cast("tuple[object, ...]", value)
                changed[each.name] = tuple(
                    [self.block(item) if isinstance(item, Block) else item for item in items]
                )
        return replace(primitive, **changed)
