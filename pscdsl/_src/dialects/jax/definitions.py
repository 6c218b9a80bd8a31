"""Functions of JAX programs as definitions: with JAX's promotion, and jaxtyping's classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pscdsl._src.frontend.annotations import replaced
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, I64, U8, U32, DType
from pscdsl.typing.signatures import ArraySpec, DTypeClass, Signature, Spec

_USUAL: Final = frozenset({BOOL, U8, U32, I32, I64, F32, F64, C64})
"""The dtypes that are tried for a class; few functions are meant for narrower floats."""


class JaxDefinition(Definition):
    """A function of a JAX program."""

    def __init__(self, closure: Closure, signature: Signature | None = None) -> None:
        super().__init__(closure, signature)
        self.jax: JaxPromotion = JaxPromotion()

    def _read_signature(self) -> Signature:
        signature = super()._read_signature()
        return replace(
            signature,
            parameters=tuple(
                replace(each, spec=self._in_dialect(each.spec)) for each in signature.parameters
            ),
            result=None if signature.result is None else self._in_dialect(signature.result),
        )

    def _in_dialect(self, spec: Spec) -> Spec:
        """Return a specification with the dtypes that arrays of JAX usually have."""

        def of_array(part: Spec) -> Spec:
            if not isinstance(part, ArraySpec) or part.python:
                return part
            if isinstance(part.dtype, DType):
                return replace(part, dtype=self.jax.canonical(part.dtype))
            usual = [each for each in part.dtype.members if each in _USUAL]
            members = tuple(dict.fromkeys(map(self.jax.canonical, usual)))
            if len(members) == 1:
                return replace(part, dtype=members[0])
            return replace(part, dtype=DTypeClass(part.dtype.name, members))

        return replaced(spec, of_array)
