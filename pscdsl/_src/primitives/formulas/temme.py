"""The coefficients of Temme's uniform expansion of the incomplete gamma functions.

N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM Journal on
Mathematical Analysis 10 (1979); as in the NIST Digital Library of Mathematical Functions, 8.12.
They are rational numbers, computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb


@lru_cache
def coefficients(orders: int, terms: int) -> tuple[tuple[float, ...], ...]:
    """For each order k in 1 / a the coefficients d(k, n) of eta^n; one fewer with each order."""
    count = terms + 2 * orders
    series = _inverse_series(count + 3)
    row = [Fraction(-1, 3), *((n + 2) * series[n + 2] for n in range(1, count))]
    first, rows = row, [row]
    scaled = _scaled_gamma(orders)
    for k in range(1, orders):
        sign = -scaled[k] if k % 2 else scaled[k]
        row = [sign * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        rows.append(row)
    return tuple([tuple(map(float, row[: terms - k])) for k, row in enumerate(rows)])


def _inverse_series(count: int) -> Sequence[Fraction]:
    """The series of lambda - 1 in powers of eta, where eta^2 / 2 = lambda - 1 - log(lambda)."""
    found = [Fraction(0), Fraction(1)]
    for n in range(2, count):
        products = sum(
            (found[i] * (n - i + 1) * found[n - i + 1] for i in range(2, n)), Fraction(0)
        )
        found.append((found[n - 1] - products) / (n + 1))
    return found


def _scaled_gamma(count: int) -> Sequence[Fraction]:
    """Stirling's series of the gamma function itself, in powers of 1 / a."""
    bernoulli = _bernoulli(count + 2)
    logarithm = [Fraction(0), *(bernoulli[n + 1] / (n * (n + 1)) for n in range(1, count + 1))]
    found = [Fraction(1)]
    for n in range(1, count + 1):
        total = sum((j * logarithm[j] * found[n - j] for j in range(1, n + 1)), Fraction(0))
        found.append(total / n)
    return found


def _bernoulli(count: int) -> Sequence[Fraction]:
    found = [Fraction(1)]
    for n in range(1, count):
        total = sum((comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-total / (n + 1))
    return found
