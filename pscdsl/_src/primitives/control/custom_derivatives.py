"""Programs whose derivative their author gives, and values that count as constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

from pscdsl._src.interpreters.batching import batch_block, repeated
from pscdsl._src.interpreters.jvp import has_tangent, jvp
from pscdsl._src.interpreters.replay import closed, replay, zeros
from pscdsl._src.interpreters.transpose import transpose
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Types
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.base import Control, substitute_block
from pscdsl._src.primitives.control.regions import Group, Layout, Nesting, Region, Role
from pscdsl._src.primitives.linear import WithoutTangents
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import CapturedByRule, NoForwardMode
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size

# Programs whose derivative their author gives.


T = TypeVar("T")


class Rule:
    """A block that is made when it is asked for: rules may call the functions they belong to.

    Of one that is `linear` in tangents, those that are zero may be left out.
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
        """The rule as it was given, of which this one is for other sizes or for a batch."""
        self._block: Block | None = None

    def __repr__(self) -> str:
        return "…"  # not made for being shown, and the same in every process

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
        """Say what the block is."""
        self._block = block

    def substitute(self, env: Mapping[str, Size]) -> Rule:
        """The rule with sizes in place of names."""
        return Rule(lambda: substitute_block(self.block, env), linear=self.linear, given=self.given)


@dataclass(frozen=True)
class Ruled(Control):
    """Base of programs with a rule: operands are what the blocks capture, then the arguments.

    The body takes what it captures and the arguments; what it captures has no derivative.
    """

    function: str = field(repr=False)
    body: Block
    captured: tuple[int, ...]
    """How many operands each block captures, the body first; those come first, in this order."""

    def own(self, operands: Sequence[T]) -> tuple[list[T], list[T]]:
        """What the body captures, and the arguments."""
        return list(operands[: self.captured[0]]), list(operands[sum(self.captured) :])

    def of_block(self, number: int, operands: Sequence[T]) -> list[T]:
        """What a block captures."""
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
        """The tangents of the arguments; a Failure if anything that is captured has one."""
        count = sum(self.captured)
        if any(tangent is not None for tangent in tangents[:count]):
            raise Failure(CapturedByRule(function=self.function))
        return list(tangents[count:])


def _full(primals: Sequence[Value], tangents: Sequence[Value | None]) -> list[Value]:
    """Tangents for all primals that have one, zeros where none is given."""
    return [
        zeros(p.builder.program.current, p.type) if t is None else t
        for p, t in zip(primals, tangents, strict=True)
        if has_tangent(p.type)
    ]


def _batched(facts: Assumptions, rule: Rule, batched: Sequence[bool], size: Size) -> Rule:
    """The rule over a batch: its first parameters as given, the others and all results batched."""

    def make() -> Block:
        block = rule.block
        rest = len(block.params) - len(batched)
        flags = (*batched, *(True,) * rest)
        return batch_block(facts, block, flags, size, (True,) * len(block.results))[0]

    return Rule(make, linear=rule.linear, given=rule.given)


@dataclass(frozen=True)
class CustomJvp(Ruled, name="custom_jvp"):
    """A program with a rule for its tangents.

    `rule` takes what it captures, the arguments and their tangents, and returns the results and
    their tangents.
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
            # A linear function is its own derivative, and that leaves out what is zero.
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
        rule = _batched(facts, self.rule, (*ruled, *by_arguments, *moving), size)
        made = CustomJvp(self.function, body, self.captured, rule)
        return made.bind(*operands), always


@dataclass(frozen=True)
class CustomVjp(Ruled, name="custom_vjp"):
    """A program with a rule for its cotangents.

    `forward` takes what it captures and the arguments, and returns the results and what it saves;
    `backward` takes what it captures, what was saved, and the cotangents of those results that
    have one, and returns those of the arguments that have one.
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
        forward = _batched(facts, self.forward, (*ahead, *arguments), size)
        backward = _batched(facts, self.backward, behind, size)
        made = CustomVjp(self.function, body, self.captured, forward, backward)
        return made.bind(*operands[:count], *full_arguments), always


@dataclass(frozen=True)
class BackwardOnly(Control, name="custom_vjp_tangents"):
    """Tangents that nobody can compute: only their transpose is known.

    Operands: what is saved, then the tangents of the arguments.
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


# Parts of the library whose tangents are better computed in another way than step by step.


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
