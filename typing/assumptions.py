"""What is known about sizes, and what follows from it for all of them.

`Assumptions` holds facts and answers claims.  A proof refutes the negated claim: equalities are
solved over the integers and substituted away, divisions become bounded unknowns, and what is left
goes through Fourier-Motzkin elimination over monomials.  A disproof is a counterexample found by
search.  Neither is complete, so the third answer is `UNKNOWN`; the other two are never wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import gcd
from typing import Literal, TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.dims import Atom, Dim, DimSyntaxError, DimTooLarge, Kind, Monomial, Size

Relation: TypeAlias = Literal["==", "!=", "<=", "<"]

_OPPOSITE: dict[Relation, Relation] = {"==": "!=", "!=": "==", "<=": "<", "<": "<="}
_FLIPPED = {"==": "==", "!=": "!=", "<=": ">=", "<": ">"}


class Verdict(Enum):
    """The answer to a claim about all admitted sizes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation between two sizes; divisibility is `Fact("==", n % 8, 0)`."""

    relation: Relation
    left: Size
    right: Size

    def __str__(self) -> str:
        if isinstance(self.left, int) and not isinstance(self.right, int):
            return f"{_spaced(self.right)} {_FLIPPED[self.relation]} {self.left}"
        return f"{_spaced(self.left)} {self.relation} {_spaced(self.right)}"

    def negated(self) -> Fact:
        """The fact that holds exactly where this one does not."""
        if self.relation == "==" or self.relation == "!=":
            return Fact(_OPPOSITE[self.relation], self.left, self.right)
        return Fact(_OPPOSITE[self.relation], self.right, self.left)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether the fact is true of these numbers; not if it divides by zero."""
        try:
            left, right = dims.evaluate(self.left, env), dims.evaluate(self.right, env)
        except ZeroDivisionError:
            return False
        match self.relation:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<=":
                return left <= right
            case "<":
                return left < right

    def substitute(self, env: Mapping[str, Size]) -> Fact:
        """Replace names by sizes on both sides; `ZeroDivisionError` if that divides by zero."""
        left, right = dims.substitute(self.left, env), dims.substitute(self.right, env)
        return Fact(self.relation, left, right)

    def names(self) -> frozenset[str]:
        """The names mentioned on either side."""
        return dims.names(self.left) | dims.names(self.right)


_ABSURD = Fact("==", 0, 1)


class Assumptions:
    """An immutable set of facts about sizes, and what it entails."""

    __slots__ = ("_groups", "_hash", "_lower", "_proofs", "_rewrites", "_systems", "facts")

    facts: tuple[Fact, ...]

    def __init__(self, facts: tuple[Fact, ...] = ()) -> None:
        self.facts = tuple(dict.fromkeys(facts))
        self._hash = hash(self.facts)
        self._lower: dict[str, int] | None = None
        self._systems: dict[tuple[int, ...], _System] = {}
        self._proofs: dict[Fact, bool] = {}
        self._rewrites: dict[str, Size] | None = None
        self._groups: list[_Group] | None = None

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
            self._lower = dict.fromkeys(filter(None, map(_explicitly_bounded, self.facts)), 0)
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
        if self._same_by_rewriting(a, b):
            return True
        return self.proves(Fact("==", a, b))

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
        every = self._relevant(frozenset())
        if self._refuted_by_samples(claim, every) or self.counterexample(claim) is not None:
            return Verdict.NO
        return Verdict.YES if self.proves(_ABSURD) else Verdict.UNKNOWN

    def consistent(self) -> Verdict:
        """Whether any sizes are admitted at all."""
        if self.proves(_ABSURD):
            return Verdict.NO
        return Verdict.UNKNOWN if self.counterexample(_ABSURD) is None else Verdict.YES

    def counterexample(self, claim: Fact) -> dict[str, int] | None:
        """The smallest admitted sizes (by sum, then in order of names) that refute the claim.

        The search is bounded: `None` means none was found.  Beyond what can be searched in full,
        sizes that refute the claim are still tried, and then need not be the smallest.
        """
        groups = _connected((claim, *self.facts))
        found: dict[str, int] = {}
        for position, group in enumerate(groups):
            about = claim if position == 0 else None
            part = _Search(self, group[1:] if about else group, about, _SEARCH_STEPS).smallest()
            if part is None:
                return None
            found |= part
        return dict(sorted(found.items()))

    def simplify(self, size: Size) -> Size:
        """An equal size that is simpler by what is known, or the size itself."""
        if isinstance(size, int) or (not self.facts and _is_polynomial(size)):
            return size
        if self._rewrites is None:
            self._rewrites = _rewrites(self.facts)
        try:
            for _ in range(4):
                before, size = size, self._simplify_once(size)
                if size == before:
                    break
        except (DimTooLarge, ZeroDivisionError):
            pass
        return size

    def _same_by_rewriting(self, a: Size, b: Size) -> bool:
        if self._rewrites is None:
            self._rewrites = _rewrites(self.facts)
        if not self._rewrites:
            return False
        try:
            return dims.substitute(a, self._rewrites) == dims.substitute(b, self._rewrites)
        except (DimTooLarge, ZeroDivisionError):
            return False

    def _simplify_once(self, size: Size) -> Size:
        rewritten = dims.substitute(size, self._rewrites or {})
        total: Size = 0
        for monomial, coefficient in dims.as_terms(rewritten):
            product: Size = coefficient
            for atom in sorted(monomial, key=lambda atom: atom.kind != "name"):
                if atom.kind == "name":
                    product = product * dims.variable(atom)
                else:
                    product = self._simplify_product(product, atom)
            total = total + product
        return total

    def _simplify_product(self, factor: Size, atom: Atom) -> Size:
        args = [self._simplify_once(arg) for arg in atom.args]
        if atom.kind in ("min", "max"):
            kept = list(args)
            for arg in args:
                others = [other for other in kept if other is not arg]
                if any(self._dominates(atom.kind, other, arg) for other in others):
                    kept = others
            return factor * dims.apply(atom.kind, kept)
        dividend, divisor = args
        if self._proves_safe(Fact("<=", 0, dividend), Fact("<", dividend, divisor)):
            return 0 if atom.kind == "//" else factor * dividend
        multiple = factor % divisor == 0 if divisor != 0 else False
        if (atom.kind == "%" or multiple) and self.proves(Fact("==", dividend % divisor, 0)):
            return 0 if atom.kind == "%" else factor // divisor * dividend
        return factor * dims.apply(atom.kind, args)

    def _dominates(self, kind: Kind, a: Size, b: Size) -> bool:
        return self.proves(Fact("<=", a, b) if kind == "min" else Fact("<=", b, a))

    def _proves_safe(self, *claims: Fact) -> bool:
        return all(map(self.proves, claims))

    def _prove(self, claim: Fact) -> bool:
        try:
            if self._positive_by_bounds(claim):
                return True
            if self._refuted_by_samples(claim, self._relevant(claim.names())):
                return False
            known = self._system(claim)
            if not all(map(self._nonzero, _divisors(claim))):
                return known.copy().refuted()
            for negation in _negations(claim):
                system = known.copy()
                system.add(negation)
                if not system.refuted():
                    return False
        except (_GiveUp, DimTooLarge):
            return False
        return True

    def _relevant(self, names: frozenset[str]) -> list[_Group]:
        """The groups of facts that bear on these names; all of them where there are none."""
        if self._groups is None:
            groups = map(_Group, range(len(self.facts)), _connected(self.facts))
            self._groups = list(groups)
        if not names:
            return self._groups
        return [g for g in self._groups if not g.names or not names.isdisjoint(g.names)]

    def _system(self, claim: Fact) -> _System:
        relevant = self._relevant(claim.names())
        key = tuple([group.index for group in relevant])
        system = self._systems.get(key)
        if system is None:
            facts = [fact for group in relevant for fact in group.facts]
            system = self._systems[key] = _solved(self, facts)
        return system

    def _refuted_by_samples(self, claim: Fact, groups: Iterable[_Group]) -> bool:
        """Whether one of a few admitted assignments, found once, happens to refute the claim."""
        samples: list[dict[str, int]] = [{} for _ in _PATTERNS]
        for group in groups:
            if group.samples is None:
                group.samples = _samples(self, group.facts)
            if not group.samples:
                return False
            for sample, part in zip(samples, group.samples, strict=True):
                sample |= part
        names = claim.names()
        for pattern, env in zip(_PATTERNS, samples, strict=True):
            for name, value in zip(sorted(names - env.keys()), pattern, strict=False):
                env[name] = value + 1
            if names <= env.keys() and not claim.holds(env):
                return True
        return False

    def _nonzero(self, divisor: Size) -> bool:
        return self.proves(Fact("<=", 1, divisor)) or self.proves(Fact("<=", divisor, -1))

    def _positive_by_bounds(self, claim: Fact) -> bool:
        """The quick proof: every term of the difference has the right sign."""
        if claim.relation == "==":
            return False
        gap = claim.right - claim.left
        if not _is_polynomial(gap):
            return False
        needed = 0 if claim.relation == "<=" else 1
        least = _least(gap, self.lower_bound)
        if claim.relation == "!=" and (least is None or least < 1):
            least = _least(-gap, self.lower_bound)
        return least is not None and least >= needed


_COMPARISON = re.compile(r"==|!=|<=|>=|<|>|=")


def parse_fact(text: str) -> tuple[Fact, ...]:
    """Read a comparison such as `n % 8 == 0`; a chain `2 <= n < m` gives one fact a link."""
    operators = list(_COMPARISON.finditer(text))
    if not operators:
        raise DimSyntaxError("expected a comparison such as `n >= 2`", len(text))
    starts = [0, *(operator.end() for operator in operators)]
    ends = [*(operator.start() for operator in operators), len(text)]
    sizes: list[Size] = []
    for start, end in zip(starts, ends, strict=True):
        try:
            sizes.append(dims.parse(text[start:end]))
        except DimSyntaxError as error:
            raise DimSyntaxError(error.message, start + error.offset) from None
    facts: list[Fact] = []
    for operator, left, right in zip(operators, sizes, sizes[1:], strict=False):
        match operator[0]:
            case "==" | "!=" | "<=" | "<" as relation:
                facts.append(Fact(relation, left, right))
            case ">=":
                facts.append(Fact("<=", right, left))
            case ">":
                facts.append(Fact("<", right, left))
            case _:
                raise DimSyntaxError("sizes are compared by `==`, not `=`", operator.start())
    return tuple(facts)


def _spaced(size: Size) -> str:
    text = str(size)
    atom = dims.single_atom(size)
    if atom is None or atom.kind not in ("//", "%") or text.count(atom.kind) != 1:
        return text
    return text.replace(atom.kind, f" {atom.kind} ")


def _explicitly_bounded(fact: Fact) -> str | None:
    """The name that a fact `c <= name` or `c < name` bounds from below by a constant."""
    atom = dims.single_atom(fact.right)
    if atom is None or atom.kind != "name" or fact.relation not in ("<=", "<"):
        return None
    return str(atom) if isinstance(fact.left, int) else None


def _is_polynomial(size: Size) -> bool:
    return all(a.kind == "name" for monomial, _ in dims.as_terms(size) for a in monomial)


def _divisors(claim: Fact) -> Iterator[Dim]:
    """The sizes that a claim divides by, at any depth."""
    pending = [claim.left, claim.right]
    while pending:
        for monomial, _ in dims.as_terms(pending.pop()):
            for atom in monomial:
                pending.extend(atom.args)
                if atom.kind in ("//", "%") and isinstance(atom.args[1], Dim):
                    yield atom.args[1]


def _least(size: Size, lower: Callable[[str], int]) -> int | None:
    """The least value of a polynomial, where all its terms but the constant grow."""
    least = 0
    for monomial, coefficient in dims.as_terms(size):
        if monomial and coefficient < 0:
            return None
        for atom in monomial:
            coefficient *= lower(atom)
        least += coefficient
    return least


def _negations(claim: Fact) -> tuple[Fact, ...]:
    if claim.relation == "==":
        return Fact("<", claim.left, claim.right), Fact("<", claim.right, claim.left)
    return (claim.negated(),)


def _rewrites(facts: tuple[Fact, ...]) -> dict[str, Size]:
    """The names that facts define outright, `n == 2*m`."""
    found: dict[str, Size] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            fact = fact.substitute(found)
            for side, other in ((fact.left, fact.right), (fact.right, fact.left)):
                atom = dims.single_atom(side, "name")
                if atom is not None and atom not in dims.names(other):
                    env = {str(atom): other}
                    found = {key: dims.substitute(size, env) for key, size in found.items()} | env
                    break
        except (DimTooLarge, ZeroDivisionError):
            continue
    return found


class _Group:
    """Facts that share names, directly or through others, and no name with any other fact."""

    __slots__ = ("facts", "index", "names", "samples")

    def __init__(self, index: int, facts: list[Fact]) -> None:
        self.index = index
        self.facts = facts
        self.names = frozenset[str]().union(*[fact.names() for fact in facts])
        self.samples: list[dict[str, int]] | None = None


def _connected(facts: Iterable[Fact]) -> list[list[Fact]]:
    """Split facts into groups that share no name, in order of their first facts."""
    groups: list[tuple[set[str], list[Fact]]] = []
    for fact in facts:
        mine = fact.names()
        touching = [group for group in groups if not mine.isdisjoint(group[0])]
        if not touching:
            groups.append((set(mine), [fact]))
            continue
        (shared, members), *others = touching
        shared |= mine
        for other in others:
            shared |= other[0]
            members += other[1]
            groups = [group for group in groups if group is not other]
        members.append(fact)
    return [group for _, group in groups]


class _GiveUp(Exception):
    """A proof attempt has grown past its bounds."""


_Definition: TypeAlias = tuple[Kind, tuple[Size, ...]]

_MAX_VARIABLES = 60
_MAX_EQUATIONS = 200
_MAX_BRANCHES = 48
_MAX_RESIDUES = 4
_MAX_ROWS = 160
_MAX_PRODUCTS = 24
_MAX_FACTORS = 12
_MIN_SQUARE = 3


class _System:
    """Constraints over integer unknowns, all of them polynomials of names.

    Divisions and extrema are unknowns of their own (`#1`), each with its definition.  Equalities
    are solved as they come, so that no solved name occurs anywhere but in `solution`.
    """

    def __init__(self, assumptions: Assumptions) -> None:
        self.assumptions = assumptions
        self.contradictory = False
        self.count = 0
        self.definitions: dict[str, _Definition] = {}
        self.index: dict[_Definition, str] = {}
        self.solution: dict[str, Size] = {}
        self.known: set[str] = set()
        self.nonnegative: list[Dim] = []
        self.zero: list[Dim] = []
        self.distinct: list[Dim] = []
        self.divided: set[str] = set()

    def copy(self) -> _System:
        other = _System(self.assumptions)
        other.contradictory = self.contradictory
        other.count = self.count
        other.definitions = dict(self.definitions)
        other.index = dict(self.index)
        other.solution = dict(self.solution)
        other.known = set(self.known)
        other.nonnegative = list(self.nonnegative)
        other.zero = list(self.zero)
        other.distinct = list(self.distinct)
        other.divided = set(self.divided)
        return other

    def add(self, fact: Fact) -> None:
        gap = self.lift(fact.right) - self.lift(fact.left)
        gap = dims.substitute(gap, self.solution)
        match fact.relation:
            case "==":
                self.solve([gap])
            case "!=":
                self.add_distinct(gap)
            case "<=":
                self.add_nonnegative(gap)
            case "<":
                self.add_nonnegative(gap - 1)

    def add_nonnegative(self, size: Size) -> None:
        if isinstance(size, int):
            self.contradictory |= size < 0
            return
        size = _tightened(size)
        if size not in self.nonnegative:
            self.nonnegative.append(size)

    def add_distinct(self, size: Size) -> None:
        if isinstance(size, int):
            self.contradictory |= size == 0
        else:
            self.distinct.append(size)

    def lift(self, size: Size) -> Size:
        """The size over unknowns only."""
        total: Size = 0
        for monomial, coefficient in dims.as_terms(size):
            product: Size = coefficient
            for atom in monomial:
                product = product * self.lift_atom(atom)
            total = total + product
        return total

    def lift_atom(self, atom: Atom) -> Size:
        if atom.kind != "name":
            args = [self.lift(arg) for arg in atom.args]
            return self.operate(atom.kind, [dims.substitute(arg, self.solution) for arg in args])
        unknown = dims.variable(atom)
        if atom not in self.known:
            self.known.add(atom)
            self.add_nonnegative(unknown - self.assumptions.lower_bound(atom))
        return self.solution.get(atom, unknown)

    def operate(self, kind: Kind, args: list[Size]) -> Size:
        if kind == "%":
            return args[0] - args[1] * self.operate("//", args)
        if kind == "//" and args[1] == 0:
            self.contradictory = True
            return 0
        return self.named(dims.apply(kind, args))

    def named(self, size: Size) -> Size:
        """Replace operations on unknowns by the unknowns that stand for them."""
        total: Size = 0
        for monomial, coefficient in dims.as_terms(size):
            product: Size = coefficient
            for atom in monomial:
                if atom.kind == "name":
                    product = product * dims.variable(atom)
                else:
                    whole, definition = _definition(atom)
                    product = product * (whole + self.unknown(definition))
            total = total + product
        return total

    def unknown(self, definition: _Definition) -> Size:
        existing = self.index.get(definition)
        if existing is not None:
            return self.solution.get(existing, dims.variable(existing))
        unknown = self.fresh()
        self.index[definition] = str(unknown)
        self.definitions[str(unknown)] = definition
        kind, args = definition
        if kind == "//":
            self.bound_quotient(unknown, *args)
        for arg in args if kind != "//" else ():
            self.add_nonnegative(arg - unknown if kind == "min" else unknown - arg)
        return unknown

    def fresh(self) -> Dim:
        self.count += 1
        if self.count > _MAX_VARIABLES:
            raise _GiveUp
        return dims.variable(f"#{self.count}")

    def bound_quotient(self, quotient: Dim, dividend: Size, divisor: Size) -> None:
        if not self.entails(divisor - 1):
            return
        rest = dividend - divisor * quotient
        self.add_nonnegative(rest)
        self.add_nonnegative(divisor - 1 - rest)
        if isinstance(divisor, Dim) and self.entails(dividend):
            self.add_nonnegative(quotient)
            self.add_nonnegative(dividend - quotient)

    def entails(self, size: Size) -> bool:
        """Whether a size over unknowns is nonnegative by what is known so far."""
        if isinstance(size, int):
            return size >= 0
        if size in self.nonnegative:
            return True
        beyond = -size - 1
        return isinstance(beyond, Dim) and _infeasible([*self.nonnegative, beyond], self.zero)

    def solve(self, equations: list[Size]) -> None:
        """Solve equations `size == 0` over the integers, and substitute the solutions."""
        steps = 0
        while equations:
            steps += 1
            if steps > _MAX_EQUATIONS:
                raise _GiveUp
            equation = dims.substitute(equations.pop(), self.solution)
            if isinstance(equation, int):
                self.contradictory |= equation != 0
                continue
            common = _content(equation)
            if common > 1:
                if _constant(equation) % common:
                    self.contradictory = True
                    return
                equation = dims.from_terms({m: c // common for m, c in equation.terms})
            chosen = _pivot(equation)
            if chosen is None:
                if isinstance(equation, Dim) and equation not in self.zero:
                    self.zero.append(equation)
                continue
            target, leading = chosen
            others = {m: c for m, c in dims.as_terms(equation) if m != (target,)}
            if leading < 0:
                others = {monomial: -c for monomial, c in others.items()}
            leading = abs(leading)
            value = dims.from_terms({m: -(c // leading) for m, c in others.items()})
            if leading != 1:
                if value == 0:
                    if isinstance(equation, Dim) and equation not in self.zero:
                        self.zero.append(equation)
                    continue
                unknown = self.fresh()
                value = value + unknown
                rest = dims.from_terms({m: c % leading for m, c in others.items()})
                equations.append(rest + leading * unknown)
            equations += self.replace(target, value)

    def replace(self, target: str, value: Size) -> list[Size]:
        """Substitute one unknown everywhere; the answer is the equations this brings about."""
        env = {target: value}
        self.solution = {key: dims.substitute(old, env) for key, old in self.solution.items()}
        self.solution[target] = value
        kept, self.nonnegative = self.nonnegative, []
        changed: list[Dim] = []
        for size in kept:
            (changed if target in dims.names(size) else self.nonnegative).append(size)
        for size in changed:
            self.add_nonnegative(dims.substitute(size, env))
        equations: list[Size] = [size for size in self.zero if target in dims.names(size)]
        self.zero = [size for size in self.zero if target not in dims.names(size)]
        distinct, self.distinct = self.distinct, []
        for size in distinct:
            self.add_distinct(dims.substitute(size, env))
        for key, definition in list(self.definitions.items()):
            if any(target in dims.names(arg) for arg in definition[1]):
                del self.definitions[key], self.index[definition]
                equations += self.redefine(key, definition, env)
        return equations

    def redefine(self, key: str, definition: _Definition, env: Mapping[str, Size]) -> list[Size]:
        kind, args = definition
        args = tuple([dims.substitute(arg, self.solution) for arg in args])
        if kind == "//" and args[1] == 0:
            self.contradictory = True
            return []
        result = dims.apply(kind, args)
        atom = dims.single_atom(result)
        if atom is not None and atom.kind != "name":
            whole, renewed = _definition(atom)
            if whole == 0 and renewed not in self.index and key not in self.solution:
                self.index[renewed] = key
                self.definitions[key] = renewed
                return []
        return [dims.variable(key) - self.named(result)]

    def refuted(self) -> bool:
        """Whether no integers satisfy the constraints, as far as can be shown."""
        pending: list[_System] = [self]
        for _ in range(_MAX_BRANCHES):
            if not pending:
                return True
            system = pending.pop()
            if system.contradictory or _infeasible(system.nonnegative, system.zero):
                continue
            branches = system.branches()
            if not branches:
                return False
            pending += branches
        return not pending

    def branches(self) -> list[_System]:
        """Systems that together cover this one, one choice made in each."""
        for key, (kind, args) in self.definitions.items():
            if kind == "min" or kind == "max":
                return [self.choice(key, kind, args, arg) for arg in args]
        if self.distinct:
            size = self.distinct.pop()
            return [self.with_bound(size - 1), self.with_bound(-size - 1)]
        for key, (kind, args) in self.definitions.items():
            if kind == "//" and isinstance(args[1], Dim) and key not in self.divided:
                self.divided.add(key)
                unknown = self.solution.get(key, dims.variable(key))
                none = self.copy()
                none.solve([unknown])
                return [none, self.with_bound(unknown - 1), self.with_bound(-1 - unknown)]
        for dividend, divisor in self.quotients():
            if isinstance(divisor, int) and 0 < divisor <= _MAX_RESIDUES:
                for monomial, _ in dims.as_terms(dividend):
                    if len(monomial) > 1:
                        return self.residues(monomial[0], divisor)
        return []

    def quotients(self) -> list[tuple[Size, ...]]:
        return [args for kind, args in self.definitions.values() if kind == "//"]

    def with_bound(self, size: Size) -> _System:
        branch = self.copy()
        branch.add_nonnegative(size)
        return branch

    def choice(self, key: str, kind: Kind, args: tuple[Size, ...], chosen: Size) -> _System:
        """The case where one operand is the minimum or maximum."""
        branch = self.copy()
        del branch.definitions[key]
        for other in args:
            branch.add_nonnegative(other - chosen if kind == "min" else chosen - other)
        branch.solve([dims.variable(key) - chosen])
        return branch

    def residues(self, name: str, modulus: int) -> list[_System]:
        """The cases of what a name leaves when divided by a small number."""
        branches: list[_System] = []
        for residue in range(modulus):
            branch = self.copy()
            branch.solve([dims.variable(name) - modulus * branch.fresh() - residue])
            branches.append(branch)
        return branches


def _definition(atom: Atom) -> tuple[Size, _Definition]:
    """Split an operation into a whole part and a definition that equal operations share."""
    if atom.kind != "//" or not isinstance(atom.args[1], int):
        return 0, (atom.kind, atom.args)
    dividend, divisor = atom.args[0], atom.args[1]
    terms = dims.as_terms(dividend)
    whole = dims.from_terms({monomial: c // divisor for monomial, c in terms})
    rest = dims.from_terms({monomial: c % divisor for monomial, c in terms})
    return whole, ("//", (rest, divisor))


def _constant(size: Size) -> int:
    terms = dims.as_terms(size)
    return terms[-1][1] if terms and not terms[-1][0] else 0


def _content(size: Dim) -> int:
    return gcd(*[coefficient for monomial, coefficient in size.terms if monomial])


def _tightened(size: Dim) -> Dim:
    """Divide `size >= 0` by what all its coefficients share, the constant rounded down."""
    common = _content(size)
    if common == 1:
        return size
    return Dim(tuple([(m, c // common) for m, c in size.terms if m or c // common]))


def _pivot(equation: Size) -> tuple[str, int] | None:
    """The name that an equation determines best: linear, and of the smallest coefficient."""
    best: tuple[str, int] | None = None
    terms = dims.as_terms(equation)
    for monomial, coefficient in terms:
        if len(monomial) != 1 or (best is not None and abs(best[1]) <= abs(coefficient)):
            continue
        name = monomial[0]
        if sum(name in other for other, _ in terms) == 1:
            best = str(name), coefficient
    return best


def _infeasible(nonnegative: Iterable[Dim], zero: Iterable[Dim]) -> bool:
    """Whether no integers make all of these nonnegative and all of those zero."""
    constraints: list[Size] = [*nonnegative]
    for size in zero:
        constraints += (size, -size)
    factors = {
        name
        for size in constraints
        for monomial, _ in dims.as_terms(size)
        if len(monomial) > 1
        for name in monomial
    }
    if factors:
        shifted = _shifted(constraints, factors)
        if shifted is None:
            return True
        constraints = shifted
    return _eliminate(constraints)


def _shifted(constraints: list[Size], factors: set[Atom]) -> list[Size] | None:
    """Restate constraints so that factors start at 0, and add what follows for their products."""
    bounds = _bounds(constraints)
    if bounds is None:
        return None
    lower, upper = bounds
    env: dict[str, Size] = {}
    signed: set[str] = set()
    for factor in sorted(factors):
        if factor in lower:
            env[factor] = dims.variable(factor) + lower[factor]
        elif factor in upper:
            env[factor] = upper[factor] - dims.variable(factor)
        else:
            continue
        signed.add(factor)
    found = [dims.substitute(size, env) for size in constraints]
    for name in sorted(signed & lower.keys() & upper.keys()):
        ceiling = upper[name] - lower[name] - dims.variable(name)
        if ceiling not in found:
            found.append(ceiling)
    products = _products(found, signed)
    monomials = {m: 0 for size in (*found, *products) for m, _ in dims.as_terms(size)}
    for monomial in monomials:
        if monomial and all(f in signed or monomial.count(f) % 2 == 0 for f in monomial):
            products.append(dims.from_terms({monomial: 1}))
    return found + products


def _products(constraints: list[Size], signed: set[str]) -> list[Size]:
    """Constraints times nonnegative names, where that speaks of products that already occur."""
    monomials = {m for size in constraints for m, _ in dims.as_terms(size) if len(m) > 1}
    products: list[Size] = []
    trivial = {dims.variable(name) for name in signed}
    for size in constraints:
        terms = dims.as_terms(size)
        if not 1 <= len(terms) <= 5 or len(terms[0][0]) > 2 or size in trivial:
            continue
        for factor in sorted(signed):
            if len(products) >= _MAX_PRODUCTS:
                return products
            product = size * dims.variable(factor)
            if any(monomial in monomials for monomial, _ in dims.as_terms(product)):
                products.append(product)
    if len(monomials) >= _MIN_SQUARE:
        linear = [s for s in constraints if isinstance(s, Dim) and 1 < len(s.terms) < 4]
        linear = [s for s in linear if len(s.terms[0][0]) == 1 and s not in trivial]
        for left, right in combinations(linear[:_MAX_FACTORS], 2):
            product = left * right
            if all(m in monomials for m, _ in dims.as_terms(product) if len(m) > 1):
                products.append(product)
    return products


def _bounds(constraints: list[Size]) -> tuple[dict[str, int], dict[str, int]] | None:
    """Bounds of names by interval propagation through the linear constraints; None if empty."""
    lower: dict[str, int] = {}
    upper: dict[str, int] = {}
    linear = [dims.as_terms(s) for s in constraints if len(dims.as_terms(s)[0][0]) == 1]
    for _ in range(4):
        changed = False
        for terms in linear:
            for (target, *_), coefficient in ((m, c) for m, c in terms if m):
                most = 0
                for monomial, c in terms:
                    if not monomial:
                        most += c
                    elif monomial[0] != target:
                        side = upper if c > 0 else lower
                        if monomial[0] not in side:
                            break
                        most += c * side[monomial[0]]
                else:
                    bound = -(most // coefficient) if coefficient > 0 else most // -coefficient
                    side, sign = (lower, 1) if coefficient > 0 else (upper, -1)
                    if target not in side or sign * bound > sign * side[target]:
                        side[target] = bound
                        changed = True
                    if target in lower and target in upper and lower[target] > upper[target]:
                        return None
        if not changed:
            break
    return lower, upper


_Row: TypeAlias = tuple[tuple[int, int], ...]


def _eliminate(constraints: Iterable[Size]) -> bool:
    """Fourier-Motzkin elimination with rounding: whether `size >= 0` for all has no solution.

    Monomials count as unknowns.  Rows are kept by their coefficients, each with its constant.
    """
    columns: dict[Monomial, int] = {}
    rows: dict[_Row, int] = {}
    for size in constraints:
        row: list[tuple[int, int]] = []
        constant = 0
        for monomial, coefficient in dims.as_terms(size):
            if monomial:
                row.append((columns.setdefault(monomial, len(columns)), coefficient))
            else:
                constant = coefficient
        if _conflicts(rows, row, constant):
            return True
    while rows:
        signs: dict[int, tuple[int, int]] = {}
        for row_key in rows:
            for column, c in row_key:
                above, below = signs.get(column, (0, 0))
                signs[column] = (above + 1, below) if c > 0 else (above, below + 1)
        column, (above, below) = min(signs.items(), key=_growth)
        if len(rows) + above * below - above - below > _MAX_ROWS:
            return False
        touching = [(key, dict(key)) for key in rows if any(v == column for v, _ in key)]
        split = [(key_map, rows.pop(key)) for key, key_map in touching]
        for lower, low in split:
            if lower[column] < 0:
                continue
            for upper, high in split:
                if upper[column] > 0:
                    continue
                common = gcd(lower[column], upper[column])
                p, q = -upper[column] // common, lower[column] // common
                combined = {v: c * p for v, c in lower.items()}
                for v, c in upper.items():
                    combined[v] = combined.get(v, 0) + c * q
                remaining = [(v, c) for v, c in combined.items() if c]
                if _conflicts(rows, remaining, low * p + high * q):
                    return True
    return False


def _growth(item: tuple[int, tuple[int, int]]) -> int:
    above, below = item[1]
    return above * below - above - below


def _conflicts(rows: dict[_Row, int], row: list[tuple[int, int]], constant: int) -> bool:
    """Add a row; whether it cannot hold, alone or beside its opposite."""
    if not row:
        return constant < 0
    common = gcd(*[c for _, c in row])
    row.sort()
    if common > 1:
        row = [(v, c // common) for v, c in row]
        constant //= common
    key = tuple(row)
    if constant < rows.get(key, constant + 1):
        rows[key] = constant
    opposite = rows.get(tuple([(v, -c) for v, c in row]))
    return opposite is not None and opposite + constant < 0


def _solved(assumptions: Assumptions, facts: Iterable[Fact]) -> _System:
    """The facts as constraints; a fact that is too large to reason about is left out."""
    system = _System(assumptions)
    for fact in sorted(facts, key=lambda fact: fact.relation == "!="):
        attempt = system.copy()
        try:
            attempt.add(fact)
        except (_GiveUp, DimTooLarge):
            continue
        system = attempt
    return system


_SEARCH_STEPS = 30_000
_PROBE_STEPS = 5000
_SAMPLE_STEPS = 400
_PATTERNS = (
    (1, 2, 4, 7, 11, 16, 22, 29, 37, 46),
    (16, 9, 25, 4, 36, 1, 49, 13, 30, 21),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)
_PROBES = (0, 1, 2, 3, 5, 7, 15, 31, 63, 127, 255, 1023, 4095, 65535, 2**20, 2**31)


class _Exhausted(Exception):
    """A search has used up its steps."""


class _Search:
    """A search for the smallest sizes that satisfy connected facts and refute a claim.

    It goes by total size.  Names that a fact defines by others are computed, not tried.
    """

    def __init__(
        self, assumptions: Assumptions, facts: list[Fact], claim: Fact | None, steps: int
    ) -> None:
        self.claim = claim
        self.steps = steps
        mentioned = frozenset[str]().union(*(fact.names() for fact in facts))
        self.names = sorted(mentioned | claim.names() if claim else mentioned)
        self.floor = {name: assumptions.lower_bound(name) for name in self.names}
        self.defined: dict[str, Size] = {}
        self.order = self._order(facts)
        place = {name: position for position, name in enumerate(self.order)}
        self.checks: list[list[Fact]] = [[] for _ in self.order]
        self.ground = [fact for fact in facts if not fact.names()]
        for fact in facts:
            if fact.names():
                self.checks[max(place[name] for name in fact.names())].append(fact)
        self.filters = {
            name: [fact for fact in facts if fact.names() == frozenset((name,))]
            for name in self.names
        }
        self._raise_floors()
        self.values: dict[str, list[int]] = {name: [] for name in self.names}
        self.reached = {name: self.floor[name] for name in self.names}

    def smallest(self) -> dict[str, int] | None:
        """The smallest refutation that the search finds."""
        if not all(fact.holds({}) for fact in self.ground):
            return None
        try:
            if not self.order:
                return {} if self._refuted({}) else None
            base = sum(self.floor.values())
            for total in range(base, base + self.steps):
                self.steps -= 1
                found = list(self._assign({}, 0, total))
                if found:
                    return min(found, key=lambda env: [env[name] for name in self.names])
                if len(self.order) == len(self.defined):
                    break
        except _Exhausted:
            pass
        self.steps = _PROBE_STEPS
        try:
            return self._probe()
        except _Exhausted:
            return None

    def _order(self, facts: list[Fact]) -> list[str]:
        """Names with those that others define after what defines them."""
        for fact in facts:
            if fact.relation != "==":
                continue
            gap = fact.left - fact.right
            for monomial, c in dims.as_terms(gap):
                name = monomial[0] if len(monomial) == 1 else None
                if name is None or name.kind != "name" or abs(c) != 1:
                    continue
                value = dims.variable(name) - gap if c == 1 else dims.variable(name) + gap
                if name not in self.defined and not self._depends(value, name):
                    self.defined[str(name)] = value
                    break
        order = [name for name in self.names if name not in self.defined]
        waiting = [name for name in self.names if name in self.defined]
        while waiting:
            ready = next(n for n in waiting if dims.names(self.defined[n]) <= set(order))
            order.append(ready)
            waiting.remove(ready)
        return order

    def _depends(self, size: Size, name: str) -> bool:
        """Whether a size mentions a name, also through what defines its names."""
        mentioned = dims.names(size)
        if name in mentioned:
            return True
        return any(
            self._depends(self.defined[other], name) for other in mentioned & self.defined.keys()
        )

    def _raise_floors(self) -> None:
        for name, facts in self.filters.items():
            for fact in facts:
                if isinstance(fact.left, int) and _explicitly_bounded(fact):
                    least = fact.left + (fact.relation == "<")
                    self.floor[name] = max(self.floor[name], least)

    def _step(self, weight: int = 1) -> None:
        self.steps -= weight
        if self.steps < 0:
            raise _Exhausted

    def _holds(self, facts: Iterable[Fact], env: dict[str, int]) -> bool:
        for fact in facts:
            self._step(_weight(fact))
            if not fact.holds(env):
                return False
        return True

    def _refuted(self, env: dict[str, int]) -> bool:
        if self.claim is None:
            return True
        self._step(_weight(self.claim))
        return not self.claim.holds(env)

    def _candidates(self, name: str, most: int) -> Iterator[int]:
        """The values of a name up to a bound that pass the facts about it alone."""
        values = self.values[name]
        yield from values
        while self.reached[name] <= most:
            self._step()
            value = self.reached[name]
            self.reached[name] += 1
            if self._holds(self.filters[name], {name: value}):
                values.append(value)
                yield value

    def _assign(self, env: dict[str, int], position: int, total: int) -> Iterator[dict[str, int]]:
        """The refutations of this total that extend a partial assignment."""
        self._step()
        if position == len(self.order):
            if total == 0 and self._refuted(env):
                yield dict(env)
            return
        name = self.order[position]
        rest = sum(self.floor[other] for other in self.order[position + 1 :])
        most = total - rest
        values: Iterable[int]
        if name in self.defined:
            value = self._defined_value(name, env)
            values = () if value is None else (value,)
        elif position == len(self.order) - 1:
            values = (most,)
        else:
            values = self._candidates(name, most)
        for value in values:
            if value > most:
                break
            if value < self.floor[name]:
                continue
            env[name] = value
            self._step()
            if self._holds(self.checks[position], env):
                yield from self._assign(env, position + 1, total - value)
            del env[name]

    def _defined_value(self, name: str, env: dict[str, int]) -> int | None:
        try:
            return dims.evaluate(self.defined[name], env)
        except ZeroDivisionError:
            return None

    def _probe(self) -> dict[str, int] | None:
        """Try large sizes, all names at once and one at a time; not all of them can be searched."""
        free = [name for name in self.order if name not in self.defined]
        for raised in (*([name] for name in free), free):
            for step in _PROBES:
                found = self._completed({name: step if name in raised else 0 for name in free})
                if found is None:
                    continue
                try:
                    return self._shrunk(found, free)
                except _Exhausted:
                    return found
        return None

    def _completed(self, steps: dict[str, int]) -> dict[str, int] | None:
        env: dict[str, int] = {}
        for position, name in enumerate(self.order):
            if name in self.defined:
                value = self._defined_value(name, env)
                if value is None or value < self.floor[name]:
                    return None
                env[name] = value
            else:
                start = self.floor[name] + steps[name]
                for value in range(start, start + 64):
                    if self._holds(self.filters[name], {name: value}):
                        break
                else:
                    return None
                env[name] = value
            if not self._holds(self.checks[position], env):
                return None
        return env if self._refuted(env) else None

    def sample(self, pattern: tuple[int, ...]) -> dict[str, int] | None:
        """Sizes that lie above the smallest by the steps of a pattern, if they are admitted."""
        if not all(fact.holds({}) for fact in self.ground):
            return None
        self.steps = _SAMPLE_STEPS
        free = [name for name in self.order if name not in self.defined]
        for above in (pattern, pattern[1:], sorted(pattern), sorted(pattern, reverse=True)):
            steps = {name: above[i] if i < len(above) else 0 for i, name in enumerate(free)}
            try:
                found = self._completed(steps)
            except _Exhausted:
                return None
            if found is not None:
                return found
        return None

    def _shrunk(self, found: dict[str, int], free: list[str]) -> dict[str, int]:
        """Make a refutation smaller, one name after the other, by halving the steps."""
        for name in free:
            steps: dict[str, int] = {other: found[other] - self.floor[other] for other in free}
            width = steps[name]
            while width > 0:
                trial = dict(steps)
                trial[name] = steps[name] - width
                smaller = self._completed(trial) if trial[name] >= 0 else None
                if smaller is not None and smaller[name] < found[name]:
                    found = smaller
                    steps = {other: found[other] - self.floor[other] for other in free}
                    width = min(width, steps[name])
                else:
                    width //= 2
        return found


def _weight(fact: Fact) -> int:
    """About how long a fact takes to evaluate."""
    return 1 + (len(dims.as_terms(fact.left)) + len(dims.as_terms(fact.right))) // 4


def _samples(assumptions: Assumptions, facts: list[Fact]) -> list[dict[str, int]]:
    """An admitted assignment for each pattern, where they are easily found; else none at all."""
    search = _Search(assumptions, facts, None, _SAMPLE_STEPS)
    found = [search.sample(pattern) for pattern in _PATTERNS]
    spare = next((part for part in reversed(found) if part is not None), None)
    if spare is None:
        spare = search.smallest()
    return [] if spare is None else [spare if part is None else part for part in found]
