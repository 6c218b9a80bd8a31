"""What a function returns beside what it declares."""

from __future__ import annotations

from pscdsl.typing.array_types import ArrayType, Type, leaves, paths, show_shape
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import ReturnTree
from pscdsl.typing.codes.element_types import ReturnDtype
from pscdsl.typing.codes.shapes import axes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import ReturnShape
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Dim
from pscdsl.typing.tree_differences import repair, structure_differences


def result_problems(
    facts: Assumptions, function: str, found: Type, declared: Type
) -> list[Diagnostic]:
    """How the type that was found differs from the one declared."""
    problems: list[Diagnostic] = [
        ReturnTree(
            function=function,
            path=each.path,
            declared=str(each.wanted),
            found=str(each.found),
            why=each.why,
        )
        for each in structure_differences(found, declared)
    ]
    if problems:
        return problems
    for (path, wanted), mine in zip(paths(declared), leaves(found), strict=True):
        why = differs(facts, mine, wanted)
        if why is not None:
            problems.append(
                ReturnShape(
                    function=function,
                    path=path,
                    declared=wanted,
                    found=mine,
                    why=why,
                    rewrite=repair(facts, mine, wanted, "return it"),
                )
            )
        elif mine.dtype is not wanted.dtype:
            problems.append(ReturnDtype(function=function, path=path, declared=wanted, found=mine))
    return problems


def differs(facts: Assumptions, found: ArrayType, declared: ArrayType) -> str | None:
    """Why the shape that was found is not the declared one, or None; `_1` fits everything."""
    if found.rank != declared.rank:
        return f"[{show_shape(found.shape)}] has {axes(found.rank)}, not {declared.rank}"
    for mine, wanted in zip(found.shape, declared.shape, strict=True):
        if isinstance(wanted, Dim) and str(wanted).startswith("_"):
            continue
        if not facts.equal(mine, wanted):
            return disagreement(facts, mine, wanted)
    return None
