"""What a branch is given that is run for all lanes of a batch, though only some have chosen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.primitives.elementwise import Select
from pscdsl._src.primitives.shaping import Broadcast, same_sizes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value


@dataclass(frozen=True)
class Lanes(Primitive, name="lanes"):
    """The second operand itself; it has tangents only in the rows where the first one holds.

    A slope that is infinite in another row does not come through: what goes in there is zero, and
    so is what comes out backwards, whatever becomes of it on the way.
    """

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        which, x = operands
        if which.dtype is not BOOL or not same_sizes(facts, which.shape, x.shape[: which.rank]):
            self.ill_typed(f"operands are {which} and {x}")
        return (x,)

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return (operands[1],)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return (operands[1],)

    def cost(self, inputs: Types, outputs: Types) -> Size:
        return 0

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        tangent = tangents[1]
        return (None if tangent is None else _chosen(primals[0], tangent),)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        (cotangent,), (which, _) = cotangents, operands
        assert cotangent is not None
        assert not isinstance(which, ArrayType)
        return None, _chosen(which, cotangent)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        from pscdsl._src.interpreters.batching import repeated

        given = [x if has else repeated(x, size) for x, has in zip(operands, batched, strict=True)]
        return self.bind(*given), (True,)


def _chosen(which: Value, x: Value) -> Value:
    """The rows where the first operand holds; zeros elsewhere."""
    from pscdsl._src.interpreters.replay import zeros

    if which.ndim < x.ndim:
        which = Broadcast(x.shape, tuple(range(which.ndim)))(which)
    result: Value = Select()(which, x, zeros(x.builder, x.type))
    return result
