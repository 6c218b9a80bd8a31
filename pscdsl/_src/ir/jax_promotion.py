"""JAX's promotion of dtypes: the least upper bound in a lattice of dtypes and weak kinds.

Source: the page "Type promotion semantics" of JAX's documentation. A number without a dtype is a
kind in the lattice; 64 bits become 32 unless a program enables them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pscdsl.typing.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    DEFAULT,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    PYTHON,
    U8,
    U16,
    U32,
    U64,
    DType,
    Kind,
)

Node: TypeAlias = DType | Kind
"""The dtype of an array, or the kind of a number without one."""

_ABOVE: Final[Mapping[Node, tuple[Node, ...]]] = {
    BOOL: (Kind.INT,),
    Kind.INT: (U8, I8),
    U8: (I16, U16),
    U16: (I32, U32),
    U32: (I64, U64),
    U64: (Kind.FLOAT,),
    I8: (I16,),
    I16: (I32,),
    I32: (I64,),
    I64: (Kind.FLOAT,),
    Kind.FLOAT: (BF16, F16, Kind.COMPLEX),
    BF16: (F32,),
    F16: (F32,),
    F32: (F64, C64),
    F64: (C128,),
    Kind.COMPLEX: (C64,),
    C64: (C128,),
    C128: (),
}
_NARROW: Final = {I64: I32, U64: U32, F64: F32, C128: C64}


@functools.cache
def _bounds(node: Node) -> frozenset[Node]:
    """Return a node and all above it."""
    return frozenset({node}).union(*map(_bounds, _ABOVE[node]))


@functools.cache
def join(nodes: frozenset[Node]) -> Node:
    """Return the least upper bound of nodes."""
    first, *others = map(_bounds, nodes)
    common = first.intersection(*others)
    return next(node for node in common if _bounds(node) == common)


@dataclass(frozen=True)
class JaxPromotion:
    """The dtypes of a JAX program."""

    x64: bool = False
    """Whether it has arrays of 64 bits."""

    @property
    def defaults(self) -> Mapping[Kind, DType]:
        """The dtypes of numbers that meet no array."""
        return PYTHON if self.x64 else DEFAULT

    def canonical(self, dtype: DType) -> DType:
        """Return the dtype that an array has where one is asked for."""
        return dtype if self.x64 else _NARROW.get(dtype, dtype)

    def met(self, nodes: Iterable[Node]) -> Node:
        """Return the dtype at which operands meet; a kind if the result has none of its own."""
        found = join(frozenset([BOOL if each is Kind.BOOL else each for each in nodes]))
        return self.canonical(found) if isinstance(found, DType) else found
