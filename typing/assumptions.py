"""What is known about sizes, and what follows from it for all of them.

`Assumptions` holds facts and answers claims.  A proof refutes the negated claim: the facts and the
negation become `constraints`, and `refutation` closes every case by `elimination`.  A disproof is
one of the `counterexamples`.  Neither is complete, so the third answer is `UNKNOWN`; the other two
are never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from pscdsl.typing import dims
from pscdsl.typing.counterexamples import FactGroup, refutation, refuted_by_samples
from pscdsl.typing.dims import DimTooLarge, Factor, Kind, Size
from pscdsl.typing.elimination import Constraints, ProofTooLarge, constraints_of, refuted
from pscdsl.typing.facts import Fact, Relation, connected, parse_fact

# Proofs by slack: where `n >= 2*k`, n is `2*k + s`, and what has no minus left is not negative.


def holds_by_slack(claim: Fact, facts: Iterable[Fact], lower_bound: Callable[[str], int]) -> bool:
    """Whether a claim about polynomials follows by writing names as their bounds and slack.

    It proves products of inequalities, which elimination does not look at.
    """
    if claim.relation not in ("<=", "<"):
        return False
    try:
        gap = claim.right - claim.left
        if not _is_nonlinear(gap):
            return False
        env: dict[str, Size] = {}
        for name, bound in _bounds(facts):
            bound = dims.substitute(bound, env)
            if name not in env and name not in dims.names(bound):
                slack = {name: bound + dims.variable(name)}
                env = {key: dims.substitute(size, slack) for key, size in env.items()} | slack
        gap = dims.substitute(gap, env)
        floors: dict[str, Size] = {
            name: dims.variable(name) + lower_bound(name) for name in dims.names(gap) - env.keys()
        }
        gap = dims.substitute(gap, floors)
    except DimTooLarge:
        return False
    least = dict(dims.as_terms(gap)).get((), 0)
    return least >= (claim.relation == "<") and all(c > 0 for m, c in dims.as_terms(gap) if m)


def _bounds(facts: Iterable[Fact]) -> Iterator[tuple[str, Size]]:
    """Names with polynomials, of other names, that they are at least."""
    for fact in facts:
        if fact.relation not in ("<=", "<"):
            continue
        gap = fact.right - fact.left - (fact.relation == "<")
        if not _is_polynomial(gap):
            continue
        for monomial, coefficient in dims.as_terms(gap):
            if len(monomial) == 1 and coefficient == 1:
                name = str(monomial[0])
                bound = dims.variable(name) - gap
                if name not in dims.names(bound):
                    yield name, bound


def _is_polynomial(size: Size) -> bool:
    return all(f.kind == "name" for monomial, _ in dims.as_terms(size) for f in monomial)


def _is_nonlinear(size: Size) -> bool:
    return _is_polynomial(size) and any(len(m) > 1 for m, _ in dims.as_terms(size))


# Writing sizes more simply by what is known of their names.


_MAX_ROUNDS = 4


def definitions(facts: Iterable[Fact]) -> dict[str, Size]:
    """The names that facts define outright, `n == 2*m`, each by names that are not defined."""
    found: dict[str, Size] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            fact = fact.substitute(found)
            for side, other in ((fact.left, fact.right), (fact.right, fact.left)):
                name = dims.single_factor(side, "name")
                if name is not None and name not in dims.names(other):
                    env = {str(name): other}
                    found = {key: dims.substitute(size, env) for key, size in found.items()} | env
                    break
        except (DimTooLarge, ZeroDivisionError):
            continue
    return found


class Simplifier:
    """Replaces defined names, and drops operations whose result is proven to be an operand."""

    def __init__(self, definitions: Mapping[str, Size], proves: Callable[[Fact], bool]) -> None:
        self.definitions = definitions
        self.proves = proves

    def simplify(self, size: Size) -> Size:
        """An equal size that is simpler, or the size itself."""
        try:
            for _ in range(_MAX_ROUNDS):
                before, size = size, self._once(size)
                if size == before:
                    break
        except (DimTooLarge, ZeroDivisionError):
            pass
        return size

    def _once(self, size: Size) -> Size:
        total: Size = 0
        for monomial, coefficient in dims.as_terms(dims.substitute(size, self.definitions)):
            product: Size = coefficient
            for factor in sorted(monomial, key=lambda factor: factor.kind != "name"):
                if factor.kind == "name":
                    product = product * dims.variable(factor)
                else:
                    product = self._times_operation(product, factor)
            total = total + product
        return total

    def _times_operation(self, product: Size, operation: Factor) -> Size:
        """The product with one more factor, an operation."""
        kind, args = operation.kind, [self._once(arg) for arg in operation.args]
        if kind == "min" or kind == "max":
            return product * dims.apply(kind, self._undominated(kind, args))
        dividend, divisor = args
        if self.proves(Fact("<=", 0, dividend)) and self.proves(Fact("<", dividend, divisor)):
            return 0 if kind == "//" else product * dividend
        multiple = product % divisor == 0 if divisor != 0 else False
        if (kind == "%" or multiple) and self.proves(Fact("==", dividend % divisor, 0)):
            return 0 if kind == "%" else product // divisor * dividend
        return product * dims.apply(kind, args)

    def _undominated(self, kind: Kind, args: list[Size]) -> list[Size]:
        """The operands of a minimum or maximum, without those that another makes needless."""
        kept = list(args)
        for arg in args:
            others = [other for other in kept if other is not arg]
            if any(self._dominates(kind, other, arg) for other in others):
                kept = others
        return kept

    def _dominates(self, kind: Kind, a: Size, b: Size) -> bool:
        return self.proves(Fact("<=", a, b) if kind == "min" else Fact("<=", b, a))


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


# The least size from which on claims hold that small arrays break: slices are clipped at ends.


MOST = 64
"""Larger bounds are not looked for."""


def sufficient_bound(facts: Assumptions, claims: Sequence[Fact]) -> Fact | None:
    """The weakest `k <= n` for one of the names under which all claims are proven, if there is one.

    It is looked for where a claim speaks of the smaller or larger of two sizes.
    """
    if not any("min(" in str(claim) or "max(" in str(claim) for claim in claims):
        return None
    names = sorted({name for claim in claims for name in claim.names()})
    return next((found for name in names if (found := _bound(facts, name, claims))), None)


def _bound(facts: Assumptions, name: str, claims: Sequence[Fact]) -> Fact | None:
    def enough(least: int) -> Fact | None:
        bound = Fact("<=", least, dims.parse(name))
        known = facts.assume(bound)
        return bound if all(map(known.proves, claims)) else None

    low, high, found = 1, MOST, enough(MOST)
    while found is not None and low < high:
        middle = (low + high) // 2
        smaller = enough(middle)
        found, low, high = (smaller, low, middle) if smaller else (found, middle + 1, high)
    return found


__all__ = ["Assumptions", "Fact", "Relation", "Verdict", "parse_fact"]
