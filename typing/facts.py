"""Facts about sizes: relations between two of them, read from text and shown as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.dims import Dim, DimSyntaxError, Size

Relation: TypeAlias = Literal["==", "!=", "<=", "<"]

_OPPOSITE: dict[Relation, Relation] = {"==": "!=", "!=": "==", "<=": "<", "<": "<="}
_FLIPPED = {"==": "==", "!=": "!=", "<=": ">=", "<": ">"}
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>|=")


class Fact:
    """A relation between two sizes; divisibility is `Fact("==", n % 8, 0)`.  Immutable."""

    __slots__ = ("_hash", "left", "relation", "right")

    def __init__(self, relation: Relation, left: Size, right: Size) -> None:
        self.relation: Final = relation
        self.left: Final = left
        self.right: Final = right
        self._hash = hash((relation, left, right))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Fact)
            and self.relation == other.relation
            and self.left == other.left
            and self.right == other.right
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Fact], tuple[Relation, Size, Size]]:
        return Fact, (self.relation, self.left, self.right)

    def __repr__(self) -> str:
        return f"Fact({self})"

    def __str__(self) -> str:
        if isinstance(self.left, int) and not isinstance(self.right, int):
            return f"{_spaced(self.right)} {_FLIPPED[self.relation]} {self.left}"
        return f"{_spaced(self.left)} {self.relation} {_spaced(self.right)}"

    def negated(self) -> Fact:
        """The fact that holds exactly where this one does not."""
        if self.relation == "==" or self.relation == "!=":
            return Fact(_OPPOSITE[self.relation], self.left, self.right)
        return Fact(_OPPOSITE[self.relation], self.right, self.left)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether the fact is true of these numbers; not if it divides by zero."""
        try:
            left, right = dims.evaluate(self.left, env), dims.evaluate(self.right, env)
        except ZeroDivisionError:
            return False
        match self.relation:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<=":
                return left <= right
            case "<":
                return left < right

    def substitute(self, env: Mapping[str, Size]) -> Fact:
        """Replace names by sizes on both sides; `ZeroDivisionError` if that divides by zero."""
        left, right = dims.substitute(self.left, env), dims.substitute(self.right, env)
        return Fact(self.relation, left, right)

    def names(self) -> frozenset[str]:
        """The names mentioned on either side."""
        return dims.names(self.left) | dims.names(self.right)

    def divisors(self) -> Iterator[Dim]:
        """The sizes that either side divides by, at any depth; constants left out."""
        pending = [self.left, self.right]
        while pending:
            for monomial, _ in dims.as_terms(pending.pop()):
                for factor in monomial:
                    pending.extend(factor.args)
                    if factor.kind in ("//", "%") and isinstance(factor.args[1], Dim):
                        yield factor.args[1]

    def explicit_lower_bound(self) -> tuple[str, int] | None:
        """The name and the constant, if this is `constant <= name` or `constant < name`."""
        if not isinstance(self.left, int) or self.relation not in ("<=", "<"):
            return None
        factor = dims.single_factor(self.right, "name")
        return None if factor is None else (str(factor), self.left + (self.relation == "<"))


def parse_fact(text: str) -> tuple[Fact, ...]:
    """Read a comparison such as `n % 8 == 0`; a chain `2 <= n < m` gives one fact a link."""
    operators = list(_COMPARISON.finditer(text))
    if not operators:
        raise DimSyntaxError("expected a comparison such as `n >= 2`", len(text))
    starts = [0, *(operator.end() for operator in operators)]
    ends = [*(operator.start() for operator in operators), len(text)]
    sizes: list[Size] = []
    for start, end in zip(starts, ends, strict=True):
        try:
            sizes.append(dims.parse(text[start:end]))
        except DimSyntaxError as error:
            raise DimSyntaxError(error.message, start + error.offset) from None
    facts: list[Fact] = []
    for operator, left, right in zip(operators, sizes, sizes[1:], strict=False):
        match operator[0]:
            case "==" | "!=" | "<=" | "<" as relation:
                facts.append(Fact(relation, left, right))
            case ">=":
                facts.append(Fact("<=", right, left))
            case ">":
                facts.append(Fact("<", right, left))
            case _:
                raise DimSyntaxError("sizes are compared by `==`, not `=`", operator.start())
    return tuple(facts)


def connected(facts: Iterable[Fact]) -> list[list[Fact]]:
    """Split facts into groups that share no name, in order of their first facts."""
    groups: list[tuple[set[str], list[Fact]]] = []
    for fact in facts:
        mine = fact.names()
        touching = [group for group in groups if not mine.isdisjoint(group[0])]
        if not touching:
            groups.append((set(mine), [fact]))
            continue
        (shared, members), *others = touching
        shared |= mine
        for other in others:
            shared |= other[0]
            members += other[1]
            groups = [group for group in groups if group is not other]
        members.append(fact)
    return [group for _, group in groups]


def _spaced(size: Size) -> str:
    text = str(size)
    factor = dims.single_factor(size, "//", "%")
    if factor is None or text.count(factor.kind) != 1:
        return text
    return text.replace(factor.kind, f" {factor.kind} ")
