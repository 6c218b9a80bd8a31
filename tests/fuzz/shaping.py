"""Operations that move elements: shapes, indices, updates, products."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fuzz.model import COMPLEX, Array, Inapplicable, Size
from tests.fuzz.operations import made, need, summed

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

ONE = Size.of(1)


def plain(x: Array) -> None:
    """Only arrays of a known rank."""
    need(not x.is_batched)


def transposed(g: Body, x: Array) -> Array:
    """Axes in another order."""
    plain(x)
    need(x.ndim >= 2)
    if x.ndim == 2 and g.chance(0.6):
        text = g.choice((f"{x.text}.T", f"np.transpose({x.text})", f"np.swapaxes({x.text}, 0, 1)"))
        return replace(x, text=text, shape=x.shape[::-1])
    order = tuple(g.sample(range(x.ndim), x.ndim))
    shape = tuple(x.shape[axis] for axis in order)
    text = g.choice((f"{x.text}.transpose({order})", f"np.transpose({x.text}, {order})"))
    return replace(x, text=text, shape=shape)


def reshaped(g: Body, x: Array) -> Array:
    """The same elements in another shape."""
    plain(x)
    total = ONE
    for size in x.shape:
        total = total * size
    if x.ndim >= 2 and g.chance(0.5):
        written = g.choice((f"{x.text}.reshape(-1)", f"np.ravel({x.text})", f"{x.text}.ravel()"))
        return replace(x, text=written, shape=(total,))
    if x.ndim >= 1 and g.chance(0.5):
        axis = g.randrange(x.ndim + 1)
        shape = (*x.shape[:axis], ONE, *x.shape[axis:])
        return replace(x, text=f"np.expand_dims({x.text}, {axis})", shape=shape)
    if x.ndim == 3:
        sizes = [g.size_text(size) for size in x.shape]
        if g.chance(0.5):
            text = f"{x.text}.reshape({sizes[0]}, {sizes[1]} * {sizes[2]})"
            return replace(x, text=text, shape=(x.shape[0], x.shape[1] * x.shape[2]))
        text = f"{x.text}.reshape(({sizes[0]} * {sizes[1]}, -1))"
        return replace(x, text=text, shape=(x.shape[0] * x.shape[1], x.shape[2]))
    need(x.ndim >= 1)
    half = [(n, f) for n, f in x.shape[0].terms if f % 2 == 0]
    need(len(half) == len(x.shape[0].terms) > 0)
    size = Size(tuple((names, factor // 2) for names, factor in half))
    rest = "".join(f", {g.size_text(each)}" for each in x.shape[1:])
    text = f"{x.text}.reshape(2, -1{rest})"
    return replace(x, text=text, shape=(Size.of(2), size, *x.shape[1:]))


def indexed(g: Body, x: Array) -> Array:
    """One element of an axis, or a new axis."""
    plain(x)
    need(x.ndim >= 1)
    axis = g.randrange(x.ndim)
    before = ":, " * axis
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    match g.randrange(5):
        case 0 | 1:
            least = g.least(x.shape[axis])
            need(least >= 1)
            place = g.randrange(-least, least)
            return replace(x, text=f"{x.text}[{before}{place}]", shape=shape)
        case 2:
            return replace(
                x,
                text=f"{x.text}[{before}None]",
                shape=(*x.shape[:axis], ONE, *x.shape[axis:]),
            )
        case 3:
            return replace(x, text=f"{x.text}[..., 0]", shape=x.shape[:-1])
        case _:
            index = g.index(x.shape[axis])
            return replace(x, text=f"{x.text}[{before}{index}]", shape=shape)


def sliced(g: Body, x: Array) -> Array:
    """Part of an axis."""
    plain(x)
    need(x.ndim >= 1)
    axis = g.randrange(x.ndim)
    size, before = x.shape[axis], ":, " * axis
    least = g.least(size)
    options: list[tuple[str, Size]] = [("::-1", size)]
    if least >= 2:
        cut = g.randrange(1, least)
        options += [(f"{cut}:", size - cut), (f":-{cut}", size - cut), (f":{cut}", Size.of(cut))]
        options += [(f"-{cut}:", Size.of(cut))]
    if least >= 3:
        options += [("1:-1", size - 2)]
    for other in g.sizes:
        difference = size - Size.of(other)
        if difference.terms and difference.least(g.bounds) >= 1:
            text = g.size_text(Size.of(other))
            options += [(f":{text}", Size.of(other)), (f"{text}:", difference)]
    part, found = g.choice(options)
    shape = (*x.shape[:axis], found, *x.shape[axis + 1 :])
    return replace(x, text=f"{x.text}[{before}{part}]", shape=shape)


def gathered(g: Body, x: Array) -> Array:
    """Rows picked by an array of indices."""
    plain(x)
    need(x.ndim >= 1)
    axis = g.randrange(x.ndim)
    size = x.shape[axis]
    found = [y for y in g.arrays() if y.dtype in ("i32", "i64") and y.ndim <= 1]
    if found and g.chance(0.6):
        y = g.choice(found)
        index, shape = f"({y.text} % {g.size_text(size)})", y.shape
    else:
        need(not size.names() or bool(g.size_text(size)))
        index, shape = f"np.arange({g.size_text(size)})[::-1]", (size,)
    plain(replace(x, shape=shape))
    text = g.choice(
        (f"np.take({x.text}, {index}, axis={axis})", f"{x.text}[{':, ' * axis}{index}]")
    )
    return replace(x, text=text, shape=x.shape[:axis] + shape + x.shape[axis + 1 :])


def updated(g: Body, x: Array) -> Array:
    """A new array that differs in a part."""
    plain(x)
    need(x.ndim >= 1 and x.dtype not in COMPLEX)
    low, high, grid = x.low, x.high, x.grid
    value = g.number(x)
    combine = ""
    if x.dtype != "bool_":
        kind = g.choice(("", "add", "maximum"))
        combine = f', combine="{kind}"' if kind else ""
        if kind == "add":
            low, high = min(low, low + value.low), max(high, high + value.high)
        low, high, grid = min(low, value.low), max(high, value.high), min(grid, value.grid)
    least = g.least(x.shape[0])
    need(least >= 1)
    index = g.choice(("0", "-1", "np.s_[:1]", "np.s_[::2]", "...", g.index(x.shape[0])))
    text = f"psc.update({x.text}, {index}, {value.text}{combine})"
    return made(text, x.dtype, x.shape, low, high, grid)


def joined(g: Body, x: Array) -> Array:
    """Concatenated, stacked, repeated or padded."""
    plain(x)
    need(x.ndim >= 1)
    axis = g.randrange(x.ndim)
    size = x.shape[axis]
    need(g.most(size) <= 24 and x.ndim <= 3)

    def along(new: Size) -> tuple[Size, ...]:
        return (*x.shape[:axis], new, *x.shape[axis + 1 :])

    others = [
        y
        for y in g.arrays()
        if y.dtype == x.dtype
        and y.ndim == x.ndim
        and not y.is_batched  # not along axes whose number is open
        and y.shape[:axis] == x.shape[:axis]
        and y.shape[axis + 1 :] == x.shape[axis + 1 :]
    ]
    y = g.choice([x, *others])
    low, high, grid = min(x.low, y.low), max(x.high, y.high), min(x.grid, y.grid)
    both = Array("", x.dtype, along(size + y.shape[axis]), low, high, grid)
    match g.randrange(6):
        case 0 | 1:
            return both.named(f"np.concatenate([{x.text}, {y.text}], axis={axis})")
        case 2:
            need(y.shape == x.shape and x.ndim <= 2)
            shape = (*x.shape[:axis], Size.of(2), *x.shape[axis:])
            return replace(both, text=f"np.stack([{x.text}, {y.text}], axis={axis})", shape=shape)
        case 3:
            widths = ", ".join("(1, 2)" if a == axis else "(0, 0)" for a in range(x.ndim))
            comma = "," if x.ndim == 1 else ""
            text = f"np.pad({x.text}, ({widths}{comma}))"
            low, high = min(x.low, 0), max(x.high, 0)
            return made(text, x.dtype, along(size + 3), low, high, x.grid)
        case 4:
            return replace(x, text=f"np.repeat({x.text}, 2, axis={axis})", shape=along(size * 2))
        case _:
            need(axis == x.ndim - 1)
            return replace(x, text=f"np.tile({x.text}, 2)", shape=along(size * 2))


def spread(g: Body, x: Array) -> Array:
    """Broadcast to more axes."""
    plain(x)
    need(x.ndim <= 2)
    name = g.choice(sorted(g.sizes) or [""])
    need(name != "")
    new = Size.of(name)
    sizes = [g.size_text(new), *(g.size_text(size) for size in x.shape)]
    text = f"np.broadcast_to({x.text}, ({', '.join(sizes)},))"
    return replace(x, text=text, shape=(new, *x.shape))


def matrix(g: Body, x: Array) -> Array:
    """Functions of matrices."""
    plain(x)
    need(x.ndim == 2)
    n, m = x.shape
    if n == m and g.chance(0.5):
        if g.chance(0.5):
            return replace(x, text=f"np.diagonal({x.text})", shape=(n,))
        need(x.is_real)
        most = g.most(n)
        low, high = min(x.low, x.low * most), max(x.high, x.high * most)
        return made(f"np.trace({x.text})", summed(x.dtype), (), low, high, x.grid)
    low, high = min(x.low, 0), max(x.high, 0)
    name = g.choice(("np.tril", "np.triu"))
    return made(f"{name}({x.text})", x.dtype, x.shape, low, high, x.grid)


def product(g: Body, x: Array) -> Array:
    """A product that sums over an axis, or an outer one."""
    plain(x)
    need(x.ndim in (1, 2) and x.dtype not in (*COMPLEX, "bool_"))
    fitting = [
        y for y in g.arrays() if y.dtype == x.dtype and y.ndim in (1, 2) and not y.is_batched
    ]
    has_einsum = x.dtype not in ("bf16", "Float")  # NumPy's has no bfloat16
    options: list[tuple[str, tuple[Size, ...], Size, Array]] = []
    for y in fitting:
        if x.shape[-1] == y.shape[0]:
            shape = x.shape[:-1] + y.shape[1:]
            texts = [f"({x.text} @ {y.text})", f"np.matmul({x.text}, {y.text})"]
            texts += [f"np.dot({x.text}, {y.text})", f"np.tensordot({x.text}, {y.text}, 1)"]
            a, b = "ij"[2 - x.ndim :], "jk"[: y.ndim]
            if has_einsum:
                texts += [f'np.einsum("{a},{b}->{a[:-1] + b[1:]}", {x.text}, {y.text})']
            options += [(text, shape, y.shape[0], y) for text in texts]
        if x.ndim == y.ndim == 1:
            options += [(f"np.outer({x.text}, {y.text})", x.shape + y.shape, ONE, y)]
            if has_einsum:
                text = f'np.einsum("i,j->ji", {x.text}, {y.text})'
                options += [(text, y.shape + x.shape, ONE, y)]
        if has_einsum and x.shape == y.shape and x.ndim == 2:
            options += [(f'np.einsum("ij,ij->i", {x.text}, {y.text})', x.shape[:1], x.shape[1], y)]
    need(bool(options))
    text, shape, inner, y = g.choice(options)
    most = x.most * y.most * g.most(inner)
    low = 0.0 if x.low >= 0 and y.low >= 0 else -most
    return made(text, x.dtype, shape, low, most, x.grid * y.grid)


def created(g: Body, x: Array) -> Array:
    """A value from nothing, as large as another one."""
    plain(x)
    match g.randrange(6):
        case 0:
            return made(f"np.zeros_like({x.text})", x.dtype, x.shape, 0, 0, 1.0)
        case 1:
            return made(f"np.ones_like({x.text})", x.dtype, x.shape, 1, 1, 1.0)
        case 2:
            need(x.ndim >= 1)
            size = x.shape[0]
            text = f"np.arange({g.size_text(size)}, dtype=np.int32)"
            return made(text, "i32", (size,), 0, g.most(size), 1.0)
        case 3:
            need(x.ndim >= 1)
            text = f"np.linspace(0, 1, {g.size_text(x.shape[0])}, dtype=np.float32)"
            return made(text, "f32", (x.shape[0],), 0, 1)
        case 4:
            need(x.ndim >= 1)
            size = x.shape[-1]
            text = f"np.eye({g.size_text(size)}, dtype=np.float32)"
            return made(text, "f32", (size, size), 0, 1, 1.0)
        case _:
            need(x.is_float and x.ndim >= 1)  # open: it takes the dtype that it meets
            size = x.shape[-1]
            most = g.most(size)
            text = f"({x.text} + np.arange({g.size_text(size)}))"
            return made(text, x.dtype, x.shape, x.low, x.high + most, x.grid and min(x.grid, 1.0))


def squeezed(g: Body, x: Array) -> Array:
    """Without an axis of size 1."""
    plain(x)
    axes = [axis for axis, size in enumerate(x.shape) if size == ONE]
    if not axes:
        raise Inapplicable
    axis = g.choice(axes)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return replace(x, text=f"np.squeeze({x.text}, axis={axis})", shape=shape)
