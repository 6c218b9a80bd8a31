"""Operations that are emitted as other operations, written with values instead of `Hlo`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from pscdsl._src.ir.primitive import H, Hlo, Primitive, Types
from pscdsl._src.ir.program import Block
from pscdsl.typing.assumptions import Assumptions

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value

P = TypeVar("P", bound=Primitive)


def emit_as(
    hlo: Hlo,
    define: Callable[[P, Sequence[Value]], Sequence[Value]],
    primitive: P,
    operands: Sequence[H],
    inputs: Types,
) -> Sequence[H]:
    """Emit the results that `define` makes of operands of these types, sizes as numbers."""
    types = tuple([each.with_shape(hlo.shape(each.shape)) for each in inputs])
    return hlo.block(_defined(define, primitive, types), operands)


@lru_cache(maxsize=1024)
def _defined(
    define: Callable[[P, Sequence[Value]], Sequence[Value]], primitive: P, types: Types
) -> Block:
    from pscdsl._src.interpreters.replay import closed

    def build(here: Builder, params: list[Value]) -> Sequence[Value]:
        return define(primitive, params)

    return closed(Assumptions(), types, build)
