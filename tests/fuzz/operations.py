"""Operations of the library: each takes a value to another, with the type that it must have.

An operation that does not fit the value raises Inapplicable.  One whose result jumps (a comparison,
a rounding) takes only values that every execution computes exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fuzz.model import (
    BATCH,
    CLASSES,
    COMPLEX,
    FLOATS,
    NUMPY,
    PART,
    UNSIGNED,
    Array,
    Inapplicable,
    Shape,
    Size,
)

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

Operation = Callable[["Body", Array], Array]


def need(condition: bool) -> None:
    """Raise Inapplicable unless a condition holds."""
    if not condition:
        raise Inapplicable


def made(text: str, dtype: str, shape: Shape, low: float, high: float, grid: float = 0.0) -> Array:
    """A value that cannot overflow."""
    found = Array(text, dtype, shape, low, high, grid)
    need(found.fits)
    return found


def inexact(x: Array, text: str, low: float, high: float) -> Array:
    """A real function of a floating-point array."""
    need(x.is_float)
    return made(text, x.dtype, x.shape, low, high)


def unary(g: Body, x: Array) -> Array:
    """A function of each element."""
    most = x.most
    tame: list[Callable[[], Array]] = [
        lambda: inexact(x, f"np.sin({x.text})", -1, 1),
        lambda: inexact(x, f"np.cos({x.text})", -1, 1),
        lambda: inexact(x, f"np.tanh({x.text})", -1, 1),
        lambda: inexact(x, f"np.arctan({x.text})", -2, 2),
        lambda: inexact(x, f"np.exp(-np.abs({x.text}))", 0, 1),
        lambda: inexact(x, f"np.log1p(np.abs({x.text}))", 0, most),
        lambda: inexact(x, f"np.log(np.abs({x.text}) + 1)", 0, most),
        lambda: inexact(x, f"np.sqrt(np.abs({x.text}) + 1)", 0, most + 1),
        lambda: inexact(x, f"(1 / (np.abs({x.text}) + 1))", 0, 1),
        lambda: inexact(x, f"np.expm1(np.minimum({x.text}, 1))", -1, 2),
        lambda: inexact(x, f"np.cbrt({x.text})", -most - 1, most + 1),
        lambda: inexact(x, f"np.sinh(np.tanh({x.text}))", -2, 2),
        lambda: rounding(g, x),
        lambda: magnitude(g, x),
        lambda: negative(g, x),
        lambda: square(g, x),
        lambda: logic(g, x),
        lambda: integral(g, x),
        lambda: clipped(g, x),
        lambda: complex_(g, x),
    ]
    return g.choice(tame)()


def rounding(g: Body, x: Array) -> Array:
    """To a whole number, or the sign."""
    need(x.is_float and x.is_exact and x.grid >= 2**-10)
    function = g.choice(("np.floor", "np.ceil", "np.rint", "np.trunc", "np.round"))
    if g.chance(0.2):
        return made(f"np.sign({x.text})", x.dtype, x.shape, -1, 1, 1.0)
    return made(f"{function}({x.text})", x.dtype, x.shape, x.low - 1, x.high + 1, 1.0)


def magnitude(g: Body, x: Array) -> Array:
    """The absolute value."""
    need(x.is_real)
    text = g.choice((f"np.abs({x.text})", f"abs({x.text})"))
    return made(text, x.dtype, x.shape, 0, x.most, x.grid)


def negative(g: Body, x: Array) -> Array:
    """The negative."""
    need(x.dtype not in UNSIGNED and x.dtype != "bool_")
    text = g.choice((f"(-{x.text})", f"np.negative({x.text})"))
    return made(text, x.dtype, x.shape, -x.high, -x.low, x.grid)


def square(g: Body, x: Array) -> Array:
    """A power."""
    need(x.is_real)
    text, power = g.choice(
        ((f"np.square({x.text})", 2), (f"({x.text} ** 2)", 2), (f"({x.text} ** 3)", 3))
    )
    low = -(x.most**power) if power == 3 and x.low < 0 else 0
    return made(text, x.dtype, x.shape, low, x.most**power, x.grid**power)


def logic(g: Body, x: Array) -> Array:
    """Functions of truth values."""
    need(x.dtype == "bool_")
    text = g.choice((f"(~{x.text})", f"np.logical_not({x.text})"))
    return Array(text, "bool_", x.shape)


def integral(g: Body, x: Array) -> Array:
    """Functions of integers."""
    need(x.is_integer)
    number = g.choice((2, 3, 5))
    most = x.most + 1
    low = 0.0 if x.dtype in UNSIGNED else -most
    options = [
        (f"({x.text} // {number})", low, most),
        (f"({x.text} % {number})", 0, number),
        (f"({x.text} & 3)", 0, 3),
        (f"({x.text} | 1)", low, most + 1),
        (f"np.left_shift({x.text}, 1)", 2 * low, 2 * most),
        (f"({x.text} >> 1)", low, most),
    ]
    text, low, high = g.choice(options)
    return made(text, x.dtype, x.shape, low, high, 1.0)


def clipped(g: Body, x: Array) -> Array:
    """Within bounds."""
    need(x.is_real)
    low, high = g.choice(((0, 2), (-2, 2), (-1, 3)))
    if x.dtype in UNSIGNED:
        low = 0
    text = g.choice((f"np.clip({x.text}, {low}, {high})", f"{x.text}.clip({low}, {high})"))
    return made(text, x.dtype, x.shape, low, high, x.grid)


def complex_(g: Body, x: Array) -> Array:
    """Functions of complex numbers."""
    need(x.dtype in COMPLEX)
    part = PART[x.dtype]
    options = [
        Array(f"np.conj({x.text})", x.dtype, x.shape, x.low, x.high),
        Array(f"{x.text}.real", part, x.shape, -x.most, x.most),
        Array(f"np.imag({x.text})", part, x.shape, -x.most, x.most),
        Array(f"np.abs({x.text})", part, x.shape, 0, 2 * x.most),
    ]
    return g.choice(options)


def cast(g: Body, x: Array) -> Array:
    """Another dtype."""
    targets = [*FLOATS[:4], *("i8", "i16", "i32", "i64", "u8", "u32"), "bool_", *COMPLEX]
    return g.cast(x, g.choice(targets))


def broadcast(a: Array, b: Array) -> Shape:
    """The shape of both together; Inapplicable where it is not the same for all sizes."""
    if len(a.shape) < len(b.shape):
        a, b = b, a
    one = Size.of(1)
    rows: list[Size] = []
    missing = len(a.shape) - len(b.shape)
    padded = (one,) * missing + b.shape
    for axis, (x, y) in enumerate(zip(a.shape, padded, strict=True)):
        need(x == y or (one in (x, y) and BATCH not in (x, y)) or (x == BATCH and axis < missing))
        rows.append(y if x == one else x)
    if BATCH in b.shape:
        need(BATCH in a.shape and len(a.shape) == len(b.shape))
    return tuple(rows)


def partner(g: Body, x: Array) -> tuple[Array, Array, Shape]:
    """Another operand of the same dtype that broadcasts with this one, on either side."""
    found: list[tuple[Array, Shape]] = []
    for y in g.arrays():
        if y.dtype == x.dtype:
            try:
                found.append((y, broadcast(x, y)))
            except Inapplicable:
                continue
    if not found or g.chance(0.3):
        y = g.number(x)
        found = [(y, x.shape)]
    y, shape = g.choice(found)
    return (x, y, shape) if g.chance(0.5) else (y, x, shape)


def binary(g: Body, x: Array) -> Array:
    """An operator or function of two values."""
    a, b, shape = partner(g, x)
    if x.dtype == "bool_":
        text = g.choice(
            (f"({a.text} & {b.text})", f"({a.text} | {b.text})", f"({a.text} ^ {b.text})")
        )
        return Array(text, "bool_", shape)
    grid = min(a.grid, b.grid)
    corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    low, high = min(a.low, b.low), max(a.high, b.high)
    options: list[tuple[str, float, float, float]] = [
        (f"({a.text} + {b.text})", a.low + b.low, a.high + b.high, grid),
        (f"({a.text} - {b.text})", a.low - b.high, a.high - b.low, grid),
        (f"({a.text} * {b.text})", min(corners), max(corners), a.grid * b.grid),
    ]
    if x.dtype in COMPLEX:
        text, low, high, grid = g.choice(options)
        return made(text, x.dtype, shape, 2 * low - 1, 2 * high + 1)
    options += [
        (f"np.maximum({a.text}, {b.text})", low, high, grid),
        (f"np.minimum({a.text}, {b.text})", low, high, grid),
    ]
    if x.is_float:
        most = max(a.most, b.most)
        options += [
            (f"({a.text} / (np.abs({b.text}) + 1))", -a.most, a.most, 0.0),
            (f"np.hypot({a.text}, {b.text})", 0, 2 * most, 0.0),
            (f"np.logaddexp({a.text}, {b.text})", -most, most + 1, 0.0),
        ]
    text, low, high, grid = g.choice(options)
    return made(text, x.dtype, shape, low, high, grid)


def comparison(g: Body, x: Array) -> Array:
    """A truth value for each element."""
    a, b, shape = partner(g, x)
    need(a.is_exact and b.is_exact and (x.is_real or x.dtype == "bool_"))
    signs = ("==", "!=") if x.dtype == "bool_" else ("<", "<=", ">", ">=", "==", "!=")
    return Array(f"({a.text} {g.choice(signs)} {b.text})", "bool_", shape)


def choice(g: Body, x: Array) -> Array:
    """`np.where`, whose condition broadcasts with it."""
    a, b, shape = partner(g, x)
    fitting: list[str] = []
    for each in g.arrays():
        if each.dtype == "bool_":
            try:
                need(broadcast(Array("", "", shape), each) == shape)
                fitting.append(each.text)
            except Inapplicable:
                continue
    need(bool(fitting))
    low, high, grid = min(a.low, b.low), max(a.high, b.high), min(a.grid, b.grid)
    return Array(
        f"np.where({g.choice(fitting)}, {a.text}, {b.text})", x.dtype, shape, low, high, grid
    )


def reduction(g: Body, x: Array) -> Array:
    """Over one axis, several or all."""
    need(x.ndim > 0 and x.dtype not in COMPLEX)
    axes: tuple[int, ...]
    if x.is_batched:
        need(x.ndim > 1)
        axes = (x.ndim - 1,)
        written = "axis=-1"
    elif g.chance(0.3):
        axes, written = tuple(range(x.ndim)), ""
    elif x.ndim > 1 and g.chance(0.2):
        axes = tuple(sorted(g.sample(range(x.ndim), 2)))
        written = f"axis={axes}"
    else:
        axis = g.randrange(x.ndim)
        axes, written = (axis,), f"axis={g.choice((axis, axis - x.ndim))}"
    keep = g.chance(0.2)
    one = Size.of(1)
    shape = tuple(
        one if axis in axes else size
        for axis, size in enumerate(x.shape)
        if keep or axis not in axes
    )
    options = ", ".join(filter(None, (written, "keepdims=True" if keep else "")))
    count = 1
    for axis in axes:
        count *= g.most(x.shape[axis])
    dtype, low, high, grid = x.dtype, x.low, x.high, x.grid
    if x.dtype == "bool_":
        name = g.choice(("any", "all"))
    else:
        name = g.choice(("sum", "mean", "max", "min", "argmax", "argmin", "var", "ptp", "prod"))
    if name == "sum":
        dtype, low, high = summed(x.dtype), min(low, low * count), max(high, high * count)
    elif name in ("mean", "var"):
        need(x.is_float)
        low, high, grid = (low, high, 0.0) if name == "mean" else (0, 4 * x.most**2, 0.0)
    elif name in ("argmax", "argmin"):
        need(x.is_exact and (written == "" or len(axes) == 1))
        dtype, low, high, grid = "i32", 0, count, 1.0
    elif name == "ptp":
        low, high = 0, high - low
        text = f"np.ptp({', '.join(filter(None, (x.text, options)))})"
        return made(text, dtype, shape, low, high, grid)
    elif name == "prod":
        need(count <= 4 and x.is_real and x.most**count < 1e4)
        most = max(x.most, 1) ** count
        dtype, low, high = summed(x.dtype), (0 if x.low >= 0 else -most), most
        grid = min(x.grid, x.grid**count)
    if g.chance(0.5):
        text = f"{x.text}.{name}({options})"
    else:
        text = f"np.{name}({', '.join(filter(None, (x.text, options)))})"
    return made(text, dtype, shape, low, high, grid)


def summed(dtype: str) -> str:
    """The dtype of a sum."""
    need(dtype not in ("Int", "UInt"))  # it depends on the member
    return {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}.get(dtype, dtype)


def cumulative(g: Body, x: Array) -> Array:
    """Running sums and differences along an axis."""
    need(x.ndim > 0 and x.is_real)
    axis = x.ndim - 1 if x.is_batched else g.randrange(x.ndim)
    need(x.shape[axis] != BATCH)
    shown = axis - x.ndim
    if g.chance(0.4):
        size = x.shape[axis]
        need(g.least(size) >= 2 and x.dtype not in UNSIGNED)
        shape = (*x.shape[:axis], size - 1, *x.shape[axis + 1 :])
        spread = x.high - x.low
        return made(f"np.diff({x.text}, axis={shown})", x.dtype, shape, -spread, spread, x.grid)
    count = g.most(x.shape[axis])
    low, high = min(x.low, x.low * count), max(x.high, x.high * count)
    text = g.choice((f"np.cumsum({x.text}, axis={shown})", f"{x.text}.cumsum(axis={shown})"))
    return made(text, summed(x.dtype), x.shape, low, high, x.grid)


def ordering(g: Body, x: Array) -> Array:
    """Sorting and what is like it, along the last axis."""
    need(x.ndim > 0 and x.shape[-1] != BATCH and x.is_real)
    if g.chance(0.4):
        need(x.is_exact)
        text = f'np.argsort({x.text}, axis=-1, kind="stable")'
        if g.chance(0.5):
            return made(text, "i32", x.shape, 0, g.most(x.shape[-1]), 1.0)
        return replace(x, text=f"np.take_along_axis({x.text}, {text}, axis=-1)")
    options = [
        f"np.sort({x.text}, axis=-1)",
        f"np.flip({x.text}, axis=-1)",
        f"np.roll({x.text}, 1, axis=-1)",
        f"{x.text}[..., ::-1]",
    ]
    return replace(x, text=g.choice(options))


def extremum(g: Body, x: Array) -> Array:
    """A running maximum."""
    need(x.ndim > 0 and x.shape[-1] != BATCH and x.is_real)
    return replace(x, text=f"np.maximum.accumulate({x.text}, axis=-1)")


def recast(dtype: str, text: str) -> str:
    """A cast in one of its spellings, for dtypes that have a name."""
    need(dtype not in CLASSES)
    return f"{text}.astype({NUMPY[dtype]})"
