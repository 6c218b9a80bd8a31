"""Trees of arrays that have to have the type of something else: a tangent, what a rule gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pscdsl._src.frontend.trees.pytrees import flatten
from pscdsl._src.frontend.trees.tracing import at
from pscdsl._src.ir.builder import Builder, Value
from pscdsl.typing.array_types import Type, paths
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.tree_differences import array_difference, structure_differences

Mismatch = Callable[[str, str, str, str], Diagnostic]
"""A finding, from the place in the tree, what stands there, what is wanted, and what differs."""


def fitted(here: Builder, given: Any, wanted: Type, what: str, mismatch: Mismatch) -> list[Value]:
    """The leaves of a tree, weak ones in the dtypes wanted; a Failure if they do not fit."""
    found, tree = flatten(here, given, what)
    for each in structure_differences(tree, wanted):
        raise Failure(mismatch(each.path, str(each.found), str(each.wanted), each.why))
    values: list[Value] = []
    for leaf, (path, type_) in zip(found, paths(wanted), strict=True):
        value = at(leaf, type_.dtype)
        why = array_difference(here.facts, value.type, type_)
        if why is not None:
            raise Failure(mismatch(path, str(value.type), str(type_), why))
        values.append(value)
    return values


def at_place(what: str, path: str) -> str:
    """What a message speaks of, and where in it."""
    return f"{what} at `{path}`" if path else what
