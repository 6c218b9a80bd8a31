"""Rows for associative combinations of rows."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.ir.builder import Value
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Switch
from pscdsl._src.primitives.elementwise import exp, less, maximum, minimum
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.typing.dims import parse
from pscdsl.typing.dtypes import I32
from tests.support.law_rows import Row, anything, array_types, between
from tests.support.law_rows_b import block
from tests.support.law_rows_structure import facts

N = parse("n")


def _affine(a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """`x -> c * (a * x + b) + d`."""
    return [a * c, b * c + d]


def _larger() -> Block:
    """The larger of two numbers with its place, by a choice that a batch cannot make at once."""
    first = block("f32, i32, f32, i32", lambda a, i, b, j: [a, i])
    second = block("f32, i32, f32, i32", lambda a, i, b, j: [b, j])

    def build(a: Value, i: Value, b: Value, j: Value) -> list[Value]:
        return list(Switch((first, second)).bind(less(a, b), a, i, b, j))

    return block("f32, i32, f32, i32", build)


def _scans() -> Iterator[Row]:
    near = between(-1.2, 1.2)
    affine = block("f32, f32[d], f32, f32[d]", _affine)
    operands = array_types("f32[n], f32[n d]")
    for length in (0, 1, 2, 5):
        where = facts("n >= 0") if length < 2 else facts()
        sizes = {"n": length, "d": 3}
        yield Row(AssociativeScan(affine, 0, N), operands, sizes, near, 8, 1e-5, facts=where)
    # More than the length of a block: blocks, and a rest.
    short = block("f32, f32, f32, f32", _affine)
    for size in ("n+122", "40*n+5", "700*n"):
        long = array_types(f"f32[{size}], f32[{size}]")
        scan = AssociativeScan(short, 0, parse(size))
        yield Row(scan, long, {"n": 7}, near, 64, 1e-4, smooth=between(0.9, 1))
    between_rows = block(
        "f32[2 2], f32[2 2], f32[2 2]",
        lambda m, a, b: [DotGeneral(((1,), (0,)))(DotGeneral(((1,), (0,)))(a, m), b)],
    )
    for size, n in (("n", 4), ("30*n", 10), ("2*n+1", 2300), ("7", 1)):
        stacked = array_types(f"f32[2 2], f32[{size} 2 2]")
        scan = AssociativeScan(between_rows, 1, parse(size))
        yield Row(scan, stacked, {"n": n}, between(-0.8, 0.8), 64, 1e-4, False)
    total = block("i32, bool, i32, bool", lambda a, p, b, q: [a + b, p | q])
    yield Row(AssociativeScan(total, 0, N), array_types("i32[n], bool[n]"), {"n": 6})
    yield Row(AssociativeScan(total, 0, 9000), array_types("i32[9000], bool[9000]"))
    largest = AssociativeScan(_larger(), 0, N)
    for length in (4, 5000):
        yield Row(largest, array_types("f32[n], i32[n]"), {"n": length}, between(-9, 9))
    keys = block("Key, i32, Key, i32", lambda k, i, l, j: [l, i + j])  # noqa: E741
    for length in (3, 5000):
        yield Row(AssociativeScan(keys, 0, N), array_types("Key[n], i32[n]"), {"n": length})
    counts = block("Key[2], f32, f32[2], f32, f32[2]", lambda k, a, x, b, y: [a * b, x * b + y])
    yield Row(
        AssociativeScan(counts, 1, N),
        array_types("Key[2], f32[n], f32[n 2]"),
        {"n": 3},
        (anything, near, near),
        8,
        1e-5,
    )


def _map_of(w: Value, x: Value) -> list[Value]:
    """An affine map of each row."""
    return [Reduce("sum", (0,))(w * x) * 0.4, w * x]


def _after(m: Value, a: Value, b: Value, c: Value, d: Value) -> list[Value]:
    """`y -> a * m * y + b`, and then another one."""
    return [a * m * c, b * m * c + d]


def _reductions() -> Iterator[Row]:
    near = between(-1.2, 1.2)
    body = block("f32[2], f32[2]", _map_of)
    after = block("f32, f32, f32[2], f32, f32[2]", _after)
    captured = array_types("f32[2], f32")
    for size, n in (("n", 1), ("n", 3), ("40*n+5", 7)):
        rows = array_types(f"f32[{size} 2]")
        for initial in ((), captured[::-1]):
            reduction = MapReduce(body, after, 1, 1, len(initial), parse(size))
            operands = (*captured, *initial, *rows)
            yield Row(reduction, operands, {"n": n}, near, 64, 1e-4)
    nothing = (*captured, *captured[::-1], *array_types("f32[n 2]"))
    reduction = MapReduce(body, after, 1, 1, 2, N)
    yield Row(reduction, nothing, {"n": 0}, near, 8, 1e-5, facts=facts("n >= 0"))
    yield from _sums()
    larger = MapReduce(block("f32, i32", lambda x, i: [x, i]), _larger(), 0, 0, 0, N)
    for length in (4, 5000):
        yield Row(larger, array_types("f32[n], i32[n]"), {"n": length}, between(-9, 9))
    last = block("Key, i32, Key, i32", lambda k, i, l, j: [l, i + j])  # noqa: E741
    one = block("Key", lambda key: [key, key.builder.literal(1, I32)])
    yield Row(MapReduce(one, last, 0, 0, 0, N), array_types("Key[n]"), {"n": 5000})


def _sums() -> Iterator[Row]:
    """Parts that are combined each by itself, which are reductions."""
    parts = block("f32[d], f32[d]", lambda w, x: [w * x, exp(x), Reduce("sum", (0,))(x)])
    types = "f32[d], f32[d], f32"
    combine = block(f"{types}, {types}", lambda a, b, c, x, y, z: [a + x, maximum(y, b), c * z])
    for n, initial in ((0, True), (1, False), (6, True), (6, False)):
        first = array_types(types) if initial else ()
        reduction = MapReduce(parts, combine, 1, 0, len(first), N)
        operands = (*array_types("f32[d]"), *first, *array_types("f32[n d]"))
        where = facts("n >= 0") if not n else facts()
        yield Row(reduction, operands, {"n": n, "d": 3}, between(0.5, 1.5), 64, 1e-4, facts=where)
    flags = block("bool, i8", lambda p, i: [p, p, i, i])
    types = "bool, bool, i8, i8"
    logic = block(
        f"{types}, {types}",
        lambda a, b, c, d, w, x, y, z: [a & w, b | x, c ^ y, minimum(d, z)],
    )
    yield Row(MapReduce(flags, logic, 0, 0, 0, N), array_types("bool[n], i8[n]"), {"n": 7})


ROWS = (*_scans(), *_reductions())
