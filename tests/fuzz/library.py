"""The rest of the library: special functions, linear algebra, transforms, windows, random draws.

Functions of each element are rows of a table; the arguments are tamed first, so that results stay
small and no rounding error is blown up.  What takes matrices or draws numbers is a statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tests.fuzz.model import BATCH, COMPLEX, PART, Array, Inapplicable, Shape, Size
from tests.fuzz.operations import broadcast, inexact, made, need

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

FULL = ("f32", "f64")
"""Real dtypes that NumPy's linear algebra and transforms have."""
WIDE = (*FULL, *COMPLEX)
WITH_PARTS = {part: dtype for dtype, part in PART.items()}
ONE = Size.of(1)


class Row(NamedTuple):
    """A function of each element: how it is written, and between what its results lie.

    `{x}` is the operand, `{a}` one that is at least 1, `{t}` one between -0.9 and 0.9, `{c}` one
    between -2 and 2, `{u}` one between 0 and 1.
    """

    text: str
    low: float
    high: float | Callable[[float], float]


Bound = Callable[[float], float]
LGAMMA: Bound = lambda most: math.lgamma(most + 2)  # noqa: E731
LGAMMA_2: Bound = lambda most: 2 * math.lgamma(most + 3) + 1  # noqa: E731
LOG: Bound = lambda most: math.log(most + 1)  # noqa: E731
ABOVE: Bound = lambda most: most + 2  # noqa: E731

ELEMENTWISE = (
    Row("np.arccos({t})", 0, 3.2),
    Row("np.arcsin({t})", -1.6, 1.6),
    Row("np.arctanh({t})", -1.6, 1.6),
    Row("np.arcsinh({x})", -10, 10),
    Row("np.arccosh({a} + 1)", 0, 15),
    Row("np.cosh({c})", 1, 4),
    Row("np.sinh({c})", -4, 4),
    Row("np.tan({t})", -2, 2),
    Row("np.reciprocal({a})", 0, 1),
    Row("(1 / np.sqrt({a}))", 0, 1),
    Row("np.exp2({c})", 0, 4),
    Row("np.log2({a})", 0, 20),
    Row("np.log10({a})", 0, 10),
    Row("np.sinc({x})", -1, 1),
    Row("np.radians({x})", -100, 100),
    Row("np.power({a}, {t})", 0, 100),
    Row("({a} ** {t})", 0, 100),
    Row("np.nan_to_num({x})", -1e4, 1e4),
    Row("np.copysign({x}, {t})", -1e4, 1e4),
    Row("np.i0({c})", 1, 2.3),
    Row("np.heaviside({x}, 0.5)", 0, 1),
)
SPECIAL = (
    Row("erf({x})", -1, 1),
    Row("erfc({x})", 0, 2),
    Row("erfcx(np.abs({x}))", 0, 1),
    Row("erfinv({t})", -1.2, 1.2),
    Row("erfcinv(1 + {t})", -1.2, 1.2),
    Row("gamma(np.clip({x}, 1, 4))", 0, 6),
    Row("gammaln({a})", -0.2, LGAMMA),
    Row("digamma({a})", -0.6, LOG),
    Row("i0({c})", 1, 2.3),
    Row("i0e({x})", 0, 1),
    Row("i1({c})", -1.6, 1.6),
    Row("i1e({x})", -1, 1),
    Row("ndtr({x})", 0, 1),
    Row("ndtri(0.5 + 0.4 * {t})", -1.3, 1.3),
    Row("log_ndtr({c})", -4, 0),
    Row("expit({x})", 0, 1),
    Row("log_expit({c})", -3, 0),
    Row("logit(0.5 + 0.4 * {t})", -2, 2),
    Row("entr({u})", 0, 0.4),
    Row("rel_entr({u}, {a})", -100, 1),
    Row("kl_div({u}, {a})", 0, ABOVE),
    Row("xlogy({t}, {a})", -20, 20),
    Row("xlog1py({t}, {u})", -1, 1),
    Row("betaln({a}, {u} + 1)", -30, 1),
    Row("beta({a}, {u} + 1)", 0, 1),
    Row("betainc({a}, {u} + 1, {u})", 0, 1),
    Row("betaincc({a}, {u} + 1, {u})", 0, 1),
    Row("gammainc({u} + 1, {a})", 0, 1),
    Row("gammaincc({u} + 1, {a})", 0, 1),
    Row("zeta({u} + 2, {a})", 0, 2),
    Row("polygamma(1, {a})", 0, 2),
    Row("multigammaln({a} + 1, 2)", -1, LGAMMA_2),
)
ALONG = ("softmax", "log_softmax", "logsumexp")
"""Special functions of the last axis."""


def tamed(x: Array) -> dict[str, str]:
    """The operand of a row, and what it is within bounds."""
    text = x.text
    return {
        "x": text,
        "a": f"(np.abs({text}) + 1)",
        "t": f"(0.9 * np.tanh({text}))",
        "c": f"np.clip({text}, -2, 2)",
        "u": f"(0.25 + 0.5 * np.abs(np.tanh({text})))",
    }


def _applied(x: Array, row: Row, prefix: str = "") -> Array:
    high = row.high(x.most) if callable(row.high) else row.high
    low = min(row.low, -x.most) if row.low <= -100 else row.low
    high = max(high, x.most) if high >= 100 else high
    return inexact(x, prefix + row.text.format(**tamed(x)), low, high)


def elementwise(g: Body, x: Array) -> Array:
    """A function of NumPy that the common ones do not meet."""
    row = g.choice(ELEMENTWISE)
    need("heaviside" not in row.text or x.is_exact)
    return _applied(x, row)


def special(g: Body, x: Array) -> Array:
    """A special function of each element, or of the last axis."""
    if g.chance(0.2):
        need(x.is_float and x.ndim > 0 and x.shape[-1] != BATCH)
        name = g.choice(ALONG)
        spread = x.high - x.low + 5
        low, high = {"softmax": (0.0, 1.0), "log_softmax": (-spread, 0.0)}.get(
            name, (x.low, x.high + 5)
        )
        shape = x.shape[:-1] if name == "logsumexp" else x.shape
        return made(f"psc.special.{name}({x.text}, axis=-1)", x.dtype, shape, low, high)
    return _applied(x, g.choice(SPECIAL), "psc.special.")


def bits(g: Body, x: Array) -> Array:
    """Functions of the bits of exact numbers."""
    need(x.is_exact and x.dtype not in ("Float", "Int", "UInt", "bool_"))
    if x.is_integer:
        options = [
            (f"np.bitwise_count({x.text})", "u8", 0.0, 64.0),
            (f"np.right_shift({x.text}, 1)", x.dtype, x.low - 1, x.high),
            (f"np.gcd({x.text}, 6)", x.dtype, 0.0, max(6.0, x.most)),
            (f"({x.text} >> 1)", x.dtype, x.low - 1, x.high),
        ]
        text, dtype, low, high = g.choice(options)
        return made(text, dtype, x.shape, max(low, 0) if dtype[0] == "u" else low, high, 1.0)
    options = [
        (f"np.fmod({x.text}, 3)", x.dtype, -3.0, 3.0),
        (f"np.ldexp({x.text}, 1)", x.dtype, 2 * x.low, 2 * x.high),
        (f"np.modf({x.text})[0]", x.dtype, -1.0, 1.0),
        (f"np.signbit({x.text})", "bool_", 0.0, 1.0),
        (f"np.isfinite({x.text})", "bool_", 0.0, 1.0),
        (f"np.isnan({x.text})", "bool_", 0.0, 1.0),
    ]
    if x.dtype in FULL:
        width = x.dtype[1:]
        shown = f"({x.text} + 0.5).view(np.uint{width})"
        places = {"32": 23, "64": 52}[width]
        options += [(f"({shown} >> {places})", f"u{width}", 0.0, 2.0 ** (int(width) // 4))]
        options += [(f"np.nextafter({x.text}, 100)", x.dtype, x.low, x.high + 1)]
    text, dtype, low, high = g.choice(options)
    need("view" not in text or replace(x, high=x.high + 0.5).is_exact)
    if dtype == "bool_":
        return Array(text, dtype, x.shape)
    grid = 0.0 if "nextafter" in text else x.grid if dtype == x.dtype else 1.0
    return made(text, dtype, x.shape, low, high, grid)


COMPLEX_FUNCTIONS = (
    *("exp", "expm1", "log", "log1p", "sqrt", "square", "reciprocal", "conj", "nan_to_num"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arctanh", "arcsinh"),
)
"""Functions of complex numbers near 1, where none of them has a branch cut."""


def complex_pair(g: Body, x: Array) -> Array:
    """A complex number of two real ones, or a function of a complex one."""
    if x.dtype in COMPLEX:
        one = f"{x.text} / (np.abs({x.text}) + 1).astype({g.dtype_text(x.dtype)})"
        text = f"np.{g.choice(COMPLEX_FUNCTIONS)}(1 + 0.4 * ({one}))"
        return made(text, x.dtype, x.shape, -5, 5)
    need(x.dtype in FULL)
    dtype = WITH_PARTS[x.dtype]
    shown = f"{x.text}.astype({g.dtype_text(dtype)})"
    text = g.choice((f"({shown} + 1j * {shown})", f"({shown} * (0.5 - 2j))"))
    return made(text, dtype, x.shape, -3 * x.most, 3 * x.most)


def statistic(g: Body, x: Array) -> Array:
    """What is said of the elements of the last axis."""
    need(x.is_float and x.ndim > 0 and not x.is_batched)
    most = x.most
    options: list[tuple[str, float, float, float]] = [
        ("np.median({x}, axis=-1)", x.low, x.high, 0.0),
        ("np.quantile({x}, 0.25, axis=-1)", x.low, x.high, 0.0),
        ("np.percentile({x}, 60, axis=-1)", x.low, x.high, 0.0),
        ("np.nanmax({x}, axis=-1)", x.low, x.high, x.grid),
        ("np.nanmean({x}, axis=-1)", x.low, x.high, 0.0),
        ("np.std({x}, axis=-1)", 0, 2 * most, 0.0),
        ("np.average({x}, axis=-1)", x.low, x.high, 0.0),
        ("np.linalg.norm({x}, axis=-1)", 0, most * g.most(x.shape[-1]), 0.0),
        ("np.max(np.partition({x}, 0, axis=-1), axis=-1)", x.low, x.high, x.grid),
        ("np.add.reduce({x}, axis=-1)", -most * 8, most * 8, x.grid),
    ]
    text, low, high, grid = g.choice(options)
    need(g.most(x.shape[-1]) <= 8)
    if "linalg" in text:
        need(x.dtype in FULL)
    return made(text.format(x=x.text), x.dtype, x.shape[:-1], low, high, grid)


def counted(g: Body, x: Array) -> Array:
    """Places and counts."""
    need(x.ndim == 1 and x.is_exact and x.is_real and not x.is_batched)
    size = x.shape[0]
    most = g.most(size)
    options: list[tuple[str, Shape]] = [
        (f"np.searchsorted(np.sort({x.text}), {x.text})", (size,)),
        (f"np.count_nonzero({x.text})", ()),
        (f"np.digitize({x.text}, np.sort({x.text}), right=True)", (size,)),
    ]
    text, shape = g.choice(options)
    return made(text, "i32", shape, 0, most, 1.0)


def transform(g: Body, x: Array) -> Array:
    """A discrete Fourier transform of the last axes."""
    need(x.dtype in WIDE and x.ndim > 0 and not x.is_batched)
    size = x.shape[-1]
    need(g.most(size) <= 8)
    wide = WITH_PARTS.get(x.dtype, x.dtype)
    most = 2 * x.most * g.most(size)
    n = g.size_text(size)
    options: list[tuple[str, str]] = [
        (f"np.fft.fft({x.text})", wide),
        (f"np.fft.ifft({x.text})", wide),
        (f"np.fft.fftshift({x.text})", x.dtype),
        (f"np.fft.hfft({x.text}, {n})", PART.get(x.dtype, x.dtype)),
    ]
    if x.is_float:
        options += [(f"np.fft.irfft(np.fft.rfft({x.text}), {n})", x.dtype)] * 2
        options += [(f"np.fft.ihfft({x.text})[..., :1]", wide)]
    if x.ndim >= 2:
        options += [(f"np.fft.ifftn(np.fft.fftn({x.text}))", wide)]
    text, dtype = g.choice(options)
    shape = (*x.shape[:-1], ONE) if "[..., :1]" in text else x.shape
    return made(text, dtype, shape, -most, most)


def windowed(g: Body, x: Array) -> Array:
    """A convolution, or what windows hold."""
    need(x.is_float and x.dtype not in ("Float",) and not x.is_batched and x.ndim in (1, 2))
    most = x.most
    if x.ndim == 1:
        others = [y for y in g.arrays() if y.dtype == x.dtype and y.ndim == 1 and not y.is_batched]
        need(bool(others) and x.dtype in FULL)
        y = g.choice(others)
        total = most * y.most * min(g.most(x.shape[0]), g.most(y.shape[0]))
        name = g.choice(("convolve", "correlate"))
        mode = ', "full"' if name == "correlate" or g.chance(0.5) else ""
        shape = (x.shape[0] + y.shape[0] - 1,)
        text = f"np.{name}({x.text}, {y.text}{mode})"
        return made(text, x.dtype, shape, -total, total, x.grid * y.grid)
    kernel = f"np.full((1, 1, 3, 2), 0.5, dtype={g.dtype_text(x.dtype)})"
    options: list[tuple[str, float, float]] = [
        (f'psc.conv({x.text}[None, None], {kernel}, padding="same")', 3 * most, 0.5 * x.grid),
        (f'psc.max_pool({x.text}[None, None], 2, 1, padding="same")', most, x.grid),
        (f'psc.avg_pool({x.text}[None, None], (1, 2), 1, padding="same")', most, 0.0),
    ]
    text, high, grid = g.choice(options)
    return made(f"{text}[0, 0]", x.dtype, x.shape, -high, high, grid)


def calculus(g: Body, x: Array) -> Array:
    """Differences, integrals, polynomials, interpolation."""
    need(x.is_float and x.dtype in FULL and x.ndim == 1 and not x.is_batched)
    size, most = x.shape[0], x.most
    options: list[tuple[str, Shape, float]] = [
        (f"np.trapezoid({x.text})", (), most * g.most(size)),
        (f"np.interp({x.text}, np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 2.0]))", x.shape, 3),
        (f"np.vander(np.clip({x.text}, -2, 2), 3)", (size, Size.of(3)), 4),
        (f"np.polyval(np.array([0.5, -1.0, 2.0]), np.clip({x.text}, -2, 2))", x.shape, 8),
        (f"np.kron({x.text}, {x.text})", (size * size,), most * most),
        (f"np.unwrap({x.text})", x.shape, most + 7 * g.most(size)),
        (f"({x.text} * np.hanning({g.size_text(size)}))", x.shape, most),
        (f"np.meshgrid({x.text}, {x.text})[0]", (size, size), most),
    ]
    if g.least(size) >= 2:
        options += [(f"np.gradient({x.text})", x.shape, 2 * most)] * 2
    text, shape, high = g.choice(options)
    need("interp" not in text or x.is_exact)
    need("unwrap" not in text or (x.is_exact and most < 3))
    need("array" not in text or x.dtype == "f32")
    return made(text, x.dtype, shape, -high, high)


def chosen(g: Body, x: Array) -> Array:
    """Selections and the largest elements of a row."""
    need(x.is_real and x.is_exact and x.ndim >= 1 and not x.is_batched)
    if g.chance(0.5):
        need(x.ndim <= 2 and g.least(x.shape[-1]) >= 1 and x.dtype not in ("Int", "UInt", "Float"))
        part = g.choice((0, 0, 1))
        text = f"psc.top_k({x.text}, 1)[{part}]"
        shape = (*x.shape[:-1], ONE)
        if part:
            return made(text, "i32", shape, 0, g.most(x.shape[-1]), 1.0)
        return replace(x, text=text, shape=shape)
    text = g.choice(
        (
            f"np.select([{x.text} > 1, {x.text} < 0], [{x.text}, {x.text}], {x.text})",
            f"np.where({x.text} > 1, {x.text}, 0)",
            f"np.choose(({x.text} > 0).astype(np.int32), [{x.text}, {x.text}])",
        )
    )
    return made(text, x.dtype, x.shape, min(x.low, 0), max(x.high, 0), min(x.grid, 1.0))


# ---- statements ------------------------------------------------------------------------------


def _matrix(g: Body) -> tuple[Array, Size]:
    """A square matrix whose diagonal dominates, and its size."""
    found = [v for v in g.arrays() if v.dtype in WIDE and v.ndim == 2 and not v.is_batched]
    need(bool(found))
    x = g.choice(found)
    if x.shape[0] != x.shape[1]:
        square = g.bind(replace(x, text=f"{x.text} @ {x.text}.T", shape=(x.shape[0],) * 2))
        g.values.pop()
        x = square
    size = x.shape[0]
    need(g.most(size) <= 4 and g.least(size) >= 1)
    n, dtype = g.size_text(size), g.dtype_text(x.dtype)
    text = f"{x.text} / (np.abs({x.text}) + 1)"
    if x.dtype in COMPLEX:
        text = f"{x.text} / (np.abs({x.text}) + 1).astype({dtype})"
    a = Array(f"{text} + 6 * np.eye({n}, dtype={dtype})", x.dtype, (size, size), -7, 7)
    return g.bind(a), size


def solved(g: Body) -> None:
    """A factorization of a matrix, a solution of a system, or what a matrix says of itself."""
    a, size = _matrix(g)
    square = (size, size)
    adjoint = f"np.conj({a.text}).T" if a.dtype in COMPLEX else f"{a.text}.T"
    s = g.bind(Array(f"{a.text} + {adjoint}", a.dtype, square, -14, 14))
    real = PART.get(a.dtype, a.dtype)
    fitting = [
        v for v in g.arrays() if v.dtype == a.dtype and v.ndim in (1, 2) and v.shape[:1] == (size,)
    ]
    b = g.choice(fitting)
    most = 4 * b.most + 1
    lower = g.choice(("lower=True", "lower=False", "lower=True, unit_diagonal=True"))
    triangle = "tril" if "True" in lower else "triu"
    scaled = f"np.{triangle}({a.text}) / 6"
    options: list[tuple[str, str, Shape, float, float]] = [
        (f"np.linalg.inv({a.text})", a.dtype, square, -1, 1),
        (f"np.linalg.solve({a.text}, {b.text})", a.dtype, b.shape, -most, most),
        (f"psc.triangular_solve({scaled}, {b.text}, {lower})", a.dtype, b.shape, -99, 99),
        (f"np.abs(np.linalg.det({a.text} / 4))", real, (), 0, 20),
        (f"np.linalg.slogdet({a.text})[1]", real, (), 0, 20),
        (f"np.linalg.cholesky({s.text})", a.dtype, square, -5, 5),
        (f"np.linalg.eigvalsh({s.text})", real, (size,), -14, 60),
        (f"np.abs(np.linalg.eigvals({s.text})).sum()", real, (), 0, 60),
        (f"np.linalg.svd({a.text}, compute_uv=False)", real, (size,), 0, 30),
        (f"np.linalg.pinv({a.text})", a.dtype, square, -1, 1),
        (f"np.linalg.lstsq({a.text}, {b.text})[0]", a.dtype, b.shape, -most, most),
        (f"np.linalg.matrix_power({a.text} / 6, 3)", a.dtype, square, -9, 9),
        (f"np.linalg.norm({a.text})", real, (), 0, 30),
        (f"np.linalg.cond({a.text})", real, (), 0, 30),
        (f"np.linalg.multi_dot([{a.text}, {s.text}, {a.text}])", a.dtype, square, -9e3, 9e3),
        (f"np.abs(np.linalg.qr({a.text})[1])", real, square, 0, 30),
    ]
    if g.chance(0.3):
        _rebuilt(g, a, s)
        return
    text, dtype, shape, low, high = g.choice(options)
    g.bind(Array(text, dtype, shape, low, high))


def _rebuilt(g: Body, a: Array, s: Array) -> None:
    """The factors of a matrix, and the matrix that they make."""
    one, two, three = g.name(), g.name(), g.name()
    cast = f".astype({g.dtype_text(a.dtype)})" if a.dtype in COMPLEX else ""
    match g.randrange(4):
        case 0:
            g.lines.append(f"{one}, {two} = np.linalg.qr({a.text})")
            text, like = f"{one} @ {two}", a
        case 1:
            g.lines.append(f"{one}, {two}, {three} = np.linalg.svd({a.text})")
            text, like = f"({one} * {two}{cast}) @ {three}", a
        case 2:
            g.lines.append(f"{one}, {two} = np.linalg.eigh({s.text})")
            text, like = f"({two} * {one}{cast}) @ np.conj({two}).T", s
        case _:
            g.lines.append(f"{one} = np.linalg.cholesky({s.text})")
            text, like = f"{one} @ np.conj({one}).T", s
    g.bind(like.named(text))


DRAWS: tuple[tuple[str, str, float, float, float], ...] = (
    ("uniform({k}, {s}, np.float32)", "f32", 0, 1, 0),
    ("normal({k}, {s}, np.float32)", "f32", -8, 8, 0),
    ("randint({k}, {s}, 0, 4, np.int32)", "i32", 0, 4, 1),
    ("bernoulli({k}, 0.5, {s})", "bool_", 0, 1, 0),
    ("exponential({k}, {s}, np.float32)", "f32", 0, 90, 0),
    ("gumbel({k}, {s}, np.float32)", "f32", -5, 90, 0),
    ("laplace({k}, {s}, np.float32)", "f32", -90, 90, 0),
    ("logistic({k}, {s}, np.float32)", "f32", -90, 90, 0),
    ("rademacher({k}, {s}, np.int32)", "i32", -1, 1, 1),
    ("truncated_normal({k}, -1, 2, {s}, np.float32)", "f32", -1, 2, 0),
    ("gamma({k}, 1.5, {s}, np.float32)", "f32", 0, 100, 0),
    ("beta({k}, 1.5, 2.0, {s}, np.float32)", "f32", 0, 1, 0),
    ("poisson({k}, 2.0, {s}, np.int32)", "i32", 0, 100, 1),
    ("bits({k}, {s})", "u32", 0, 2**32, 1),
)


def drawn(g: Body) -> None:
    """Random numbers of a key, each part of which is used once."""
    need(g.depth == 0 and g.generator.may_draw)  # what runs twice would use a key twice
    sizes = [g.size_text(Size.of(name)) for name in sorted(g.sizes)]
    key = g.name()
    start = f"psc.random.key({key[1:]})"
    if g.chance(0.3):
        start = f"psc.random.fold_in({start}, {g.choice(sizes) if sizes else 3})"
    g.lines.append(f"{key} = psc.random.split({start}, 2)")
    found = [v for v in g.arrays() if v.ndim in (1, 2) and not v.is_batched]
    if found and g.chance(0.3):
        x = g.choice(found)
        text = g.choice(("permutation({k}, {x})", "choice({k}, {x}, (2,))"))
        shape = x.shape if text.startswith("perm") else (Size.of(2), *x.shape[1:])
        shown = f"psc.random.{text.format(k=f'{key}[0]', x=x.text)}"
        g.bind(replace(x, text=shown, shape=shape))
        return
    names = sorted(g.sizes)
    options = [*map(Size.of, names), Size.of(2)]
    shape = tuple(g.choice(options) for _ in range(g.randrange(3)))
    written = f"({''.join(g.size_text(size) + ', ' for size in shape)})"
    text, dtype, low, high, grid = g.choice(DRAWS)
    shown = f"psc.random.{text.format(k=f'{key}[{g.randrange(2)}]', s=written)}"
    if text.startswith("bits"):
        shown, high = f"({shown} >> 24)", 256.0
    g.bind(Array(shown, dtype, shape, low, high, grid))


def recurrence(g: Body) -> None:
    """A scan whose step is linear in what it carries, as filters have it."""
    need(g.depth < 1)
    found = [v for v in g.arrays() if v.dtype in FULL and v.ndim >= 1 and not v.is_batched]
    need(bool(found))
    x = g.choice(found)
    need(x.ndim <= 2 and g.least(x.shape[0]) >= 1)
    factor = g.choice(("0.5", "-0.25", "np.tanh(v)"))
    carry, row = g.name(), g.name()
    following = f"{factor.replace('v', row)} * {carry} + {row}"
    step = f"lambda {carry}, {row}: ({following}, {following})"
    most = 2 * x.most * g.most(x.shape[0]) + 1
    text = f"psc.scan({step}, np.zeros_like({x.text}[0]), {x.text})[1]"
    g.bind(Array(text, x.dtype, x.shape, -most, most))


def together(g: Body, x: Array) -> Array:
    """A function of two arrays that the common ones do not meet."""
    found: list[tuple[Array, Shape]] = []
    for y in g.arrays():
        try:
            need(y.dtype == x.dtype)
            found.append((y, broadcast(x, y)))
        except Inapplicable:
            continue
    need(bool(found) and x.is_float)
    y, shape = g.choice(found)
    low, high, most = min(x.low, y.low), max(x.high, y.high), max(x.most, y.most)
    options = [
        (f"np.fmax({x.text}, {y.text})", low, high, min(x.grid, y.grid)),
        (f"np.fmin({x.text}, {y.text})", low, high, min(x.grid, y.grid)),
        (f"np.logaddexp2({x.text}, {y.text})", -most, most + 1, 0.0),
        (f"np.copysign({x.text}, np.abs({y.text}))", 0, x.most, x.grid),
        (f"np.arctan2({x.text}, np.abs({y.text}) + 1)", -2, 2, 0.0),
        (f"np.power(np.abs({x.text}) + 1, np.tanh({y.text}))", 0, most + 1, 0.0),
        (f"psc.special.xlogy({x.text}, np.abs({y.text}) + 1)", -most * 20, most * 20, 0.0),
    ]
    text, low, high, grid = g.choice(options)
    return made(text, x.dtype, shape, low, high, grid)
