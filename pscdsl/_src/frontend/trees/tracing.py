"""What all combinators share: function arguments, trees of arrays, types that must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.frontend.trees.pytrees import leaf
from pscdsl._src.frontend.values.values import Applicable, Poison, Poisoned, describe
from pscdsl._src.ir.builder import Builder, Program, Value, Weak, squeeze
from pscdsl.typing.array_types import Type, map_leaves
from pscdsl.typing.codes.control import BadPredicate
from pscdsl.typing.codes.language import NotCallable
from pscdsl.typing.diagnostics import Failure, Severity
from pscdsl.typing.dtypes import BOOL, DType, accepts_weak

MAX_ROUNDS = 4
"""How often a body is elaborated anew until the dtypes of its weak inputs are settled."""


def applicable(function: Any, combinator: str) -> Applicable:
    """A function argument; a Failure if it cannot be called."""
    if not isinstance(function, Applicable):
        instead = "give a function of the operands, for instance `lambda x: …`"
        if combinator in ("psc.cond", "psc.switch"):
            instead = "give functions, `lambda: …`, or choose between arrays with `np.where`"
        found = f"{describe(function)}, given to `{combinator}`,"
        raise Failure(NotCallable(found=found, instead=instead))
    return function


def strong(values: Sequence[Value | Weak]) -> list[Value]:
    """Weak arrays in their default dtypes."""
    return [each.default() if isinstance(each, Weak) else each for each in values]


def at(value: Value | Weak, dtype: DType) -> Value:
    """A value in a dtype, if it is weak and can take it; else as it is."""
    if isinstance(value, Value):
        return value
    return value.at(dtype) if accepts_weak(dtype, value.kind) else value.default()


def of_values(tree: Type, values: Sequence[Value]) -> Type:
    """A tree with the types of these values."""
    remaining = iter(values)
    return map_leaves(tree, lambda _: next(remaining).type)


class Attempt:
    """What a first try found and assumed, so that a second one starts as if it had not been."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = len(program.findings)
        self.revealed = len(program.revealed)
        self.facts = program.facts

    def failed(self) -> bool:
        """Whether errors were found since."""
        found = self.program.findings[self.count :]
        return any(each.severity is Severity.ERROR for each in found)

    def forget(self) -> None:
        """Drop what was found since, and what was assumed once its absence had been reported.

        Impurities stay: a second try does not find what the first has made unknown.
        """
        findings = self.program.findings
        findings[self.count :] = [d for d in findings[self.count :] if d.code[3] == "2"]
        del self.program.revealed[self.revealed :]
        self.program.facts = self.facts


def bool_scalar(here: Builder, value: Any, construct: str) -> Value:
    """A predicate as a bool scalar; a Failure if it is something else."""
    if isinstance(value, Poison):
        raise Poisoned
    found = leaf(here, value)
    if isinstance(found, Weak):
        found = found.default()
    if found is None or found.dtype is not BOOL or found.ndim:
        if found is not None and found.dtype is BOOL and all(size == 1 for size in found.shape):
            return squeeze(found, tuple(range(found.ndim)))
        raise Failure(BadPredicate(construct=construct, found=describe(value)))
    return found
