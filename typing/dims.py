"""Symbolic sizes: the names that other modules use, and how sizes are computed and rewritten.

A size is an `int`, or a `Dim` in the normal form of `polynomials`; `parse` is from `size_syntax`.
What follows only from facts about the names (`n % 8 == 0`) is the business of `assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pscdsl.typing.polynomials import (
    MAX_COEFFICIENT,
    MAX_DEPTH,
    MAX_TEXT,
    Dim,
    DimTooLarge,
    Factor,
    Kind,
    Monomial,
    Size,
    Term,
    apply,
    as_terms,
    extremum,
    from_terms,
    names,
    single_factor,
    variable,
)

# The text form of sizes: `parse` reads what `str` writes, and what people write.


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
    """The smaller of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return extremum("min", (a, b))


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return extremum("max", (a, b))


def show(size: Size) -> str:
    """The text of a size, without spaces; `parse` reads it back."""
    return str(size)


def substitute(size: Size, env: Mapping[str, Size]) -> Size:
    """Replace names by sizes, all at once; names that `env` lacks stay."""
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
    """Sizes that are known to be numbers."""
    found = tuple([size for size in sizes if isinstance(size, int)])
    assert len(found) == len(sizes)
    return found


def evaluate(size: Size, env: Mapping[str, int]) -> int:
    """The value of a size, with Python's floor division; `MissingSize` if a name has no value."""
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
