"""Trees taken apart and put together again with other leaves, in kernels and outside of them.

What a node of a tree is depends on where the tree lives: in a kernel records are values of the
front end, outside they are instances of real classes.  Both say so by a `Ways`; everything else is
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pscdsl.typing.array_types import ArrayType, NoneType, Type, children, paths
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import TreesDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.tree_differences import array_difference, structure_differences


@dataclass(frozen=True)
class Node:
    """A part of a tree that is no array: what it holds, its type, and how it is made."""

    parts: Sequence[Any]
    type_of: Callable[[tuple[Type, ...]], Type]
    made: Callable[[list[Any]], Any]


class Ways(Protocol):
    """How trees are taken apart where they live."""

    def node(self, value: Any) -> Node | None:
        """What a value that is no array holds; None for an array."""
        ...

    def array(self, value: Any) -> ArrayType:
        """The type of an array or number; raises what is fitting if it is neither."""
        ...


@dataclass(frozen=True)
class Flat:
    """The leaves of a tree as they are, and its type."""

    leaves: list[Any]
    type: Type


def flattened(ways: Ways, tree: Any) -> Flat:
    """The leaves of a tree in order."""
    leaves: list[Any] = []
    return Flat(leaves, _flattened(ways, tree, leaves))


def _flattened(ways: Ways, value: Any, leaves: list[Any]) -> Type:
    node = ways.node(value)
    if node is None:
        leaves.append(value)
        return ways.array(value)
    return node.type_of(tuple([_flattened(ways, part, leaves) for part in node.parts]))


def rebuilt(ways: Ways, tree: Any, leaves: Iterator[Any]) -> Any:
    """The same tree with other leaves."""
    node = ways.node(tree)
    if node is None:
        return next(leaves)
    return node.made([rebuilt(ways, part, leaves) for part in node.parts])


def together(name: str, trees: Sequence[Flat], absent: bool = False) -> list[tuple[Any, ...]]:
    """The leaves of trees of one structure side by side; a Failure says where one differs.

    With `absent`, a tree but the first may hold None where the first has an array, as gradients do
    where nothing has one; None then stands for the leaf.
    """
    first, *rest = trees
    columns = [first.leaves]
    for index, other in enumerate(rest):
        problems = [
            TreesDiffer(
                function=name,
                position=index + 2,
                path=each.path,
                first=str(each.wanted),
                other=str(each.found),
                why=each.why,
                surplus=isinstance(each.wanted, NoneType) and absent,
            )
            for each in structure_differences(other.type, first.type)
            if not (absent and _is_absent(each.found, each.wanted))
        ]
        if problems:
            raise Failure(*problems)
        columns.append(list(_aligned(first.type, other.type, iter(other.leaves))))
    return list(zip(*columns, strict=True))


def same_shapes(name: str, facts: Assumptions, first: Type, other: Type) -> None:
    """Refuse two trees of one structure with arrays of different shapes at one place."""
    for (path, mine), (_, theirs) in zip(paths(first), paths(other), strict=True):
        why = array_difference(facts, theirs.with_dtype(mine.dtype), mine)
        if why is not None:
            raise Failure(
                TreesDiffer(
                    function=name,
                    position=2,
                    path=path,
                    first=str(mine),
                    other=str(theirs),
                    why=why,
                )
            )


def _is_absent(found: Type, wanted: Type) -> bool:
    return isinstance(found, NoneType) and isinstance(wanted, ArrayType)


def _aligned(first: Type, other: Type, leaves: Iterator[Any]) -> Iterator[Any]:
    """The leaves of the other tree, None where it has none of the first."""
    if isinstance(first, ArrayType):
        yield None if isinstance(other, NoneType) else next(leaves)
        return
    for (_, mine), (_, theirs) in zip(children(first), children(other), strict=True):
        yield from _aligned(mine, theirs, leaves)
