"""Expressions for each name of the packages of JAX: those of `jax_rows/`, and products of lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final


def tables() -> dict[str, str]:
    """Return the tables of `jax_rows/` by module."""
    files = sorted((Path(__file__).parent / "jax_rows").glob("*.txt"))
    return {path.stem: path.read_text() for path in files}


_ELEMENTWISE: Final = """
abs absolute negative positive sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10
log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh asin acos atan asinh
acosh atanh floor ceil rint trunc fabs isnan isinf isfinite isposinf isneginf signbit sinc deg2rad
rad2deg degrees radians conj conjugate real imag iscomplex isreal logical_not invert bitwise_not
bitwise_invert bitwise_count i0 spacing nan_to_num angle modf
""".split()
_BINARY: Final = """
add subtract multiply divide true_divide floor_divide mod remainder fmod power pow float_power
maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal logical_and
logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift
bitwise_left_shift bitwise_right_shift arctan2 atan2 hypot copysign nextafter logaddexp logaddexp2
heaviside gcd lcm divmod ldexp
""".split()
_ARGUMENTS: Final = (
    "x",
    "pos",
    "k",
    "b",
    "h",
    "f",
    "c",
    "u",
    "uu",
    "q",
    "z",
    "inf",
    "nan",
    "2",
    "0.5",
    "True",
    "empty",
)
_PAIRS: Final = (
    ("x", "y"), ("x", "2"), ("2.5", "x"), ("k", "2"), ("k", "l"), ("k", "0.5"), ("k", "x"), ("b",
    "x"), ("b", "k"), ("b", "b"), ("h", "x"), ("h", "f"), ("h", "2.5"), ("c", "u"), ("c", "d"),
    ("q", "k"), ("u", "3"), ("z", "x"), ("z", "1j"), ("2", "3"), ("2", "0.5"), ("m", "x"), ("inf",
    "nan"), ("k", "0"), ("b", "2"), ("s", "h"), ("c", "2.5"),
)  # fmt: skip

_DIVIDING: Final = frozenset("floor_divide mod remainder fmod divmod power pow".split())
_BY_ZERO: Final = {("b", "k"), ("c", "u"), ("c", "d"), ("q", "k"), ("k", "0")}
"""Pairs with a zero, of which XLA leaves quotients of integers, and powers, to the machine."""


def products() -> Iterator[str]:
    """Yield the lines of functions of elements: each with many operands."""
    for name in _ELEMENTWISE:
        yield " | ".join([name, *(f"?jnp.{name}({each})" for each in _ARGUMENTS)])
    for name in _BINARY:
        left_out = _BY_ZERO if name in _DIVIDING else frozenset[tuple[str, str]]()
        pairs = [pair for pair in _PAIRS if pair not in left_out]
        yield " | ".join([name, *(f"?jnp.{name}({a}, {b})" for a, b in pairs)])


_WRITTEN: Final = tables()
TABLES: Final = {**_WRITTEN, "jax.numpy": "\n".join([_WRITTEN["jax.numpy"], *products()])}
"""The expressions of each module: `name | expression | …` on each line."""
