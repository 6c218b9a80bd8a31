"""What primitives that hold blocks have in common, calls, and primitives made of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, Self

from pscdsl._src.interpreters.batching import batch_function
from pscdsl._src.interpreters.cut import Cut, cut_through, split_block, split_function
from pscdsl._src.interpreters.jvp import jvp_function
from pscdsl._src.interpreters.replay import replay
from pscdsl._src.interpreters.transpose import transpose, transpose_function
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.control.regions import Layout
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, substitute

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


# What the primitives that hold blocks have in common.


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
    for equation in block.equations:
        inputs = tuple([atom.type for atom in equation.inputs])
        outputs = tuple([var.type for var in equation.outputs])
        total = total + equation.primitive.cost(inputs, outputs)
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
                equation.primitive.substitute(env),
                tuple([use(atom) for atom in equation.inputs]),
                tuple([define(var) for var in equation.outputs]),
                equation.span,
            )
            for equation in block.equations
        ]
    )
    return Block(params, equations, tuple([use(atom) for atom in block.results]))


@dataclass(frozen=True)
class Control(Primitive):
    """Base of the primitives that hold blocks; passes know of them what their layout says."""

    @cached_property
    def layout(self) -> Layout:
        """Its operands and results by role, and its blocks, in the order of its fields."""
        return Layout()

    def chosen(self, operands: Sequence[Atom]) -> int | None:
        """Which of its regions alone is run, if these operands decide that."""
        return None

    def blocks(self) -> tuple[Block, ...]:
        return tuple([region.block for region in self.layout.regions])

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return self.layout.total(block_cost)

    def substitute(self, env: Mapping[str, Size]) -> Self:
        blocks = [substitute_block(block, env) for block in self.blocks()]
        return super().substitute(env).with_blocks(blocks)

    def with_blocks(self, blocks: Sequence[Block], counts: Mapping[str, int] | None = None) -> Self:
        """The same with other blocks, in the order of its regions, and other `Layout.counts`."""
        changed: dict[str, Any] = dict(counts or {})
        for region, block in zip(self.layout.regions, blocks, strict=True):
            several = isinstance(getattr(self, region.field), tuple)
            changed[region.field] = (*changed.get(region.field, ()), block) if several else block
        return replace(self, **changed)

    def require(
        self, facts: Assumptions, what: str, given: Sequence[ArrayType], wanted: Sequence[ArrayType]
    ) -> None:
        """Refuse if the types are not the same ones."""
        if len(given) != len(wanted):
            self.ill_typed(f"{what}: {len(given)} given, {len(wanted)} taken")
        for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
            if not same_type(facts, one, other):
                self.ill_typed(f"{what}: number {index} is {one}, not {other}")


# Primitives that say what is computed; a program of other primitives says how.


@dataclass(frozen=True)
class Expanded(Control):
    """Base of those that are cut in two, and transposed, as their program is."""

    def program(self, facts: Assumptions, operands: Types) -> Block:
        """A program that computes the same of operands of these types."""
        raise NotImplementedError

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        if all(map(cut.is_late, operands)):
            return super().split(cut, operands)
        types = tuple([operand.type for operand in operands])
        block = self.program(cut.early.facts, types)
        bindings = dict(zip(block.params, operands, strict=True))
        return tuple(cut_through(cut, block, bindings))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        types = tuple(
            [operand if isinstance(operand, ArrayType) else operand.type for operand in operands]
        )
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        block = self.program(here.facts, types)
        halves = split_block(here.facts, block, linear, (True,) * len(block.results))
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        saved = halves.gather(known, replay(here, halves.early, known))
        remaining = iter(
            transpose(here, halves.late, [*saved, *compress(types, linear)], cotangents)[
                len(saved) :
            ]
        )
        return [next(remaining) if is_linear else None for is_linear in linear]


# Calls of functions.


@lru_cache(maxsize=1024)
def function_cost(function: Function) -> Size:
    """The cost of one run of a function, in its own sizes."""
    return block_cost(function.body)


@dataclass(frozen=True)
class Call(Control, name="call"):
    """Another function at certain sizes; what it requires of them must be proven."""

    function: Function
    sizes: tuple[tuple[str, Size], ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        function, env = self.function, dict(self.sizes)
        if set(env) != set(function.dims) or len(env) != len(self.sizes):
            self.ill_typed(f"sizes given: {', '.join(env)}; taken: {', '.join(function.dims)}")
        body = function.body
        known: dict[ArrayType, ArrayType] = {}  # many operands and results are of few types

        def here(declared: ArrayType) -> ArrayType:
            cached = known.get(declared)
            if cached is None:
                cached = known[declared] = declared.substitute(env)
            return cached

        self.require(facts, "operands", operands, [here(var.type) for var in body.params])
        required = [fact.substitute(env) for fact in function.facts.facts]
        for name, size in self.sizes:
            required.append(Fact("<=", function.facts.lower_bound(name), size))
        for fact in required:
            if not facts.proves(fact):
                self.ill_typed(f"{fact} is not known to hold")
        return tuple([here(atom.type) for atom in body.results])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.call(self.function, dict(self.sizes), operands)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.call(self.function, dict(self.sizes), operands)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return substitute(function_cost(self.function), dict(self.sizes))

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        active = tuple([tangent is not None for tangent in tangents])
        function, active_results = jvp_function(self.function, active)
        moving = [tangent for tangent in tangents if tangent is not None]
        results = Call(function, self.sizes).bind(*primals, *moving)
        remaining = iter(results[len(active_results) :])
        return results[: len(active_results)], [
            next(remaining) if moves else None for moves in active_results
        ]

    def split(self, cut: Cut, operands: Sequence[Value]) -> tuple[Value, ...]:
        late = tuple(map(cut.is_late, operands))
        early_function, late_function, halves = split_function(self.function, late)
        first = [operand for operand in operands if not cut.is_late(operand)]
        early = cut.early.bind(Call(early_function, self.sizes), first)
        saved = [cut.later(value) for value in halves.gather(first, early)]
        second = [operand for operand in operands if cut.is_late(operand)]
        results = cut.late.bind(Call(late_function, self.sizes), [*saved, *second])
        return halves.merged(early, results)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        linear = tuple([isinstance(operand, ArrayType) for operand in operands])
        has_cotangent = tuple([cotangent is not None for cotangent in cotangents])
        function, with_cotangents = transpose_function(self.function, linear, has_cotangent)
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        moving = [cotangent for cotangent in cotangents if cotangent is not None]
        remaining = iter(Call(function, self.sizes).bind(*known, *moving))
        return [next(remaining) if keeps else None for keeps in with_cotangents]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        may_be_empty = not facts.proves(Fact("<=", 1, size))
        function, called, batched_results = batch_function(
            self.function, tuple(batched), may_be_empty
        )
        return Call(function, (*self.sizes, (called, size))).bind(*operands), batched_results
