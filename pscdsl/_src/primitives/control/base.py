"""What the primitives that hold blocks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Final, Self, cast

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size


def same_type(facts: Assumptions, left: ArrayType, right: ArrayType) -> bool:
    """Whether two types are provably the same for all admitted sizes."""
    if left == right:
        return True
    return (
        left.dtype is right.dtype
        and left.rank == right.rank
        and all(map(facts.equal, left.shape, right.shape))
    )


def block_cost(block: Block) -> Size:
    """The cost of one run of a block."""
    total: Size = 0
    for each in block.equations:
        inputs = tuple([atom.type for atom in each.inputs])
        outputs = tuple([var.type for var in each.outputs])
        total = total + each.primitive.cost(inputs, outputs)
    return total


def substitute_block(block: Block, env: Mapping[str, Size]) -> Block:
    """The same block with sizes in place of names."""
    known: dict[Atom, Var] = {}
    types: dict[ArrayType, ArrayType] = {}

    def define(var: Var) -> Var:
        type_ = types.get(var.type)
        if type_ is None:
            type_ = types[var.type] = var.type.substitute(env)
        known[var] = new = Var(type_, var.hint)
        return new

    def use(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else known[atom]

    params = tuple([define(var) for var in block.params])
    equations = tuple(
        [
            Equation(
                each.primitive.substitute(env),
                tuple([use(atom) for atom in each.inputs]),
                tuple([define(var) for var in each.outputs]),
                each.span,
            )
            for each in block.equations
        ]
    )
    return Block(params, equations, tuple([use(atom) for atom in block.results]))


class Nesting(Enum):
    """How a block is run by the equation that holds it."""

    ONCE = auto()
    BRANCH = auto()
    """Or not, as an operand says."""
    LOOP = auto()


NOWHERE: Final[Mapping[str, Nesting]] = {}


@dataclass(frozen=True)
class Control(Primitive):
    """Base of the primitives that hold blocks; they are its fields of type `Block`."""

    @property
    def emitted(self) -> Mapping[str, Nesting]:
        """The fields whose blocks are a part of what is emitted, and how they are run."""
        return NOWHERE

    def blocks(self) -> tuple[Block, ...]:
        found: list[Block] = []
        for each in fields(self):
            value = getattr(self, each.name)
            items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            found.extend(item for item in items if isinstance(item, Block))
        return tuple(found)

    def runs(self) -> tuple[tuple[Block, Size], ...]:
        """The blocks that it goes through, each with how often; none where one is chosen."""
        return tuple([(block, 1) for block in self.blocks()])

    def cost(self, inputs: Types, outputs: Types) -> Size:
        total: Size = 0
        for block, times in self.runs():
            total = total + block_cost(block) * times
        return total

    def substitute(self, env: Mapping[str, Size]) -> Self:
        result = super().substitute(env)
        changed: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Block):
                changed[each.name] = substitute_block(value, env)
            elif isinstance(value, tuple):
                items = cast("tuple[object, ...]", value)
                if items and isinstance(items[0], Block):
                    blocks = cast("tuple[Block, ...]", items)
                    changed[each.name] = tuple([substitute_block(block, env) for block in blocks])
        return replace(result, **changed)

    def require(
        self, facts: Assumptions, what: str, given: Sequence[ArrayType], wanted: Sequence[ArrayType]
    ) -> None:
        """Refuse if the types are not the same ones."""
        if len(given) != len(wanted):
            self.ill_typed(f"{what}: {len(given)} given, {len(wanted)} taken")
        for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
            if not same_type(facts, one, other):
                self.ill_typed(f"{what}: number {index} is {one}, not {other}")
