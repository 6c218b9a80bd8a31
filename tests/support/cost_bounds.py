"""Lines that say what kernels cost, made from all their choices: see `cost_lines`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import ceil
from typing import Any

from pscdsl._src.kernels.kernel import Kernel
from pscdsl.typing.dims import Factor, Monomial, Size, apply, as_terms, from_terms, name, times
from tests.support.cost_lines import Instance, Line, counted_choices

MOST_TERMS = 4
"""A line that would have more states a bound in place of what the cost is exactly."""
LENGTH = 170
"""Of a bound that keeps the highest terms as they are."""


def cost_line(kernel: Kernel[..., Any]) -> Line | None:
    """What a kernel costs, in at most so many terms; None if that is not known."""
    found, one_step = counted_choices(kernel)
    costs = list(_lifted(found)) if found else []
    if not costs:
        return None
    widest = reduce(_union, costs)
    exact = Line(widest, True, one_step)
    if len(as_terms(widest)) <= MOST_TERMS and exact.is_proven(found):
        return exact
    positive = from_terms({monomial: c for monomial, c in as_terms(widest) if c > 0})
    bounds = (_fewer(_relaxed(positive)), _fewer(_exactly(positive)), positive)
    lines = [Line(each, False, one_step) for each in bounds]
    return next((each for each in lines if each.is_proven(found)), None)


def _lifted(found: Sequence[Instance]) -> Iterator[Size]:
    """The costs with groups of one axis, in which static values have their names."""
    full = [each for each in found if not each.empty]
    names = sorted(full[0].statics)
    if not names:
        yield from {each.flops: None for each in full}
        return
    (key,) = names
    numbers = sorted({_number(each.statics[key]) for each in full})
    low, high = numbers[-2:]
    ends = [
        reduce(_union, [_named(each, key) for each in full if each.statics[key] == number])
        for number in (low, high)
    ]
    yield _through(name(key), low, ends[0], high, ends[1])


def _named(found: Instance, key: str) -> Size:
    """A cost with the name of a static value in place of it, where sizes are divided by it."""
    value = found.statics[key]
    total: Size = 0
    for monomial, coefficient in as_terms(found.flops):
        product: Size = coefficient
        for factor in monomial:
            product = product * _with_name(factor, value, name(key))
        total = total + product
    return total


def _with_name(factor: Factor, value: Size, key: Size) -> Size:
    if factor.kind == "name":
        return from_terms({(factor,): 1})
    args = [key if arg == value else _inside(arg, value, key) for arg in factor.args]
    return apply(factor.kind, args)


def _inside(size: Size, value: Size, key: Size) -> Size:
    total: Size = 0
    for monomial, coefficient in as_terms(size):
        product: Size = coefficient
        for factor in monomial:
            product = product * _with_name(factor, value, key)
        total = total + product
    return total


def _through(key: Size, low: int, first: Size, high: int, last: Size) -> Size:
    """The cost that is linear in a static value, and as given for two of them."""
    before, after = dict(as_terms(first)), dict(as_terms(last))
    total: Size = 0
    for monomial in {**before, **after}:
        begin, end = before.get(monomial, 0), after.get(monomial, 0)
        slope = -((begin - end) // (high - low))
        term = from_terms({monomial: 1})
        total = total + term * (slope * key + (end - slope * high))
    return total


def _number(size: Size) -> int:
    assert isinstance(size, int)
    return size


def _union(one: Size, other: Size) -> Size:
    """The larger coefficient of each term: as much as both, as sizes are not negative."""
    left, right = dict(as_terms(one)), dict(as_terms(other))
    return from_terms({m: max(left.get(m, 0), right.get(m, 0)) for m in {**left, **right}})


def _fewer(terms: dict[Monomial, Fraction]) -> Size:
    """A bound with fewer terms: small ones count as more of one that they are factors of.

    The highest terms keep what they have as long as there are not too many others.
    """
    for kept in (_highest(terms), ()):
        while _too_many(terms, bool(kept)):
            for monomial in sorted(terms, key=lambda m: (len(m), terms[m])):
                larger = [m for m in terms if m not in kept and _divides(monomial, m)]
                if larger:
                    terms[min(larger, key=len)] += terms.pop(monomial)
                    break
            else:
                break
    return _rounded(terms)


def _too_many(terms: Mapping[Monomial, Fraction], first: bool) -> bool:
    text = str(Line(_rounded(terms), False, False))
    return len(terms) > MOST_TERMS and (first or len(text) > LENGTH)


def _rounded(terms: Mapping[Monomial, Fraction]) -> Size:
    return from_terms({monomial: ceil(value) for monomial, value in terms.items()})


def _highest(terms: Mapping[Monomial, Fraction]) -> tuple[Monomial, ...]:
    return tuple([one for one in terms if not any(_divides(one, each) for each in terms)])


def _exactly(size: Size) -> dict[Monomial, Fraction]:
    return {monomial: Fraction(coefficient) for monomial, coefficient in as_terms(size)}


def _relaxed(size: Size) -> dict[Monomial, Fraction]:
    """The positive terms, quotients by numbers not rounded, and of a minimum one side."""
    total: dict[Monomial, Fraction] = {}
    for monomial, coefficient in as_terms(size):
        if coefficient > 0:
            parts: dict[Monomial, Fraction] = {(): Fraction(coefficient)}
            for factor in monomial:
                parts = _products(parts, _loosened(factor))
            for each, value in parts.items():
                total[each] = total.get(each, Fraction(0)) + value
    return total


def _loosened(factor: Factor) -> dict[Monomial, Fraction]:
    """What a factor is at most."""
    if factor.kind == "//" and isinstance(divisor := factor.args[1], int):
        return {m: value / divisor for m, value in _relaxed(factor.args[0]).items()}
    if factor.kind == "min":
        return _relaxed(factor.args[0])
    return {(factor,): Fraction(1)}


def _products(
    one: Mapping[Monomial, Fraction], other: Mapping[Monomial, Fraction]
) -> dict[Monomial, Fraction]:
    return {times(a, b): x * y for a, x in one.items() for b, y in other.items()}


def _divides(one: Monomial, other: Monomial) -> bool:
    """Whether a term is another one times sizes that are at least 1."""
    rest = list(other)
    for factor in one:
        if factor not in rest:
            return False
        rest.remove(factor)
    return bool(rest) and all(factor.kind == "name" for factor in rest)
