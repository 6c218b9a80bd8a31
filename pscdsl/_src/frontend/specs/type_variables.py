"""Type variables: `T = TypeVar("T", bound=psc.Tree[f32])`, read from source or loaded."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pscdsl._src.frontend.values.values import Alias, Marker, StaticFunction
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import DTypeClass, TreeSpec

TREE = Marker("pscdsl.Tree")


@dataclass(frozen=True)
class TypeVariable:
    """A type variable, and which trees of arrays it stands for."""

    name: str
    dtype: DType | DTypeClass | None = None
    """The dtype of all arrays; None if each has its own."""
    bounded: bool = False
    problem: str = ""
    """Why it stands for no tree of arrays; empty if it does."""

    def description(self) -> str:
        """How messages speak of it."""
        return f"the type variable {self.name}"

    def spec(self, span: Span) -> TreeSpec:
        """What an annotation says that consists of it."""
        return TreeSpec(self.name, self.dtype, bounded=self.bounded, span=span)


def bounded_by(name: str, head: Any, inside: Any) -> TypeVariable:
    """The variable whose bound is `head`, or `head[inside]`."""
    if not name.isidentifier():
        return TypeVariable(name, problem="its name is no identifier")
    if head is None:
        return TypeVariable(name)
    if not (isinstance(head, Marker) and head == TREE):
        return TypeVariable(name, problem="its bound is not `psc.Tree`")
    if inside is None or isinstance(inside, DType | DTypeClass):
        return TypeVariable(name, inside, bounded=True)
    return TypeVariable(name, problem="its bound is `psc.Tree[…]` of something that is no dtype")


def type_variable(
    here: Any, name: Any, *constraints: Any, bound: Any = None, **options: Any
) -> TypeVariable:
    """What `TypeVar(…)` gives."""
    from pscdsl._src.frontend.interpreter.expressions import evaluate

    del here, options
    if constraints:
        return TypeVariable(str(name), problem="it has constraints, and no bound")
    if isinstance(bound, Alias) and isinstance(bound.node, ast.Subscript):
        inside = evaluate(bound.frame, bound.node.slice)
        return bounded_by(str(name), bound.head, inside)
    return bounded_by(str(name), bound, None)


MEANINGS["typing.TypeVar"] = StaticFunction("typing.TypeVar", type_variable)
