"""The logarithm of a sum of two exponentials, with derivatives that share what it computes.

With `m = exp(-abs(x1 - x2))` the value is `max(x1, x2) + log1p(m)`, and the larger term has the
share `1 / (1 + m)` of the sum, the smaller one the share `m / (1 + m)`.  The derivatives are the
shares p and q, theirs are p*q and -p*q, all of them right to a few units in the last place however
far apart the terms are.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.program import Scalar
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.own_tangents import Values, with_own_tangents
from pscdsl.numpy.elementwise import literal
from pscdsl.numpy.shorthand import where

Number: TypeAlias = int | float


def log_of_sum(x1: Value, x2: Value) -> Value:
    """`log(exp(x1) + exp(x2))` of floating-point arrays of one shape, or of rank 0."""
    terms = _Terms(_finite(literal(x1)), _finite(literal(x2)))
    return terms.logarithm(*terms.operands(x1, x2))


class _Terms:
    """Two terms, of which those that are numbers are known, and no operands of what is computed."""

    def __init__(self, *numbers: Number | None) -> None:
        if all(number is not None for number in numbers):
            numbers = (None,) * len(numbers)
        self.numbers = numbers
        self.logarithm = partial(with_own_tangents, "logaddexp", self._value, self._rule)

    def operands(self, *terms: Value) -> list[Value]:
        """Those that are not known."""
        return [x for x, number in zip(terms, self.numbers, strict=True) if number is None]

    def _both(self, given: Values) -> list[Value]:
        left = iter(given)
        here, dtype = given[0].builder.program.current, given[0].dtype
        return [
            next(left) if number is None else here.literal(number, dtype) for number in self.numbers
        ]

    def _value(self, *given: Value) -> Value:
        x1, x2 = self._both(given)
        # Not `maximum`, which XLA takes apart from the rest where the results are added up.
        larger = where(e.greater_equal(x1, x2), x1, x2)
        result: Value = larger + e.log1p(self._smaller(x1, x2))
        return result

    def _smaller(self, x1: Value, x2: Value) -> Value:
        """The smaller term as a part of the larger one; 0 beside an infinity, and of two."""
        gap = -e.absolute(x2 if literal(x1) == 0 else x1 if literal(x2) == 0 else x1 - x2)
        if all(number is None for number in self.numbers):
            alike = e.bitwise_and(e.equal(x1, x2), e.equal(e.absolute(x1), math.inf))
            gap = where(alike, x1.builder.program.current.literal(-math.inf, gap.dtype), gap)
        return e.exp(gap)  # type: ignore[no-any-return]

    def _share(self, place: int, *given: Value) -> Value:
        """The part that one term is of the sum; of two that are infinite the first is all."""

        def value(*given: Value) -> Value:
            x1, x2 = self._both(given)
            smaller = self._smaller(x1, x2)
            one = x1.builder.program.current.literal(1, smaller.dtype)
            terms = (one, smaller) if place == 0 else (smaller, one)
            term = where(e.greater_equal(x1, x2), *terms)
            share: Value = term * e.divide(one, smaller + 1)
            return share

        def rule(given: Values, tangents: Values) -> tuple[Value, Value]:
            share = self._share(place, *given)
            slope = share * self._share(1 - place, *given)
            slopes = (slope, -slope) if place == 0 else (-slope, slope)
            return share, self._tangent(tangents, slopes)

        return with_own_tangents("logaddexp", value, rule, *given)

    def _rule(self, given: Values, tangents: Values) -> tuple[Value, Value]:
        shares = self._share(0, *given), self._share(1, *given)
        return self.logarithm(*given), self._tangent(tangents, shares)

    def _tangent(self, tangents: Values, slopes: Values) -> Value:
        """The sum of the tangents of what is not known, each times its slope."""
        parts: list[Value] = [t * x for t, x in zip(tangents, self.operands(*slopes), strict=True)]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0]


def _finite(number: Scalar | None) -> Number | None:
    """A real number that is finite."""
    real = isinstance(number, int | float) and math.isfinite(number)
    return number if real else None  # type: ignore[return-value]
