"""Refuting constraints: distinguishing cases until elimination closes every one of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pscdsl.typing import dims
from pscdsl.typing.constraints import Constraints
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.elimination import infeasible

_MAX_CASES = 48
_MAX_MODULUS = 4

_Case: TypeAlias = tuple[Constraints, frozenset[str]]
"""Constraints, and the divisions whose sign they already are one case of."""


def refuted(constraints: Constraints) -> bool:
    """Whether no integers satisfy the constraints, as far as can be shown."""
    pending: list[_Case] = [(constraints, frozenset())]
    for _ in range(_MAX_CASES):
        if not pending:
            return True
        case, signed = pending.pop()
        if case.contradictory or infeasible(case.nonnegative, case.zero):
            continue
        cases = _cases(case, signed)
        if not cases:
            return False
        pending += cases
    return not pending


def _cases(constraints: Constraints, signed: frozenset[str]) -> list[_Case]:
    """Cases that together cover the constraints, one distinction made in each; or none."""
    for unknown, (kind, args) in constraints.definitions.items():
        if kind == "min" or kind == "max":
            chosen = [_where_chosen(constraints, unknown, kind, args, arg) for arg in args]
            return [(case, signed) for case in chosen]
    if constraints.distinct:
        rest = constraints.copy()
        size = rest.distinct.pop()
        return [(_with_bound(rest, size - 1), signed), (_with_bound(rest, -size - 1), signed)]
    for unknown, (kind, args) in constraints.definitions.items():
        if kind == "//" and isinstance(args[1], Dim) and unknown not in signed:
            quotient = constraints.value(unknown)
            zero = constraints.copy()
            zero.solve([quotient])
            positive = _with_bound(constraints, quotient - 1)
            negative = _with_bound(constraints, -1 - quotient)
            return [(case, signed | {unknown}) for case in (zero, positive, negative)]
    for kind, args in constraints.definitions.values():
        if kind == "//" and isinstance(args[1], int) and 0 < args[1] <= _MAX_MODULUS:
            for monomial, _ in dims.as_terms(args[0]):
                if len(monomial) > 1:
                    return [(case, signed) for case in _residues(constraints, monomial[0], args[1])]
    return []


def _with_bound(constraints: Constraints, size: Size) -> Constraints:
    case = constraints.copy()
    case.add_nonnegative(size)
    return case


def _where_chosen(
    constraints: Constraints,
    unknown: str,
    kind: Literal["min", "max"],
    args: tuple[Size, ...],
    chosen: Size,
) -> Constraints:
    """The case where one operand is the minimum or maximum."""
    case = constraints.copy()
    del case.definitions[unknown]
    for other in args:
        case.add_nonnegative(other - chosen if kind == "min" else chosen - other)
    case.solve([dims.variable(unknown) - chosen])
    return case


def _residues(constraints: Constraints, name: str, modulus: int) -> list[Constraints]:
    """The cases of what a name leaves when divided by a small number."""
    cases: list[Constraints] = []
    for residue in range(modulus):
        case = constraints.copy()
        case.solve([dims.variable(name) - modulus * case.fresh() - residue])
        cases.append(case)
    return cases
