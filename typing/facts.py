"""Facts about sizes, and their consequences: Fourier-Motzkin elimination over integers, cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from math import gcd
from typing import Final, Literal, TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.dims import Dim, DimSyntaxError, DimTooLarge, Factor, Kind, Monomial, Size, Term

# Facts about sizes: relations between two of them, read from text and shown as text.


Relation: TypeAlias = Literal["==", "!=", "<=", "<"]

_OPPOSITE: dict[Relation, Relation] = {"==": "!=", "!=": "==", "<=": "<", "<": "<="}
_FLIPPED = {"==": "==", "!=": "!=", "<=": ">=", "<": ">"}
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>|=")


class Fact:
    """A relation between two sizes; divisibility is `Fact("==", n % 8, 0)`.  Immutable."""

    __slots__ = ("_hash", "left", "relation", "right")

    def __init__(self, relation: Relation, left: Size, right: Size) -> None:
        self.relation: Final = relation
        self.left: Final = left
        self.right: Final = right
        self._hash = hash((relation, left, right))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Fact)
            and self.relation == other.relation
            and self.left == other.left
            and self.right == other.right
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Fact], tuple[Relation, Size, Size]]:
        return Fact, (self.relation, self.left, self.right)

    def __repr__(self) -> str:
        return f"Fact({self})"

    def __str__(self) -> str:
        if isinstance(self.left, int) and not isinstance(self.right, int):
            return f"{_spaced(self.right)} {_FLIPPED[self.relation]} {self.left}"
        return f"{_spaced(self.left)} {self.relation} {_spaced(self.right)}"

    def negated(self) -> Fact:
        """Return the fact that holds exactly where this one does not."""
        if self.relation == "==" or self.relation == "!=":
            return Fact(_OPPOSITE[self.relation], self.left, self.right)
        return Fact(_OPPOSITE[self.relation], self.right, self.left)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Return whether the fact is true of these numbers; False if it divides by zero."""
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
        """Return the names mentioned on either side."""
        return dims.names(self.left) | dims.names(self.right)

    def divisors(self) -> Iterator[Dim]:
        """Yield the sizes that either side divides by, at any depth; constants left out."""
        pending = [self.left, self.right]
        while pending:
            for monomial, _ in dims.as_terms(pending.pop()):
                for factor in monomial:
                    pending.extend(factor.args)
                    if factor.kind in ("//", "%") and isinstance(factor.args[1], Dim):
                        yield factor.args[1]

    def explicit_lower_bound(self) -> tuple[str, int] | None:
        """Return the name and the constant, if this is `constant <= name` or `constant < name`."""
        if not isinstance(self.left, int) or self.relation not in ("<=", "<"):
            return None
        factor = dims.single_factor(self.right, "name")
        return None if factor is None else (str(factor), self.left + (self.relation == "<"))


def parse_fact(text: str) -> tuple[Fact, ...]:
    """Parse a comparison such as `n % 8 == 0`; a chain `2 <= n < m` gives one fact a link."""
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


def connected(facts: Iterable[Fact]) -> list[list[Fact]]:
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


def _spaced(size: Size) -> str:
    text = str(size)
    factor = dims.single_factor(size, "//", "%")
    if factor is None or text.count(factor.kind) != 1:
        return text
    return text.replace(factor.kind, f" {factor.kind} ")


# Consequences of facts about sizes: Fourier-Motzkin elimination over integers, and cases.
#
# Facts become constraints over integer unknowns, with all equalities solved away; a claim is proved
# when elimination closes every case of its negation.


# Fourier-Motzkin elimination: whether integers can satisfy inequalities between polynomials.
#
# Every monomial counts as a separate unknown. The relations of `n*m` with `n` and `m` are added
# before: bounds of the factors, and products of constraints that contain existing products.


_MAX_ROWS = 160
_MAX_ROUNDS = 4
_MAX_PRODUCTS = 24
_MAX_MULTIPLIED = 12
_MANY_PRODUCTS = 3


def infeasible(nonnegative: Iterable[Dim], zero: Iterable[Dim]) -> bool:
    """Return whether no integers make all of these nonnegative and all of those zero."""
    constraints: list[Size] = [*nonnegative]
    for size in zero:
        constraints += (size, -size)
    factors = {
        factor
        for size in constraints
        for monomial, _ in dims.as_terms(size)
        if len(monomial) > 1
        for factor in monomial
    }
    if factors:
        extended = _with_products(constraints, factors)
        if extended is None:
            return True
        constraints = extended
    return _eliminate(constraints)


def _with_products(constraints: list[Size], factors: set[Factor]) -> list[Size] | None:
    """Restate constraints so that factors start at 0, and add consequences for their products.

    Return None if the bounds of a name already exclude each other.
    """
    bounds = _bounds(constraints)
    if bounds is None:
        return None
    lower, upper = bounds
    env: dict[str, Size] = {}
    for factor in sorted(factors):
        if factor in lower:
            env[factor] = dims.variable(factor) + lower[factor]
        elif factor in upper:
            env[factor] = upper[factor] - dims.variable(factor)
    found = [dims.substitute(size, env) for size in constraints]
    for name in sorted(env.keys() & lower.keys() & upper.keys()):
        ceiling = upper[name] - lower[name] - dims.variable(name)
        if ceiling not in found:
            found.append(ceiling)
    products = _products(found, sorted(env))
    monomials = {m: 0 for size in (*found, *products) for m, _ in dims.as_terms(size)}
    for monomial in monomials:
        if monomial and all(f in env or monomial.count(f) % 2 == 0 for f in monomial):
            products.append(dims.from_terms({monomial: 1}))
    return found + products


def _products(constraints: list[Size], signed: list[str]) -> list[Size]:
    """Constraints times nonnegative names, where that speaks of products that already occur."""
    monomials = {m for size in constraints for m, _ in dims.as_terms(size) if len(m) > 1}
    products: list[Size] = []
    variables = [dims.variable(name) for name in signed]
    trivial = set[Size](variables)
    for size in constraints:
        terms = dims.as_terms(size)
        if not 1 <= len(terms) <= 5 or len(terms[0][0]) > 2 or size in trivial:
            continue
        for variable in variables:
            if len(products) >= _MAX_PRODUCTS:
                return products
            product = size * variable
            if any(monomial in monomials for monomial, _ in dims.as_terms(product)):
                products.append(product)
    if len(monomials) >= _MANY_PRODUCTS:
        linear = [s for s in constraints if isinstance(s, Dim) and 1 < len(s.terms) < 4]
        linear = [s for s in linear if len(s.terms[0][0]) == 1 and s not in trivial]
        for left, right in combinations(linear[:_MAX_MULTIPLIED], 2):
            product = left * right
            if all(m in monomials for m, _ in dims.as_terms(product) if len(m) > 1):
                products.append(product)
    return products


def _bounds(constraints: list[Size]) -> tuple[dict[str, int], dict[str, int]] | None:
    """Return bounds of names by propagation through the linear constraints; None if empty."""
    lower: dict[str, int] = {}
    upper: dict[str, int] = {}
    linear = [dims.as_terms(s) for s in constraints if len(dims.as_terms(s)[0][0]) == 1]
    for _ in range(_MAX_ROUNDS):
        changed = False
        for terms in linear:
            for monomial, coefficient in terms:
                most = _most_of_others(terms, monomial, lower, upper) if monomial else None
                if most is None:
                    continue
                name = monomial[0]
                bound = -(most // coefficient) if coefficient > 0 else most // -coefficient
                side, sign = (lower, 1) if coefficient > 0 else (upper, -1)
                if name not in side or sign * bound > sign * side[name]:
                    side[name] = bound
                    changed = True
                if name in lower and name in upper and lower[name] > upper[name]:
                    return None
        if not changed:
            break
    return lower, upper


def _most_of_others(
    terms: tuple[Term, ...], left_out: Monomial, lower: dict[str, int], upper: dict[str, int]
) -> int | None:
    """Return the most that the other terms of a linear sum can add up to, if they are bounded."""
    most = 0
    for monomial, coefficient in terms:
        if not monomial:
            most += coefficient
        elif monomial != left_out:
            side = upper if coefficient > 0 else lower
            if monomial[0] not in side:
                return None
            most += coefficient * side[monomial[0]]
    return most


_Row: TypeAlias = tuple[tuple[int, int], ...]
"""The coefficients of one inequality by column, in order and without a common divisor."""


def _eliminate(constraints: Iterable[Size]) -> bool:
    """Return whether `size >= 0` for all of these has no solution, by removing unknowns in turn."""
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
        column = _cheapest_column(rows)
        if column is None:
            return False
        touching = [key for key in rows if any(other == column for other, _ in key)]
        removed = [(dict(key), rows.pop(key)) for key in touching]
        for below, least in removed:
            if below[column] < 0:
                continue
            for above, most in removed:
                if above[column] > 0:
                    continue
                common = gcd(below[column], above[column])
                p, q = -above[column] // common, below[column] // common
                combined = {other: c * p for other, c in below.items()}
                for other, c in above.items():
                    combined[other] = combined.get(other, 0) + c * q
                remaining = [(other, c) for other, c in combined.items() if c]
                if _conflicts(rows, remaining, least * p + most * q):
                    return True
    return False


def _cheapest_column(rows: dict[_Row, int]) -> int | None:
    """Return the column whose removal leaves the fewest rows; None if even that is too many."""
    signs: dict[int, tuple[int, int]] = {}
    for row in rows:
        for column, coefficient in row:
            positive, negative = signs.get(column, (0, 0))
            if coefficient > 0:
                signs[column] = positive + 1, negative
            else:
                signs[column] = positive, negative + 1
    column, counts = min(signs.items(), key=_growth)
    return None if len(rows) + _growth((column, counts)) > _MAX_ROWS else column


def _growth(item: tuple[int, tuple[int, int]]) -> int:
    positive, negative = item[1]
    return positive * negative - positive - negative


def _conflicts(rows: dict[_Row, int], row: list[tuple[int, int]], constant: int) -> bool:
    """Add a row; return whether it cannot hold, alone or together with its opposite.

    A row is divided by its coefficients' common divisor, as is its constant, `rows[row]`, rounded
    down.
    """
    if not row:
        return constant < 0
    common = gcd(*[c for _, c in row])
    row.sort()
    if common > 1:
        row = [(column, c // common) for column, c in row]
        constant //= common
    key = tuple(row)
    if constant < rows.get(key, constant + 1):
        rows[key] = constant
    opposite = rows.get(tuple([(column, -c) for column, c in row]))
    return opposite is not None and opposite + constant < 0


# Constraints: facts restated over integer unknowns, all equalities solved away.
#
# Every division, minimum and maximum becomes an unknown with bounds and a definition, so that only
# polynomials remain.  Equalities are solved over the integers as they come.


_MAX_UNKNOWNS = 60
_MAX_EQUATIONS = 200

Definition: TypeAlias = tuple[Kind, tuple[Size, ...]]
"""The definition of an unknown: an operation and its operands."""


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
        """Return a copy that can be extended independently."""
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
        size = _tighten(size)
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
        """Return a size that is known to equal an unknown; the unknown itself if there is none."""
        return self.solution.get(unknown, dims.variable(unknown))

    def fresh(self) -> Dim:
        """Return an unknown that occurs nowhere yet."""
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
                product = product * self._lift(factor)
            total = total + product
        return total

    def _lift(self, factor: Factor) -> Size:
        """Return a name as an unknown with its bound; an operation with its operands lifted."""
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
        return self._name_operations(dims.apply(kind, args))

    def _name_operations(self, size: Size) -> Size:
        """Replace operations on unknowns by the unknowns that they define."""
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
        """Return the unknown of a definition, or its solution."""
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
        """Return whether a size over unknowns is nonnegative by the constraints so far."""
        if isinstance(size, int):
            return size >= 0
        if size in self.nonnegative:
            return True
        beyond = -size - 1
        return isinstance(beyond, Dim) and infeasible([*self.nonnegative, beyond], self.zero)

    def _solved_for_one(self, equation: Dim) -> tuple[str, Size, list[Size]] | None:
        """Return a name, its value by an equation, and the equations that remain.

        If the name has a coefficient `c` other than 1, its value is rounded and gets a fresh
        unknown, which makes up for the roundings: they and `c` times it must add up to 0.
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
        """Redefine an unknown by its operands' new values, or return an equation for it."""
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
        return [dims.variable(unknown) - self._name_operations(result)]


def constraints_of(facts: Iterable[Fact], lower_bound: Callable[[str], int]) -> Constraints:
    """Return the facts as constraints, without facts that are too large for proofs."""
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


def _tighten(size: Dim) -> Dim:
    """Divide `size >= 0` by its coefficients' common divisor, rounding the constant down."""
    common = _content(size)
    if common == 1:
        return size
    return Dim(tuple([(m, c // common) for m, c in size.terms if m or c // common]))


def _pivot(equation: Dim) -> tuple[str, int] | None:
    """Return the name that an equation determines best: linear, and of the smallest coefficient."""
    best: tuple[str, int] | None = None
    for monomial, coefficient in equation.terms:
        if len(monomial) != 1 or (best is not None and abs(best[1]) <= abs(coefficient)):
            continue
        name = monomial[0]
        if sum(name in other for other, _ in equation.terms) == 1:
            best = str(name), coefficient
    return best


# Refuting constraints: distinguishing cases until elimination closes every one of them.


_MAX_CASES = 48
_MAX_MODULUS = 4

_Case: TypeAlias = tuple[Constraints, frozenset[str]]
"""Constraints, and the divisions whose sign has been decided."""


def refuted(constraints: Constraints) -> bool:
    """Return whether the constraints provably have no integer solution."""
    pending: list[_Case] = [(constraints, frozenset())]
    for _ in range(_MAX_CASES):
        if not pending:
            return True
        case, signed = pending.pop()
        if case.contradictory or infeasible(case.nonnegative, case.zero):
            continue
        cases = _cases(case, signed)
        if not cases:
            return False
        pending += cases
    return not pending


def _cases(constraints: Constraints, signed: frozenset[str]) -> list[_Case]:
    """Cases that together cover the constraints, one distinction made in each; or none."""
    for unknown, (kind, args) in constraints.definitions.items():
        if kind == "min" or kind == "max":
            chosen = [_choose_operand(constraints, unknown, kind, args, arg) for arg in args]
            return [(case, signed) for case in chosen]
    if constraints.distinct:
        rest = constraints.copy()
        size = rest.distinct.pop()
        return [(_with_bound(rest, size - 1), signed), (_with_bound(rest, -size - 1), signed)]
    for unknown, (kind, args) in constraints.definitions.items():
        if kind == "//" and isinstance(args[1], Dim) and unknown not in signed:
            quotient = constraints.value(unknown)
            zero = constraints.copy()
            zero.solve([quotient])
            positive = _with_bound(constraints, quotient - 1)
            negative = _with_bound(constraints, -1 - quotient)
            return [(case, signed | {unknown}) for case in (zero, positive, negative)]
    for kind, args in constraints.definitions.values():
        if kind == "//" and isinstance(args[1], int) and 0 < args[1] <= _MAX_MODULUS:
            for monomial, _ in dims.as_terms(args[0]):
                if len(monomial) > 1:
                    return [(case, signed) for case in _residues(constraints, monomial[0], args[1])]
    return []


def _with_bound(constraints: Constraints, size: Size) -> Constraints:
    case = constraints.copy()
    case.add_nonnegative(size)
    return case


def _choose_operand(
    constraints: Constraints,
    unknown: str,
    kind: Literal["min", "max"],
    args: tuple[Size, ...],
    chosen: Size,
) -> Constraints:
    """Return the case where one operand is the minimum or maximum."""
    case = constraints.copy()
    del case.definitions[unknown]
    for other in args:
        case.add_nonnegative(other - chosen if kind == "min" else chosen - other)
    case.solve([dims.variable(unknown) - chosen])
    return case


def _residues(constraints: Constraints, name: str, modulus: int) -> list[Constraints]:
    """Return the cases of a name's remainder by a small number."""
    cases: list[Constraints] = []
    for residue in range(modulus):
        case = constraints.copy()
        case.solve([dims.variable(name) - modulus * case.fresh() - residue])
        cases.append(case)
    return cases
