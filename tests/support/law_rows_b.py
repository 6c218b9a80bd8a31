"""Rows for calls and control flow, sorting, and contractions."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import get_args

import numpy as np

from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Checkpoint, Lanes, Switch
from pscdsl._src.primitives.custom_derivatives import (
    CustomJvp,
    CustomVjp,
    LinearSolve,
    Root,
    Rule,
    StopGradient,
)
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.sorting import SearchSorted, Side, Sort, TopK
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.primitives.windows import Convolution
from pscdsl.typing import dtypes
from pscdsl.typing.dims import Size, parse
from pscdsl.typing.dtypes import ALL, BOOL, F32, DType
from tests.support.law_rows import (
    Domain,
    NDArray,
    Row,
    anything,
    array_types,
    between,
    finfo,
    whole,
)
from tests.support.law_rows_structure import facts

Build = Callable[..., Sequence[Value]]
MANY_SHAPES = (dtypes.BOOL, dtypes.I8, dtypes.I32, dtypes.BF16, dtypes.F32, dtypes.C64)


def block(types: str, build: Build) -> Block:
    """A closed block built by ordinary code over its parameters."""
    program = Program()
    params = [program.current.parameter(each) for each in array_types(types)]
    return program.current.finish(params, build(*params))[0]


def closed(name: str, sizes: str, types: str, build: Build, *assertions: str) -> Function:
    """A function without trees in its signature."""
    return Function(name, tuple(sizes.split()), facts(*assertions), block(types, build))


# Control flow.


def _calls() -> Iterator[Row]:
    function = closed("half", "n", "f32[n], f32", lambda x, s: [x * s, s + 1.0], "n % 2 == 0")
    sizes = (("n", parse("2*m")),)
    yield Row(Call(function, sizes), array_types("f32[2*m], f32"), {"m": 3})
    yield Row(Call(function, (("n", 4),)), array_types("f32[4], f32"))


def _switches() -> Iterator[Row]:
    branches = [
        block("f32[n], f32", lambda x, s: [x + s, s]),
        block("f32[n], f32", lambda x, s: [x * s, s + 1.0]),
        block("f32[n], f32", lambda x, s: [x, s * 2.0]),
    ]
    operands = array_types("i32, f32[n], f32")
    for index in (-5, 0, 1, 2, 3, 2**31 - 1):
        domain = (whole(index, index), anything, anything)
        yield Row(Switch(tuple(branches)), operands, {"n": 3}, domain)
    yield Row(Switch(tuple(branches[:1])), operands, {"n": 3}, (whole(4, 4), anything, anything))
    for value, few in product((False, True), (branches, branches[1:])):
        yield Row(
            Switch(tuple(few)),
            array_types("bool, f32[n], f32"),
            {"n": 3},
            (_flag(value), anything, anything),
        )


def _flag(value: bool) -> Domain:
    return lambda rng, kind, shape: np.full(shape, value)


def _whiles() -> Iterator[Row]:
    cond = block("i32, i32, f32[n]", lambda limit, i, x: [i < limit])
    step = block("f32[n], i32, f32[n]", lambda y, i, x: [i + 1, x * 0.5 + y])
    operands = array_types("i32, f32[n], i32, f32[n]")
    for limit in (-1, 0, 7):
        numbers = between(-2, 2)
        domain = (whole(limit, limit), numbers, whole(0, 0), numbers)
        yield Row(While(cond, step, 1, 1), operands, {"n": 3}, domain, 2, 1e-5)
    below = block("f32, i32, f32", lambda most, i, x: [(i < 6) & (x < most)])
    grow_by = block("f32[n], f32, i32, f32", _grown)
    for every in (None, 1, 2, 3, parse("n")):
        yield Row(
            While(below, grow_by, 1, 2, 6, every),
            array_types("f32, f32[n], f32, i32, f32"),
            {"n": 3},
            (whole(9, 9), between(1, 2), between(1, 1.1), whole(0, 0), between(0.5, 0.6)),
            8,
            1e-5,
            smooth=(whole(9, 9), between(1, 2), between(1, 1.1), whole(0, 0), between(0.5, 0.6)),
        )
    forever = block("bool, i32", lambda go, i: [go & (i < 5)])
    grow = block("bool, i32", lambda go, i: [go, i * 2 + 1])
    both = (_flag(True), whole(0, 0))
    yield Row(While(forever, grow, 0, 0), array_types("bool, i32"), domain=both)


def _grown(y: Value, s: Value, i: Value, x: Value) -> list[Value]:
    """A step that saves what it captures, what is computed of that, and what it carries."""
    fixed = Reduce("sum", (0,))(y * y)
    return [i + 1, x * x * s + fixed * 0.25 * x]


def _scans() -> Iterator[Row]:
    body = block("f32[d], f32[d], f32[d]", lambda w, h, x: [h * w + x, h, x * 2.0])
    operands = array_types("f32[d], f32[d], f32[n d]")
    for reverse in (False, True):
        for length in (0, 1, 5):
            yield Row(
                Scan(body, 1, 1, parse("n"), reverse),
                operands,
                {"n": length, "d": 3},
                between(-2, 2),
                2,
                1e-5,
                facts=facts("n >= 0"),
            )
    some = block("i32, f32[d], f32[d], f32[d]", lambda i, w, h, x: [h * w + x * h, h * x])
    operands = array_types("i32, f32[d], f32[d], f32[n d]")
    for reverse in (False, True):
        for steps in (-1, 0, 2, 4, 9):
            yield Row(
                Scan(some, 2, 1, parse("n"), reverse, True),
                operands,
                {"n": 4, "d": 3},
                (whole(steps, steps), *(between(-2, 2),) * 3),
                2,
                1e-5,
            )
    count = block("i32, f32", lambda i, x: [i + 1])
    yield Row(Scan(count, 0, 1, parse("n")), array_types("i32, f32[n]"), {"n": 4}, facts=facts())
    counted = block("i32", lambda i: [i + 1, i])
    yield Row(Scan(counted, 0, 1, 6), array_types("i32"), domain=whole(-3, 3))
    only = block("bool, i8", lambda flag, x: [x + x, flag])
    yield Row(Scan(only, 0, 0, parse("n")), array_types("bool[n], i8[n]"), {"n": 4})
    keys = block("Key", lambda key: [key])
    yield Row(Scan(keys, 0, 0, parse("n"), True), array_types("Key[n]"), {"n": 3})
    kept = block("Key, Key[2], f32", lambda key, held, x: [held, x, key])
    yield Row(Scan(kept, 1, 1, parse("n")), array_types("Key, Key[2], f32[n]"), {"n": 3})


def _ruled() -> Iterator[Row]:
    body = block("f32[n], f32", lambda x, s: [x * x * s, s + 1.0])
    tangents = block(
        "f32[n], f32, f32[n], f32",
        lambda x, s, dx, ds: [x * x * s, s + 1.0, (2.0 * s) * (x * dx) + (x * x) * ds, ds],
    )
    forward = block("f32[n], f32", lambda x, s: [x * x * s, s + 1.0, x, s])
    backward = block(
        "f32[n], f32, f32[n], f32",
        lambda x, s, dy, dz: [(2.0 * s) * (x * dy), Reduce("sum", (0,))(x * x * dy) + dz],
    )
    rules = Rule(lambda: tangents), Rule(lambda: forward), Rule(lambda: backward)
    operands = array_types("f32[n], f32")
    for primitive in (
        CustomJvp("f", body, (0, 0), rules[0]),
        CustomVjp("f", body, (0, 0, 0), *rules[1:]),
        Checkpoint(body),
        Checkpoint(body, "dots"),
    ):
        yield Row(primitive, operands, {"n": 3}, between(-2, 2))
    # What solvers know of an equation they capture on their own, which no row can say: the operands
    # of a law are moved one by one.  So these equations are the same wherever they stand.
    given = "f32[n], f32[n]"
    linear = block(given, lambda x, y: [2.0 * x + y, 4.0 * y])
    solver = block(given, lambda b, c: [(b - c / 4.0) / 2.0, c / 4.0])
    transposed = block(given, lambda b, c: [b / 2.0, (c - b / 2.0) / 4.0])
    solve = LinearSolve(linear, solver, (0, 0, 0), transposed)
    yield Row(solve, array_types(given), {"n": 3}, between(-2, 2))
    square = block("f32[n]", lambda x: [x * x - 4.0])
    tangent = block("f32[n], f32[n]", lambda x, y: [y / (2.0 * x)])
    root = Root(square, block("f32[n]", lambda x: [x * 0.0 + 2.0]), (0, 0, 0), tangent)
    yield Row(root, array_types("f32[n]"), {"n": 3}, between(1, 3))
    yield Row(StopGradient(), array_types("f32[n]"), {"n": 3})
    yield Row(PlaceAlong((("data",), ())), array_types("f32[n m]"), {"n": 4})
    yield Row(Lanes(), array_types("bool[n], f32[n m]"), {"n": 3, "m": 2})


# Sorting.

LINES: tuple[tuple[str, int, dict[str, int]], ...] = (
    ("[n]", 0, {"n": 40}),
    ("[m n k]", 1, {"m": 3, "n": 20, "k": 2}),
    ("[m n]", 0, {"m": 1, "n": 4}),
    ("[m n]", 1, {"m": 3, "n": 0}),
    ("[m n]", 0, {"m": 30, "n": 3}),
)


def _few(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Values that repeat, special ones among them."""
    values = anything(rng, kind, (6,))
    return values[rng.integers(0, 6, shape)]


def _apart(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Numbers in any order of which no two are close."""
    counts: NDArray = np.arange(np.prod(shape, dtype=np.int64))
    return (rng.permutation(counts) / 8).reshape(shape).astype(to_numpy(kind))


def _sorts() -> Iterator[Row]:
    where = facts("n >= 0")
    for dtype in ALL:
        for shape, axis, sizes in LINES if dtype in MANY_SHAPES else LINES[1:2]:
            key = f"{dtype}{shape}"
            for descending in (False, True):
                alone = Sort(axis, descending=descending)
                yield Row(alone, array_types(key), sizes, facts=where)
                stable = Sort(axis, stable=True, descending=descending)
                yield Row(stable, array_types(key), sizes, _few, facts=where)
                pair = array_types(f"{key}, i32{shape}")
                yield Row(alone, pair, sizes, (_few, anything), facts=where)
                two = Sort(axis, keys=2, descending=descending)
                three = array_types(f"i8{shape}, {key}, f64{shape}")
                yield Row(two, three, sizes, (whole(0, 2), _few, anything), facts=where)


def _tops() -> Iterator[Row]:
    for dtype in ALL:
        if dtype.is_complex:
            continue
        for k in (0, 1, 5):
            yield Row(TopK(k), array_types(f"{dtype}[m 5+n]"), {"m": 2, "n": 20}, _few)
            yield Row(TopK(k), array_types(f"{dtype}[5]"))
    yield Row(
        TopK(parse("n")),
        array_types("f32[100*n]"),
        {"n": 20},
        whole(-9, 9),
        facts=facts("n >= 1"),
        smooth=_apart,
    )


def _ascending(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    return np.sort(anything(rng, kind, shape), axis=-1)


def _searches() -> Iterator[Row]:
    where = facts("n >= 0")
    sides: tuple[Side, ...] = get_args(Side)
    for side in sides:
        search = SearchSorted(side)
        for dtype in ALL:
            if not dtype.is_complex:
                for n in (5, 100):
                    types = array_types(f"{dtype}[n], {dtype}[m]")
                    yield Row(search, types, {"n": n, "m": 50}, (_ascending, anything), facts=where)
        for n in (0, 7, 40):
            types = array_types("f32[m n], f32[m k 2]")
            sizes = {"n": n, "m": 3, "k": 4}
            yield Row(search, types, sizes, (_ascending, anything), facts=where)


# Contractions.


def numeric(dtype: DType, accumulated: DType | None = None) -> tuple[Domain, float, float]:
    """Operand values, and how far results may differ."""
    if not dtype.is_inexact:
        return anything, 0, 0
    limits = finfo((accumulated or dtype).real)
    exact = dtype if dtype.bits > 16 or dtype.is_complex else F32
    return between(-2, 2), 2, 1024 * float(max(limits.eps, finfo(exact).eps))


DOTS: tuple[tuple[DotGeneral, str, str, dict[str, int]], ...] = (
    (DotGeneral(((1,), (0,))), "[m k]", "[k n]", {"m": 3, "k": 4, "n": 5}),
    (DotGeneral(((1,), (0,))), "[m k]", "[k n]", {"m": 30, "k": 40, "n": 50}),
    (DotGeneral(((1,), (0,))), "[m k]", "[k n]", {"m": 3, "k": 0, "n": 5}),
    (DotGeneral(((2,), (1,)), ((0,), (0,))), "[b m k]", "[b k n]", {}),
    (DotGeneral(((0, 2), (2, 0)), ((1,), (1,))), "[k b l]", "[l b k]", {}),
    (DotGeneral(((0,), (1,)), ((1,), (2,))), "[k b]", "[m k b]", {}),
    (DotGeneral(((0,), (0,))), "[k]", "[k]", {}),
    (DotGeneral(((), ())), "[m]", "[n]", {}),
)


def _dots() -> Iterator[Row]:
    for dtype in ALL:
        if dtype is BOOL:
            continue
        for dot, left, right, sizes in DOTS if dtype in MANY_SHAPES else DOTS[1:4]:
            operands = array_types(f"{dtype}{left}, {dtype}{right}")
            domain, tolerance, absolute = numeric(dtype)
            yield Row(dot, operands, sizes, domain, tolerance, absolute, False, facts("k >= 0"))
        for wide in ALL:
            if wide.kind is dtype.kind and wide.bits > dtype.bits and wide.signed >= dtype.signed:
                dot = DotGeneral(((1,), (0,)), result=wide)
                operands = array_types(f"{dtype}[m k], {dtype}[k n]")
                domain, tolerance, absolute = numeric(dtype, wide)
                yield Row(dot, operands, {}, domain, tolerance, absolute, False)


def _convolution(
    strides: tuple[int, ...] = (1,),
    padding: tuple[tuple[str, str], ...] = (("0", "0"),),
    left: tuple[int, ...] = (1,),
    right: tuple[int, ...] = (1,),
    groups: Size = 1,
    batch_groups: Size = 1,
) -> Convolution:
    sizes = tuple((parse(low), parse(high)) for low, high in padding)
    return Convolution(strides, sizes, left, right, groups, batch_groups)


CONVOLUTIONS: tuple[tuple[Convolution, str, str, dict[str, int]], ...] = (
    (_convolution(), "[b c n]", "[o c k]", {"b": 2, "c": 3, "n": 8, "o": 4, "k": 3}),
    (_convolution(), "[b c n]", "[o c k]", {"b": 2, "c": 3, "n": 2, "o": 4, "k": 5}),
    (_convolution(), "[b c n]", "[o c k]", {"b": 2, "c": 0, "n": 8, "o": 4, "k": 3}),
    (_convolution(padding=(("k-1", "0"),)), "[b c n]", "[o c k]", {"k": 3, "n": 5}),
    (
        _convolution((2,), (("1", "2"),), right=(2,), groups=2),
        "[b 2*c n]",
        "[2*o c 3]",
        {"b": 2, "c": 2, "n": 8, "o": 3},
    ),
    (
        _convolution((1, 2), (("1", "1"), ("0", "1")), (2, 1), (1, 2), batch_groups=2),
        "[2*b c n m]",
        "[2*o c 3 2]",
        {"b": 2, "c": 3, "n": 5, "m": 6, "o": 2},
    ),
    (
        _convolution((1, 1), (("-1", "1"), ("2", "-2")), (1, 3), (1, 1)),
        "[b c n m]",
        "[o c 3 2]",
        {"b": 2, "c": 3, "n": 5, "m": 6, "o": 4},
    ),
    (_convolution((), (), (), ()), "[b c]", "[o c]", {}),
    (
        _convolution((1, 1), (("1", "1"), ("1", "1")), (1, 1), (1, 1)),
        "[b c n n]",
        "[o c 3 3]",
        {"b": 1, "c": 16, "n": 10, "o": 32},
    ),
    (_convolution(padding=(("2", "2"),), left=(2,)), "[b c n]", "[o c 2]", {"n": 0}),
)


def _convolutions() -> Iterator[Row]:
    where = facts("n >= 0", "c >= 0")
    for dtype in ALL:
        if dtype is BOOL:
            continue
        domain, tolerance, absolute = numeric(dtype)
        for convolution, x, kernel, sizes in CONVOLUTIONS[:: 1 if dtype in MANY_SHAPES else 5]:
            operands = array_types(f"{dtype}{x}, {dtype}{kernel}")
            yield Row(convolution, operands, sizes, domain, tolerance, absolute, False, where)
    domain, tolerance, absolute = numeric(F32)
    for convolution, types, sizes, known in GROUPED:
        rounding = (domain, tolerance, absolute, False)
        yield Row(convolution, array_types(types), sizes, *rounding, facts(*known))


GROUPS: Size = parse("g")
GROUPED: tuple[tuple[Convolution, str, dict[str, int], tuple[str, ...]], ...] = (
    (_convolution(groups=GROUPS), "f32[b g*c n+2], f32[g*o c 3]", {"g": 3}, ()),
    (_convolution((2,), batch_groups=GROUPS), "f32[g*b c n+2], f32[g*o c 3]", {"g": 2}, ()),
    (_convolution(groups=2), "f32[b 2*c n+2], f32[o c 3]", {"o": 4}, ("o % 2 == 0",)),
    (
        _convolution((2,), batch_groups=2),
        "f32[b c n+2], f32[o c 3]",
        {"b": 4, "o": 6},
        ("o % 2 == 0", "b % 2 == 0"),
    ),
    (_convolution((3,), (("k", "k//2"),), (2,)), "f32[b c n], f32[o c k]", {"k": 4, "n": 6}, ()),
)
"""Groups of any number, and sizes that facts say are divisible."""

ROWS = (
    *_calls(),
    *_switches(),
    *_whiles(),
    *_scans(),
    *_ruled(),
    *_sorts(),
    *_tops(),
    *_searches(),
    *_dots(),
    *_convolutions(),
)
