"""Type variables: what one is bound to by its first argument, and how others differ from that."""

from __future__ import annotations

from dataclasses import dataclass

from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control_trees import TreeArgumentsDiffer
from pscdsl.typing.specs import TreeSpec
from pscdsl.typing.tree_differences import array_difference, structure_differences
from pscdsl.typing.trees import Type, paths


@dataclass(frozen=True)
class Bound:
    """What a type variable stands for in one call."""

    where: str
    """The argument that says so."""
    tree: Type
    general: Type
    """The same with a name in place of each size."""


def differing(
    function: str, spec: TreeSpec, bound: Bound, given: Type, where: str, facts: Assumptions
) -> list[TreeArgumentsDiffer]:
    """Where an argument is not the tree that its type variable stands for."""

    def problem(path: str, found: object, wanted: object, why: str) -> TreeArgumentsDiffer:
        return TreeArgumentsDiffer(
            function=function,
            variable=spec.name,
            argument=where + path,
            given=str(found),
            other=bound.where + path,
            wanted=str(wanted),
            why=why,
        )

    differences = list(structure_differences(given, bound.tree))
    if differences:
        return [problem(each.path, each.found, each.wanted, each.why) for each in differences]
    found: list[TreeArgumentsDiffer] = []
    for (path, mine), (_, wanted) in zip(paths(given), paths(bound.tree), strict=True):
        why = array_difference(facts, mine, wanted)
        if why is not None:
            found.append(problem(path, mine, wanted, why))
    return found
