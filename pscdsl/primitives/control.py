"""Calls and control flow: primitives that hold functions and blocks.

Blocks are closed, so what a block needs from outside is passed to it: captured operands come
first, and they are the same in every step of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Self, cast

import numpy as np

from pscdsl.ir import Atom, Block, Equation, Function, Literal, Var
from pscdsl.numpy_dtypes import to_numpy
from pscdsl.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size, maximum, substitute
from pscdsl.typing.dtypes import BOOL, I32, I64, KEY


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


@lru_cache(maxsize=1024)
def function_cost(function: Function) -> Size:
    """The cost of one run of a function, in its own sizes."""
    return block_cost(function.body)


def substitute_block(block: Block, env: Mapping[str, Size]) -> Block:
    """The same block with sizes in place of names."""
    known: dict[Atom, Var] = {}

    def define(var: Var) -> Var:
        known[var] = new = Var(var.type.substitute(env), var.hint)
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


@dataclass(frozen=True)
class Control(Primitive):
    """Base of the primitives that hold blocks; they are its fields of type `Block`."""

    def blocks(self) -> tuple[Block, ...]:
        found: list[Block] = []
        for each in fields(self):
            value = getattr(self, each.name)
            items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            found.extend(item for item in items if isinstance(item, Block))
        return tuple(found)

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
        wanted = [each.substitute(env) for each in body.in_types]
        self.require(facts, "operands", operands, wanted)
        required = [fact.substitute(env) for fact in function.facts.facts]
        for name, size in self.sizes:
            required.append(Fact("<=", function.facts.lower_bound(name), size))
        for fact in required:
            if not facts.proves(fact):
                self.ill_typed(f"{fact} is not known to hold")
        return tuple([each.substitute(env) for each in body.out_types])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.call(self.function, dict(self.sizes), operands)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.call(self.function, dict(self.sizes), operands)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return substitute(function_cost(self.function), dict(self.sizes))


@dataclass(frozen=True)
class Switch(Control, name="switch"):
    """One of several blocks, chosen by an i32 (clamped to what there is) or a bool.

    Operands: the index, then what every branch takes.
    """

    branches: tuple[Block, ...]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        if not self.branches or not operands:
            self.ill_typed("there is no branch or no index")
        index, *rest = operands
        if index.shape or index.dtype not in (I32, BOOL):
            self.ill_typed(f"the index is {index}")
        first = self.branches[0]
        for branch in self.branches:
            self.require(facts, "operands", rest, branch.in_types)
            self.require(facts, "results of a branch", branch.out_types, first.out_types)
        return first.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        index = min(max(int(operands[0]), 0), len(self.branches) - 1)
        return here.block(self.branches[index], operands[1:])

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        index, *rest = operands
        count = len(self.branches)
        if count == 1:
            return hlo.block(self.branches[0], rest)
        if inputs[0].dtype is BOOL:
            index = hlo.convert(index, ArrayType(I32))
        else:
            low, high = (hlo.full(bound, inputs[0]) for bound in (0, count - 1))
            (index,) = hlo.op("clamp", (low, index, high), (inputs[0],))
        run = [lambda branch=branch: hlo.block(branch, rest) for branch in self.branches]
        return hlo.case(index, run, outputs)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """The dearest branch."""
        total: Size = 0
        for branch in self.branches:
            total = maximum(total, block_cost(branch))
        return total


@dataclass(frozen=True)
class While(Control, name="while"):
    """Repeat a body while a condition on the carry holds.

    Operands: what the condition captures, what the body captures, the carry.  Both blocks take
    what they capture and then the carry; results: the carry.
    """

    cond: Block
    body: Block
    cond_captured: int
    body_captured: int

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        by_cond, by_body, carry = self.split(operands)
        self.require(facts, "what the condition takes", (*by_cond, *carry), self.cond.in_types)
        self.require(facts, "the condition's result", self.cond.out_types, (ArrayType(BOOL),))
        self.require(facts, "what the body takes", (*by_body, *carry), self.body.in_types)
        self.require(facts, "the next carry", self.body.out_types, carry)
        return tuple(carry)

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured by the condition, captured by the body, the carry."""
        first, second = self.cond_captured, self.cond_captured + self.body_captured
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        by_cond, by_body, carry = self.split(operands)
        while here.block(self.cond, [*by_cond, *carry])[0]:
            carry = list(here.block(self.body, [*by_body, *carry]))
        return tuple(carry)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        by_cond, by_body, carry = self.split(operands)
        return hlo.while_loop(
            carry,
            lambda now: hlo.block(self.cond, [*by_cond, *now])[0],
            lambda now: hlo.block(self.body, [*by_body, *now]),
        )

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """Of one step: how many there will be is not known."""
        return block_cost(self.cond) + block_cost(self.body)


@dataclass(frozen=True)
class Scan(Control, name="scan"):
    """A loop over the leading axis of arrays that carries values from step to step.

    Operands: what the body captures, the first carry, the arrays; the body takes a slice of each
    array and gives the next carry and what is to be stacked.  Results: the last carry, the stacks.
    `reverse` starts at the end; stacks keep the order of the arrays.
    """

    body: Block
    captured: int
    carried: int
    length: Size
    reverse: bool = False

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        captured, carry, arrays = self.split(operands)
        slices: list[ArrayType] = []
        for each in arrays:
            if not each.shape or not facts.equal(each.shape[0], self.length):
                self.ill_typed(f"an operand is {each}, the length is {self.length}")
            slices.append(each.with_shape(each.shape[1:]))
        self.require(facts, "what the body takes", (*captured, *carry, *slices), self.body.in_types)
        results = self.body.out_types
        if len(carry) != self.carried:
            self.ill_typed(f"{self.carried} operands carried, {len(carry)} given")
        self.require(facts, "the next carry", results[: self.carried], carry)
        if not facts.proves(Fact("<=", 0, self.length)):
            self.ill_typed(f"the length {self.length} may be negative")
        stacks = [each.with_shape((self.length, *each.shape)) for each in results[self.carried :]]
        return (*carry, *stacks)

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Operands by role: captured, the carry, the arrays."""
        first, second = self.captured, self.captured + self.carried
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        captured, carry, arrays = self.split(operands)
        length = here.size(self.length)
        stacks: list[NDArray] = []
        for each in self.body.out_types[self.carried :]:
            shape = (length, *here.shape(each.shape), *((2,) if each.dtype is KEY else ()))
            stacks.append(np.zeros(shape, to_numpy(each.dtype)))
        for step in reversed(range(length)) if self.reverse else range(length):
            results = here.block(self.body, [*captured, *carry, *(x[step] for x in arrays)])
            carry = list(results[: self.carried])
            for stack, result in zip(stacks, results[self.carried :], strict=True):
                stack[step] = result
        return (*carry, *stacks)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        captured, carry, arrays = self.split(operands)
        stacks = [hlo.full(0, each) for each in outputs[self.carried :]]
        length = hlo.size(self.length)
        if length == 0:
            return (*carry, *stacks)
        counter = ArrayType(I32 if length <= I32.range[1] else I64)
        taken = self.body.in_types[self.captured + self.carried :]
        given = self.body.out_types[self.carried :]

        def body(now: Sequence[H]) -> Sequence[H]:
            step, *state = now
            index = step
            if self.reverse:
                index = hlo.binary("subtract", hlo.full(length - 1, counter), step)
            zero = hlo.full(0, counter)
            slices = [
                _pick(hlo, x, index, zero, each) for x, each in zip(arrays, taken, strict=True)
            ]
            results = hlo.block(self.body, [*captured, *state[: self.carried], *slices])
            stacked = [
                _put(hlo, stack, result, index, zero, each)
                for stack, result, each in zip(
                    state[self.carried :], results[self.carried :], given, strict=True
                )
            ]
            following = hlo.binary("add", step, hlo.full(1, counter))
            return (following, *results[: self.carried], *stacked)

        results = hlo.while_loop(
            (hlo.full(0, counter), *carry, *stacks),
            lambda now: hlo.compare("LT", now[0], hlo.full(length, counter)),
            body,
        )
        return results[1:]

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return block_cost(self.body) * self.length


def _pick(hlo: Hlo, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """The slice of an array at an index of its leading axis."""
    stored = hlo.type_of(x).shape  # a key has one more axis than its type says
    (row,) = hlo.op(
        "dynamic_slice",
        (x, index, *(zero for _ in stored[1:])),
        (type.with_shape((1, *type.shape)),),
        {"slice_sizes": hlo.i64_array((1, *stored[1:]))},
    )
    return hlo.reshape(row, type)


def _put(hlo: Hlo, stack: H, x: H, index: H, zero: H, type: ArrayType) -> H:  # noqa: A002
    """The array with a slice replaced at an index of its leading axis."""
    stored = hlo.type_of(stack)
    row = hlo.reshape(x, type.with_shape((1, *type.shape)))
    starts = (index, *(zero for _ in stored.shape[1:]))
    return hlo.op("dynamic_update_slice", (stack, row, *starts), (stored,))[0]
