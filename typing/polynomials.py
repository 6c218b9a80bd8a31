"""`Dim`: integer polynomials with floor division, modulo, min and max, in a normal form.

Two sizes that are equal as polynomials are structurally equal, and a constant is always an `int`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import Literal, TypeAlias

from pscdsl.typing.long_division import divide, toward_zero
from pscdsl.typing.monomials import (
    MAX_DEGREE,
    MAX_TERMS,
    DimTooLarge,
    Factor,
    Kind,
    Monomial,
    Term,
    as_terms,
    bounded,
    name_factor,
    operation_factor,
    single_factor,
    sum_text,
    term_order,
    times,
)


class Dim:
    """A size that is not constant: a sum of terms, highest degree first, the constant last."""

    __slots__ = ("_hash", "_text", "terms")

    terms: tuple[Term, ...]
    """Monomials with their coefficients, none zero; the constant has the empty monomial."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        """Wrap terms that already are in normal form; use `name` and the operators instead."""
        self.terms = terms
        self._hash = hash(terms)
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} has no truth value: it is not known while checking")

    def __str__(self) -> str:
        if self._text is None:
            self._text = sum_text(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __reduce__(self) -> tuple[type[Dim], tuple[tuple[Term, ...]]]:
        return Dim, (self.terms,)

    def __add__(self, other: Size) -> Size:
        if isinstance(other, int):
            return self._plus_int(other)
        if not isinstance(other, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        merged = dict(self.terms)
        for monomial, coefficient in other.terms:
            merged[monomial] = merged.get(monomial, 0) + coefficient
        return from_terms(merged)

    __radd__ = __add__

    def _plus_int(self, value: int) -> Size:
        terms = self.terms
        if value == 0:
            return self
        monomial, coefficient = terms[-1]
        if monomial:
            return Dim((*terms, ((), bounded(value))))
        total = coefficient + value
        return Dim((*terms[:-1], ((), bounded(total))) if total else terms[:-1])

    def __neg__(self) -> Dim:
        return Dim(tuple([(monomial, -coefficient) for monomial, coefficient in self.terms]))

    def __sub__(self, other: Size) -> Size:
        if isinstance(other, int):
            return self._plus_int(-other)
        if self == other:
            return 0
        return self + -other

    def __rsub__(self, other: int) -> Size:
        return (-self)._plus_int(other)

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return self._times_int(other)
        if not isinstance(other, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = times(left, right)
                product[monomial] = product.get(monomial, 0) + a * b
        return from_terms(product)

    __rmul__ = __mul__

    def _times_int(self, value: int) -> Size:
        if value == 0:
            return 0
        if value == 1:
            return self
        return Dim(tuple([(monomial, bounded(c * value)) for monomial, c in self.terms]))

    def __floordiv__(self, other: Size) -> Size:
        return _floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return _floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return _mod(self, other)

    def __rmod__(self, other: int) -> Size:
        return _mod(other, self)


Size: TypeAlias = int | Dim
"""A size: a plain `int` when constant, a `Dim` otherwise."""


def variable(text: str) -> Dim:
    """The size called `text`, which need not be an identifier (for names no program can hold)."""
    return _alone(name_factor(text))


def from_terms(terms: Mapping[Monomial, int]) -> Size:
    """The sum of terms; each monomial must be sorted."""
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) > 1:
        kept.sort(key=term_order)
        if len(kept) > MAX_TERMS:
            raise DimTooLarge(f"a size has more than {MAX_TERMS} terms")
    if len(kept[0][0]) > MAX_DEGREE:
        raise DimTooLarge(f"a size has a degree above {MAX_DEGREE}")
    for _, coefficient in kept:
        bounded(coefficient)
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple(kept))


def apply(kind: Kind, args: Iterable[Size]) -> Size:
    """Build an operation anew from its operands."""
    if kind == "min" or kind == "max":
        return extremum(kind, args)
    a, b = args
    return a // b if kind == "//" else a % b


def extremum(kind: Literal["min", "max"], sizes: Iterable[Size]) -> Size:
    """The smallest or largest of several sizes."""
    flat: list[Size] = []
    for size in sizes:
        nested = single_factor(size, kind)
        flat.extend((size,) if nested is None else nested.args)
    best: list[Size] = []
    for size in flat:
        for index, other in enumerate(best):
            gap = size - other
            if isinstance(gap, int):
                if gap < 0 if kind == "min" else gap > 0:
                    best[index] = size
                break
        else:
            best.append(size)
    if len(best) == 1:
        return best[0]
    best.sort(key=lambda size: (isinstance(size, int), str(size)))
    return _alone(operation_factor(kind, tuple(best)))


def _alone(factor: Factor) -> Dim:
    return Dim((((factor,), 1),))


def _floordiv(a: Size, b: Size) -> Size:
    if isinstance(b, int):
        return a // b if isinstance(a, int) else _floordiv_int(a, b)
    if not isinstance(b, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
        return NotImplemented
    if a == 0:
        return 0
    whole_terms, rest_terms, divisor, _, _ = divide(as_terms(a), b.terms)
    whole, rest = from_terms(whole_terms), from_terms(rest_terms)
    if rest == 0:
        return whole
    if whole != 0 or not divisor[0][0]:
        return whole + rest // _sum(divisor)
    return _alone(operation_factor("//", (rest, Dim(divisor))))


def _mod(a: Size, b: Size) -> Size:
    if isinstance(b, int):
        return a % b if isinstance(a, int) else _mod_int(a, b)
    if not isinstance(b, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
        return NotImplemented
    if a == 0:
        return 0
    whole, rest_terms, divisor, monomial, coefficient = divide(as_terms(a), b.terms)
    rest = from_terms(rest_terms)
    if rest == 0:
        return 0
    if any(whole.values()) or not divisor[0][0]:
        remainder = rest % _sum(divisor)
    else:
        remainder = _alone(operation_factor("%", (rest, Dim(divisor))))
    return from_terms({monomial: coefficient}) * remainder


def _sum(terms: tuple[Term, ...]) -> Size:
    """The size of terms that are in order."""
    return Dim(terms) if terms[0][0] else terms[0][1]


def _floordiv_int(a: Dim, k: int) -> Size:
    if k <= 0:
        if k == 0:
            raise ZeroDivisionError(f"the size {a} is divided by zero")
        return _floordiv(-a, -k)
    if k == 1:
        return a
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    constant = 0
    for monomial, c in a.terms:
        if not monomial:
            whole[monomial], constant = divmod(c, k)
            continue
        whole[monomial] = count = toward_zero(c, k)
        if c != count * k:
            rest[monomial] = c - count * k
    if not rest:
        return from_terms(whole)
    common = gcd(k, *rest.values())
    if common > 1:
        rest = {monomial: c // common for monomial, c in rest.items()}
        constant, k = constant // common, k // common
    return from_terms(whole) + _floordiv_rest(rest, constant, k)


def _floordiv_rest(rest: dict[Monomial, int], constant: int, k: int) -> Size:
    """`(rest + constant) // k`, where nothing more can be taken out of the terms by themselves."""
    if len(rest) == 1:
        ((monomial, c),) = rest.items()
        inner = monomial[0]
        if len(monomial) == 1 and c > 0 and inner.kind in ("//", "%"):
            dividend, divisor = inner.args
            if isinstance(divisor, int) and divisor > 0:
                if inner.kind == "//" and c == 1:
                    return (dividend + constant * divisor) // (divisor * k)
                if inner.kind == "%" and c * (divisor - 1) + constant < k:
                    return 0
    return _alone(operation_factor("//", (from_terms({**rest, (): constant}), k)))


def _mod_int(a: Dim, k: int) -> Size:
    if k <= 0:
        if k == 0:
            raise ZeroDivisionError(f"the size {a} is taken modulo zero")
        return -_mod(-a, -k)
    if k == 1:
        return 0
    rest: dict[Monomial, int] = {}
    extra: Size = 0
    for monomial, c in a.terms:
        if len(monomial) == 1 and monomial[0].kind == "%":
            dividend, divisor = monomial[0].args
            if isinstance(divisor, int) and c * divisor % k == 0:
                extra = extra + c * dividend
                continue
        remainder = c % k if c >= 0 or not monomial else -(-c % k)
        if remainder:
            rest[monomial] = remainder
    remaining = from_terms(rest)
    if extra != 0:
        return (remaining + extra) % k
    if isinstance(remaining, int):
        return remaining
    common = gcd(k, *rest.values())
    if common > 1:
        return common * (from_terms({m: c // common for m, c in rest.items()}) % (k // common))
    constant = rest.get((), 0)
    if len(rest) - (constant != 0) == 1:
        monomial, c = remaining.terms[0]
        if len(monomial) == 1 and c > 0 and monomial[0].kind == "%":
            divisor = monomial[0].args[1]
            if isinstance(divisor, int) and divisor > 0 and c * (divisor - 1) + constant < k:
                return remaining
    return _alone(operation_factor("%", (remaining, k)))
