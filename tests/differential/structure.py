"""Operations of whole arrays: shapes, reductions, products, orders and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tests.differential import arithmetic as a
from tests.differential import functions as f
from tests.differential.bodies import Body, Inapplicable, Operand, Operation, Step, need
from tests.differential.enclosures import Exact, Real, Value, joined
from tests.differential.formats import NDArray
from tests.differential.operations import binary, clipped, composed, twice, unary, undone, whole

Move: TypeAlias = Callable[[Any], Any]


def moved(text: str, move: Move) -> Step:
    """An operation that puts elements at other places."""
    return Step(text, lambda v: v.moved(move))


def shaping(g: Body, x: Operand) -> Step:
    """Another shape, or other places."""
    rank = len(x.shape)
    t = x.text
    if rank == 0:
        n = g.choice((1, 3, 7))
        return moved(f"np.broadcast_to({t}, ({n},))", lambda v: np.broadcast_to(v, (n,)))
    axis = g.axis(x)
    size = x.shape[axis]
    before = ":, " * axis
    options: list[tuple[str, Move]] = [
        (f"np.flip({t}, axis={axis})", lambda v: np.flip(v, axis=axis)),
        (f"np.roll({t}, 1, axis={axis})", lambda v: np.roll(v, 1, axis=axis)),
        (f"{t}[{before}None]", lambda v: np.expand_dims(v, axis)),
        (f"{t}.reshape({prod(x.shape)})", lambda v: v.reshape(-1)),
    ]
    if rank > 1:
        order = tuple(g.rng.sample(range(rank), rank))
        options += [(f"{t}.T", np.transpose)] * 2
        options.append((f"np.transpose({t}, {order})", lambda v: np.transpose(v, order)))
        if x.shape[-1] > 1 and x.shape[-2] > 1:
            options.append((f"np.tril({t})", np.tril))
            options.append((f"np.triu({t}, 1)", lambda v: np.triu(v, 1)))
    if size > 1:
        stride = g.choice((1, 1, 2, 3))
        start = g.rng.randrange(size - 1)
        picked: tuple[Any, ...] = (slice(None),) * axis
        parts: list[tuple[str, Any]] = [
            (f"{start}::{stride}", slice(start, None, stride)),
            (f"{start}", start),
            ("::-1", slice(None, None, -1)),
        ]
        options += [(f"{t}[{before}{text}]", taken((*picked, part))) for text, part in parts]
    text, move = g.choice(options)
    return moved(text, move)


def taken(index: tuple[Any, ...]) -> Move:
    """What is indexed so."""
    return lambda v: v[index]


def joining(g: Body, x: Operand) -> Step:
    """Put together with another value, or with itself."""
    need(bool(x.shape) and 2 * prod(x.shape) <= g.most)
    axis = g.axis(x)

    def fitting(y: Operand) -> bool:
        same = y.dtype == x.dtype and len(y.shape) == len(x.shape)
        return same and all(
            one == other or i == axis
            for i, (one, other) in enumerate(zip(x.shape, y.shape, strict=True))
        )

    y = g.choice([each for each in g.operands if fitting(each)] or [x])
    stacked = y.shape == x.shape and g.chance(0.4)
    name, function = ("stack", np.stack) if stacked else ("concatenate", np.concatenate)

    def meaning(v: Value) -> Value:
        other = v if y is x else y.value
        if isinstance(v, Exact) and isinstance(other, Exact):
            return Exact(
                function([v.array, other.array], axis=axis),
                function([v.unknown, other.unknown], axis=axis),
            )
        assert isinstance(v, Real)
        assert isinstance(other, Real)
        low, high, nan = (
            function([one, two], axis=axis)
            for one, two in ((v.low, other.low), (v.high, other.high), (v.nan, other.nan))
        )
        return Real(v.format, low, high, nan)

    return Step(f"np.{name}(({x.text}, {y.text}), axis={axis})", meaning)


def padding(g: Body, x: Operand) -> Step:
    """With zeros around, or repeated."""
    need(bool(x.shape) and 4 * prod(x.shape) <= g.most and len(x.shape) <= 3)
    if g.chance(0.5):
        return moved(f"np.tile({x.text}, 2)", lambda v: np.tile(v, 2))
    low, high = g.choice(((1, 0), (0, 2), (2, 1)))

    def move(v: NDArray) -> Any:
        return np.pad(v, (low, high))

    return moved(f"np.pad({x.text}, ({low}, {high}))", move)


def written(axes: Sequence[int], rank: int, keep: bool) -> str:
    """The arguments of a reduction."""
    axis = (
        ""
        if len(axes) == rank and rank > 1
        else f", axis={tuple(axes) if len(axes) > 1 else axes[0]}"
    )
    return axis + (", keepdims=True" if keep else "")


def reduction(g: Body, x: Operand) -> Step:
    """Over one axis, several or all."""
    axes, keep = g.axes(x), g.chance(0.2)
    options = written(axes, len(x.shape), keep)
    if isinstance(x.value, Real):
        name = g.choice(("sum", "sum", "sum", "mean", "max", "min", "prod", "var", "ptp", "norm"))
        meanings: dict[str, Callable[[Any], Value]] = {
            "sum": lambda v: a.total(v, axes, keep),
            "mean": lambda v: a.mean(v, axes, keep),
            "max": lambda v: f.extreme_of(v, axes, True, keep),
            "min": lambda v: f.extreme_of(v, axes, False, keep),
            "prod": lambda v: a.product(v, axes, keep),
            "var": lambda v: variance(v, axes, keep),
            "ptp": lambda v: spread(v, axes, keep),
            "norm": lambda v: norm(v, axes, keep),
        }
        if name == "norm":
            need(len(axes) == 1)
            return Step(f"np.linalg.norm({x.text}{options})", meanings[name])
        return Step(f"np.{name}({x.text}{options})", meanings[name])
    if x.dtype == "bool_":
        name, function = g.choice(
            (("any", np.logical_or), ("all", np.logical_and), ("sum", np.add))
        )
        of = np.int32 if name == "sum" else None
        cast = ", dtype=np.int32" if of else ""
        return Step(
            f"np.{name}({x.text}{options}{cast})",
            lambda v: f.over_axes(function, v, axes, keep, of),
        )
    name = g.choice(("sum", "prod", "max", "min"))
    if name in ("max", "min"):
        return Step(
            f"np.{name}({x.text}{options})", lambda v: f.extreme_of(v, axes, name == "max", keep)
        )
    # Small integers are summed in 32 bits here, and in 64 by NumPy unless it is told.
    wide = {"i8": "int32", "i16": "int32", "u8": "uint32", "u16": "uint32"}.get(x.dtype)
    dtype = np.dtype(wide) if wide else x.value.array.dtype
    function = np.add if name == "sum" else np.multiply
    return Step(
        f"np.{name}({x.text}{options}, dtype=np.{dtype.name})",
        lambda v: f.over_axes(function, v, axes, keep, dtype),
    )


def spread(x: Real, axes: tuple[int, ...], keep: bool) -> Real:
    """The maximum less the minimum."""
    most, least = (f.extreme_of(x, axes, largest, keep) for largest in (True, False))
    assert isinstance(most, Real)
    assert isinstance(least, Real)
    return a.subtract(most, least)


def norm(x: Real, axes: Sequence[int], keep: bool) -> Real:
    """The root of the sum of squares."""
    if x.format.name != x.format.sums:
        return a.convert(norm(a.convert(x, x.format.sums), axes, keep), x.format.name)
    root = f.increasing(np.sqrt, 1, (0, np.inf))
    found: Real = root(a.total(a.square(x), axes, keep))
    return found


def variance(x: Real, axes: tuple[int, ...], keep: bool) -> Real:
    """The mean of the squares of what differs from the mean."""
    if x.format.name != x.format.sums:
        return a.convert(variance(a.convert(x, x.format.sums), axes, keep), x.format.name)
    away = a.subtract(x, a.mean(x, axes, True))
    return a.mean(a.square(away), axes, keep)


def place(g: Body, x: Operand) -> Step:
    """The place of an extreme."""
    need(x.dtype != "bool_")
    axis = g.axis(x)
    largest = g.chance(0.5)
    name = "argmax" if largest else "argmin"
    return Step(
        f"np.{name}({x.text}, axis={axis}).astype(np.int32)",
        lambda v: f.place_of_extreme(v, axis, largest),
    )


def cumulative(g: Body, x: Operand) -> Step:
    """Sums and products of the first elements, and running extremes."""
    axis = g.axis(x)
    if not isinstance(x.value, Real):
        need(x.dtype in ("i32", "i64", "u32", "u64"))
        dtype = x.value.array.dtype
        return Step(
            f"np.cumsum({x.text}, axis={axis}, dtype=np.{dtype.name})",
            lambda v: Exact(
                np.cumsum(v.array, axis=axis, dtype=dtype),
                np.logical_or.accumulate(v.unknown, axis=axis),
            ),
        )
    if g.chance(0.7):
        return Step(f"np.cumsum({x.text}, axis={axis})", lambda v: a.running_total(v, axis))
    need(x.shape[axis] <= 40)
    return Step(f"np.cumprod({x.text}, axis={axis})", lambda v: a.running_product(v, axis))


def ordering(g: Body, x: Operand) -> Step:
    """Sorted, or the middle of what is sorted."""
    need(x.dtype != "bool_" and bool(x.shape))
    axis = g.axis(x)
    need(x.shape[axis] <= 64)
    if isinstance(x.value, Real) and g.chance(0.25):
        need(bool(np.isfinite(x.value.low).all()))
        return Step(f"np.median({x.text}, axis={axis})", lambda v: median(v, axis))
    return Step(f"np.sort({x.text}, axis={axis})", lambda v: f.ordered(v, axis))


def median(x: Real, axis: int) -> Real:
    """The middle element, or the mean of the two around the middle."""
    size = x.shape[axis]
    rows = f.ordered(x, axis)
    assert isinstance(rows, Real)
    before, middle = (slice(None),) * axis, ((size - 1) // 2, size // 2)
    below, above = (rows.moved(taken((*before, at))) for at in middle)
    if size % 2:
        found = below
    else:
        half = a.constant(x.format.name, 0.5)
        found = joined(
            a.multiply(a.add(below, above), half),
            a.add(a.multiply(below, half), a.multiply(above, half)),
            a.add(below, a.multiply(a.subtract(above, below), half)),
        )
    nan = np.max(x.nan, axis=axis)
    return Real(found.format, found.low, found.high, np.asarray(np.maximum(found.nan, nan)))


def matrix_product(g: Body, x: Operand) -> Step:
    """`@` with another array on either side, perhaps turned."""
    need(bool(x.shape) and x.dtype != "bool_")
    found: list[tuple[Operand, bool]] = []
    for y in g.operands:
        if y.dtype != x.dtype or not y.shape:
            continue
        for other in (y, turned(y)) if len(y.shape) > 1 else (y,):
            found += [(other, left) for left in (True, False) if fits_product(g, x, other, left)]
    square = len(x.shape) == 2 and fits_product(g, x, turned(x), True)
    need(bool(found) or square)
    if square and (not found or g.chance(0.2)):
        return Step(f"({x.text} @ {x.text}.T)", lambda v: product(v, transposed(v)))
    y, left = g.choice(found)
    if left:
        return Step(f"({x.text} @ {y.text})", lambda v: product(v, y.value))
    return Step(f"({y.text} @ {x.text})", lambda v: product(y.value, v))


def turned(x: Operand) -> Operand:
    """The transpose."""
    return Operand(f"{x.text}.T", transposed(x.value))


def transposed(x: Value) -> Value:
    """The transpose."""
    return x.moved(np.transpose)


def reshaped(x: Real, shape: tuple[int, ...]) -> Real:
    """With another shape."""
    return x.moved(lambda v: v.reshape(shape))


def fits_product(g: Body, x: Operand, y: Operand, left: bool) -> bool:
    """Whether the inner sizes agree, and all products together are not too many."""
    first, second = (x, y) if left else (y, x)
    inner = second.shape[-2:][0]
    if first.shape[-1] != inner or len(first.shape) > 3 or len(second.shape) > 3:
        return False
    if min(len(first.shape), len(second.shape)) > 1:
        try:
            np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        except ValueError:
            return False
    columns = second.shape[-1] if len(second.shape) > 1 else 1
    return prod(first.shape) * columns * prod(second.shape[:-2]) <= 8 * g.most


def product(x: Value, y: Value) -> Value:
    """The matrix product of two values."""
    if isinstance(x, Real):
        assert isinstance(y, Real)
        return a.matrix_product(x, y)
    assert isinstance(y, Exact)
    doubt = bool(x.unknown.any() or y.unknown.any())
    found = np.asarray(x.array @ y.array)
    return Exact(found, np.full(found.shape, doubt))


def reduced_product(g: Body, x: Operand) -> Step:
    """A matrix product, a function of each element, and a reduction: what backends fuse."""
    first = matrix_product(g, x)
    inner = Operand(first.text, first.meaning(x.value))
    need(inner.is_float and bool(inner.shape) and prod(inner.shape) <= g.most)
    second = Step("{}", lambda v: v) if g.chance(0.3) else unary(g, Operand("{}", inner.value))
    between = Operand(second.text.replace("{}", inner.text), second.meaning(inner.value))
    third = reduction(g, between)
    return Step(third.text, lambda v: third.meaning(second.meaning(first.meaning(v))))


def sum_of_products(g: Body, x: Operand) -> Step:
    """A product of two arrays, one with more axes, that is summed over an axis."""
    need(x.is_float and bool(x.shape))
    y = g.partner(x, 0)
    need(bool(y.shape))
    shape = np.broadcast_shapes(x.shape, y.shape)
    axis = g.rng.randrange(len(shape))
    return Step(
        f"np.sum({y.text} * {x.text}, axis={axis})",
        lambda v: a.total(a.multiply(y.real, v), (axis,)),
    )


def more_axes(g: Body, x: Operand) -> Step:
    """With axes at the end, beside a value that has so many."""
    need(x.is_float and bool(x.shape))
    found = [
        y
        for y in g.operands
        if y.dtype == x.dtype
        and len(y.shape) > len(x.shape) + 1
        and y.shape[: len(x.shape)] == x.shape
    ]
    need(bool(found))
    y = g.choice(found)
    count = len(y.shape) - len(x.shape)
    axis = g.choice((len(x.shape) - 1, g.rng.randrange(len(y.shape))))
    text = f"{x.text}[{':, ' * len(x.shape)}{', '.join(['None'] * count)}]"
    shape = x.shape + (1,) * count
    return Step(
        f"np.sum({text} * {y.text}, axis={axis})",
        lambda v: a.total(a.multiply(reshaped(v, shape), y.real), (axis,)),
    )


def einsum(g: Body, x: Operand) -> Step:
    """A sum of products by letters."""
    need(x.is_float and len(x.shape) == 2)
    found = [y for y in g.operands if y.dtype == x.dtype and len(y.shape) in (1, 2)]
    options: list[tuple[str, Operand]] = []
    n, m = x.shape
    for y in found:
        if y.shape == (m,):
            options += [("ab,b->a", y), ("ab,b->ab", y)]
        if y.shape == (n,):
            options.append(("ab,a->b", y))
        if y.shape == (n, m):
            options += [("ab,ab->a", y), ("ab,ab->b", y), ("ab,ab->", y), ("ab,cb->ca", y)]
        elif len(y.shape) == 2 and y.shape[1] == m:
            options.append(("ab,cb->ca", y))
        elif len(y.shape) == 2 and y.shape[0] == m:
            options += [("ab,bc->ac", y), ("ab,bc->ca", y)]
    need(bool(options))
    letters, y = g.choice(options)
    need(prod(x.shape) * (y.shape[0] if len(y.shape) == 2 and "c" in letters else 1) <= 8 * g.most)
    return Step(
        f'np.einsum("{letters}", {x.text}, {y.text})',
        lambda v: by_letters(letters, v, y.real),
    )


def by_letters(letters: str, x: Real, y: Real) -> Real:
    """The sum of products that an einsum of two arrays is."""
    if x.format.name != x.format.sums:
        wide = by_letters(letters, a.convert(x, x.format.sums), a.convert(y, x.format.sums))
        return a.convert(wide, x.format.name)
    given, result = letters.split("->")
    names = sorted(set(given) - {","})
    terms = given.split(",")

    def aligned(term: str) -> Move:
        order = sorted(term)

        def move(v: NDArray) -> Any:
            v = np.transpose(v, [term.index(each) for each in order])
            return v[tuple([slice(None) if each in term else None for each in names])]

        return move

    products = a.multiply(x.moved(aligned(terms[0])), y.moved(aligned(terms[1])))
    axes = tuple([i for i, each in enumerate(names) if each not in result])
    rest = [each for each in names if each in result]
    found = a.total(products, axes) if axes else products
    return found.moved(lambda v: np.transpose(v, [rest.index(each) for each in result]))


def outer(g: Body, x: Operand) -> Step:
    """Every product of two vectors."""
    need(x.is_float and len(x.shape) == 1)
    found = [y for y in g.operands if y.dtype == x.dtype and len(y.shape) == 1]
    found = [y for y in found if prod(y.shape) * prod(x.shape) <= g.most]
    need(bool(found))
    y = g.choice(found)
    return Step(
        f"np.outer({x.text}, {y.text})",
        lambda v: a.multiply(reshaped(v, (-1, 1)), y.real),
    )


def loop(g: Body, x: Operand) -> Step:
    """An operation that is repeated, in a loop of the language or of Python's."""
    count = g.choice((1, 2, 3, 5))
    carry = Operand("c", x.value)
    real = (binary, binary, twice, unary, undone, composed)
    step = g.choice(real if x.is_float else (whole, clipped))
    once = step(g, carry)
    need(type_of(once.meaning(x.value)) == type_of(x.value))

    def meaning(v: Value) -> Value:
        for _ in range(count):
            v = once.meaning(v)
            if isinstance(v, Real):  # what a loop carries is rounded
                v = Real(v.format, v.low, v.high, v.nan)
        return v

    return Step(f"psc.fori_loop(0, {count}, lambda i, c: {once.text}, {x.text})", meaning)


def type_of(value: Value) -> tuple[Any, tuple[int, ...]]:
    """Its dtype and shape."""
    return (value.format if isinstance(value, Real) else value.array.dtype), value.shape


def scan(g: Body, x: Operand) -> Step:
    """A carry that takes the rows of an array one after the other."""
    need(x.is_float and 1 < len(x.shape) < 4 and x.shape[0] <= 40)
    number = g.number(x.dtype)
    meanings: list[tuple[str, Callable[[Real, Real, Real], Real]]] = [
        ("c + r", lambda c, r, k: a.add(c, r)),
        ("c * {k} + r", lambda c, r, k: a.add(a.multiply(c, k), r)),
        ("r - c", lambda c, r, k: a.subtract(r, c)),
        ("np.maximum(c, r)", lambda c, r, k: f.larger(c, r)),
        ("(c + {k}) - r", lambda c, r, k: a.subtract(a.add(c, k), r)),
        ("c / {k} + r", lambda c, r, k: a.add(a.divide(c, k), r)),
    ]
    body, meaning = g.choice(meanings)
    body = body.format(k=number.text)

    def run(v: Value) -> Value:
        assert isinstance(v, Real)
        assert isinstance(number.value, Real)
        rows = [Real(v.format, v.low[i], v.high[i], v.nan[i]) for i in range(v.shape[0])]
        carry, found = rows[0], list[Real]()
        for row in rows:
            found.append(carry)
            carry = meaning(carry, row, number.value)
            carry = Real(v.format, carry.low, carry.high, carry.nan)
        low, high, nan = (
            np.stack([np.broadcast_to(getattr(each, part), v.shape[1:]) for each in found])
            for part in ("low", "high", "nan")
        )
        return Real(v.format, low, high, nan)

    t = x.text
    return Step(f"psc.scan(lambda c, r: ({body}, c), {t}[0], {t})[1]", run)


def applicable(operations: Sequence[Operation], g: Body, x: Operand) -> Step:
    """A step by one of these operations, or Inapplicable."""
    for _ in range(12):
        try:
            return g.choice(operations)(g, x)
        except Inapplicable:
            continue
    raise Inapplicable
