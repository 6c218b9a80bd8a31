"""What sizes are made of: products of names and operations, their order, limits and text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pscdsl.typing.polynomials import Size

MAX_TERMS = 200
MAX_DEGREE = 64
MAX_COEFFICIENT = 2**63
MAX_TEXT = 10_000
MAX_DEPTH = 40

Kind: TypeAlias = Literal["name", "//", "%", "min", "max"]


class DimTooLarge(OverflowError):
    """A size expression has grown past what is worth reasoning about."""


class Factor(str):
    """An indivisible factor: a name, or an operation on sizes.  Its text is its identity."""

    __slots__ = ("args", "depth", "kind", "names")

    kind: Kind
    args: tuple[Size, ...]
    names: frozenset[str]
    depth: int

    def __getnewargs__(self) -> tuple[str]:
        return (str(self),)


Monomial: TypeAlias = tuple[Factor, ...]
"""A product of factors, sorted by their texts; the empty one is 1."""

Term: TypeAlias = tuple[Monomial, int]
"""A monomial and its coefficient."""


def name_factor(text: str) -> Factor:
    """The factor that is a name."""
    factor = Factor(text)
    factor.kind = "name"
    factor.args = ()
    factor.names = frozenset((str(text),))
    factor.depth = 0
    return factor


def operation_factor(kind: Kind, args: tuple[Size, ...]) -> Factor:
    """The factor that is an operation; its operands must be in normal form."""
    text = _operation_text(kind, args)
    factor = Factor(text)
    factor.kind = kind
    factor.args = args
    mentioned: set[str] = set()
    deepest = 0
    for arg in args:
        for monomial, _ in as_terms(arg):
            for inner in monomial:
                mentioned |= inner.names
                deepest = max(deepest, inner.depth)
    factor.names = frozenset(mentioned)
    factor.depth = 1 + deepest
    if factor.depth > MAX_DEPTH or len(text) > MAX_TEXT:
        raise DimTooLarge("a size expression is nested too deeply")
    return factor


def as_terms(size: Size) -> tuple[Term, ...]:
    """The terms of a size, also of a constant one."""
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def names(size: Size) -> frozenset[str]:
    """The names that a size mentions."""
    if isinstance(size, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in size.terms:
        for factor in monomial:
            found |= factor.names
    return frozenset(found)


def single_factor(size: Size, *kinds: Kind) -> Factor | None:
    """The factor that a size consists of, if it is nothing else, and of one of these kinds."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    monomial, coefficient = size.terms[0]
    if coefficient != 1 or len(monomial) != 1 or (kinds and monomial[0].kind not in kinds):
        return None
    return monomial[0]


def term_order(term: Term) -> tuple[int, Monomial]:
    """The key that sorts the terms of a sum: highest degree first, then by names."""
    return -len(term[0]), term[0]


def bounded(coefficient: int) -> int:
    """The coefficient, unless it is too large."""
    if -MAX_COEFFICIENT <= coefficient <= MAX_COEFFICIENT:
        return coefficient
    raise DimTooLarge("a size has a coefficient above 2**63")


def times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    return tuple(sorted(a + b)) if a and b else a or b


def quotient(a: Monomial, b: Monomial) -> Monomial | None:
    """The monomial that, times `b`, is `a`, if there is one."""
    left = list(a)
    for factor in b:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def common_factors(monomials: Iterable[Monomial]) -> Monomial:
    """The largest monomial that divides all of these, of which there is at least one."""
    shared, *others = monomials
    for monomial in others:
        if not shared:
            break
        left = list(monomial)
        kept: list[Factor] = []
        for factor in shared:
            if factor in left:
                left.remove(factor)
                kept.append(factor)
        shared = tuple(kept)
    return shared


def sum_text(terms: tuple[Term, ...]) -> str:
    """The text of a sum, a positive term first if there is one."""
    if terms[0][1] < 0:
        first = next((i for i, (_, c) in enumerate(terms) if c > 0), 0)
        terms = (terms[first], *terms[:first], *terms[first + 1 :])
    text = "".join(_term_text(monomial, coefficient) for monomial, coefficient in terms)
    return text.removeprefix("+")


def _term_text(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return f"{coefficient:+}"
    if coefficient == 1 and len(monomial) == 1:
        return f"+{monomial[0]}"
    factors = [str(factor) for factor in monomial if factor.kind not in ("//", "%")]
    factors += [f"({factor})" for factor in monomial if factor.kind in ("//", "%")]
    if abs(coefficient) != 1:
        factors.insert(0, str(abs(coefficient)))
    return ("-" if coefficient < 0 else "+") + "*".join(factors)


def _operation_text(kind: Kind, args: tuple[Size, ...]) -> str:
    if kind == "min" or kind == "max":
        return f"{kind}({','.join(map(str, args))})"
    a, b = args
    left, right = str(a), str(b)
    if isinstance(a, int):
        left = left if a >= 0 else f"({left})"
    elif len(a.terms) > 1 or left.startswith("-") or single_factor(a, "//", "%") is not None:
        left = f"({left})"
    if not isinstance(b, int) and single_factor(b, "name", "min", "max") is None:
        right = f"({right})"
    return f"{left}{kind}{right}"
