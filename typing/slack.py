"""Proofs by slack: where `n >= 2*k`, n is `2*k + s`, and what has no minus left is not negative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pscdsl.typing import dims
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.facts import Fact


def holds_by_slack(claim: Fact, facts: Iterable[Fact], lower_bound: Callable[[str], int]) -> bool:
    """Whether a claim about polynomials follows by writing names as their bounds and slack.

    It proves products of inequalities, which elimination does not look at.
    """
    if claim.relation not in ("<=", "<"):
        return False
    try:
        gap = claim.right - claim.left
        if not _is_nonlinear(gap):
            return False
        env: dict[str, Size] = {}
        for name, bound in _bounds(facts):
            bound = dims.substitute(bound, env)
            if name not in env and name not in dims.names(bound):
                slack = {name: bound + dims.variable(name)}
                env = {key: dims.substitute(size, slack) for key, size in env.items()} | slack
        gap = dims.substitute(gap, env)
        floors: dict[str, Size] = {
            name: dims.variable(name) + lower_bound(name) for name in dims.names(gap) - env.keys()
        }
        gap = dims.substitute(gap, floors)
    except DimTooLarge:
        return False
    least = dict(dims.as_terms(gap)).get((), 0)
    return least >= (claim.relation == "<") and all(c > 0 for m, c in dims.as_terms(gap) if m)


def _bounds(facts: Iterable[Fact]) -> Iterator[tuple[str, Size]]:
    """Names with polynomials, of other names, that they are at least."""
    for fact in facts:
        if fact.relation not in ("<=", "<"):
            continue
        gap = fact.right - fact.left - (fact.relation == "<")
        if not _is_polynomial(gap):
            continue
        for monomial, coefficient in dims.as_terms(gap):
            if len(monomial) == 1 and coefficient == 1:
                name = str(monomial[0])
                bound = dims.variable(name) - gap
                if name not in dims.names(bound):
                    yield name, bound


def _is_polynomial(size: Size) -> bool:
    return all(f.kind == "name" for monomial, _ in dims.as_terms(size) for f in monomial)


def _is_nonlinear(size: Size) -> bool:
    return _is_polynomial(size) and any(len(m) > 1 for m, _ in dims.as_terms(size))
