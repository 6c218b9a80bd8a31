"""Symbolic sizes: integer polynomials with floor division, modulo, min and max, in a normal form.

Two sizes that are equal as polynomials are structurally equal, and a constant is always an `int`.
What follows only from facts about the names (`n % 8 == 0`) is the business of `assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import gcd
from typing import Literal, TypeAlias

MAX_TERMS = 200
MAX_DEGREE = 64
MAX_COEFFICIENT = 2**63
MAX_TEXT = 10_000
MAX_DEPTH = 40

Kind: TypeAlias = Literal["name", "//", "%", "min", "max"]


class DimTooLarge(OverflowError):
    """A size expression has grown past what is worth reasoning about."""


class DimSyntaxError(ValueError):
    """A text is not a size expression; `offset` is where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class MissingSize(KeyError):
    """A size was evaluated without a value for one of its names."""

    def __str__(self) -> str:
        return f"no value is given for the size {self.args[0]}"


class Atom(str):
    """An indivisible factor: a name, or an operation on sizes.  Its text is its identity."""

    __slots__ = ("args", "depth", "kind", "names")

    kind: Kind
    args: tuple[Size, ...]
    names: frozenset[str]
    depth: int

    def __getnewargs__(self) -> tuple[str]:
        return (str(self),)


Monomial: TypeAlias = tuple[Atom, ...]
Term: TypeAlias = tuple[Monomial, int]


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
            self._text = _sum_text(self.terms)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __reduce__(self) -> tuple[Callable[[str], Size], tuple[str]]:
        return parse, (str(self),)

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
            return Dim((*terms, ((), _bounded(value))))
        total = coefficient + value
        return Dim((*terms[:-1], ((), _bounded(total))) if total else terms[:-1])

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
            return _scaled(self, other)
        if not isinstance(other, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right)) if left and right else left or right
                product[monomial] = product.get(monomial, 0) + a * b
        return from_terms(product)

    __rmul__ = __mul__

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


def name(text: str) -> Dim:
    """The size called `text`."""
    if not text.isidentifier():
        raise DimSyntaxError(f"{text!r} is not a name", 0)
    return variable(text)


def variable(text: str) -> Dim:
    """The size called `text`, which need not be an identifier (for names no program can hold)."""
    return Dim((((_atom("name", (), text),), 1),))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return extremum("min", (a, b))


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return extremum("max", (a, b))


def names(size: Size) -> frozenset[str]:
    """The names that a size mentions."""
    if isinstance(size, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in size.terms:
        for atom in monomial:
            found |= atom.names
    return frozenset(found)


def substitute(size: Size, env: Mapping[str, Size]) -> Size:
    """Replace names by sizes, all at once; names that `env` lacks stay."""
    if isinstance(size, int):
        return size
    kept: dict[Monomial, int] = {}
    total: Size = 0
    for monomial, coefficient in size.terms:
        if not any(key in env for atom in monomial for key in atom.names):
            kept[monomial] = coefficient
            continue
        product: Size = coefficient
        for atom in monomial:
            product = product * _substitute_atom(atom, env)
        total = total + product
    return total + from_terms(kept)


def evaluate(size: Size, env: Mapping[str, int]) -> int:
    """The value of a size, with Python's floor division; `MissingSize` if a name has no value."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        for atom in monomial:
            if atom.kind == "name":
                try:
                    coefficient *= env[atom]
                except KeyError:
                    raise MissingSize(str(atom)) from None
            else:
                coefficient *= _evaluate_operation(atom, env)
        total += coefficient
    return total


def show(size: Size) -> str:
    """The text of a size, without spaces; `parse` reads it back."""
    return str(size)


def from_terms(terms: Mapping[Monomial, int]) -> Size:
    """The sum of terms; each monomial must be sorted."""
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) > 1:
        kept.sort(key=_term_order)
        if len(kept) > MAX_TERMS:
            raise DimTooLarge(f"a size has more than {MAX_TERMS} terms")
    if len(kept[0][0]) > MAX_DEGREE:
        raise DimTooLarge(f"a size has a degree above {MAX_DEGREE}")
    for monomial, coefficient in kept:
        _bounded(coefficient)
        if not monomial and len(kept) == 1:
            return coefficient
    return Dim(tuple(kept))


def as_terms(size: Size) -> tuple[Term, ...]:
    """The terms of a size, also of a constant one."""
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def extremum(kind: Literal["min", "max"], sizes: Iterable[Size]) -> Size:
    """The smallest or largest of several sizes."""
    flat: list[Size] = []
    for size in sizes:
        atom = single_atom(size, kind)
        flat.extend((size,) if atom is None else atom.args)
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
    text = f"{kind}({','.join(map(str, best))})"
    return Dim((((_atom(kind, tuple(best), text),), 1),))


def single_atom(size: Size, *kinds: Kind) -> Atom | None:
    """The atom that a size consists of, if it is nothing else, and of one of these kinds."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    monomial, coefficient = size.terms[0]
    if coefficient != 1 or len(monomial) != 1 or (kinds and monomial[0].kind not in kinds):
        return None
    return monomial[0]


def _term_order(term: Term) -> tuple[int, Monomial]:
    return -len(term[0]), term[0]


def _bounded(coefficient: int) -> int:
    if -MAX_COEFFICIENT <= coefficient <= MAX_COEFFICIENT:
        return coefficient
    raise DimTooLarge("a size has a coefficient above 2**63")


def _scaled(dim: Dim, factor: int) -> Size:
    if factor == 0:
        return 0
    if factor == 1:
        return dim
    return Dim(tuple([(m, _bounded(c * factor)) for m, c in dim.terms]))


def _atom(kind: Kind, args: tuple[Size, ...], text: str) -> Atom:
    atom = Atom(text)
    atom.kind = kind
    atom.args = args
    if kind == "name":
        atom.names = frozenset((str(atom),))
        atom.depth = 0
        return atom
    atom.names = frozenset[str]().union(*map(names, args))
    inner = [factor.depth for arg in args for monomial, _ in as_terms(arg) for factor in monomial]
    atom.depth = 1 + max(inner, default=0)
    if atom.depth > MAX_DEPTH or len(text) > MAX_TEXT:
        raise DimTooLarge("a size expression is nested too deeply")
    return atom


def _operation(kind: Literal["//", "%"], a: Size, b: Size) -> Dim:
    left, right = str(a), str(b)
    if isinstance(a, int):
        left = left if a >= 0 else f"({left})"
    elif len(a.terms) > 1 or left.startswith("-") or single_atom(a, "//", "%") is not None:
        left = f"({left})"
    if isinstance(b, Dim) and single_atom(b, "name", "min", "max") is None:
        right = f"({right})"
    return Dim((((_atom(kind, (a, b), f"{left}{kind}{right}"),), 1),))


def _floordiv(a: Size, b: Size) -> Size:
    if isinstance(b, int):
        return a // b if isinstance(a, int) else _floordiv_int(a, b)
    if not isinstance(b, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
        return NotImplemented
    whole, rest, divisor, _ = _split(a, b)
    if rest == 0:
        return whole
    if isinstance(divisor, int) or whole != 0:
        return whole + rest // divisor
    return whole + _operation("//", rest, divisor)


def _mod(a: Size, b: Size) -> Size:
    if isinstance(b, int):
        return a % b if isinstance(a, int) else _mod_int(a, b)
    if not isinstance(b, Dim):  # pyright: ignore[reportUnnecessaryIsInstance]
        return NotImplemented
    whole, rest, divisor, factor = _split(a, b)
    if rest == 0:
        return 0
    if isinstance(divisor, int) or whole != 0:
        return factor * (rest % divisor)
    return factor * _operation("%", rest, divisor)


def _floordiv_int(a: Dim, k: int) -> Size:
    if k <= 0:
        if k == 0:
            raise ZeroDivisionError(f"the size {a} is divided by zero")
        return _floordiv(-a, -k)
    if k == 1:
        return a
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    constant, common = 0, k
    for monomial, c in a.terms:
        if not monomial:
            whole[monomial], constant = divmod(c, k)
            continue
        quotient = c // k if c >= 0 else -(-c // k)
        whole[monomial] = quotient
        if remainder := c - quotient * k:
            rest[monomial] = remainder
            common = gcd(common, remainder)
    if not rest:
        return from_terms(whole)
    if common > 1:
        rest = {monomial: c // common for monomial, c in rest.items()}
        constant, k = constant // common, k // common
    rest[()] = constant
    remaining = from_terms(rest)
    base = from_terms(whole)
    if len(rest) == 2:
        (monomial, c), _ = rest.items()
        inner = monomial[0]
        if len(monomial) == 1 and c > 0 and inner.kind in ("//", "%"):
            dividend, divisor = inner.args
            if isinstance(divisor, int) and divisor > 0:
                if inner.kind == "//" and c == 1:
                    return base + (dividend + constant * divisor) // (divisor * k)
                if inner.kind == "%" and c * (divisor - 1) + constant < k:
                    return base
    return base + _operation("//", remaining, k)


def _mod_int(a: Dim, k: int) -> Size:
    if k <= 0:
        if k == 0:
            raise ZeroDivisionError(f"the size {a} is taken modulo zero")
        return -_mod(-a, -k)
    if k == 1:
        return 0
    rest: dict[Monomial, int] = {}
    extra: Size = 0
    common = k
    for monomial, c in a.terms:
        if len(monomial) == 1 and monomial[0].kind == "%":
            dividend, divisor = monomial[0].args
            if isinstance(divisor, int) and c * divisor % k == 0 and (divisor != k or c != 1):
                extra = extra + c * dividend
                continue
            if divisor == k and c == 1:
                extra = extra + dividend
                continue
        remainder = c % k if c >= 0 or not monomial else -(-c % k)
        if remainder:
            rest[monomial] = remainder
            common = gcd(common, remainder)
    remaining = from_terms(rest)
    if extra != 0:
        return (remaining + extra) % k
    if isinstance(remaining, int):
        return remaining
    if common > 1:
        return common * (from_terms({m: c // common for m, c in rest.items()}) % (k // common))
    constant = rest.get((), 0)
    if len(rest) - (constant != 0) == 1:
        monomial, c = remaining.terms[0]
        if len(monomial) == 1 and c > 0 and monomial[0].kind == "%":
            divisor = monomial[0].args[1]
            if isinstance(divisor, int) and divisor > 0 and c * (divisor - 1) + constant < k:
                return remaining
    return _operation("%", remaining, k)


def _split(a: Size, b: Dim) -> tuple[Size, Size, Size, Size]:
    """Split a division into whole, rest, divisor and factor, for every `b` but zero.

    `a // b` is `whole + rest // divisor`, and `a % b` is `factor * (rest % divisor)`.
    """
    if a == 0:
        return 0, 0, b, 1
    sign = 1
    if b.terms[0][1] < 0:
        a, b, sign = -a, -b, -1
    terms = as_terms(a) + b.terms
    content = gcd(*[c for _, c in terms])
    shared = terms[0][0]
    for monomial, _ in terms:
        shared = _shared(shared, monomial)
    rest, divisor = _cancel(a, shared, content), _cancel(b, shared, content)
    factor = from_terms({shared: sign * content})
    if isinstance(divisor, int):
        return 0, rest, divisor, factor
    if len(divisor.terms) == 1:
        whole, rest = _split_by_term(rest, *divisor.terms[0])
    else:
        whole, rest = _split_by_sum(rest, divisor)
    return whole, rest, divisor, factor


def _split_by_term(a: Size, monomial: Monomial, coefficient: int) -> tuple[Size, Size]:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for own, c in as_terms(a):
        quotient = _quotient(own, monomial)
        if quotient is None:
            rest[own] = c
            continue
        count = c // coefficient if c >= 0 else -(-c // coefficient)
        whole[quotient] = count
        rest[own] = c - count * coefficient
    return from_terms(whole), from_terms(rest)


def _split_by_sum(a: Size, divisor: Dim) -> tuple[Size, Size]:
    """Divide polynomials; the quotient is taken only where it leaves less than there was."""
    lead, coefficient = divisor.terms[0]
    whole: Size = 0
    pending: Size = a
    rest: dict[Monomial, int] = {}
    for _ in range(MAX_TERMS):
        terms = as_terms(pending)
        if not terms:
            break
        monomial, c = terms[0]
        quotient = _quotient(monomial, lead)
        if quotient is None or c % coefficient:
            rest[monomial] = c
            pending = from_terms(dict(terms[1:]))
        else:
            step = from_terms({quotient: c // coefficient})
            whole = whole + step
            pending = pending - step * divisor
    remaining = from_terms(rest) + pending
    if len(as_terms(remaining)) < len(as_terms(a)):
        return whole, remaining
    return 0, a


def _shared(a: Monomial, b: Monomial) -> Monomial:
    left = list(b)
    shared: list[Atom] = []
    for atom in a:
        if atom in left:
            left.remove(atom)
            shared.append(atom)
    return tuple(shared)


def _quotient(a: Monomial, b: Monomial) -> Monomial | None:
    left = list(a)
    for atom in b:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _cancel(a: Size, monomial: Monomial, content: int) -> Size:
    if not monomial and content == 1:
        return a
    return from_terms({_quotient(m, monomial) or (): c // content for m, c in as_terms(a)})


def _substitute_atom(atom: Atom, env: Mapping[str, Size]) -> Size:
    if atom.kind == "name":
        found = env.get(atom)
        return from_terms({(atom,): 1}) if found is None else found
    args = [substitute(arg, env) for arg in atom.args]
    return apply(atom.kind, args)


def apply(kind: Kind, args: Iterable[Size]) -> Size:
    """Build an operation anew from its operands."""
    if kind == "min" or kind == "max":
        return extremum(kind, args)
    a, b = args
    return a // b if kind == "//" else a % b


def _evaluate_operation(atom: Atom, env: Mapping[str, int]) -> int:
    values = [evaluate(arg, env) for arg in atom.args]
    match atom.kind:
        case "//":
            return values[0] // values[1]
        case "%":
            return values[0] % values[1]
        case "min":
            return min(values)
        case _:
            return max(values)


def _sum_text(terms: tuple[Term, ...]) -> str:
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
    factors = [str(atom) for atom in monomial if atom.kind not in ("//", "%")]
    factors += [f"({atom})" for atom in monomial if atom.kind in ("//", "%")]
    if abs(coefficient) != 1:
        factors.insert(0, str(abs(coefficient)))
    return ("-" if coefficient < 0 else "+") + "*".join(factors)


_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*)|(//|[-+*%(),]))")


class _Parser:
    """Recursive descent over `sum := product {(+|-) product}`, with Python's precedences."""

    def __init__(self, text: str) -> None:
        self.text = text
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


def parse(text: str) -> Size:
    """Read one size expression: names, integers, `+ - * // %`, parentheses, `min`, `max`."""
    parser = _Parser(text)
    try:
        return parser.parse()
    except (DimTooLarge, RecursionError) as error:
        offset = parser.tokens[min(parser.index, len(parser.tokens) - 1)][1]
        raise DimSyntaxError(str(error), offset) from None
