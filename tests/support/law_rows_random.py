"""Rows for the primitives of random keys."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.primitives.random import BitsAt, FoldIn, RandomBits, SeedKey, SplitKey
from pscdsl.typing.assumptions import Assumptions, parse_fact
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import ALL, U8, U16, U32, U64
from tests.support.law_rows import Row, array_types

M, N = name("m"), name("n")
EMPTY = Assumptions(tuple(parse_fact("n >= 0")))


def _rows() -> Iterator[Row]:
    for dtype in ALL:
        if dtype.is_integer:
            yield Row(SeedKey(), array_types(f"{dtype.name}[n]"))
            yield Row(SeedKey(), array_types(dtype.name))
            yield Row(FoldIn(), array_types(f"Key[m n], {dtype.name}[m n]"))
            yield Row(FoldIn(), array_types(f"Key, {dtype.name}"))
    yield Row(SplitKey((2,)), array_types("Key"))
    yield Row(SplitKey(()), array_types("Key[n]"))
    yield Row(SplitKey((N, M + 1)), array_types("Key[m n]"))
    yield Row(SplitKey((N,)), array_types("Key"), {"n": 0}, facts=EMPTY)
    for dtype in (U8, U16, U32, U64):
        yield Row(RandomBits((), dtype), array_types("Key"))
        yield Row(RandomBits((N, 2 * M), dtype), array_types("Key"), {"n": 7, "m": 40})
        yield Row(BitsAt(dtype), array_types("Key, i64"))
        yield Row(BitsAt(dtype), array_types("Key[m n], i64[m n]"))
        yield Row(RandomBits((3,), dtype), array_types("Key[n m]"))
        yield Row(RandomBits((N,), dtype), array_types("Key[n]"), {"n": 0}, facts=EMPTY)


ROWS = list(_rows())
