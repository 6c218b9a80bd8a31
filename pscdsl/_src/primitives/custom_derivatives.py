"""Programs with derivatives given by their author, and solutions of equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

from pscdsl._src.interpreters.replay import (
    Mask,
    batch_block,
    closed,
    has_tangent,
    jvp,
    repeated,
    replay,
    transpose,
    transpose_block,
    zeros,
)
from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control import Control, substitute_block
from pscdsl._src.primitives.pointwise import WithoutTangents
from pscdsl._src.primitives.regions import Group, Layout, Nesting, Region, Role
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import CapturedByRule, NoForwardMode
from pscdsl.typing.codes.limits import NoRule, NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size

# Programs with derivatives given by their author, and values that count as constant.


# Programs with derivatives given by their author.


T = TypeVar("T")


class Rule:
    """A block that is made on demand, as rules may call the functions they belong to.

    A rule that is `linear` in tangents may omit those that are zero.
    """

    def __init__(
        self,
        make: Callable[[], Block] | None = None,
        *,
        linear: bool = False,
        given: Rule | None = None,
    ) -> None:
        self._make = make
        self.linear = linear
        self.given = given or self
        """The rule as the author gave it; this one may be for other sizes or for a batch."""
        self._block: Block | None = None

    def __repr__(self) -> str:
        return "…"  # not for display, and equal in every process

    @property
    def block(self) -> Block:
        """The block itself."""
        if self._block is None:
            if self._make is None:
                what = "the derivative of a function in the rule for that derivative"
                raise Failure(NotSupported(what=what))
            self._block = self._make()
        return self._block

    def settle(self, block: Block) -> None:
        """Set the block."""
        self._block = block

    def substitute(self, env: Mapping[str, Size]) -> Rule:
        """Return the rule with sizes in place of names."""
        return Rule(lambda: substitute_block(self.block, env), linear=self.linear, given=self.given)


@dataclass(frozen=True)
class Ruled(Control):
    """Base of programs with a rule; operands are the captures of the blocks, then the arguments.

    The body takes its captures and the arguments; its captures have no derivative.
    """

    function: str = field(repr=False)
    body: Block
    captured: tuple[int, ...]
    """The number of operands that each block captures, the body first; they come first, in this
    order."""

    def own(self, operands: Sequence[T]) -> tuple[list[T], list[T]]:
        """Return the body's captures and the arguments."""
        return list(operands[: self.captured[0]]), list(operands[sum(self.captured) :])

    def of_block(self, number: int, operands: Sequence[T]) -> list[T]:
        """Return the captures of a block."""
        first = sum(self.captured[:number])
        return list(operands[first : first + self.captured[number]])

    def substitute(self, env: Mapping[str, Size]) -> Self:
        result = super().substitute(env)
        rules: dict[str, Any] = {
            each.name: rule.substitute(env)
            for each in fields(self)
            if isinstance(rule := getattr(self, each.name), Rule)
        }
        return replace(result, **rules)

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        count = sum(self.captured)
        own_operands = (*operands[: self.captured[0]], *operands[count:])
        self.require(facts, "operands", own_operands, self.body.in_types)
        return self.body.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        own_operands = (*operands[: self.captured[0]], *operands[sum(self.captured) :])
        return here.block(self.body, own_operands)

    @cached_property
    def layout(self) -> Layout:
        own, *others = [Group(Role.ARGUMENT, count) for count in self.captured]
        arguments = Group(Role.ARGUMENT, len(self.body.params) - own.count)
        results = Group(Role.RESULT, len(self.body.results))
        body = Region("body", self.body, (own, arguments), (results,), Nesting.ONCE)
        return Layout((own, *others, arguments, results), (body,))

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.block(
            self.body, [*operands[: self.captured[0]], *operands[sum(self.captured) :]]
        )

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        count = sum(self.captured)
        own_operands = [*operands[: self.captured[0]], *operands[count:]]
        returned = transpose(here, self.body, own_operands, cotangents)
        rest = count - self.captured[0]
        return [*returned[: self.captured[0]], *[None] * rest, *returned[self.captured[0] :]]

    def arguments(self, tangents: Sequence[Value | None]) -> list[Value | None]:
        """Return the tangents of the arguments; raise a Failure if a captured value has one."""
        count = sum(self.captured)
        if any(tangent is not None for tangent in tangents[:count]):
            raise Failure(CapturedByRule(function=self.function))
        return list(tangents[count:])


def _full(primals: Sequence[Value], tangents: Sequence[Value | None]) -> list[Value]:
    """Return tangents for all primals that can have one, zeros where none is given."""
    return [
        zeros(p.builder.program.current, p.type) if t is None else t
        for p, t in zip(primals, tangents, strict=True)
        if has_tangent(p.type)
    ]


def _batch_rule(facts: Assumptions, rule: Rule, batched: Sequence[bool], size: Size) -> Rule:
    """Return the rule over a batch, with its first parameters as given, all else batched."""

    def make() -> Block:
        block = rule.block
        rest = len(block.params) - len(batched)
        flags = (*batched, *(True,) * rest)
        return batch_block(facts, block, flags, size, (True,) * len(block.results))[0]

    return Rule(make, linear=rule.linear, given=rule.given)


@dataclass(frozen=True)
class CustomJvp(Ruled, name="custom_jvp"):
    """A program with a rule for its tangents.

    `rule` takes its captures, the arguments and their tangents, and returns the results and their
    tangents.
    """

    rule: Rule

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        here = primals[0].builder.program.current
        moving = self.arguments(tangents)
        _, arguments = self.own(primals)
        known = [*self.of_block(1, primals), *arguments]
        operands = [*known, *_full(arguments, moving)]
        count = len(self.body.results)
        if self.rule.linear and None in moving:
            # A linear function is its own derivative, and applying it omits zeros.
            apart = [t for x, t in zip(arguments, moving, strict=True) if has_tangent(x.type)]
            results, moves = jvp(here, self.rule.block, operands, [*[None] * len(known), *apart])
            moved = iter(moves[count:])
        else:
            results = replay(here, self.rule.block, operands)
            moved = iter(results[count:])
        return results[:count], [
            next(moved) if has_tangent(x.type) else None for x in results[:count]
        ]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        first, second = self.captured
        own, ruled, by_arguments = (
            batched[:first],
            batched[first : first + second],
            batched[first + second :],
        )
        moving = [
            flag
            for flag, operand in zip(by_arguments, operands[first + second :], strict=True)
            if has_tangent(operand.type)
        ]
        always = (True,) * len(self.body.results)
        body, _ = batch_block(facts, self.body, (*own, *by_arguments), size, always)
        rule = _batch_rule(facts, self.rule, (*ruled, *by_arguments, *moving), size)
        made = CustomJvp(self.function, body, self.captured, rule)
        return made.bind(*operands), always


@dataclass(frozen=True)
class CustomVjp(Ruled, name="custom_vjp"):
    """A program with a rule for its cotangents.

    `forward` takes its captures and the arguments, and returns the results and the saved values;
    `backward` takes its captures, the saved values and the cotangents of the results that can have
    one, and returns those of the arguments that can have one.
    """

    forward: Rule
    backward: Rule

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        here = primals[0].builder.program.current
        moving = self.arguments(tangents)
        _, arguments = self.own(primals)
        results = replay(here, self.forward.block, [*self.of_block(1, primals), *arguments])
        count = len(self.body.results)
        saved = [*self.of_block(2, primals), *results[count:]]
        types = tuple([result.type for result in results[:count] if has_tangent(result.type)])
        late = BackwardOnly(self.function, self.backward.block, len(saved), types)
        out = iter(here.bind(late, [*saved, *_full(arguments, moving)]))
        return results[:count], [
            next(out) if has_tangent(x.type) else None for x in results[:count]
        ]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        count = sum(self.captured)
        full_arguments = [
            x if flag else repeated(x, size)
            for x, flag in zip(operands[count:], batched[count:], strict=True)
        ]
        first, second, _ = self.captured
        own, ahead = batched[:first], batched[first : first + second]
        behind = batched[first + second : count]
        arguments = (True,) * len(full_arguments)
        always = (True,) * len(self.body.results)
        body, _ = batch_block(facts, self.body, (*own, *arguments), size, always)
        forward = _batch_rule(facts, self.forward, (*ahead, *arguments), size)
        backward = _batch_rule(facts, self.backward, behind, size)
        made = CustomVjp(self.function, body, self.captured, forward, backward)
        return made.bind(*operands[:count], *full_arguments), always


@dataclass(frozen=True)
class BackwardOnly(Control, name="custom_vjp_tangents"):
    """Tangents that cannot be computed: only their transpose is known.

    Operands: the saved values, then the tangents of the arguments.
    """

    function: str = field(repr=False)
    backward: Block
    saved: int
    results: tuple[ArrayType, ...]

    @cached_property
    def layout(self) -> Layout:
        saved = Group(Role.ARGUMENT, self.saved)
        tangents = Group(Role.ARGUMENT, len(self.backward.results))
        results = Group(Role.RESULT, len(self.results))
        takes, gives = (saved, results), (tangents,)
        backward = Region("backward", self.backward, takes, gives, Nesting.NEVER)
        return Layout((saved, tangents, results), (backward,))

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        taken = (*operands[: self.saved], *self.results)
        self.require(facts, "operands", taken, self.backward.in_types)
        self.require(facts, "tangents", operands[self.saved :], self.backward.out_types)
        return self.results

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        raise Failure(NoForwardMode(function=self.function))

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        raise Failure(NoForwardMode(function=self.function))

    def differentiate(
        self, primals: Sequence[Value], tangents: Sequence[Value | None]
    ) -> tuple[Sequence[Value], Sequence[Value | None]]:
        raise Failure(NoForwardMode(function=self.function))

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        here = next(v for v in cotangents if v is not None).builder.program.current
        saved = [
            operand for operand in operands[: self.saved] if not isinstance(operand, ArrayType)
        ]
        full_cotangents = [
            zeros(here, type_) if cotangent is None else cotangent
            for cotangent, type_ in zip(cotangents, self.results, strict=True)
        ]
        results = replay(here, self.backward, [*saved, *full_cotangents])
        linear = [isinstance(operand, ArrayType) for operand in operands[self.saved :]]
        tangents = [x if is_linear else None for x, is_linear in zip(results, linear, strict=True)]
        return [*[None] * self.saved, *tangents]

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        facts = operands[0].builder.facts
        # A tangent that is the same for all rows has the sum of their cotangents.
        tangents = [
            x if flag else repeated(x, size)
            for x, flag in zip(operands[self.saved :], batched[self.saved :], strict=True)
        ]
        always = (True,) * len(self.results)
        flags = (*batched[: self.saved], *always)
        returned = (True,) * len(self.backward.results)
        backward, _ = batch_block(facts, self.backward, flags, size, returned)
        results = tuple([result.with_shape((size, *result.shape)) for result in self.results])
        made = BackwardOnly(self.function, backward, self.saved, results)
        return made.bind(*operands[: self.saved], *tangents), always


# Parts of the library whose tangents are better computed as a whole than step by step.


Values: TypeAlias = Sequence[Value]


def with_own_tangents(
    name: str,
    value: Callable[..., Value],
    rule: Callable[[Values, Values], tuple[Value, Value]],
    *operands: Value,
) -> Value:
    """Return `value` of the operands, with the tangent that `rule` gives.

    The rule takes the operands and the tangents of those that have one, and returns the value and
    its tangent, which is linear in these. It must compute the value with its own tangents again,
    for higher orders.
    """
    program = operands[0].builder.program
    types = [operand.type for operand in operands]
    span = program.span

    def block(types: Sequence[ArrayType], build: Callable[[list[Value]], Sequence[Value]]) -> Block:
        def built(here: Builder, params: list[Value]) -> Sequence[Value]:
            here.program.span = span
            return build(params)

        return closed(program.facts, types, built)

    def ruled() -> Block:
        moving = [type_ for type_ in types if has_tangent(type_)]
        return block([*types, *moving], lambda x: rule(x[: len(types)], x[len(types) :]))

    body = block(types, lambda x: [value(*x)])
    primitive = CustomJvp(name, body, (0, 0), Rule(ruled, linear=True))
    return primitive.bind(*operands)[0]


# A value that counts as constant in derivatives.


@dataclass(frozen=True)
class StopGradient(WithoutTangents, name="stop_gradient"):
    """The operand itself, without a tangent."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return operands

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self.bind(*operands), batched

    def axis_rule(self, inputs: Types, outputs: Types) -> AxisRule | None:
        rank = inputs[0].rank
        return AxisRule.leading(rank, (rank,), (rank,), ((0,),))


# Solutions of equations, differentiated by the equation, independent of the solver.
#
# Operands are the captures of each block, block by block, then the arguments. Only the block that
# finds the solution runs; the others describe the equation. By the implicit function theorem a
# solution x of f(x, p) = 0 moves by the solution dx of df/dx dx = -df/dp dp.


@dataclass(frozen=True)
class Implicit(Control):
    """Base of solutions: they are the first results of `solver`, which may have more of them.

    The further results have no tangents.
    """

    equation: Block
    """The equation of the solution, which is the last of its parameters."""
    solver: Block
    captured: tuple[int, ...]
    """The number of operands that each block captures, in the order of the fields."""

    def of_block(self, number: int, operands: Sequence[Value]) -> list[Value]:
        """Return the captures of a block."""
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
        """Return the region of its last field, if it has a block."""
        raise NotImplementedError

    def run(self, operands: Sequence[T]) -> list[T]:
        """Return the solver's items from one item for each operand."""
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
        """Return the tangents of the equation's results if only its captures move."""
        here = solution[0].builder.program.current
        count = self.captured[0]
        none = [None] * len(self.solution)
        operands = [*self.of_block(0, primals), *solution]
        return jvp(here, self.equation, operands, [*tangents[:count], *none])[1]


@dataclass(frozen=True)
class LinearSolve(Implicit, name="custom_linear_solve"):
    """The solution of a linear system; its arguments are the right side.

    `equation` maps the solution to the right side. `transposed` solves the system with the
    transpose of that map; it is None if the author gave none.
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
        before = operands[: first + second + third]  # a right side may be a constant, too
        known = [operand for operand in before if not isinstance(operand, ArrayType)]
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

    `equation` is the function. `tangent` takes its captures, the root, and values of the function's
    linear approximation there, and returns where that approximation has these values.
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
