"""Kernels made of kernels: `psc.grad(loss)` as something that is checked and called by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pscdsl.builder import Builder
from pscdsl.frontend.definitions import Definition
from pscdsl.frontend.frames import Session
from pscdsl.frontend.transformations.traced import Transformed
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.signatures import Choice, Signature


class DerivedDefinition(Definition):
    """What a transformation makes of a kernel: a kernel, with the preconditions of the first."""

    def __init__(self, base: Definition, transformed: Transformed) -> None:
        super().__init__(base.closure)
        self.base = base
        self.transformed = transformed
        self.name = str(transformed).removeprefix("psc.")

    @property
    def signature(self) -> Signature:
        """The parameters of the base, as the transformation changes them; the result is open."""
        own = self.transformed.signature(self.base.signature)
        return replace(own, name=self.name, result=None)

    def _assumed(self, choice: Choice) -> Assumptions:
        return self.base.instance(choice).facts

    def _run(self, session: Session, arguments: dict[str, Any]) -> Any:
        assert session.program is not None
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.signature.parameters:
            value = arguments[parameter.name]
            if parameter.keyword_only:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return self.transformed.apply(session.program.current, args, kwargs)

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """In a kernel, the transformation at the place of the call."""
        return self.transformed.apply(here, args, kwargs)


def derived(transformed: Transformed) -> DerivedDefinition | None:
    """The kernel that a transformation makes; None if what it transforms is none."""
    base: object = transformed.function
    if isinstance(base, Transformed):
        base = derived(base)
    return DerivedDefinition(base, transformed) if isinstance(base, Definition) else None
