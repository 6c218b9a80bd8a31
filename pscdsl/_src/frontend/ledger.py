"""Nodes of the syntax tree given to their handlers, and the ledger of what was evaluated.

A handler is given every field of its node by name, so that none is passed over.  The ledger says
what was evaluated, in which order: what CPython evaluates, and a handler did not, is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.diagnostics import Failure

SET_BY_THE_PARSER = frozenset({"ctx", "kind", "simple", "type_comment"})
"""Fields that say nothing that the place of the node, its value or its text does not say."""
EMPTY = {"type_params": "type parameters"}
"""Fields that have no meaning here, and what stands in them."""

_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def handled(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that its handler is given."""
    found = _FIELDS.get(kind)
    if found is None:
        left_out = SET_BY_THE_PARSER | EMPTY.keys()
        found = _FIELDS[kind] = tuple(each for each in kind._fields if each not in left_out)
    return found


def fields(node: ast.AST) -> dict[str, Any]:
    """The fields of a node by name; a Failure if one is used that has no meaning here."""
    for name, what in EMPTY.items():
        if getattr(node, name, None):
            raise Failure(Unsupported(what=what, rewrite="use `psc.Tree` or a TypeVar"))
    return {name: getattr(node, name) for name in handled(type(node))}


class Ledger:
    """Which expressions were evaluated, when, and what they stood for."""

    def __init__(self) -> None:
        self._clock = 0
        self._evaluated: dict[ast.AST, tuple[int, Any]] = {}

    def now(self) -> int:
        """The time before what is evaluated next."""
        return self._clock

    def enter(self, node: ast.AST, value: Any) -> None:
        """An expression was evaluated."""
        self._clock += 1
        self._evaluated[node] = (self._clock, value)

    def value(self, node: ast.AST) -> Any:
        """What an expression stood for when it was evaluated last."""
        return self._evaluated[node][1]

    def settle(self, node: ast.AST, parts: Iterable[ast.AST], began: int) -> None:
        """Everything that was due has been evaluated since a time, in order; else a Failure."""
        last = began
        for each in parts:
            time = self._evaluated.get(each, (0,))[0]
            if time <= began:
                what = f"{type(each).__name__} in {type(node).__name__} is not evaluated"
                raise Failure(InternalError(what=what))
            if time < last:
                raise Failure(InternalError(what=f"parts of {type(node).__name__} out of order"))
            last = time
