"""Dividing sums of terms: how much of a quotient is a polynomial, and what then remains."""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from pscdsl.typing.monomials import (
    MAX_TERMS,
    DimTooLarge,
    Monomial,
    Term,
    bounded,
    common_factors,
    quotient,
    term_order,
    times,
)

Terms: TypeAlias = dict[Monomial, int]
"""A sum in no order; coefficients may be zero."""


def divide(
    a: tuple[Term, ...], b: tuple[Term, ...]
) -> tuple[Terms, Terms, tuple[Term, ...], Monomial, int]:
    """Divide one sum by another, neither of them empty, as far as polynomials go.

    The answer is `whole`, `rest`, `divisor`, and the monomial and coefficient of `factor`:
    `a // b` is `whole + rest // divisor`, and `a % b` is `factor * (rest % divisor)`, for every
    `b` but zero.
    """
    sign = 1
    if b[0][1] < 0:
        a, b, sign = _negated(a), _negated(b), -1
    both = a + b
    content = gcd(*[coefficient for _, coefficient in both])
    shared = common_factors([monomial for monomial, _ in both])
    if shared or content != 1:
        a, b = _cancelled(a, shared, content), _cancelled(b, shared, content)
    if not b[0][0]:
        return {}, dict(a), b, shared, sign * content
    whole, rest = _by_term(a, *b[0]) if len(b) == 1 else _by_sum(a, b)
    return whole, rest, b, shared, sign * content


def toward_zero(a: int, b: int) -> int:
    """The quotient of integers, `b` positive, rounded so that the rest has the sign of `a`."""
    return a // b if a >= 0 else -(-a // b)


def _by_term(a: tuple[Term, ...], monomial: Monomial, coefficient: int) -> tuple[Terms, Terms]:
    whole: Terms = {}
    rest: Terms = {}
    for own, c in a:
        found = quotient(own, monomial)
        if found is None:
            rest[own] = c
            continue
        count = toward_zero(c, coefficient)
        whole[found] = count
        rest[own] = c - count * coefficient
    return whole, rest


def _by_sum(a: tuple[Term, ...], divisor: tuple[Term, ...]) -> tuple[Terms, Terms]:
    """Divide polynomials; the quotient is taken only where it leaves less than there was."""
    lead, coefficient = divisor[0]
    whole: Terms = {}
    rest: Terms = {}
    pending = dict(a)
    for _ in range(MAX_TERMS):
        if not pending:
            break
        monomial, c = min(pending.items(), key=term_order)
        found = quotient(monomial, lead)
        if found is None or c % coefficient:
            rest[monomial] = pending.pop(monomial)
            continue
        whole[found] = count = c // coefficient
        for own, factor in divisor:
            _add(pending, times(found, own), -count * factor)
        if len(pending) > MAX_TERMS:
            raise DimTooLarge(f"a size has more than {MAX_TERMS} terms")
    rest |= pending
    return (whole, rest) if len(rest) < len(a) else ({}, dict(a))


def _add(terms: Terms, monomial: Monomial, coefficient: int) -> None:
    total = bounded(terms.get(monomial, 0) + coefficient)
    if total:
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


def _negated(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple([(monomial, -coefficient) for monomial, coefficient in terms])


def _cancelled(terms: tuple[Term, ...], shared: Monomial, content: int) -> tuple[Term, ...]:
    """Divide terms by what they share; their order stays."""
    return tuple([(quotient(monomial, shared) or (), c // content) for monomial, c in terms])
