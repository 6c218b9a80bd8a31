"""What type rules refuse: the compiler relies on it that nothing else gets past them."""

from __future__ import annotations

import pytest

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.primitives.elementwise import TABLE, Bitcast, Clamp, Select
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Reduce
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)
from pscdsl.typing.assumptions import Assumptions, parse_fact
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F32, I32, I64
from tests.support.law_rows import array_types

K, M, N = name("k"), name("m"), name("n")

REFUSED: tuple[tuple[Primitive, str], ...] = (
    (TABLE["add"], "f32[n], f64[n]"),
    (TABLE["add"], "f32[n], f32[m]"),
    (TABLE["add"], "f32[n], f32[1]"),
    (TABLE["add"], "f32[n]"),
    (TABLE["add"], "bool[n], bool[n]"),
    (TABLE["exp"], "i32[n]"),
    (TABLE["bitwise_and"], "f32[n], f32[n]"),
    (TABLE["maximum"], "c64, c64"),
    (TABLE["equal"], "Key[n], Key[n]"),
    (Bitcast(I32), "f64[n]"),
    (Bitcast(I64), "c64[n]"),
    (Select(), "i32[n], f32[n], f32[n]"),
    (Select(), "bool[n], f32[n], f32[m]"),
    (Clamp(), "f32, c64[n], f32"),
    (Broadcast((M, N), (1, 0)), "f32[n m]"),
    (Broadcast((M, N), (0, 0)), "f32[m m]"),
    (Broadcast((M, N), (1,)), "f32[m]"),
    (Broadcast((M, N), (0,)), "f32[1]"),
    (Broadcast((M,), (1,)), "f32[m]"),
    (Reshape((N // 2, 2)), "f32[n]"),
    (Reshape((M,)), "f32[n]"),
    (Transpose((0, 0)), "f32[n n]"),
    (Transpose((0,)), "f32[n m]"),
    (Transpose((0, -1)), "f32[n m]"),
    (Concatenate(0), ""),
    (Concatenate(0), "f32, f32"),
    (Concatenate(0), "f32[n k], f32[n m]"),
    (Concatenate(0), "f32[n], f64[n]"),
    (Concatenate(0), "f32[n], f32[n m]"),
    (Pad((-1,), (-1,), (0,)), "f32[n], f32"),
    (Pad((0,), (0,), (-1,)), "f32[n], f32"),
    (Pad((0,), (0,), (0,)), "f32[n], f64"),
    (Pad((0,), (0,), (0,)), "f32[n], f32[1]"),
    (Pad((0,), (0,), (0,)), "Key[n], Key"),
    (Slice((0,), (3,), (1,)), "f32[n]"),
    (Slice((-1,), (N,), (1,)), "f32[n]"),
    (Slice((2,), (N,), (1,)), "f32[n]"),
    (Slice((0,), (N,), (0,)), "f32[n]"),
    (Slice((0,), (N,), (1,)), "f32[n m]"),
    (Reverse((1,)), "f32[n]"),
    (Reverse((0, 0)), "f32[n]"),
    (Gather((0,)), "f32[n], f32[k 1]"),
    (Gather((0,)), "f32[n], i32[k 2]"),
    (Gather((0,)), "f32[n], i32"),
    (Gather(()), "f32[n], i32[k 0]"),
    (Gather((0, 0)), "f32[n], i32[k 2]"),
    (Gather((0,)), "f32[0], i32[k 1]"),
    (Gather((0,), 1), "f32[n m], i32[n 1]"),
    (Gather((1,), 1), "f32[n m], i32[k 1]"),
    (Scatter((0,), "add"), "f32[n], i32[k 1], f32[n]"),
    (Scatter((0,), "add"), "f32[n], i32[k 1], f64[k]"),
    (Scatter((0,), "add"), "bool[n], i32[k 1], bool[k]"),
    (Scatter((0,), "maximum"), "c64[n], i32[k 1], c64[k]"),
    (DynamicSlice((2,)), "f32[n], i32"),
    (DynamicSlice((1,)), "f32[n], f32"),
    (DynamicSlice((1,)), "f32[n], i32[1]"),
    (DynamicSlice((1,)), "f32[n]"),
    (DynamicSlice((-1,)), "f32[n], i32"),
    (DynamicUpdate(), "f32[n], f32[m], i32"),
    (DynamicUpdate(), "f32[n], f64[n], i32"),
    (Reduce("sum", (0,)), "bool[n]"),
    (Reduce("all", (0,)), "i32[n]"),
    (Reduce("xor", (0,)), "f32[n]"),
    (Reduce("maximum", (0,)), "c64[n]"),
    (Reduce("sum", (0, 0)), "f32[n]"),
    (Reduce("sum", (1,)), "f32[n]"),
    (ArgReduce("maximum", 0, F32), "f32[n]"),
    (ArgReduce("maximum", 0, I32), "c64[n]"),
    (ArgReduce("maximum", 0, I32), "f32"),
    (Cumulative("sum", 0), "bool[n]"),
    (Cumulative("sum", 1), "f32[n]"),
)


@pytest.mark.parametrize(("primitive", "operands"), REFUSED, ids=str)
def test_refused(primitive: Primitive, operands: str) -> None:
    with pytest.raises(Failure):
        primitive.type_rule(Assumptions(), *array_types(operands))


ACCEPTED: tuple[tuple[Primitive, str, str, str], ...] = (
    (TABLE["add"], "f32[n], f32[m]", "n == m", "f32[n]"),
    (Broadcast((M, N), (1,)), "f32[k]", "n == k", "f32[m n]"),
    (Reshape((N // 4, 4)), "f32[n]", "n % 8 == 0", "f32[n//4 4]"),
    (Slice((2,), (N,), (1,)), "f32[n]", "n >= 2", "f32[n-2]"),
    (Slice((0,), (K,), (1,)), "f32[n]", "k <= n", "f32[k]"),
    (Pad((-1,), (-1,), (0,)), "f32[n], f32", "n >= 2", "f32[n-2]"),
    (DynamicSlice((K,)), "f32[n], i32", "k <= n", "f32[k]"),
    (DynamicUpdate(), "f32[n], f32[k], i32", "k <= n", "f32[n]"),
    (Gather((0,)), "f32[n-1], i32[k 1]", "n >= 2", "f32[k]"),
)


@pytest.mark.parametrize(("primitive", "operands", "fact", "result"), ACCEPTED, ids=str)
def test_accepted_where_a_fact_holds(
    primitive: Primitive, operands: str, fact: str, result: str
) -> None:
    types = array_types(operands)
    assert primitive.type_rule(Assumptions(parse_fact(fact)), *types) == array_types(result)
    with pytest.raises(Failure):
        primitive.type_rule(Assumptions(parse_fact("n >= 0")), *types)
