"""Symbolic sizes: integers and polynomials of names, how they are computed and rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Literal, TypeAlias

# `Dim`: integer polynomials with floor division, modulo, min and max, in a normal form.
#
# Two sizes that are equal as polynomials are structurally equal, and a constant is always an `int`.


# The parts of sizes: products of names and operations, their order, limits and text.


MAX_TERMS = 200
MAX_DEGREE = 64
MAX_COEFFICIENT = 2**63
MAX_TEXT = 10_000
MAX_DEPTH = 40

Kind: TypeAlias = Literal["name", "//", "%", "min", "max"]


class DimTooLarge(OverflowError):
    """A size expression has become too large for proofs."""


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
    """Return the factor that is a name."""
    factor = Factor(text)
    factor.kind = "name"
    factor.args = ()
    factor.names = frozenset((str(text),))
    factor.depth = 0
    return factor


def operation_factor(kind: Kind, args: tuple[Size, ...]) -> Factor:
    """Return the factor that is an operation; its operands must be in normal form."""
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
    """Return the terms of a size, also of a constant one."""
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def names(size: Size) -> frozenset[str]:
    """Return the names that a size mentions."""
    if isinstance(size, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in size.terms:
        for factor in monomial:
            found |= factor.names
    return frozenset(found)


def single_factor(size: Size, *kinds: Kind) -> Factor | None:
    """Return the only factor of a size, if it is of one of these kinds."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    monomial, coefficient = size.terms[0]
    if coefficient != 1 or len(monomial) != 1 or (kinds and monomial[0].kind not in kinds):
        return None
    return monomial[0]


def term_order(term: Term) -> tuple[int, Monomial]:
    """Return the key that sorts the terms of a sum: highest degree first, then by names."""
    return -len(term[0]), term[0]


def bounded(coefficient: int) -> int:
    """Return the coefficient, unless it is too large."""
    if -MAX_COEFFICIENT <= coefficient <= MAX_COEFFICIENT:
        return coefficient
    raise DimTooLarge("a size has a coefficient above 2**63")


def times(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of two monomials."""
    return tuple(sorted(a + b)) if a and b else a or b


def quotient(a: Monomial, b: Monomial) -> Monomial | None:
    """Return the monomial that, times `b`, is `a`, if there is one."""
    left = list(a)
    for factor in b:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def common_factors(monomials: Iterable[Monomial]) -> Monomial:
    """Return the largest monomial that divides all of these, of which there must be one."""
    shared, *others = monomials
    for monomial in others:
        if not shared:
            break
        left = list(monomial)
        factors: list[Factor] = []
        for factor in shared:
            if factor in left:
                left.remove(factor)
                factors.append(factor)
        shared = tuple(factors)
    return shared


def sum_text(terms: tuple[Term, ...]) -> str:
    """Return the text of a sum, a positive term first if there is one."""
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


# Division of sums of terms: the polynomial part of a quotient, and the rest.


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
        a, b, sign = _negate(a), _negate(b), -1
    both = a + b
    content = gcd(*[coefficient for _, coefficient in both])
    shared = common_factors([monomial for monomial, _ in both])
    if shared or content != 1:
        a, b = _cancel(a, shared, content), _cancel(b, shared, content)
    if not b[0][0]:
        return {}, dict(a), b, shared, sign * content
    whole, rest = _by_term(a, *b[0]) if len(b) == 1 else _by_sum(a, b)
    return whole, rest, b, shared, sign * content


def toward_zero(a: int, b: int) -> int:
    """Return the quotient of integers, `b` positive, such that the rest has the sign of `a`."""
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


def _negate(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple([(monomial, -coefficient) for monomial, coefficient in terms])


def _cancel(terms: tuple[Term, ...], shared: Monomial, content: int) -> tuple[Term, ...]:
    """Divide terms by their common factors; their order stays."""
    return tuple([(quotient(monomial, shared) or (), c // content) for monomial, c in terms])


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
        if not isinstance(other, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
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
    """Return the size called `text`, which need not be an identifier."""
    return _alone(name_factor(text))


def from_terms(terms: Mapping[Monomial, int]) -> Size:
    """Return the sum of terms; each monomial must be sorted."""
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
    """Rebuild an operation from its operands."""
    if kind == "min" or kind == "max":
        return extremum(kind, args)
    a, b = args
    return a // b if kind == "//" else a % b


def extremum(kind: Literal["min", "max"], sizes: Iterable[Size]) -> Size:
    """Return the smallest or largest of several sizes."""
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
    """Return the size of terms that are in order."""
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


# Symbolic sizes: the names that other modules use, evaluation and rewriting of sizes.
#
# A size is an `int`, or a `Dim` in normal form. Consequences of facts about the names (`n % 8 ==
# 0`) belong to `assumptions`.


# The text form of sizes: `parse` reads the forms that `str` writes, and those that people write.


class DimSyntaxError(ValueError):
    """A text is not a size expression; `offset` is where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def parse(text: str) -> Size:
    """Read one size expression: names, integers, `+ - * // %`, parentheses, `min`, `max`."""
    parser = _Parser(text)
    try:
        return parser.parse()
    except (DimTooLarge, RecursionError) as error:
        offset = parser.tokens[min(parser.index, len(parser.tokens) - 1)][1]
        raise DimSyntaxError(str(error), offset) from None


_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*)|(//|[-+*%(),]))")


class _Parser:
    """Recursive descent over `sum := product {(+|-) product}`, with Python's precedences."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, int]] = []
        self.index = 0
        self.depth = 0
        if len(text) > MAX_TEXT:
            raise DimSyntaxError("the size expression is too long", 0)
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                position += len(text[position:]) - len(text[position:].lstrip())
                raise DimSyntaxError(_unexpected(text[position:]), position)
            self.tokens.append((match[match.lastindex or 0], match.start(match.lastindex or 0)))
            position = match.end()
        self.tokens.append(("", end))

    def parse(self) -> Size:
        size = self.sum()
        token, offset = self.tokens[self.index]
        if token:
            raise DimSyntaxError(f"expected an operator, found `{token}`", offset)
        return size

    def accept(self, *expected: str) -> str:
        token = self.tokens[self.index][0]
        if token in expected:
            self.index += 1
            return token
        return ""

    def require(self, expected: str) -> None:
        if not self.accept(expected):
            token, offset = self.tokens[self.index]
            found = f"`{token}`" if token else "the end"
            raise DimSyntaxError(f"expected `{expected}`, found {found}", offset)

    def sum(self) -> Size:
        size = self.product()
        while operator := self.accept("+", "-"):
            right = self.product()
            size = size + right if operator == "+" else size - right
        return size

    def product(self) -> Size:
        size = self.factor()
        while operator := self.accept("*", "//", "%"):
            offset = self.tokens[self.index][1]
            right = self.factor()
            if operator == "*":
                size = size * right
            elif right == 0:
                raise DimSyntaxError("division by zero", offset)
            else:
                size = size // right if operator == "//" else size % right
        return size

    def factor(self) -> Size:
        negative = False
        while operator := self.accept("-", "+"):
            negative ^= operator == "-"
        size = self.operand()
        return -size if negative else size

    def operand(self) -> Size:
        token, offset = self.tokens[self.index]
        if not token:
            alone = self.tokens[0][0]
            if len(self.tokens) == 2 and alone in ("+", "-", "*", "//", "%"):  # as in `n - 1`
                raise DimSyntaxError(f"spaces separate sizes: write `n{alone}1`, without any", 0)
            raise DimSyntaxError("expected a name or a number, found the end", offset)
        self.index += 1
        if token.isdecimal():
            if len(token) > 20 or int(token) > MAX_COEFFICIENT:
                raise DimSyntaxError("the number is too large", offset)
            return int(token)
        if token == "(":
            return self.group(offset)
        if (token == "min" or token == "max") and self.accept("("):
            return self.call("min" if token == "min" else "max", offset)
        if token == "_":
            raise DimSyntaxError("`_` is a size of its own, not part of an expression", offset)
        if not token.isidentifier():
            raise DimSyntaxError(f"expected a name or a number, found `{token}`", offset)
        return variable(token)

    def enter(self, offset: int) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise DimSyntaxError("the parentheses are nested too deeply", offset)

    def group(self, offset: int) -> Size:
        self.enter(offset)
        size = self.sum()
        self.depth -= 1
        self.require(")")
        return size

    def call(self, function: Literal["min", "max"], offset: int) -> Size:
        self.enter(offset)
        sizes = [self.sum()]
        while self.accept(","):
            sizes.append(self.sum())
        self.depth -= 1
        self.require(")")
        return extremum(function, sizes)


def _unexpected(text: str) -> str:
    if text.startswith("/"):
        return "`/` is not exact, use `//`"
    return f"`{text[0]}` has no meaning in a size"


class MissingSize(KeyError):
    """A size was evaluated without a value for one of its names."""

    def __str__(self) -> str:
        return f"no value is given for the size {self.args[0]}"


def name(text: str) -> Dim:
    """The size called `text`."""
    if not text.isidentifier():
        raise DimSyntaxError(f"{text!r} is not a name", 0)
    return variable(text)


def minimum(a: Size, b: Size) -> Size:
    """Return the smaller of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return extremum("min", (a, b))


def maximum(a: Size, b: Size) -> Size:
    """Return the larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return extremum("max", (a, b))


def show(size: Size) -> str:
    """Return the text of a size, without spaces; `parse` reads it back."""
    return str(size)


def substitute(size: Size, env: Mapping[str, Size]) -> Size:
    """Replace names by sizes simultaneously; names that `env` lacks stay."""
    if isinstance(size, int):
        return size
    kept: dict[Monomial, int] = {}
    total: Size = 0
    for monomial, coefficient in size.terms:
        if not any(key in env for factor in monomial for key in factor.names):
            kept[monomial] = coefficient
            continue
        product: Size = coefficient
        for factor in monomial:
            product = product * _substitute_factor(factor, env)
        total = total + product
    return total + from_terms(kept)


def _substitute_factor(factor: Factor, env: Mapping[str, Size]) -> Size:
    if factor.kind == "name":
        found = env.get(factor)
        return from_terms({(factor,): 1}) if found is None else found
    return apply(factor.kind, [substitute(arg, env) for arg in factor.args])


def numbers(sizes: Sequence[Size]) -> tuple[int, ...]:
    """Return sizes that are known to be numbers."""
    found = tuple([size for size in sizes if isinstance(size, int)])
    assert len(found) == len(sizes)
    return found


def evaluate(size: Size, env: Mapping[str, int]) -> int:
    """Evaluate a size by Python's floor division; raise `MissingSize` if a name has no value."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        for factor in monomial:
            if factor.kind == "name":
                try:
                    coefficient *= env[factor]
                except KeyError:
                    raise MissingSize(str(factor)) from None
            else:
                coefficient *= _evaluate_operation(factor, env)
        total += coefficient
    return total


def _evaluate_operation(factor: Factor, env: Mapping[str, int]) -> int:
    values = [evaluate(arg, env) for arg in factor.args]
    match factor.kind:
        case "//":
            return values[0] // values[1]
        case "%":
            return values[0] % values[1]
        case "min":
            return min(values)
        case _:
            return max(values)


__all__ = [
    "Dim",
    "DimSyntaxError",
    "DimTooLarge",
    "Factor",
    "Kind",
    "MissingSize",
    "Monomial",
    "Size",
    "Term",
    "apply",
    "as_terms",
    "evaluate",
    "extremum",
    "from_terms",
    "maximum",
    "minimum",
    "name",
    "names",
    "parse",
    "show",
    "single_factor",
    "substitute",
    "variable",
]
