"""Primitives whose derivative needs no formula: linear ones, bilinear ones, constant ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.primitive import Primitive
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.derivatives import NotLinear
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


class WithoutTangents(Primitive):
    """A primitive whose results do not change smoothly: places, or what counts as constant."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        return (None,) * len(outputs)


class Linear(Primitive):
    """A primitive that is its own derivative: the same of the tangents, where others stay."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        moved: list[Value] = []
        for primal, tangent in zip(primals, tangents, strict=True):
            if tangent is not None:
                moved.append(tangent)
            elif primal.dtype.is_inexact:
                moved.append(zeros(primal.builder, primal.type))
            else:
                moved.append(primal)
        return self.bind(*moved)


class Bilinear(Primitive):
    """A primitive that is linear in each of its two operands: a product of some kind."""

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        (x, y), (dx, dy) = primals, tangents
        first = None if dx is None else self(dx, y)
        second = None if dy is None else self(x, dy)
        if first is None or second is None:
            return (second if first is None else first,)
        return (first + second,)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (x, y) = cotangents, operands
        assert cotangent is not None
        if isinstance(y, ArrayType) and not isinstance(x, ArrayType):
            return None, self.cotangent(cotangent, y, x, 1)
        if isinstance(x, ArrayType) and not isinstance(y, ArrayType):
            return self.cotangent(cotangent, x, y, 0), None
        raise Failure(NotLinear(primitive=self.label))

    def cotangent(self, cotangent: Value, operand: ArrayType, other: Value, place: int) -> Value:
        """The cotangent of the operand at a place, the other operand known."""
        raise NotImplementedError
