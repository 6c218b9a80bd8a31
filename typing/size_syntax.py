"""The text form of sizes: `parse` reads what `str` writes, and what people write."""

from __future__ import annotations

import re
from typing import Literal

from pscdsl.typing.monomials import MAX_COEFFICIENT, MAX_DEPTH, MAX_TEXT, DimTooLarge
from pscdsl.typing.polynomials import Size, extremum, variable


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
