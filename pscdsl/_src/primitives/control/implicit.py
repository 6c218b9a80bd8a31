"""Solutions of equations, whose derivative is that of the equation, however they were found.

Operands are what each block captures, block by block, then the arguments.  Only the block that
finds the solution is run; the others say of what it is the solution.  By the implicit function
theorem a solution x of f(x, p) = 0 moves by the solution dx of df/dx dx = -df/dp dp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pscdsl._src.interpreters.batching import batch_block, repeated
from pscdsl._src.interpreters.jvp import Mask, jvp
from pscdsl._src.interpreters.replay import replay, zeros
from pscdsl._src.interpreters.transpose import transpose_block
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control
from pscdsl._src.primitives.control.regions import Group, Layout, Nesting, Region, Role
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value

T = TypeVar("T")


@dataclass(frozen=True)
class Implicit(Control):
    """Base of solutions: they are the first results of `solver`, which may have more of them.

    The further results have no tangents.
    """

    equation: Block
    """What holds of the solution, which is the last of its parameters."""
    solver: Block
    captured: tuple[int, ...]
    """How many operands each block captures, in the order of the fields."""

    def of_block(self, number: int, operands: Sequence[Value]) -> list[Value]:
        """What a block captures."""
        first = sum(self.captured[:number])
        return list(operands[first : first + self.captured[number]])

    @property
    def solution(self) -> Types:
        """The types of the solution."""
        return self.equation.in_types[self.captured[0] :]

    @cached_property
    def layout(self) -> Layout:
        by_equation, by_solver, by_third = [Group(Role.ARGUMENT, x) for x in self.captured]
        arguments = Group(Role.ARGUMENT, len(self.solver.params) - by_solver.count)
        solution = Group(Role.RESULT, len(self.solution))
        more = Group(Role.RESULT, len(self.solver.results) - solution.count)
        said, solved = (by_equation, solution), (solution, more)
        equation = Region("equation", self.equation, said, (solution,), Nesting.NEVER)
        solver = Region("solver", self.solver, (by_solver, arguments), solved, Nesting.ONCE)
        regions = (equation, solver, *self.third(by_third, solution))
        return Layout((by_equation, by_solver, by_third, arguments, *solved), regions)

    def third(self, captured: Group, solution: Group) -> tuple[Region, ...]:
        """The region of its last field, if it has a block."""
        raise NotImplementedError

    def run(self, operands: Sequence[T]) -> list[T]:
        """What the solver takes, of what there is for each operand."""
        first, second = self.captured[:2]
        return [*operands[first : first + second], *operands[sum(self.captured) :]]

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        first = self.captured[0]
        self.require(facts, "operands", self.run(operands), self.solver.in_types)
        self.require(facts, "operands", operands[:first], self.equation.in_types[:first])
        count = len(self.solution)
        self.require(facts, "solutions", self.solver.out_types[:count], self.solution)
        return self.solver.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.block(self.solver, self.run(operands))

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.block(self.solver, self.run(operands))

    def moved(
        self, primals: Sequence[Value], tangents: Sequence[Value | None], solution: Sequence[Value]
    ) -> list[Value | None]:
        """How the equation's results move, if only what it captures does."""
        here = solution[0].builder.program.current
        count = self.captured[0]
        none = [None] * len(self.solution)
        operands = [*self.of_block(0, primals), *solution]
        return jvp(here, self.equation, operands, [*tangents[:count], *none])[1]


@dataclass(frozen=True)
class LinearSolve(Implicit, name="custom_linear_solve"):
    """The solution of a linear system; its arguments are the right side.

    `equation` maps the solution to the right side.  `transposed` solves the system with the
    transpose of that map, and is None where nobody said how.
    """

    transposed: Block | None = None

    def third(self, captured: Group, solution: Group) -> tuple[Region, ...]:
        if self.transposed is None:
            return ()
        takes, gives = (captured, solution), (solution,)
        return (Region("transposed", self.transposed, takes, gives, Nesting.NEVER),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        count = len(self.solution)
        solution, rest = outputs[:count], [None] * (len(outputs) - count)
        shift: Sequence[Value | None] = [None] * count
        if any(tangent is not None for tangent in tangents[: self.captured[0]]):
            shift = self.moved(primals, tangents, solution)
        right = tangents[sum(self.captured) :]
        if all(tangent is None for tangent in (*right, *shift)):
            return [None] * len(outputs)
        here = solution[0].builder.program.current
        moving: list[Value] = []
        for own, by, type_ in zip(right, shift, self.solution, strict=True):
            if own is None:
                moving.append(zeros(here, type_) if by is None else -by)
            else:
                moving.append(own if by is None else own - by)
        results = here.bind(self, [*primals[: sum(self.captured)], *moving])
        return [*results[:count], *rest]

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        if self.transposed is None:
            raise Failure(
                NoRule(
                    primitive=self.label,
                    rule="a transpose",
                    instead="give it `transpose_solve`, or say that it is `symmetric`",
                )
            )
        here = next(v for v in cotangents if v is not None).builder.program.current
        types = self.solution
        count, (first, second, third) = len(types), self.captured
        linear = (*[False] * first, *[True] * count)
        block, _ = transpose_block(here.facts, self.equation, linear, (True,) * count, linear)
        solver = self.solver
        back = LinearSolve(
            block,
            self.transposed,
            (first, third, second),
            replace(solver, results=solver.results[:count]),
        )
        known = [operand for operand in operands if not isinstance(operand, ArrayType)]
        right_side = [
            zeros(here, type_) if cotangent is None else cotangent
            for cotangent, type_ in zip(cotangents[:count], types, strict=True)
        ]
        captured = [*known[:first], *known[first + second :], *known[first : first + second]]
        results = here.bind(back, [*captured, *right_side])
        return [*[None] * sum(self.captured), *results[:count]]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        first, second, third = self.captured
        last = first + second + third
        right = [
            x if many else repeated(x, size)
            for x, many in zip(operands[last:], batched[last:], strict=True)
        ]
        facts = operands[0].builder.facts
        flags = tuple(batched)
        whole = (True,) * len(right)
        always = (True,) * len(self.solver.results)
        equation, _ = batch_block(facts, self.equation, (*flags[:first], *whole), size, whole)
        by_solver: Mask = (*flags[first : first + second], *whole)
        solver, _ = batch_block(facts, self.solver, by_solver, size, always)
        transposed = self.transposed
        if transposed is not None:
            by_transposed: Mask = (*flags[first + second : last], *whole)
            transposed, _ = batch_block(facts, transposed, by_transposed, size, whole)
        made = LinearSolve(equation, solver, self.captured, transposed)
        return made.bind(*operands[:last], *right), always


@dataclass(frozen=True)
class Root(Implicit, name="custom_root"):
    """A root of a function; its arguments are a guess.

    `equation` is the function.  `tangent` takes what it captures, the root, and values of the
    function's linear approximation there, and returns where that takes these values.
    """

    tangent: Block

    def third(self, captured: Group, solution: Group) -> tuple[Region, ...]:
        takes, gives = (captured, solution, solution), (solution,)
        return (Region("tangent", self.tangent, takes, gives, Nesting.NEVER),)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        none: list[Value | None] = [None] * len(outputs)
        if all(tangent is None for tangent in tangents[: self.captured[0]]):
            return none
        count = len(self.solution)
        solution = list(outputs[:count])
        shift = self.moved(primals, tangents, solution)
        if all(tangent is None for tangent in shift):
            return none
        here = solution[0].builder.program.current
        away = [
            zeros(here, type_) if tangent is None else -tangent
            for tangent, type_ in zip(shift, self.solution, strict=True)
        ]
        results = replay(here, self.tangent, [*self.of_block(2, primals), *solution, *away])
        return [*results, *none[count:]]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        first, second, third = self.captured
        last = first + second + third
        facts = operands[0].builder.facts
        flags = tuple(batched)
        whole = (True,) * len(self.solution)
        always = (True,) * len(self.solver.results)
        equation, _ = batch_block(facts, self.equation, (*flags[:first], *whole), size, whole)
        by_solver = (*flags[first : first + second], *flags[last:])
        solver, _ = batch_block(facts, self.solver, by_solver, size, always)
        by_tangent = (*flags[first + second : last], *whole, *whole)
        tangent, _ = batch_block(facts, self.tangent, by_tangent, size, whole)
        return Root(equation, solver, self.captured, tangent).bind(*operands), always
