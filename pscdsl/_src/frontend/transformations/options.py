"""What `grad` and the Jacobians are told: in which arguments, and what comes besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pscdsl._src.frontend.transformations.traced import Traced, Transformed, trace
from pscdsl._src.frontend.trees.tracing import applicable
from pscdsl._src.frontend.values.values import Applicable, describe
from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.ir.builder import Builder
from pscdsl.typing.array_types import Type, paths
from pscdsl.typing.codes.derivatives import BadArgnums, NoTangent
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import Signature


@dataclass(frozen=True)
class Options:
    """A transformation by its name, the function it transforms, and how."""

    name: str
    function: Applicable
    argnums: Any
    has_aux: bool

    @property
    def called(self) -> str:
        """How messages call it."""
        return f"psc.{self.name}"

    def trace(
        self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[int], Traced]:
        """The places of the arguments that vary, and the function traced at them."""
        where = self._places(len(args))
        traced = trace(here, self.called, self.function, args, kwargs, where, has_aux=self.has_aux)
        for at, argument in traced.varying.items():
            self.require_tangents(f"argument {at}", argument.tree)
        return where, traced

    def require_tangents(self, what: str, tree: Type) -> None:
        """Refuse leaves that have no tangents."""
        for path, leaf in paths(tree):
            if not has_tangent(leaf):
                place = what + (f" at `{path}`" if path else "")
                raise Failure(NoTangent(transformation=self.called, argument=place, type=str(leaf)))

    def selected(self, where: Sequence[int], found: Mapping[int, Any]) -> Any:
        """What was found for the arguments: alone, or as a tuple if several were named."""
        if is_sequence(self.argnums):
            return tuple(found[at] for at in where)
        return found[where[0]]

    def _places(self, count: int) -> list[int]:
        """The positions that `argnums` names, counted from the first argument."""
        argnums = self.argnums
        items = list(argnums) if is_sequence(argnums) else [argnums]
        found: list[int] = []
        for each in items:
            if isinstance(each, bool) or not isinstance(each, int):
                raise Failure(
                    self._bad_argnums(count, f"{describe(each)} is no place of an argument")
                )
            if not -count <= each < count:
                raise Failure(self._bad_argnums(count))
            if each % count in found:
                why = f"argument {each % count} is named twice"
                raise Failure(self._bad_argnums(count, why))
            found.append(each % count)
        if not found:
            raise Failure(self._bad_argnums(count, "it names no argument"))
        return found

    def _bad_argnums(self, count: int, why: str = "") -> BadArgnums:
        argnums = describe(self.argnums)
        return BadArgnums(transformation=self.called, argnums=argnums, count=count, why=why)


Run = Callable[[Options, Builder, Sequence[Any], Mapping[str, Any]], Any]


def transformed(
    run: Run,
    signature: Callable[[Any, bool, Signature], Signature],
    name: str,
    fun: Any,
    argnums: Any,
    has_aux: bool,
) -> Transformed:
    """The function that `run` makes of another one."""
    options = Options(name, applicable(fun, f"psc.{name}"), argnums, has_aux)
    typed = partial(signature, argnums, has_aux)
    return Transformed(name, options.function, partial(run, options), typed)
