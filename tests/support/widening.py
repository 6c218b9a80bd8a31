"""Typed programs with f64 and c128 for all floating-point dtypes: differences are precise."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.custom_derivatives import Rule
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.primitives.shaping import Constant
from pscdsl._src.primitives.while_loop import While
from pscdsl.typing.dtypes import C64, C128, F64, DType

BOUND = 9
"""No loop of the programs that are widened takes more steps, whether it says so or not."""


def wide(dtype: DType) -> DType:
    """The dtype of a kind in which differences are precise."""
    return F64 if dtype.is_float else C128 if dtype is C64 else dtype


class Widening:
    """Makes blocks in f64; a function that is called several times stays one function."""

    def __init__(self, bounded: bool = False) -> None:
        self.bounded = bounded
        """Whether loops without a bound get one, so that they can be run backwards."""
        self.functions: dict[Function, Function] = {}

    def function(self, function: Function) -> Function:
        """A function in f64."""
        found = self.functions.get(function)
        if found is None:
            body = self.block(function.body)
            found = replace(function, body=body, parameters=(), result=None)
            self.functions[function] = found
        return found

    def block(self, block: Block) -> Block:
        """A block in f64."""
        known: dict[Atom, Atom] = {}

        def define(var: Var) -> Var:
            known[var] = new = Var(var.type.with_dtype(wide(var.type.dtype)))
            return new

        def use(atom: Atom) -> Atom:
            if isinstance(atom, Literal):
                return Literal(atom.value, wide(atom.type.dtype))
            return known[atom]

        params = tuple(map(define, block.params))
        equations = tuple(
            Equation(
                self.primitive(each.primitive),
                tuple(map(use, each.inputs)),
                tuple(map(define, each.outputs)),
                each.span,
            )
            for each in block.equations
        )
        return Block(params, equations, tuple(map(use, block.results)))

    def primitive(self, primitive: Primitive) -> Primitive:
        """The primitive with f64 in its fields, also in the programs it holds."""
        if isinstance(primitive, Constant):
            return Constant.of(primitive.array(), wide(primitive.type.dtype))
        if not is_dataclass(primitive) or isinstance(primitive, Elementwise):
            return primitive
        found = {each.name: getattr(primitive, each.name) for each in fields(primitive)}
        made = replace(primitive, **{name: self._part(value) for name, value in found.items()})
        if self.bounded and isinstance(made, While) and made.bound is None:
            made = replace(made, bound=BOUND)
        return made

    def _part(self, value: Any) -> Any:
        if isinstance(value, DType):
            return wide(value)
        if isinstance(value, Block):
            return self.block(value)
        if isinstance(value, Function):
            return self.function(value)
        if isinstance(value, Rule):
            return Rule(lambda: self.block(value.block))
        if isinstance(value, tuple):
            return tuple(map(self._part, value))  # pyright: ignore[reportUnknownArgumentType]
        return value
