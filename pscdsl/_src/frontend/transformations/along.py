"""`jvp` and `vjp` of a kernel as kernels, whose parameters include the directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.transformations.modes import jvp_, tangent_tree, vjp
from pscdsl._src.frontend.transformations.programs import elaborate
from pscdsl._src.frontend.trees.pytrees import unflatten
from pscdsl._src.ir.builder import Builder
from pscdsl._src.ir.program import Function
from pscdsl.typing.array_types import NONE, Type, leaves
from pscdsl.typing.signatures import Choice, Signature

Mode: TypeAlias = Literal["jvp", "vjp"]


class Along(Definition):
    """A kernel's derivative along given directions.

    jvp  takes the arguments and their tangents: the result and its tangent
    vjp  takes the arguments and the result's cotangent: the result and their cotangents
    """

    def __init__(self, base: Definition, mode: Mode) -> None:
        super().__init__(base.closure)
        self.base = base
        self.mode: Mode = mode
        self.name = f"{mode}({base.name})"

    @property
    def signature(self) -> Signature:
        """What is left open is what the kernel leaves open; the program says the rest."""
        return replace(self.base.signature, name=self.name, result=None)

    def _elaborate(self, choice: Choice) -> Function:
        instance = self.base.instance(choice)
        if self.mode == "jvp":
            wanted = [(f"d_{name}", tangent_tree(tree)) for name, tree in instance.parameters]
        else:
            assert instance.result is not None
            wanted = [("cotangent", tangent_tree(instance.result))]
        taken = {name for name, _ in instance.parameters}
        extra = [(_free(name, taken), tree) for name, tree in wanted if _is_there(tree)]

        def run(here: Builder, args: list[Any], more: list[Any]) -> Any:
            given = iter(more)
            moves = [
                next(given) if _is_there(tree) else unflatten(tree, iter(())) for _, tree in wanted
            ]
            function = _ByPosition(self.base)
            if self.mode == "jvp":
                return jvp_(here, function, tuple(args), tuple(moves))
            value, back = vjp(here, function, *args)
            return value, back.apply(here, moves, {})

        return elaborate(self.base, choice, self.name, extra, run)


@dataclass(frozen=True)
class _ByPosition:
    """A kernel that takes all its arguments by position."""

    kernel: Definition

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def signature(self) -> Signature:
        return self.kernel.signature

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        parameters = self.signature.parameters
        pairs = list(zip(parameters, args, strict=True))
        first = [value for each, value in pairs if not each.keyword_only]
        named = {each.name: value for each, value in pairs if each.keyword_only}
        return self.kernel.apply(here, first, {**named, **kwargs})


def _is_there(tree: Type) -> bool:
    """Whether there is anything to move."""
    return tree != NONE and any(True for _ in leaves(tree))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
