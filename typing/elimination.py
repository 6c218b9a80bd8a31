"""Fourier-Motzkin elimination: whether integers can satisfy inequalities between polynomials.

Every monomial counts as an unknown of its own.  What ties `n*m` to `n` and `m` is put in before:
bounds of the factors, and products of constraints that speak of products already there.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import gcd
from typing import TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.dims import Dim, Factor, Monomial, Size, Term

_MAX_ROWS = 160
_MAX_ROUNDS = 4
_MAX_PRODUCTS = 24
_MAX_MULTIPLIED = 12
_MANY_PRODUCTS = 3


def infeasible(nonnegative: Iterable[Dim], zero: Iterable[Dim]) -> bool:
    """Whether no integers make all of these nonnegative and all of those zero."""
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
    """Restate constraints so that factors start at 0, and add what follows for their products.

    The answer is None where the bounds of a name already exclude each other.
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
    """Bounds of names by interval propagation through the linear constraints; None if empty."""
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
    """The most that the other terms of a linear sum can add up to, if they are bounded."""
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
    """Whether `size >= 0` for all of these has no solution, found by removing unknowns in turn."""
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
    """The column whose removal leaves the fewest rows; None if even that leaves too many."""
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
    """Add a row; whether it cannot hold, alone or beside its opposite.

    A row is divided by what its coefficients share and its constant, `rows[row]`, rounded down.
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
