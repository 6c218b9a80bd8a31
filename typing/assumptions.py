"""What is known about sizes, and what follows from it for all of them.

`Assumptions` holds facts and answers claims.  A proof refutes the negated claim: the facts and the
negation become `constraints`, and `refutation` closes every case by `elimination`.  A disproof is
one of the `counterexamples`.  Neither is complete, so the third answer is `UNKNOWN`; the other two
are never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from pscdsl.typing import dims
from pscdsl.typing.constraints import Constraints, ProofTooLarge, constraints_of
from pscdsl.typing.counterexamples import refutation
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.facts import Fact, Relation, connected, parse_fact
from pscdsl.typing.refutation import refuted
from pscdsl.typing.samples import FactGroup, refuted_by_samples
from pscdsl.typing.simplification import Simplifier, definitions
from pscdsl.typing.slack import holds_by_slack


class Verdict(Enum):
    """The answer to a claim about all admitted sizes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_ABSURD = Fact("==", 0, 1)


class Assumptions:
    """An immutable set of facts about sizes, and what it entails."""

    __slots__ = ("_constraints", "_definitions", "_groups", "_hash", "_lower", "_proofs", "facts")

    facts: tuple[Fact, ...]

    def __init__(self, facts: tuple[Fact, ...] = ()) -> None:
        self.facts = tuple(dict.fromkeys(facts))
        self._hash = hash(self.facts)
        # What follows is worked out when it is first asked for.
        self._lower: dict[str, int] | None = None
        self._definitions: dict[str, Size] | None = None
        self._groups: list[FactGroup] | None = None
        self._constraints: dict[tuple[int, ...], Constraints] = {}
        self._proofs: dict[Fact, bool] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Assumptions) and self.facts == other.facts

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Assumptions({', '.join(map(str, self.facts))})"

    def assume(self, *facts: Fact) -> Assumptions:
        """The assumptions that also hold these facts."""
        added = [fact for fact in facts if fact not in self.facts]
        return Assumptions((*self.facts, *added)) if added else self

    def lower_bound(self, name: str) -> int:
        """The smallest value a name may have by default: 1, or 0 if a fact bounds it itself."""
        if self._lower is None:
            bounds = [fact.explicit_lower_bound() for fact in self.facts]
            self._lower = {bound[0]: 0 for bound in bounds if bound is not None}
        return self._lower.get(name, 1)

    def admits(self, env: Mapping[str, int]) -> bool:
        """Whether these sizes satisfy every fact and are large enough."""
        if any(value < self.lower_bound(name) for name, value in env.items()):
            return False
        return all(fact.holds(env) for fact in self.facts)

    def equal(self, a: Size, b: Size) -> bool:
        """Whether two sizes are provably the same."""
        if a is b or a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        if not self.facts and _is_polynomial(a) and _is_polynomial(b):
            return False
        return self._same_by_definitions(a, b) or self.proves(Fact("==", a, b))

    def proves(self, claim: Fact) -> bool:
        """Whether the claim is proven for all admitted sizes."""
        left, right = claim.left, claim.right
        if isinstance(left, int) and isinstance(right, int) and claim.holds({}):
            return True
        known = self._proofs.get(claim)
        if known is None:
            known = self._proofs[claim] = claim in self.facts or self._prove(claim)
        return known

    def decide(self, claim: Fact) -> Verdict:
        """Whether the claim holds for all admitted sizes, or fails for some."""
        if self.proves(claim):
            return Verdict.YES
        if refuted_by_samples(claim, self._all_groups()):
            return Verdict.NO
        if self.counterexample(claim) is not None:
            return Verdict.NO
        return Verdict.YES if self.proves(_ABSURD) else Verdict.UNKNOWN

    def consistent(self) -> Verdict:
        """Whether any sizes are admitted at all."""
        if self.proves(_ABSURD):
            return Verdict.NO
        return Verdict.UNKNOWN if self.counterexample(_ABSURD) is None else Verdict.YES

    def counterexample(self, claim: Fact) -> dict[str, int] | None:
        """Sizes that refute the claim, for the names it mentions.

        They belong to the smallest sizes (by sum, then in order of names) that all facts admit
        and that refute the claim.  The search is bounded: `None` means none was found.  Beyond
        what can be searched in full, other sizes are still tried, and need not be the smallest.
        """
        found = refutation(self.facts, claim, self.lower_bound)
        return None if found is None else {name: found[name] for name in sorted(claim.names())}

    def simplify(self, size: Size) -> Size:
        """An equal size that is simpler by what is known, or the size itself."""
        if isinstance(size, int) or (not self.facts and _is_polynomial(size)):
            return size
        return Simplifier(self._defined_names(), self.proves).simplify(size)

    def _defined_names(self) -> dict[str, Size]:
        if self._definitions is None:
            self._definitions = definitions(self.facts)
        return self._definitions

    def _same_by_definitions(self, a: Size, b: Size) -> bool:
        defined = self._defined_names()
        if not defined:
            return False
        try:
            return dims.substitute(a, defined) == dims.substitute(b, defined)
        except (DimTooLarge, ZeroDivisionError):
            return False

    def _prove(self, claim: Fact) -> bool:
        try:
            if _holds_by_signs(claim, self.lower_bound):
                return True
            relevant = self._relevant_groups(claim.names())
            if refuted_by_samples(claim, relevant):
                return False
            if holds_by_slack(claim, self.facts, self.lower_bound):
                return True
            known = self._known(relevant)
            if not all(map(self._nonzero, claim.divisors())):
                return refuted(known)
            for negation in _negations(claim):
                denied = known.copy()
                denied.add(negation)
                if not refuted(denied):
                    return False
        except (ProofTooLarge, DimTooLarge):
            return False
        return True

    def _nonzero(self, divisor: Size) -> bool:
        return self.proves(Fact("<=", 1, divisor)) or self.proves(Fact("<=", divisor, -1))

    def _all_groups(self) -> list[FactGroup]:
        if self._groups is None:
            groups = enumerate(connected(self.facts))
            self._groups = [FactGroup(index, facts, self.lower_bound) for index, facts in groups]
        return self._groups

    def _relevant_groups(self, names: frozenset[str]) -> list[FactGroup]:
        """The groups of facts that bear on these names; all of them where there are none."""
        groups = self._all_groups()
        if not names:
            return groups
        return [g for g in groups if not g.names or not names.isdisjoint(g.names)]

    def _known(self, groups: list[FactGroup]) -> Constraints:
        """What groups of facts say, as constraints that must not be changed."""
        key = tuple([group.index for group in groups])
        known = self._constraints.get(key)
        if known is None:
            facts = [fact for group in groups for fact in group.facts]
            known = self._constraints[key] = constraints_of(facts, self.lower_bound)
        return known


def _negations(claim: Fact) -> tuple[Fact, ...]:
    """Facts one of which holds where the claim does not."""
    if claim.relation == "==":
        return Fact("<", claim.left, claim.right), Fact("<", claim.right, claim.left)
    return (claim.negated(),)


def _is_polynomial(size: Size) -> bool:
    return all(f.kind == "name" for monomial, _ in dims.as_terms(size) for f in monomial)


def _holds_by_signs(claim: Fact, lower_bound: Callable[[str], int]) -> bool:
    """The quick proof: every term of the difference has the right sign."""
    if claim.relation == "==":
        return False
    gap = claim.right - claim.left
    if not _is_polynomial(gap):
        return False
    least = _least(gap, lower_bound)
    if claim.relation == "!=" and (least is None or least < 1):
        least = _least(-gap, lower_bound)
    return least is not None and least >= (0 if claim.relation == "<=" else 1)


def _least(size: Size, lower_bound: Callable[[str], int]) -> int | None:
    """The least value of a polynomial, where all its terms but the constant grow."""
    least = 0
    for monomial, coefficient in dims.as_terms(size):
        if monomial and coefficient < 0:
            return None
        for factor in monomial:
            coefficient *= lower_bound(factor)
        least += coefficient
    return least


__all__ = ["Assumptions", "Fact", "Relation", "Verdict", "parse_fact"]
