"""The counters of loops as sizes: their names, and the known facts in a loop's body."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pscdsl.typing import dims
from pscdsl.typing.assumptions import Assumptions, Fact, Verdict
from pscdsl.typing.diagnostics import UNWRITABLE
from pscdsl.typing.dims import Dim, Size

_NAME: Final = re.compile(r"[^\W\d]\w*")


def counter_name(shown: str, number: int) -> str:
    """Return a name that no program can write, and that messages show as `shown`."""
    assert _NAME.fullmatch(shown)
    return f"{shown}{UNWRITABLE}{number}"


def is_counter(name: str) -> bool:
    """Return whether a size is the counter of a loop."""
    return UNWRITABLE in name


def counters_in(size: Size) -> frozenset[str]:
    """Return the counters that a size names."""
    return frozenset(name for name in dims.names(size) if UNWRITABLE in name)


@dataclass(frozen=True)
class Counter:
    """The counter of a loop as a size: it goes from `low` up to, not including, `high`."""

    name: str
    low: Size
    high: Size
    first: Size
    """The value in the first step."""
    step: int
    """The change after each step: 1 or -1."""

    @property
    def size(self) -> Dim:
        """The counter itself."""
        return dims.variable(self.name)

    @property
    def position(self) -> Size:
        """Return the index of the step, from 0."""
        return self.size - self.first if self.step == 1 else self.first - self.size

    def facts(self) -> tuple[Fact, ...]:
        """Return the facts about the counter in a step."""
        return (
            Fact("<=", 0, self.size),
            Fact("<=", self.low, self.size),
            Fact("<", self.size, self.high),
        )


class InLoop(Assumptions):
    """The known facts in the body of a loop, whose counter is a size.

    A claim that names no counter follows only from the facts of the function: a body that no step
    enters has to be well-typed, too, and so has its derivative. But an axis has the elements that a
    counter indexes; code that rewrites the body takes care of that.
    """

    __slots__ = ("around", "barrier", "counters")

    def __init__(
        self,
        around: Assumptions,
        facts: tuple[Fact, ...],
        counters: frozenset[str],
        barrier: int,
    ) -> None:
        super().__init__((*around.facts, *facts))
        self.around: Final = around
        """The known facts about sizes that are no counters."""
        self.counters: Final = counters
        self.barrier: Final = barrier
        """The depth of the function, given to a combinator, that contains the outermost loop."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, InLoop)
            and self.facts == other.facts
            and self.counters == other.counters
        )

    def __hash__(self) -> int:
        return hash((self.facts, self.counters))

    def within(self, counter: Counter) -> InLoop:
        """Return the known facts in the body of a loop in the loop."""
        return self._with(self._own(), counter.facts(), self.counters | {counter.name})

    def without(self, counter: Counter) -> Assumptions:
        """Return the known facts after the loop of a counter."""
        left = self.counters - {counter.name}
        if not left:
            return self.around
        own = tuple(fact for fact in self._own() if counter.name not in fact.names())
        return self._with(own, (), left)

    def assume(self, *facts: Fact) -> InLoop:
        """Return the assumptions that also hold these facts."""
        outside = [fact for fact in facts if self.counters.isdisjoint(fact.names())]
        inside = tuple(fact for fact in facts if fact not in outside)
        around = self.around.assume(*outside)
        if around is self.around and all(fact in self.facts for fact in inside):
            return self
        return InLoop(around, (*self._own(), *inside), self.counters, self.barrier)

    def _with(
        self, own: tuple[Fact, ...], more: tuple[Fact, ...], counters: frozenset[str]
    ) -> InLoop:
        return InLoop(self.around, (*own, *more), counters, self.barrier)

    def _own(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if not self.counters.isdisjoint(fact.names()))

    def _is_about_counters(self, *sizes: Size) -> bool:
        return any(not self.counters.isdisjoint(dims.names(size)) for size in sizes)

    def equal(self, a: Size, b: Size) -> bool:
        """Return whether two sizes are provably equal."""
        if a == b or self._is_about_counters(a, b):
            return super().equal(a, b)
        return self.around.equal(a, b)

    def proves(self, claim: Fact) -> bool:
        """Return whether the claim is proven for all admitted sizes."""
        if self._is_about_counters(claim.left, claim.right):
            return super().proves(claim)
        return self.around.proves(claim) or (_is_of_elements(claim) and super().proves(claim))

    def decide(self, claim: Fact) -> Verdict:
        """Return whether the claim holds for all admitted sizes, or fails for some."""
        if self._is_about_counters(claim.left, claim.right):
            return super().decide(claim)
        return self.around.decide(claim)

    def consistent(self) -> Verdict:
        """Return whether any sizes are admitted."""
        return self.around.consistent()

    def counterexample(self, claim: Fact) -> dict[str, int] | None:
        """Return sizes that refute the claim, for the names in it."""
        if self._is_about_counters(claim.left, claim.right):
            return super().counterexample(claim)
        return self.around.counterexample(claim)

    def simplify(self, size: Size) -> Size:
        """Return an equal size that the facts make simpler, or the size itself."""
        if self._is_about_counters(size):
            return super().simplify(size)
        return self.around.simplify(size)


def _is_of_elements(claim: Fact) -> bool:
    """Return whether the claim is that an axis has elements, which a counter in range may imply."""
    least = {"<=": 1, "<": 0}.get(claim.relation)
    return least is not None and isinstance(claim.left, int) and claim.left >= least


def in_loop(facts: Assumptions, counter: Counter, barrier: int) -> InLoop:
    """Return the known facts in the body of a loop."""
    if isinstance(facts, InLoop):
        return facts.within(counter)
    return InLoop(facts, counter.facts(), frozenset((counter.name,)), barrier)


def bound(size: Size, counter: Counter, *, upper: bool) -> Size | None:
    """Return a bound of a size for all values of a counter; None if it is unknown.

    All other names are sizes, none of them negative.
    """
    total: Size = 0
    for monomial, coefficient in dims.as_terms(size):
        own = [factor for factor in monomial if counter.name in factor.names]
        others = [factor for factor in monomial if counter.name not in factor.names]
        product: Size = coefficient
        for factor in others:
            product = product * _alone(factor)
        if own:
            # A factor that may be negative would turn the bound around.
            if len(own) > 1 or any(factor.kind != "name" for factor in others):
                return None
            found = bound_of_factor(own[0], counter, upper=upper is (coefficient > 0))
            if found is None:
                return None
            product = product * found
        total = total + product
    return total


def bound_of_factor(factor: dims.Factor, counter: Counter, *, upper: bool) -> Size | None:
    """Return the bound of a name, or of an operation on sizes."""
    if factor.kind == "name":
        if factor == counter.name:
            return counter.high - 1 if upper else counter.low
        return _alone(factor)
    first, *rest = factor.args
    if factor.kind in ("min", "max"):
        bounds = [bound(each, counter, upper=upper) for each in factor.args]
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds):
            return None
        found = known[0]
        for each in known[1:]:
            found = (dims.minimum if factor.kind == "min" else dims.maximum)(found, each)
        return found
    (divisor,) = rest
    if not isinstance(divisor, int) or divisor <= 0:
        return None
    if factor.kind == "%":
        return divisor - 1 if upper else 0
    found_first = bound(first, counter, upper=upper)
    return None if found_first is None else found_first // divisor


def _alone(factor: dims.Factor) -> Size:
    return dims.from_terms({(factor,): 1})


__all__ = ["Counter", "InLoop", "bound", "counter_name", "counters_in", "in_loop", "is_counter"]
