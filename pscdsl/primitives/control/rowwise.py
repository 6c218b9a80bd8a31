"""What is computed for each row apart: of vectors with an element for each, and of scalars."""

from __future__ import annotations

from collections.abc import Sequence

from pscdsl.builder import Builder, Value, broadcast_to
from pscdsl.interpreters.replay import Environment, append
from pscdsl.ir import Block, Equation
from pscdsl.primitives.control.custom_derivatives import Ruled
from pscdsl.primitives.control.inlining import inlined
from pscdsl.primitives.creation import SizeValue
from pscdsl.primitives.pointwise import Pointwise
from pscdsl.primitives.shaping import Broadcast


def is_rowwise(each: Equation) -> bool:
    """Whether an equation computes what it does for each row apart, or for all of them the same."""
    primitive = each.primitive
    if any(atom.type.rank > 1 for atom in (*each.inputs, *each.outputs)):
        return False
    if isinstance(primitive, Ruled):
        return all(is_rowwise(one) for one in inlined(primitive.body).equations)
    if isinstance(primitive, Broadcast):
        return each.inputs[0].type.rank == 0
    return isinstance(primitive, Pointwise | SizeValue)


def spelled_out(here: Builder, block: Block, operands: Sequence[Value], rows: int) -> list[Value]:
    """The results of a block of such equations, for so many rows."""
    found = [*_values(here, block, operands)]
    return [
        broadcast_to(x, (rows,)) if var.type.rank else x
        for x, var in zip(found, block.results, strict=True)
    ]


def _values(here: Builder, block: Block, operands: Sequence[Value]) -> list[Value]:
    env = Environment(here, block.params, operands)
    place = here.program.span
    for each in block.equations:
        primitive, given = each.primitive, env.all(each.inputs)
        here.program.span = each.span
        if isinstance(primitive, Ruled):
            captured, total = primitive.captured[0], sum(primitive.captured)
            results = _values(here, inlined(primitive.body), [*given[:captured], *given[total:]])
        elif isinstance(primitive, Broadcast):
            results = given  # what has rank 0 applies to all rows
        else:
            results = append(here, each, given)
        env.values.update(zip(each.outputs, results, strict=True))
    here.program.span = place
    return env.all(block.results)
