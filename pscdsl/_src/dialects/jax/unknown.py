"""What cannot be followed in JAX programs, and why: no finding follows from it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pscdsl._src.dialects.jax.names import Program

Cause = Literal[
    "library", "value", "method", "class", "decorator", "recursion", "generator", "size"
]

CAUSES: dict[Cause, str] = {
    "library": "functions of other libraries",
    "method": "methods of objects of unknown classes",
    "value": "functions that are arguments or computed",
    "class": "classes without an `__init__` in the project",
    "decorator": "functions with unknown decorators",
    "recursion": "functions that call themselves",
    "generator": "generators and coroutines",
    "size": "functions too large to follow",
}
"""What was called, for each cause, in the order of the summary."""


@dataclass(frozen=True)
class UnknownCall:
    """One call that cannot be followed."""

    path: str
    line: int
    column: int
    cause: Cause
    called: str
    """What is called, as it is written."""
    of: Literal["keys", "effects"] = "keys"
    """What it may do unseen: use a key that it is given, or have an effect while it is traced."""


@dataclass(frozen=True)
class Annotated:
    """One function whose annotations give shapes."""

    path: str
    line: int
    column: int
    name: str
    is_wrong: bool = False
    unknown: str = ""
    """The reason why its shapes cannot be followed; empty if they can."""
    tried: str = ""
    """The types that were chosen for parameters without one; empty if all have one."""
    outside: tuple[str, ...] = ()
    """The functions of other libraries that it calls, which are not followed."""

    @property
    def is_proven(self) -> bool:
        """Return whether its shapes fit for every size."""
        return not self.is_wrong and not self.unknown


@dataclass(frozen=True)
class Inferred:
    """One function or method whose parameters are not annotated, and the typing found for it."""

    path: str
    line: int
    column: int
    name: str
    typing: str = ""
    """Its name, parameters and result; empty if no typing was found."""
    unknown: str = ""
    """The reason why none was found."""


def unknown_call(
    program: Program, node: ast.AST, cause: Cause, of: Literal["keys", "effects"] = "keys"
) -> UnknownCall:
    """Return a call that cannot be followed, by its node in a program."""
    span = program.source.span(node)
    called = node.func if isinstance(node, ast.Call) else node
    text = program.source.text_of(called) if isinstance(called, ast.expr) else ""
    shown = " ".join(text.split())[:60]
    return UnknownCall(span.path, span.line, span.column, cause, shown, of)


def by_cause(calls: Iterable[UnknownCall]) -> Iterator[tuple[Cause, int]]:
    """Yield the number of calls of each cause that occurs."""
    counts = Counter(call.cause for call in calls)
    return ((cause, counts[cause]) for cause in CAUSES if counts[cause])
