"""Operations of each element: arithmetic, functions, comparisons, choices and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tests.differential import arithmetic as a
from tests.differential import functions as f
from tests.differential.bodies import Body, Operand, Step, fits, need
from tests.differential.enclosures import Exact, Real, Value, real
from tests.differential.formats import DTYPES, FLOATS, FORMATS, INTEGERS, integers

Unary: TypeAlias = Callable[[Any], Any]
Binary: TypeAlias = Callable[[Any, Any], Any]

UNARY: Final[dict[str, Unary]] = {
    "np.exp({})": f.increasing(np.exp, 4),
    "np.log({})": f.increasing(np.log, 4, (0, np.inf)),
    "np.log1p({})": f.increasing(np.log1p, 4, (-1, np.inf)),
    "np.expm1({})": f.increasing(np.expm1, 4),
    "np.sqrt({})": f.increasing(np.sqrt, 0.5, (0, np.inf)),
    "np.cbrt({})": f.increasing(np.cbrt, 4),
    "np.tanh({})": f.increasing(np.tanh, 4),
    "np.arctan({})": f.increasing(np.arctan, 4),
    "np.sinh({})": f.increasing(np.sinh, 4),
    "np.arcsinh({})": f.increasing(np.arcsinh, 4),
    "np.cosh({})": f.even_increasing(np.cosh, 4),
    "np.exp2({})": f.increasing(np.exp2, 4),
    "np.log2({})": f.increasing(np.log2, 4, (0, np.inf)),
    "np.log10({})": f.increasing(np.log10, 4, (0, np.inf)),
    "np.arcsin({})": f.increasing(np.arcsin, 4, (-1, 1)),
    "np.arctanh({})": f.increasing(np.arctanh, 4, (-1, 1)),
    "np.arccosh({})": f.increasing(np.arccosh, 4, (1, np.inf)),
    "np.arccos({})": lambda x: a.negative(f.increasing(lambda v: -np.arccos(v), 4, (-1, 1))(x)),
    "np.tan({})": f.tangent,
    "np.sin({})": f.wave(np.sin, 4),
    "np.cos({})": f.wave(np.cos, 4),
    "np.floor({})": f.steps(np.floor),
    "np.ceil({})": f.steps(np.ceil),
    "np.rint({})": f.steps(np.rint),
    "np.trunc({})": f.steps(np.trunc),
    "np.abs({})": f.absolute,
    "(-{})": a.negative,
    "np.sign({})": f.sign,
    "np.square({})": a.square,
    "({} ** 2)": a.square,
    "({} ** 3)": lambda x: f.power(x, 3, 2),
    "({} ** 4)": lambda x: f.power(x, 4, 3),
    "(1 / {})": lambda x: a.divide(a.constant(x.format.name, 1.0), x),
    "np.reciprocal({})": lambda x: a.divide(a.constant(x.format.name, 1.0), x),
    "({0} * {0})": lambda x: a.multiply(x, x),
    "({0} - {0})": lambda x: a.subtract(x, x),
    "({0} + {0})": lambda x: a.add(x, x),
    "({0} / {0})": lambda x: a.divide(x, x),
}
"""Functions of one floating-point number, and the units in the last place that they may be off."""


def unary(g: Body, x: Operand) -> Step:
    """A function of each element."""
    need(x.is_float)
    text, meaning = g.choice(list(UNARY.items()))
    return Step(text.format(x.text), meaning)


BINARY: Final[dict[str, Binary]] = {
    "({} + {})": a.add,
    "({} - {})": a.subtract,
    "({} * {})": a.multiply,
    "({} / {})": a.divide,
    "np.maximum({}, {})": f.larger,
    "np.minimum({}, {})": f.smaller,
}
SELDOM: Final[dict[str, Binary]] = {
    "np.fmax({}, {})": lambda x, y: f.ignoring(x, y, f.larger),
    "np.fmin({}, {})": lambda x, y: f.ignoring(x, y, f.smaller),
    "np.fmod({}, {})": lambda x, y: f.remainder(np.fmod, x, y),
    "({} % {})": lambda x, y: f.remainder(np.remainder, x, y),
    "({} // {})": lambda x, y: f.remainder(np.floor_divide, x, y),
    "np.hypot({}, {})": lambda x, y: f.hypotenuse(x, y, 4),
    "np.copysign({}, {})": f.signed,
    "np.arctan2({}, {})": lambda x, y: f.at_points(np.arctan2, x, y, 6),
    "np.logaddexp({}, {})": lambda x, y: f.at_points(np.logaddexp, x, y, 0, 4),
    "np.power(np.abs({}), {})": lambda x, y: f.general_power(f.absolute(x), y, 8),
}


def binary(g: Body, x: Operand) -> Step:
    """An operator or function of two floating-point numbers, this one on either side."""
    need(x.is_float)
    y = g.partner(x)
    text, meaning = g.choice(list((SELDOM if g.chance(0.12) else BINARY).items()))
    if g.chance(0.6):
        # Of a Python number NumPy's functions make an f64, which makes one of all that it meets.
        need("np.abs" not in text or x in g.operands)
        return Step(text.format(x.text, y.text), lambda value: meaning(value, y.value))
    need("np.abs" not in text or y in g.operands)
    return Step(text.format(y.text, x.text), lambda value: meaning(y.value, value))


def twice(g: Body, x: Operand) -> Step:
    """Two operators in a row, with constants or arrays: what compilers like to regroup."""
    first = binary(g, x)
    inner = Operand(first.text, first.meaning(x.value))
    need(inner.shape == x.shape)
    second = binary(g, inner)
    return Step(second.text, lambda value: second.meaning(first.meaning(value)))


def undone(g: Body, x: Operand) -> Step:
    """An operation and its inverse, which do not cancel in floating point."""
    need(x.is_float)
    y = g.partner(x, 0.7)
    pairs: list[tuple[str, Binary, Binary]] = [
        ("(({0} + {1}) - {1})", a.add, a.subtract),
        ("(({0} - {1}) + {1})", a.subtract, a.add),
        ("(({0} * {1}) / {1})", a.multiply, a.divide),
        ("(({0} / {1}) * {1})", a.divide, a.multiply),
        ("(({0} / {1}) / {1})", a.divide, a.divide),
        ("(({0} * {1}) * {1})", a.multiply, a.multiply),
        ("(({0} + {1}) + {1})", a.add, a.add),
        ("({1} / ({1} / {0}))", lambda x, y: a.divide(y, x), lambda x, y: a.divide(y, x)),
        ("({1} - ({1} - {0}))", lambda x, y: a.subtract(y, x), lambda x, y: a.subtract(y, x)),
    ]
    text, first, second = g.choice(pairs)
    return Step(text.format(x.text, y.text), lambda value: second(first(value, y.value), y.value))


def composed(g: Body, x: Operand) -> Step:
    """Functions that undo each other, or that a compiler may know together."""
    need(x.is_float)
    exp, log, sqrt = UNARY["np.exp({})"], UNARY["np.log({})"], UNARY["np.sqrt({})"]
    one = a.constant(x.dtype, 1.0)
    options: list[tuple[str, Unary]] = [
        ("np.log(np.exp({}))", lambda v: log(exp(v))),
        ("np.exp(np.log({}))", lambda v: exp(log(v))),
        ("(1 / np.sqrt({}))", lambda v: a.divide(one, sqrt(v))),
        ("np.sqrt({} * {})", lambda v: sqrt(a.multiply(v, v))),
        ("(np.sqrt({}) * np.sqrt({}))", lambda v: a.multiply(sqrt(v), sqrt(v))),
        ("(1 / (1 / {}))", lambda v: a.divide(one, a.divide(one, v))),
        ("(np.exp({}) * np.exp({}))", lambda v: a.multiply(exp(v), exp(v))),
        ("(1 / (1 + np.exp(-{})))", lambda v: a.divide(one, a.add(one, exp(a.negative(v))))),
        ("(np.exp({}) - 1)", lambda v: a.subtract(exp(v), one)),
        ("np.log(1 + {})", lambda v: log(a.add(one, v))),
        ("np.log(np.sqrt({}))", lambda v: log(sqrt(v))),
        ("np.abs(-{})", f.absolute),
    ]
    text, meaning = g.choice(options)
    return Step(text.format(*[x.text] * text.count("{}")), meaning)


INTEGER_BINARY: Final[dict[str, Binary]] = {
    "({} + {})": np.add,
    "({} - {})": np.subtract,
    "({} * {})": np.multiply,
    "({} // {})": np.floor_divide,
    "({} % {})": np.remainder,
    "({} & {})": np.bitwise_and,
    "({} | {})": np.bitwise_or,
    "({} ^ {})": np.bitwise_xor,
    "np.maximum({}, {})": np.maximum,
    "np.minimum({}, {})": np.minimum,
    "({} << {})": np.left_shift,
    "({} >> {})": np.right_shift,
    "np.fmod({}, {})": np.fmod,
}
LOGIC: Final[dict[str, Binary]] = {
    "({} & {})": np.bitwise_and,
    "({} | {})": np.bitwise_or,
    "({} ^ {})": np.bitwise_xor,
    "np.logical_and({}, {})": np.logical_and,
    "np.logical_or({}, {})": np.logical_or,
}
INTEGER_UNARY: Final[dict[str, Unary]] = {
    "(-{})": np.negative,
    "np.abs({})": np.abs,
    "(~{})": np.invert,
    "np.sign({})": np.sign,
    "np.square({})": np.square,
    "({} ** 3)": lambda x: x**3,
}


def whole(g: Body, x: Operand) -> Step:
    """An operation of integers or truth values."""
    need(not x.is_float)
    logic = x.dtype == "bool_"
    if g.chance(0.25):
        if logic:
            return Step(f"(~{x.text})", lambda v: f.exactly(np.logical_not, v))
        text, of_one = g.choice(list(INTEGER_UNARY.items()))
        need(not (x.dtype[0] == "u" and text == "np.abs({})"))
        return Step(text.format(x.text), lambda v: f.exactly(of_one, v))
    y = g.partner(x)
    other = y.exact
    text, function = g.choice(list((LOGIC if logic else INTEGER_BINARY).items()))
    if text.split()[1] in ("//", "%") or "fmod" in text:
        need(y.text != "0" and x.text != "0")  # refused
    if "<<" in text or ">>" in text:
        need(not bool(np.any(other.array < 0)) and not y.text.isdigit())
        return Step(text.format(x.text, y.text), lambda v: f.exactly(function, v, other))
    if g.chance(0.6):
        return Step(text.format(x.text, y.text), lambda v: f.exactly(function, v, other))
    need("<<" not in text and ">>" not in text)
    return Step(text.format(y.text, x.text), lambda v: f.exactly(function, other, v))


def comparison(g: Body, x: Operand) -> Step:
    """A truth value for each element."""
    text, meaning = compared(g, x)
    return Step(text, meaning)


def compared(g: Body, x: Operand) -> tuple[str, Callable[[Any], Exact]]:
    """A comparison as it is written, and its enclosure."""
    need(x.dtype != "bool_")
    y, sign = g.partner(x), g.choice(("<", "<=", ">", ">=", "==", "!="))
    return f"({x.text} {sign} {y.text})", lambda v: f.compare(sign, v, y.value)


def test(g: Body, x: Operand) -> Step:
    """Whether numbers are of a class."""
    need(x.is_float)
    name, meaning = g.choice((("isnan", f.is_nan), ("isfinite", f.is_finite)))
    return Step(f"np.{name}({x.text})", meaning)


def always(value: Exact) -> Callable[[Any], Exact]:
    """The enclosure of what does not depend on a value."""
    return lambda _: value


def selection(g: Body, x: Operand) -> Step:
    """`np.where`, with a condition in reach or made of it."""
    y = g.partner(x)
    masks = [each for each in g.operands if each.dtype == "bool_"]
    masks = [each for each in masks if fits(g, each.shape, x.shape, y.shape)]
    if masks and g.chance(0.6):
        mask = g.choice(masks)
        text, holds = mask.text, always(mask.exact)
    else:
        text, holds = compared(g, x)
        need(fits(g, holds(x.value).shape, x.shape, y.shape))
    if g.chance(0.5):
        return Step(
            f"np.where({text}, {x.text}, {y.text})", lambda v: f.choose(holds(v), v, y.value)
        )
    return Step(f"np.where({text}, {y.text}, {x.text})", lambda v: f.choose(holds(v), y.value, v))


def clipped(g: Body, x: Operand) -> Step:
    """Within bounds."""
    need(x.dtype != "bool_")
    low, high = g.choice(((0, 2), (1, 3), (0, 100)))
    if isinstance(x.value, Real):
        bounds = [real(x.value.format, x.value.format.dtype.type(each)) for each in (low, high)]
        return Step(
            f"np.clip({x.text}, {low}, {high})",
            lambda v: f.smaller(f.larger(v, bounds[0]), bounds[1]),
        )
    return Step(
        f"np.clip({x.text}, {low}, {high})",
        lambda v: f.clipped(v, low, high),
    )


def cast(g: Body, x: Operand) -> Step:
    """Another dtype."""
    to = g.choice([*FLOATS, *FLOATS, *INTEGERS, "bool_"])
    need(to != x.dtype)
    if x.is_float and to in INTEGERS:
        g.documented |= out_of_range(x.real, to)
    written = {"bf16": "psc.bf16", "bool_": "bool"}.get(to, f"np.{DTYPES[to].name}")
    return Step(f"{x.text}.astype({written})", lambda v: converted(v, to))


def out_of_range(x: Real, to: str) -> bool:
    """Whether NumPy does not say which integers numbers become."""
    info = integers(to)
    with np.errstate(all="ignore"):
        low, high = np.trunc(x.low), np.trunc(x.high)
        inside = (low >= info.min) & (high < 2.0 ** (info.bits - (info.min < 0)))
        return not bool(np.all(inside & (x.nan == 0)))


def converted(x: Value, to: str) -> Value:
    """The value in another dtype."""
    if to == "bool_":
        return f.to_truth(x)
    if isinstance(x, Real):
        return a.convert(x, to) if to in FORMATS else f.to_integer(x, to)
    if to in FORMATS:
        return f.to_real(x, to)
    return Exact(x.array.astype(DTYPES[to]), x.unknown)
