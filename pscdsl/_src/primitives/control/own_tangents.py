"""Parts of the library whose tangents are better computed in another way than step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.custom_derivatives import CustomJvp, Rule
from pscdsl.typing.array_types import ArrayType

Values: TypeAlias = Sequence[Value]


def with_own_tangents(
    name: str,
    value: Callable[..., Value],
    rule: Callable[[Values, Values], tuple[Value, Value]],
    *operands: Value,
) -> Value:
    """What `value` makes of the operands, with a tangent that `rule` gives.

    The rule takes the operands and the tangents of those that have one, and returns the value
    and its tangent, which is linear in these.  The value has to be made with its own tangents
    again, for further orders.
    """
    program = operands[0].builder.program
    types = [each.type for each in operands]
    span = program.span

    def block(types: Sequence[ArrayType], build: Callable[[list[Value]], Sequence[Value]]) -> Block:
        def built(here: Builder, params: list[Value]) -> Sequence[Value]:
            here.program.span = span
            return build(params)

        return closed(program.facts, types, built)

    def ruled() -> Block:
        moving = [each for each in types if has_tangent(each)]
        return block([*types, *moving], lambda x: rule(x[: len(types)], x[len(types) :]))

    body = block(types, lambda x: [value(*x)])
    primitive = CustomJvp(name, body, (0, 0), Rule(ruled, linear=True))
    return primitive.bind(*operands)[0]
