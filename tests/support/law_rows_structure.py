"""Rows for the primitives that make, move and pick elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.primitives.indexing import Combine, DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.matrices import Diagonal
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    Rotate,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl.typing import dtypes
from pscdsl.typing.assumptions import Assumptions, parse_fact
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import ALL, KEY, DType
from tests.support.law_rows import (
    Domain,
    NDArray,
    Row,
    anything,
    array_type,
    array_types,
    moderate,
    whole,
)

M, N, K = name("m"), name("n"), name("k")
ZERO = {"m": 0, "n": 0}


def facts(*texts: str) -> Assumptions:
    """What is known of the sizes."""
    return Assumptions(tuple(fact for text in texts for fact in parse_fact(text)))


def row(primitive: Primitive, operands: str, *known: str, **sizes: int) -> Row:
    """A row with its types written as text."""
    return Row(primitive, array_types(operands), sizes, facts=facts(*known))


def _creation() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for dtype in ALL:
        for shape in ((), (3,), (2, 0), (2, 3)):
            yield Row(Constant.of(anything(rng, dtype, shape), dtype), ())
        if dtype.is_number:
            yield Row(SizeValue(N * M + 1, dtype), (), {"n": 3, "m": 5})
            yield Row(Iota((M, N, 2), 1, dtype), (), {"m": 2, "n": 6})
            yield Row(Iota((N,), 0, dtype), (), {"n": 300})
            yield Row(Iota((N,), 0, dtype), (), {"n": 0}, facts=facts("n >= 0"))


def _shaping() -> Iterator[Row]:
    for dtype in (*ALL, KEY):
        d = dtype.name
        yield row(Diagonal(1, N), f"{d}[m n n 2]", m=2, n=3)
        yield row(Broadcast((M, N), ()), d, m=2, n=3)
        yield row(Broadcast((K, N, M), (1,)), f"{d}[n]", m=2, k=4)
        yield row(Broadcast((M, 3, N), (0, 2)), f"{d}[m n]")
        yield row(Reshape((N * M,)), f"{d}[m n]")
        yield row(Reshape((N // 2, 2)), f"{d}[n]", "n % 2 == 0", n=6)
        yield row(Reshape((1, 1)), d)
        yield row(Transpose((2, 0, 1)), f"{d}[m n k]")
        yield row(Concatenate(1), f"{d}[m n], {d}[m 0], {d}[m 2*n+1]")
        yield row(Concatenate(0), f"{d}[n]")
        yield row(Slice((1, 0), (N, M), (2, 1)), f"{d}[n m]")
        yield row(Slice((N - 1, M // 2), (N, M), (1, 3)), f"{d}[n+2 m]", m=9)
        yield row(Reverse((0, 2)), f"{d}[m n k]")
        yield row(Rotate(1, 2), f"{d}[m n k]")
    yield row(Broadcast((M, N), (1,)), "f32[n]", "n >= 0", m=2, n=0)
    yield row(Reshape((M, 0)), "f32[0 n]")
    yield row(Reshape((M * N, 0, K)), "f32[0 n]", n=2, m=3, k=2)
    yield row(Transpose(()), "f32")
    yield row(Transpose((1, 0)), "f32[n 0]")
    yield row(Slice((0,), (0,), (5,)), "f32[n]")
    yield row(Slice((), (), ()), "f32")
    yield row(Reverse(()), "f32[n]")
    yield row(Reverse((0,)), "f32[n]", "n >= 0", n=0)
    yield row(Rotate(0, -4), "f32[n]")
    yield row(Rotate(0, 0), "f32[n]")
    yield row(Rotate(0, 1), "f32[n m]", "n >= 0", **ZERO)
    yield row(Concatenate(0), "f32[n], f32[m]", "n >= 0", "m >= 0", **ZERO)
    for dtype in ALL:
        d = dtype.name
        yield row(Pad((1, 0), (N, 2), (0, 0)), f"{d}[m n], {d}")
        yield row(Pad((1,), (2,), (3,)), f"{d}[n], {d}", n=5)
    yield row(Pad((-1, 2), (-1, -3), (2, 1)), "f32[n+2 m+4], f32")
    yield row(Pad((-M,), (M,), (0,)), "f32[n], f32", n=3, m=2)
    yield row(Pad((-M,), (M + 1,), (0,)), "f32[n], f32", n=3, m=5)
    yield row(Pad((N,), (-N,), (1,)), "f32[n], f32", n=4)
    yield row(Pad((2,), (1,), (2,)), "f32[n], f32", "n >= 0", n=0)
    yield row(Pad((), (), ()), "f32, f32")
    yield row(Pad((-3,), (-3,), (2,)), "f32[n+2], f32", n=1)
    yield row(Pad((-2,), (-1,), (2,)), "f32[n+1], f32", n=4)
    yield row(Pad((-N - 2,), (N + 3,), (0,)), "f32[n], f32")  # none of the elements is left
    yield row(Pad((4,), (-N - 4,), (0,)), "f32[n], f32")
    yield row(Pad((1, 0), (1, -1), (0, 3)), "f32[n 2], f32", "n >= 0", n=0)
    yield row(Pad((M, -1), (0, K), (2, 1)), "c64[n m+1], c64", n=3, m=2, k=2)
    yield from _random_pads()
    yield row(Slice((1,), (N,), (2,)), "f32[n]", n=6)
    yield row(Slice((0, 2), (N, M + 1), (3, 4)), "f32[n m+2]", "n >= 0", n=0, m=9)
    yield row(Slice((M,), (M + K,), (2,)), "f32[m+k+n]", "k >= 0", k=0)
    yield row(Slice((M,), (M + K,), (2,)), "f32[m+k+n]", "k >= 0", k=7)
    yield row(Broadcast((2 * M, N), (0,)), "f32[2*m]", "m >= 0", m=0)
    yield row(Broadcast((N, M), (0,)), "f32[2*k]", "n == 2*k", n=4, k=2)
    yield row(Reshape((K, N // K, M)), "f32[n m]", "n % k == 0", n=6, k=3)
    yield row(Concatenate(1), "c64[m n], c64[k 2], c64[m m]", "m == k", m=2, k=2)
    yield row(Diagonal(0, M), "f32[m m]", "m >= 0", m=0)
    yield row(Diagonal(1, 2, 0, 1), "f32[n 2 3]", "n >= 0", n=0)
    yield row(Diagonal(0, M, 0, N), "f32[m m+n]", m=4, n=3)
    yield row(Diagonal(1, M, N, 2), "f64[k m+n+2 m+3 2]", m=4, n=3)


def _random_pads() -> Iterator[Row]:
    """Elements put in and taken away at both ends and between, in many ways."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        size, low, between = (int(rng.integers(*ends)) for ends in ((0, 5), (-6, 7), (0, 4)))
        length = size + max(size - 1, 0) * between
        high = int(rng.integers(-length - low, 8 - min(low, 0)))
        yield row(Pad((low,), (high,), (between,)), f"f32[{size}], f32")


def _picks(dtype: str) -> Iterator[tuple[Primitive, str, str, tuple[int, ...]]]:
    """Gathers with the types of their operands and of the updates of the same scatter."""
    yield Gather((0,)), f"{dtype}[n]", "i32[k 1]", (0,)
    yield Gather((1,)), f"{dtype}[n m 2]", "i32[1]", (1,)
    yield Gather((2, 0)), f"{dtype}[n m k]", "i32[3 k 2]", (2, 0)
    yield Gather((0, 1)), f"{dtype}[n m]", "i32[2]", (0, 1)
    yield Gather((2,), 1), f"{dtype}[n m k]", "i32[n 3 1]", (2,)
    yield Gather((3, 2), 2), f"{dtype}[n m k 3]", "i32[n m k 2]", (3, 2)
    yield Gather((1,), 1), f"{dtype}[n m]", "i32[n 1]", (1,)


def _combines(dtype: DType) -> Iterator[Combine]:
    yield "set"
    if dtype.is_number:
        yield "add"
        yield "multiply"
    if dtype.kind <= dtypes.F32.kind:
        yield "minimum"
        yield "maximum"


def _ends(index: DType) -> tuple[Domain, Domain]:
    """The smallest and the largest number."""
    low, high = (np.array(end, to_numpy(index)) for end in index.range)
    return (lambda _, kind, shape: np.full(shape, low)), (
        lambda _, kind, shape: np.full(shape, high)
    )


def _indexing() -> Iterator[Row]:
    reach: Domain = whole(-2, 7)
    for dtype in (*ALL, KEY):
        for gather, x, indices, _ in _picks(dtype.name):
            assert isinstance(gather, Gather)
            types = (array_type(x), array_type(indices))
            yield Row(gather, types, domain=(anything, reach))
            updates = gather.type_rule(Assumptions(), *types)
            for combine in _combines(dtype):
                rounded = dtype.is_inexact and combine in ("add", "multiply")
                yield Row(
                    Scatter(gather.axes, combine, gather.batched),
                    (*types, *updates),
                    domain=(moderate, reach, moderate),
                    tolerance=8 if rounded else 0,
                    absolute=1e-5 if rounded and dtype.bits > 16 else 0,
                    signed_zeros=False,
                )
    for index in (each for each in ALL if each.is_integer):
        i = index.name
        yield Row(Gather((0,)), array_types(f"f32[n], {i}[k 1]"), {"n": 300, "k": 200})
        for end in _ends(index):
            whole_and_start = array_types(f"f32[n+2], {i}")
            yield Row(DynamicSlice((3,)), whole_and_start, {"n": 300}, (anything, end))
            with_update = array_types(f"f32[n+1], f32[n], {i}")
            yield Row(DynamicUpdate(), with_update, {"n": 300}, (anything, anything, end))
        scatter = Scatter((0,), "set", unique=True)
        yield Row(scatter, array_types(f"f32[n], {i}[1 1], f32[1]"), {"n": 300})
    yield from _repeated()
    yield row(Scatter((0,), "add"), "f32[n], i32[k 1], f32[k]", "k >= 0", n=3, k=0)
    yield row(Scatter((0,), "set"), "f32[n], i32[k 1], f32[k]", "k >= 0", n=3, k=0)
    yield row(Scatter((0,), "maximum"), "f32[n], i32[k 1], f32[k]", "k >= 0", n=3, k=0)
    yield row(Gather((0,)), "Key[n], i32[k 1]", "k >= 0", n=3, k=0)
    yield row(Gather((0,)), "f32[n m], i32[k 1]", "k >= 0", "m >= 0", n=3, k=2, m=0)
    yield row(Gather((0,)), "f32[n m], i32[k 1]", "k >= 0", n=3, k=0, m=2)
    yield row(Gather((1,), 1), "f32[n m], i32[n k 1]", "n >= 0", n=0, m=2, k=3)
    yield row(Scatter((1,), "set", 1), "f32[n m], i32[n 1], f32[n]", "n >= 0", n=0, m=2)
    starts = whole(-3, 6)
    for dtype in (*ALL, KEY):
        d = dtype.name
        part = array_types(f"{d}[n m+2], i32, i64")
        yield Row(DynamicSlice((1, M)), part, domain=(anything, starts, starts))
        update = array_types(f"{d}[n m+2], {d}[n m], u8, i32")
        yield Row(DynamicUpdate(), update, domain=(anything, anything, starts, starts))
        yield row(DynamicSlice(()), d)
        yield row(DynamicUpdate(), f"{d}, {d}")
        empty = array_types(f"{d}[n m], i32, i32")
        for n in (0, 3):
            sizes = {"n": n, "m": 2}
            none = Row(DynamicSlice((0, M)), empty, sizes, facts=facts("n >= 0"))
            yield none
            yield replace(none, primitive=DynamicSlice((N // 2, 1)))
            update = array_types(f"{d}[n m], {d}[n//2 1], i32, i32")
            yield Row(DynamicUpdate(), update, sizes, facts=facts("n >= 0"))
    yield row(DynamicSlice((0, N)), "f32[m n], i32, i32")
    yield row(DynamicUpdate(), "f32[m n], f32[0 n], i32, i32")


def _different(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    return np.asarray(rng.permutation(shape[0])).astype(to_numpy(kind)).reshape(shape)


def _repeated() -> Iterator[Row]:
    """Many updates of few places, zeros among the factors; and the same places never repeated."""
    reach: Domain = whole(-1, 6)
    for combine in _combines(dtypes.F32):
        for axes, types, shared in (
            ((0,), "f32[5], i32[n 1], f32[n]", 0),
            ((0, 2), "f32[3 m 2], i32[n 2], f32[n m]", 0),
            ((1,), "f32[m 3], i32[m n 1], f32[m n]", 1),
            ((2,), "f32[m k 3], i32[m 2 n 1], f32[m 2 n k]", 1),
        ):
            for values in (moderate, whole(0, 2)) if combine == "multiply" else (moderate,):
                yield Row(
                    Scatter(axes, combine, shared),
                    array_types(types),
                    {"n": 12},
                    (values, reach, values),
                    32,
                    1e-3,
                    signed_zeros=False,
                    smooth=None if values is moderate else (values, reach, values),
                )
        yield Row(
            Scatter((0,), combine, unique=True),
            array_types("f32[n m], i32[n 1], f32[n m]"),
            domain=(moderate, _different, moderate),
            tolerance=1,
        )


ROWS = (*_creation(), *_shaping(), *_indexing())
