"""Known facts about sizes: consequences for all sizes, and counterexamples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from pscdsl.typing import dims
from pscdsl.typing.dims import DimTooLarge, Factor, Kind, Monomial, Size
from pscdsl.typing.facts import (
    Constraints,
    Fact,
    ProofTooLarge,
    Relation,
    connected,
    constraints_of,
    parse_fact,
    refuted,
)

# Counterexamples: a search for the smallest sizes that refute a claim.


# The sizes of a search: their names in order, each with the facts to check.


class Exhausted(Exception):
    """A search has used up its steps."""


class SearchSpace:
    """Names that a search assigns in order, so that facts hold and a claim fails.

    Names that a fact defines by others come after these, and are computed, not tried. Evaluations
    are paid for in `steps`.
    """

    def __init__(
        self, facts: list[Fact], claim: Fact | None, lower_bound: Callable[[str], int]
    ) -> None:
        self.claim = claim
        self.steps = 0
        mentioned = frozenset[str]().union(*(fact.names() for fact in facts))
        self.names = sorted(mentioned | claim.names() if claim else mentioned)
        self.defined = _find_defined(facts)
        self.free = [name for name in self.names if name not in self.defined]
        self.order = _order(self.free, self.defined)
        place = {name: position for position, name in enumerate(self.order)}
        self.ground = [fact for fact in facts if not fact.names()]
        self.checks: list[list[Fact]] = [[] for _ in self.order]
        self.filters: dict[str, list[Fact]] = {name: [] for name in self.names}
        self.floor = {name: lower_bound(name) for name in self.names}
        for fact in facts:
            about = fact.names()
            if about:
                self.checks[max(place[name] for name in about)].append(fact)
            if len(about) == 1:
                self.filters[min(about)].append(fact)
            if bound := fact.explicit_lower_bound():
                name, least = bound
                self.floor[name] = max(self.floor[name], least)

    def spend(self, steps: int = 1) -> None:
        """Use up steps; raise `Exhausted` if too few are left."""
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted

    def possible(self) -> bool:
        """Return whether the facts without names hold."""
        return all(fact.holds({}) for fact in self.ground)

    def passes(self, name: str, value: int) -> bool:
        """Return whether a value of a name satisfies the facts about that name alone."""
        return self._hold(self.filters[name], {name: value})

    def checked(self, position: int, env: Mapping[str, int]) -> bool:
        """Return whether the facts hold that have the name at this position as their last."""
        return self._hold(self.checks[position], env)

    def refutes(self, env: Mapping[str, int]) -> bool:
        """Return whether the claim fails; True if there is none."""
        if self.claim is None:
            return True
        self.spend(_weight(self.claim))
        return not self.claim.holds(env)

    def defined_value(self, name: str, env: Mapping[str, int]) -> int | None:
        """Return the value of a defined name, if it has one and that is large enough."""
        try:
            value = dims.evaluate(self.defined[name], env)
        except ZeroDivisionError:
            return None
        return value if value >= self.floor[name] else None

    def _hold(self, facts: Iterable[Fact], env: Mapping[str, int]) -> bool:
        for fact in facts:
            self.spend(_weight(fact))
            if not fact.holds(env):
                return False
        return True


def _weight(fact: Fact) -> int:
    """About how long a fact takes to evaluate."""
    return 1 + (len(dims.as_terms(fact.left)) + len(dims.as_terms(fact.right))) // 4


def _find_defined(facts: Iterable[Fact]) -> dict[str, Size]:
    """Names that equalities define by others, without circles."""
    defined: dict[str, Size] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            gap = fact.left - fact.right
        except DimTooLarge:
            continue
        for monomial, c in dims.as_terms(gap):
            if len(monomial) != 1 or monomial[0].kind != "name" or abs(c) != 1:
                continue
            name = str(monomial[0])
            value = dims.variable(name) - gap if c == 1 else dims.variable(name) + gap
            if name not in defined and not _depends(value, name, defined):
                defined[name] = value
                break
    return defined


def _depends(size: Size, name: str, defined: Mapping[str, Size]) -> bool:
    """Return whether a size depends on a name, directly or by definitions."""
    mentioned = dims.names(size)
    if name in mentioned:
        return True
    return any(_depends(defined[other], name, defined) for other in mentioned & defined.keys())


def _order(free: list[str], defined: Mapping[str, Size]) -> list[str]:
    """Return the free names, then the defined ones, each after the names that define it."""
    order = list(free)
    waiting = sorted(defined)
    while waiting:
        ready = next(name for name in waiting if dims.names(defined[name]) <= set(order))
        order.append(ready)
        waiting.remove(ready)
    return order


# Probing a search space: guesses far above the smallest sizes, made smaller where they hit.


_PROBES = (0, 1, 2, 3, 5, 7, 15, 31, 63, 127, 255, 1023, 4095, 65535, 2**20, 2**31)
_MAX_PROBE_STEPS = 5000
_NEARBY = 64


def probe(space: SearchSpace) -> dict[str, int] | None:
    """Try some large sizes, of one free name at a time and of all together."""
    space.steps = _MAX_PROBE_STEPS
    try:
        for raised in (*([name] for name in space.free), space.free):
            for above in _PROBES:
                found = completed(space, dict.fromkeys(raised, above))
                if found is not None:
                    return _shrunk(space, found)
    except Exhausted:
        pass
    return None


def completed(space: SearchSpace, above: Mapping[str, int]) -> dict[str, int] | None:
    """Return sizes with free names at about these distances above their floors, if admitted."""
    env: dict[str, int] = {}
    for position, name in enumerate(space.order):
        if name in space.defined:
            value = space.defined_value(name, env)
        else:
            start = space.floor[name] + above.get(name, 0)
            nearby = range(start, start + _NEARBY)
            value = next((value for value in nearby if space.passes(name, value)), None)
        if value is None:
            return None
        env[name] = value
        if not space.checked(position, env):
            return None
    return env if space.refutes(env) else None


def _shrunk(space: SearchSpace, found: dict[str, int]) -> dict[str, int]:
    """Make sizes smaller, one free name after the other, by halving steps; while steps last."""
    try:
        for name in space.free:
            above = _heights(space, found)
            width = above[name]
            while width > 0:
                lowered = above[name] - width
                smaller = completed(space, {**above, name: lowered}) if lowered >= 0 else None
                if smaller is not None and smaller[name] < found[name]:
                    found = smaller
                    above = _heights(space, found)
                    width = min(width, above[name])
                else:
                    width //= 2
    except Exhausted:
        pass
    return found


def _heights(space: SearchSpace, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the distances of the free names from their smallest values."""
    return {name: sizes[name] - space.floor[name] for name in space.free}


# Counterexamples: a search, by total size, for the smallest sizes that refute a claim.


_MAX_STEPS = 30_000


def refutation(
    facts: Iterable[Fact], claim: Fact, lower_bound: Callable[[str], int]
) -> dict[str, int] | None:
    """Return the smallest sizes, of all names, that satisfy the facts and refute the claim.

    Facts that share no name with the others are searched by themselves.
    """
    found: dict[str, int] = {}
    about, *others = connected((claim, *facts))
    spaces = [SearchSpace(about[1:], claim, lower_bound)]
    spaces += [SearchSpace(group, None, lower_bound) for group in others]
    for space in spaces:
        part = smallest(space, _MAX_STEPS)
        if part is None:
            return None
        found |= part
    return found


def smallest(space: SearchSpace, steps: int) -> dict[str, int] | None:
    """Return the smallest sizes in a space, by sum, then by names; any, beyond the steps."""
    if not space.possible():
        return None
    space.steps = steps
    try:
        found = _Search(space).smallest() if space.free else None
    except Exhausted:
        found = None
    return probe(space) if found is None else found


class _Search:
    """A search through all sizes of one total after the other."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.values: dict[str, list[int]] = {name: [] for name in space.free}
        self.reached = {name: space.floor[name] for name in space.free}
        floors = [space.floor[name] for name in space.order]
        self.least_rest = [sum(floors[position + 1 :]) for position in range(len(floors))]

    def smallest(self) -> dict[str, int] | None:
        base = sum(self.space.floor.values())
        for total in range(base, base + self.space.steps):
            self.space.spend()
            found = list(self.assign({}, 0, total))
            if found:
                return min(found, key=lambda env: [env[name] for name in self.space.names])
        return None

    def assign(self, env: dict[str, int], position: int, total: int) -> Iterator[dict[str, int]]:
        """Yield the sizes of this total that extend a partial assignment."""
        space = self.space
        space.spend()
        if position == len(space.order):
            if total == 0 and space.refutes(env):
                yield dict(env)
            return
        name = space.order[position]
        most = total - self.least_rest[position]
        for value in self.candidates(env, position, most):
            if value > most:
                break
            if value < space.floor[name]:
                continue
            env[name] = value
            space.spend()
            if space.checked(position, env):
                yield from self.assign(env, position + 1, total - value)
            del env[name]

    def candidates(self, env: dict[str, int], position: int, most: int) -> Iterable[int]:
        """Return the values to try for the name at a position."""
        name = self.space.order[position]
        if name in self.space.defined:
            value = self.space.defined_value(name, env)
            return () if value is None else (value,)
        return (most,) if position == len(self.space.order) - 1 else self.free_values(name, most)

    def free_values(self, name: str, most: int) -> Iterator[int]:
        """Yield the values of a name up to a bound that satisfy the facts about it alone."""
        values = self.values[name]
        yield from values
        while self.reached[name] <= most:
            self.space.spend()
            value = self.reached[name]
            self.reached[name] += 1
            if self.space.passes(name, value):
                values.append(value)
                yield value


# Samples: a few admitted sizes, found once, that refute most wrong claims quickly.


_PATTERNS = (
    (1, 2, 4, 7, 11, 16, 22, 29, 37, 46),
    (16, 9, 25, 4, 36, 1, 49, 13, 30, 21),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)
"""The distances of a sample's names from their smallest values; one row for each sample."""

_MAX_SAMPLE_STEPS = 400


class FactGroup:
    """Facts that share names, directly or through others, and no name with any other fact."""

    __slots__ = ("_lower_bound", "_samples", "facts", "index", "names")

    def __init__(self, index: int, facts: list[Fact], lower_bound: Callable[[str], int]) -> None:
        self.index = index
        self.facts = facts
        self.names = frozenset[str]().union(*[fact.names() for fact in facts])
        self._lower_bound = lower_bound
        self._samples: list[dict[str, int]] | None = None

    def samples(self) -> list[dict[str, int]]:
        """Admitted sizes for each pattern, where they are easily found; else none at all."""
        if self._samples is None:
            space = SearchSpace(self.facts, None, self._lower_bound)
            found = [_sample(space, pattern) for pattern in _PATTERNS]
            spare = next((part for part in reversed(found) if part is not None), None)
            if spare is None:
                spare = smallest(space, _MAX_SAMPLE_STEPS)
            self._samples = []
            if spare is not None:
                self._samples = [spare if part is None else part for part in found]
        return self._samples


def refuted_by_samples(claim: Fact, groups: Iterable[FactGroup]) -> bool:
    """Return whether a claim fails for one of the samples of these groups of facts."""
    samples: list[dict[str, int]] = [{} for _ in _PATTERNS]
    for group in groups:
        parts = group.samples()
        if not parts:
            return False
        for sample, part in zip(samples, parts, strict=True):
            sample |= part
    names = claim.names()
    for pattern, env in zip(_PATTERNS, samples, strict=True):
        for name, value in zip(sorted(names - env.keys()), pattern, strict=False):
            env[name] = value + 1
        if names <= env.keys() and not claim.holds(env):
            return True
    return False


def _sample(space: SearchSpace, pattern: tuple[int, ...]) -> dict[str, int] | None:
    """Return sizes above the smallest ones by the steps of a pattern, if they are admitted."""
    if not space.possible():
        return None
    space.steps = _MAX_SAMPLE_STEPS
    try:
        for order in (pattern, pattern[1:], sorted(pattern), sorted(pattern, reverse=True)):
            found = completed(space, dict(zip(space.free, order, strict=False)))
            if found is not None:
                return found
    except Exhausted:
        pass
    return None


# Known facts about sizes, and their consequences for all sizes.
#
# `Assumptions` holds facts and answers claims. A proof refutes the negated claim: the facts and the
# negation become `Constraints`, and `refuted` closes every case by elimination. A disproof is a
# counterexample. Neither is complete, so the third answer is `UNKNOWN`; the other two are never
# wrong.


# Proofs by slack: where `n >= 2*k`, n is `2*k + s`, and a sum without minus is not negative.


def holds_by_slack(claim: Fact, facts: Iterable[Fact], lower_bound: Callable[[str], int]) -> bool:
    """Return whether a claim about polynomials follows by writing names as bounds plus slack.

    It proves products of inequalities, which elimination does not consider.
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


# Simplification of sizes by known facts about their names.


_MAX_ROUNDS = 4


def definitions(facts: Iterable[Fact]) -> dict[str, Size]:
    """Return the names that facts define directly, `n == 2*m`, by names that are not defined."""
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


def known_products(facts: Iterable[Fact], defined: Mapping[str, Size]) -> dict[Monomial, int]:
    """Return the products of names that facts say to be numbers, `8 == m*n`."""
    found: dict[Monomial, int] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            fact = fact.substitute(defined)
        except (DimTooLarge, ZeroDivisionError):
            continue
        for side, other in ((fact.left, fact.right), (fact.right, fact.left)):
            terms = dims.as_terms(other)
            if isinstance(side, int) and len(terms) == 1 and len(terms[0][0]) > 1:
                monomial, coefficient = terms[0]
                if side % coefficient == 0:
                    found[monomial] = side // coefficient
    return found


def with_products(size: Size, products: Mapping[Monomial, int]) -> Size:
    """Return a size with numbers in place of products that are known."""
    if not products:
        return size
    total: Size = 0
    for monomial, coefficient in dims.as_terms(size):
        for product, number in products.items():
            while (rest := dims.quotient(monomial, product)) is not None:
                monomial, coefficient = rest, dims.bounded(coefficient * number)
        total = total + dims.from_terms({monomial: coefficient})
    return total


class Simplifier:
    """Replaces defined names, and drops operations whose result is provably an operand."""

    def __init__(self, definitions: Mapping[str, Size], proves: Callable[[Fact], bool]) -> None:
        self.definitions = definitions
        self.proves = proves

    def simplify(self, size: Size) -> Size:
        """Return an equal size that is simpler, or the size itself."""
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
        """Return the product with one more factor, an operation."""
        kind, args = operation.kind, [self._once(arg) for arg in operation.args]
        if kind == "min" or kind == "max":
            return product * dims.apply(kind, self._drop_dominated(kind, args))
        dividend, divisor = args
        if self.proves(Fact("<=", 0, dividend)) and self.proves(Fact("<", dividend, divisor)):
            return 0 if kind == "//" else product * dividend
        multiple = product % divisor == 0 if divisor != 0 else False
        if (kind == "%" or multiple) and self.proves(Fact("==", dividend % divisor, 0)):
            return 0 if kind == "%" else product // divisor * dividend
        return product * dims.apply(kind, args)

    def _drop_dominated(self, kind: Kind, args: list[Size]) -> list[Size]:
        """Return the operands of a minimum or maximum without redundant ones."""
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
    """An immutable set of facts about sizes, and its consequences."""

    __slots__ = (
        "_alternatives",
        "_constraints",
        "_definitions",
        "_groups",
        "_hash",
        "_lower",
        "_products",
        "_proofs",
        "facts",
    )

    facts: tuple[Fact, ...]

    def __init__(self, facts: tuple[Fact, ...] = ()) -> None:
        self.facts = tuple(dict.fromkeys(facts))
        self._hash = hash(self.facts)
        # Consequences are computed at the first request.
        self._lower: dict[str, int] | None = None
        self._definitions: dict[str, Size] | None = None
        self._alternatives: list[dict[str, Size]] | None = None
        """Other definitions, where several facts define the same name."""
        self._products: dict[Monomial, int] | None = None
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
        """Return the assumptions that also hold these facts."""
        added = [fact for fact in facts if fact not in self.facts]
        return Assumptions((*self.facts, *added)) if added else self

    def lower_bound(self, name: str) -> int:
        """Return the smallest value of a name: 1 by default, or 0 if a fact bounds it itself."""
        if self._lower is None:
            bounds = [fact.explicit_lower_bound() for fact in self.facts]
            self._lower = {bound[0]: 0 for bound in bounds if bound is not None}
        return self._lower.get(name, 1)

    def admits(self, env: Mapping[str, int]) -> bool:
        """Return whether these sizes satisfy every fact and are large enough."""
        if any(value < self.lower_bound(name) for name, value in env.items()):
            return False
        return all(fact.holds(env) for fact in self.facts)

    def equal(self, a: Size, b: Size) -> bool:
        """Return whether two sizes are provably equal."""
        if a is b or a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        if not self.facts and _is_polynomial(a) and _is_polynomial(b):
            return False
        return self._same_by_definitions(a, b) or self.proves(Fact("==", a, b))

    def proves(self, claim: Fact) -> bool:
        """Return whether the claim is proven for all admitted sizes."""
        left, right = claim.left, claim.right
        if isinstance(left, int) and isinstance(right, int) and claim.holds({}):
            return True
        known = self._proofs.get(claim)
        if known is None:
            known = self._proofs[claim] = claim in self.facts or self._prove(claim)
        return known

    def decide(self, claim: Fact) -> Verdict:
        """Return whether the claim holds for all admitted sizes, or fails for some."""
        if self.proves(claim):
            return Verdict.YES
        if refuted_by_samples(claim, self._all_groups()):
            return Verdict.NO
        if self.counterexample(claim) is not None:
            return Verdict.NO
        return Verdict.YES if self.proves(_ABSURD) else Verdict.UNKNOWN

    def consistent(self) -> Verdict:
        """Return whether any sizes are admitted."""
        if self.proves(_ABSURD):
            return Verdict.NO
        return Verdict.UNKNOWN if self.counterexample(_ABSURD) is None else Verdict.YES

    def counterexample(self, claim: Fact) -> dict[str, int] | None:
        """Return sizes that refute the claim, for the names in it; None if none was found.

        They belong to the smallest sizes (by sum, then in order of names) that all facts admit and
        that refute the claim. The search is bounded. Beyond the sizes that can be searched
        completely, other ones are still tried, and need not be the smallest.
        """
        found = refutation(self.facts, claim, self.lower_bound)
        return None if found is None else {name: found[name] for name in sorted(claim.names())}

    def simplify(self, size: Size) -> Size:
        """Return an equal size that the facts make simpler, or the size itself."""
        if isinstance(size, int) or (not self.facts and _is_polynomial(size)):
            return size
        return Simplifier(self._defined_names(), self.proves).simplify(size)

    def _defined_names(self) -> dict[str, Size]:
        if self._definitions is None:
            self._definitions = definitions(self.facts)
        return self._definitions

    def _same_by_definitions(self, a: Size, b: Size) -> bool:
        if not self._defined_names() and not self._known_products():
            return False
        if self._same_where(self._defined_names(), a, b):
            return True
        if self._alternatives is None:
            self._alternatives = [
                found
                for n, fact in enumerate(self.facts)
                if n and fact.relation == "=="
                if (found := definitions((fact, *self.facts))) != self._definitions
            ]
        return any(self._same_where(defined, a, b) for defined in self._alternatives)

    def _known_products(self) -> dict[Monomial, int]:
        if self._products is None:
            self._products = known_products(self.facts, self._defined_names())
        return self._products

    def _same_where(self, defined: Mapping[str, Size], a: Size, b: Size) -> bool:
        try:
            difference = dims.substitute(a, defined) - dims.substitute(b, defined)
            return difference == 0 or with_products(difference, self._known_products()) == 0
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
        """Return the groups of facts that concern these names; all groups if there are no names."""
        groups = self._all_groups()
        if not names:
            return groups
        return [g for g in groups if not g.names or not names.isdisjoint(g.names)]

    def _known(self, groups: list[FactGroup]) -> Constraints:
        """Return the constraints of groups of facts, which must not be changed."""
        key = tuple([group.index for group in groups])
        known = self._constraints.get(key)
        if known is None:
            facts = [fact for group in groups for fact in group.facts]
            known = self._constraints[key] = constraints_of(facts, self.lower_bound)
        return known


def _negations(claim: Fact) -> tuple[Fact, ...]:
    """Return facts, one of which holds wherever the claim does not."""
    if claim.relation == "==":
        return Fact("<", claim.left, claim.right), Fact("<", claim.right, claim.left)
    return (claim.negated(),)


def _holds_by_signs(claim: Fact, lower_bound: Callable[[str], int]) -> bool:
    """Return the quick proof: every term of the difference has the right sign."""
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
    """Return the least value of a polynomial, where all its terms but the constant grow."""
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
    """Return the weakest `k <= n` for one of the names that proves all claims, if there is one.

    It is searched for if a claim contains the smaller or larger of two sizes.
    """
    if not any("min(" in str(claim) or "max(" in str(claim) for claim in claims):
        return None
    names = sorted({name for claim in claims for name in claim.names()})
    return next((found for name in names if (found := _bound(facts, name, claims))), None)


def _bound(facts: Assumptions, name: str, claims: Sequence[Fact]) -> Fact | None:
    def enough(least: int) -> Fact | None:
        bound = Fact("<=", least, dims.variable(name))
        known = facts.assume(bound)
        return bound if all(map(known.proves, claims)) else None

    low, high, found = 1, MOST, enough(MOST)
    while found is not None and low < high:
        middle = (low + high) // 2
        smaller = enough(middle)
        found, low, high = (smaller, low, middle) if smaller else (found, middle + 1, high)
    return found


__all__ = ["Assumptions", "Fact", "Relation", "Verdict", "parse_fact", "sufficient_bound"]
