"""Programs of derivatives as functions of arrays, to any order, with names for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pscdsl._src.frontend.transformations.forward_mode import require_forward
from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.transforms.linearize import jvp_of, linearize
from pscdsl.typing.trees import TupleType, paths

Mode: TypeAlias = Literal["fwd", "rev"]


@dataclass(frozen=True)
class Subject:
    """A program whose derivative is checked: a function of arrays, and what they are called."""

    function: Function
    params: tuple[str, ...]
    results: tuple[str, ...]
    trail: tuple[Mode, ...] = ()

    @classmethod
    def of(cls, function: Function) -> Subject:
        """A program, its arrays called as in the source."""
        params = [path for name, tree in function.parameters for path, _ in paths(tree, name)]
        assert function.result is not None
        results = [path for path, _ in paths(function.result, "result")]
        plain = as_function(function, function.body)
        return cls(plain, tuple(map(_quoted, params)), tuple(map(_quoted, results)))

    @property
    def active(self) -> tuple[bool, ...]:
        """Which parameters have tangents."""
        return tuple(map(has_tangent, self.function.body.in_types))

    @property
    def moving(self) -> tuple[bool, ...]:
        """Which results have tangents."""
        return tuple(map(has_tangent, self.function.body.out_types))

    def derived(self, mode: Mode) -> Subject:
        """The program of the results and their tangents, or of the parameters' cotangents."""
        block = self._forward() if mode == "fwd" else self._backward()
        params = [name for name, active in zip(self.params, self.active, strict=True) if active]
        results = [name for name, moves in zip(self.results, self.moving, strict=True) if moves]
        kind = "tangent" if mode == "fwd" else "cotangent"
        given, found = (params, results) if mode == "fwd" else (results, params)
        return Subject(
            as_function(self.function, block),
            (*self.params, *[f"the {kind} of {name}" for name in given]),
            (*self.results, *[f"the {kind} of {name}" for name in found]),
            (*self.trail, mode),
        )

    def _forward(self) -> Block:
        function = self.function
        block = jvp_of(function.facts, function.body, self.active, self.moving)
        require_forward(block.equations)
        return block

    def _backward(self) -> Block:
        function, count = self.function, len(self.params)
        types = function.body.in_types
        cotangents = [
            t for t, moves in zip(function.body.out_types, self.moving, strict=True) if moves
        ]

        def build(here: Builder, params: list[Value]) -> list[Value]:
            results, linear = linearize(here, function.body, params[:count], self.active)
            return [*results, *linear.backward(here, params[count:])]

        return closed(function.facts, (*types, *cotangents), build)


def _quoted(text: str) -> str:
    return f"`{text}`"


def as_function(like: Function, block: Block) -> Function:
    """A block as a program of its own."""
    parameters = tuple([(f"a{at}", each) for at, each in enumerate(block.in_types)])
    result = TupleType(block.out_types)
    return replace(like, body=block, parameters=parameters, result=result)
