"""Functions of JAX programs as definitions: with JAX's promotion, and jaxtyping's classes."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from pscdsl._src.frontend.annotations import replaced
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.jax_programs import enables_x64
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, I64, U8, U32, DType
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    Signature,
    Spec,
    StaticSpec,
    UnionSpec,
    alternatives,
    walk_paths,
)

MOST_ALTERNATIVES: Final = 16
"""A function with more combinations of alternatives is not followed."""
_USUAL: Final = frozenset({BOOL, U8, U32, I32, I64, F32, F64, C64})
"""The dtypes that are tried for a class; few functions are meant for narrower floats."""


class JaxDefinition(Definition):
    """A function of a JAX program; `declared` is one of the signatures that it admits."""

    def __init__(
        self, closure: Closure, declared: Signature | None = None, owner: str = ""
    ) -> None:
        super().__init__(closure)
        self.method_of = owner
        self.jax = self.promotion = JaxPromotion(enables_x64(closure.source))
        self._declared = declared

    def variants(self) -> list[JaxDefinition]:
        """Return a definition for each combination of alternatives; a Failure if they are many."""
        signature = self._read_signature()
        columns = [alternatives(each.spec) for each in signature.parameters]
        total = prod(map(len, columns))
        if total > MOST_ALTERNATIVES:
            raise Failure(TooLarge(what=f"a function with {total} combinations of alternatives"))
        result = signature.result
        if result is not None and any(isinstance(x, UnionSpec) for _, x in walk_paths(result, "")):
            result = None  # any of them may be returned
        return [
            JaxDefinition(
                self.closure,
                replace(
                    signature,
                    parameters=tuple(
                        replace(each, spec=spec)
                        for each, spec in zip(signature.parameters, chosen, strict=True)
                    ),
                    result=result,
                ),
                self.method_of,
            )
            for chosen in product(*columns)
        ]

    def _read_signature(self) -> Signature:
        if self._declared is not None:
            return self._declared
        signature = super()._read_signature()
        return replace(
            signature,
            parameters=tuple(
                replace(each, spec=self._in_dialect(each.spec)) for each in signature.parameters
            ),
            result=None if signature.result is None else self._in_dialect(signature.result),
        )

    def _spec_of(self, frame: Frame, parameter: ast.arg) -> Spec:
        """Return the specification of a parameter; its default where that is no array's type.

        Not every integer is meant by `int`, but the default is.
        """
        defaults = self.closure.defaults
        try:
            spec = super()._spec_of(frame, parameter)
        except Failure:
            if parameter.arg not in defaults:
                raise
        else:
            is_integer = isinstance(spec, ArraySpec) and spec.python == "int"
            if not is_integer or parameter.arg not in defaults:
                return spec
        return StaticSpec("Any", (defaults[parameter.arg],))

    def _in_dialect(self, spec: Spec) -> Spec:
        """Return a specification with the dtypes that arrays of JAX usually have."""

        def of_array(part: Spec) -> Spec:
            if not isinstance(part, ArraySpec) or part.python:
                return part
            if isinstance(part.dtype, DType):
                return replace(part, dtype=self.promotion.canonical(part.dtype))
            usual = [each for each in part.dtype.members if each in _USUAL]
            members = tuple(dict.fromkeys(map(self.promotion.canonical, usual)))
            if len(members) == 1:
                return replace(part, dtype=members[0])
            return replace(part, dtype=DTypeClass(part.dtype.name, members))

        return replaced(spec, of_array)
