"""Constraints: facts restated over integer unknowns, all equalities solved away.

Every division, minimum and maximum becomes an unknown with bounds and a definition, so that only
polynomials remain.  Equalities are solved over the integers as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.dims import Dim, DimTooLarge, Factor, Kind, Size
from pscdsl.typing.elimination import infeasible
from pscdsl.typing.facts import Fact

_MAX_UNKNOWNS = 60
_MAX_EQUATIONS = 200

Definition: TypeAlias = tuple[Kind, tuple[Size, ...]]
"""What an unknown stands for: an operation and its operands."""


class ProofTooLarge(Exception):
    """A proof attempt has grown past its bounds."""


class Constraints:
    """Constraints over integer unknowns, all of them polynomials of names.

    The names of sizes are unknowns; operations are named `#1`, `#2`, ...  No name that has a
    `solution` occurs anywhere else.
    """

    def __init__(self, lower_bound: Callable[[str], int]) -> None:
        self.lower_bound = lower_bound
        self.contradictory = False
        self.count = 0
        self.definitions: dict[str, Definition] = {}
        self.unknowns: dict[Definition, str] = {}
        self.solution: dict[str, Size] = {}
        self.seen: set[str] = set()
        self.nonnegative: list[Dim] = []
        self.zero: list[Dim] = []
        self.distinct: list[Dim] = []

    def copy(self) -> Constraints:
        """The same constraints, to be added to independently."""
        other = Constraints(self.lower_bound)
        other.contradictory = self.contradictory
        other.count = self.count
        other.definitions = dict(self.definitions)
        other.unknowns = dict(self.unknowns)
        other.solution = dict(self.solution)
        other.seen = set(self.seen)
        other.nonnegative = list(self.nonnegative)
        other.zero = list(self.zero)
        other.distinct = list(self.distinct)
        return other

    def add(self, fact: Fact) -> None:
        """Add one fact."""
        gap = self._over_unknowns(fact.right) - self._over_unknowns(fact.left)
        gap = dims.substitute(gap, self.solution)
        match fact.relation:
            case "==":
                self.solve([gap])
            case "!=":
                self._add_distinct(gap)
            case "<=":
                self.add_nonnegative(gap)
            case "<":
                self.add_nonnegative(gap - 1)

    def add_nonnegative(self, size: Size) -> None:
        """Add `size >= 0`, over unknowns."""
        if isinstance(size, int):
            self.contradictory |= size < 0
            return
        size = _tightened(size)
        if size not in self.nonnegative:
            self.nonnegative.append(size)

    def solve(self, equations: list[Size]) -> None:
        """Solve equations `size == 0`, over unknowns, and substitute the solutions."""
        steps = 0
        while equations:
            steps += 1
            if steps > _MAX_EQUATIONS:
                raise ProofTooLarge
            equation = dims.substitute(equations.pop(), self.solution)
            if isinstance(equation, int):
                self.contradictory |= equation != 0
                continue
            common = _content(equation)
            if common > 1:
                if _constant(equation) % common:
                    self.contradictory = True
                    return
                equation = Dim(tuple([(m, c // common) for m, c in equation.terms]))
            solved = self._solved_for_one(equation)
            if solved is not None:
                name, value, remaining = solved
                equations += remaining
                equations += self._replace(name, value)
            elif equation not in self.zero:
                self.zero.append(equation)

    def value(self, unknown: str) -> Size:
        """What is known to equal an unknown; the unknown itself if nothing is."""
        return self.solution.get(unknown, dims.variable(unknown))

    def fresh(self) -> Dim:
        """An unknown that occurs nowhere yet."""
        self.count += 1
        if self.count > _MAX_UNKNOWNS:
            raise ProofTooLarge
        return dims.variable(f"#{self.count}")

    def _add_distinct(self, size: Size) -> None:
        if isinstance(size, int):
            self.contradictory |= size == 0
        else:
            self.distinct.append(size)

    def _over_unknowns(self, size: Size) -> Size:
        total: Size = 0
        for monomial, coefficient in dims.as_terms(size):
            product: Size = coefficient
            for factor in monomial:
                product = product * self._lifted(factor)
            total = total + product
        return total

    def _lifted(self, factor: Factor) -> Size:
        """A name as an unknown, with its bound; an operation with its operands over unknowns."""
        if factor.kind == "name":
            if factor not in self.seen:
                self.seen.add(factor)
                self.add_nonnegative(dims.variable(factor) - self.lower_bound(factor))
            return self.value(factor)
        args = [self._over_unknowns(arg) for arg in factor.args]
        return self._operate(factor.kind, [dims.substitute(arg, self.solution) for arg in args])

    def _operate(self, kind: Kind, args: list[Size]) -> Size:
        if kind == "%":
            return args[0] - args[1] * self._operate("//", args)
        if kind == "//" and args[1] == 0:
            self.contradictory = True
            return 0
        return self._named(dims.apply(kind, args))

    def _named(self, size: Size) -> Size:
        """Replace operations on unknowns by the unknowns that stand for them."""
        total: Size = 0
        for monomial, coefficient in dims.as_terms(size):
            product: Size = coefficient
            for factor in monomial:
                if factor.kind == "name":
                    product = product * dims.variable(factor)
                else:
                    whole, definition = _definition(factor)
                    product = product * (whole + self._defined(definition))
            total = total + product
        return total

    def _defined(self, definition: Definition) -> Size:
        """The unknown of a definition, or what solves it."""
        existing = self.unknowns.get(definition)
        if existing is not None:
            return self.value(existing)
        unknown = self.fresh()
        self.unknowns[definition] = str(unknown)
        self.definitions[str(unknown)] = definition
        kind, args = definition
        if kind == "//":
            self._bound_quotient(unknown, *args)
        for arg in args if kind != "//" else ():
            self.add_nonnegative(arg - unknown if kind == "min" else unknown - arg)
        return unknown

    def _bound_quotient(self, quotient: Dim, dividend: Size, divisor: Size) -> None:
        if not self._entails(divisor - 1):
            return
        rest = dividend - divisor * quotient
        self.add_nonnegative(rest)
        self.add_nonnegative(divisor - 1 - rest)
        if isinstance(divisor, Dim) and self._entails(dividend):
            self.add_nonnegative(quotient)
            self.add_nonnegative(dividend - quotient)

    def _entails(self, size: Size) -> bool:
        """Whether a size over unknowns is nonnegative by what is known so far."""
        if isinstance(size, int):
            return size >= 0
        if size in self.nonnegative:
            return True
        beyond = -size - 1
        return isinstance(beyond, Dim) and infeasible([*self.nonnegative, beyond], self.zero)

    def _solved_for_one(self, equation: Dim) -> tuple[str, Size, list[Size]] | None:
        """A name, its value by an equation, and what then remains to be solved.

        Where the name has a coefficient `c` other than 1, its value is rounded and gets a fresh
        unknown, which is to make up for the roundings: they and `c` times it must add up to 0.
        """
        pivot = _pivot(equation)
        if pivot is None:
            return None
        name, c = pivot
        sign, c = (1, c) if c > 0 else (-1, -c)
        others = {m: sign * other for m, other in equation.terms if m != (name,)}
        value = dims.from_terms({m: -(other // c) for m, other in others.items()})
        if c == 1:
            return name, value, []
        if value == 0:
            return None
        unknown = self.fresh()
        rest = dims.from_terms({m: other % c for m, other in others.items()})
        return name, value + unknown, [rest + c * unknown]

    def _replace(self, name: str, value: Size) -> list[Size]:
        """Substitute one unknown everywhere; the answer is the equations this brings about."""
        env = {name: value}
        self.solution = {key: dims.substitute(old, env) for key, old in self.solution.items()}
        self.solution[name] = value
        kept, self.nonnegative = self.nonnegative, []
        changed: list[Dim] = []
        for size in kept:
            (changed if name in dims.names(size) else self.nonnegative).append(size)
        for size in changed:
            self.add_nonnegative(dims.substitute(size, env))
        equations: list[Size] = [size for size in self.zero if name in dims.names(size)]
        self.zero = [size for size in self.zero if name not in dims.names(size)]
        distinct, self.distinct = self.distinct, []
        for size in distinct:
            self._add_distinct(dims.substitute(size, env))
        for unknown, definition in list(self.definitions.items()):
            if any(name in dims.names(arg) for arg in definition[1]):
                del self.definitions[unknown], self.unknowns[definition]
                equations += self._redefine(unknown, definition)
        return equations

    def _redefine(self, unknown: str, definition: Definition) -> list[Size]:
        """Define an unknown anew by what its operands have become, or give an equation for it."""
        kind, args = definition
        args = tuple([dims.substitute(arg, self.solution) for arg in args])
        if kind == "//" and args[1] == 0:
            self.contradictory = True
            return []
        result = dims.apply(kind, args)
        factor = dims.single_factor(result)
        if factor is not None and factor.kind != "name":
            whole, renewed = _definition(factor)
            if whole == 0 and renewed not in self.unknowns and unknown not in self.solution:
                self.unknowns[renewed] = unknown
                self.definitions[unknown] = renewed
                return []
        return [dims.variable(unknown) - self._named(result)]


def constraints_of(facts: Iterable[Fact], lower_bound: Callable[[str], int]) -> Constraints:
    """The facts as constraints; a fact that is too large to reason about is left out."""
    constraints = Constraints(lower_bound)
    for fact in sorted(facts, key=lambda fact: fact.relation == "!="):
        attempt = constraints.copy()
        try:
            attempt.add(fact)
        except (ProofTooLarge, DimTooLarge):
            continue
        constraints = attempt
    return constraints


def _definition(operation: Factor) -> tuple[Size, Definition]:
    """Split an operation into a whole part and a definition that equal operations share."""
    if operation.kind != "//" or not isinstance(operation.args[1], int):
        return 0, (operation.kind, operation.args)
    dividend, divisor = operation.args[0], operation.args[1]
    terms = dims.as_terms(dividend)
    whole = dims.from_terms({monomial: c // divisor for monomial, c in terms})
    rest = dims.from_terms({monomial: c % divisor for monomial, c in terms})
    return whole, ("//", (rest, divisor))


def _constant(size: Dim) -> int:
    monomial, coefficient = size.terms[-1]
    return 0 if monomial else coefficient


def _content(size: Dim) -> int:
    return gcd(*[coefficient for monomial, coefficient in size.terms if monomial])


def _tightened(size: Dim) -> Dim:
    """Divide `size >= 0` by what all its coefficients share, the constant rounded down."""
    common = _content(size)
    if common == 1:
        return size
    return Dim(tuple([(m, c // common) for m, c in size.terms if m or c // common]))


def _pivot(equation: Dim) -> tuple[str, int] | None:
    """The name that an equation determines best: linear, and of the smallest coefficient."""
    best: tuple[str, int] | None = None
    for monomial, coefficient in equation.terms:
        if len(monomial) != 1 or (best is not None and abs(best[1]) <= abs(coefficient)):
            continue
        name = monomial[0]
        if sum(name in other for other, _ in equation.terms) == 1:
            best = str(name), coefficient
    return best
