"""Keys: from a seed, from a key, from a key and a number."""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import function
from pscdsl._src.primitives.random import FoldIn, SeedKey, SplitKey
from pscdsl.numpy.openness import as_operand
from pscdsl.numpy.sizes import as_shape
from pscdsl.random.drawing import of_key
from pscdsl.typing.codes.dtypes import DtypeNotAccepted, ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I32, I64, U64, DType


@function("pscdsl.random.key")
def key(here: Builder, seed: Any) -> Value:
    """A key from an integer of up to 64 bits."""
    return SeedKey()(_integer(here, "key", seed))


@of_key("split")
def split(here: Builder, key: Value, num: Any = 2) -> Value:
    """`num` keys, all different, in place of one."""
    return SplitKey(as_shape(num, "psc.random.split", here.facts))(key)


@of_key("fold_in")
def fold_in(here: Builder, key: Value, data: Any) -> Value:
    """A key from a key and an integer."""
    return FoldIn()(key, _integer(here, "fold_in", data))


def _integer(here: Builder, name: str, x: Any) -> Value:
    """An integer scalar, of the smallest of i32, i64 and u64 that holds it if it is a number."""
    if isinstance(x, bool):
        raise Failure(BadArguments(function=f"psc.random.{name}", problem="takes an integer"))
    if isinstance(x, int):
        return here.literal(x, _dtype_for(x))
    given = as_operand(here, x)
    value = given.default() if isinstance(given, Weak) else given
    if not value.dtype.is_integer or value.ndim:
        accepts = "an integer scalar"
        raise Failure(
            DtypeNotAccepted(function=f"psc.random.{name}", given=value.type, accepts=accepts)
        )
    return value


def _dtype_for(number: int) -> DType:
    for dtype in (I32, I64, U64):
        low, high = dtype.range
        if low <= number <= high:
            return dtype
    raise Failure(ScalarDoesNotFit(scalar="an integer this large", dtype=U64))
