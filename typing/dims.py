"""Symbolic sizes: the names that other modules use, and how sizes are computed and rewritten.

A size is an `int`, or a `Dim` in the normal form of `polynomials`; `parse` is from `size_syntax`.
What follows only from facts about the names (`n % 8 == 0`) is the business of `assumptions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pscdsl.typing.monomials import (
    DimTooLarge,
    Factor,
    Kind,
    Monomial,
    Term,
    as_terms,
    names,
    single_factor,
)
from pscdsl.typing.polynomials import Dim, Size, apply, extremum, from_terms, variable
from pscdsl.typing.size_syntax import DimSyntaxError, parse


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
