"""Awkward sizes and values: around powers of two, the ends of each dtype, and what is no number."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np

from tests.differential.formats import FORMATS, NDArray, integers

SMALL: Final = (1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 11, 13, 15, 16, 17, 31, 32, 33)
LARGE: Final = (16383, 16384, 16385, 16387, 20000, 32767, 32768, 32769, 33001)
FACTORS: Final = (1, 2, 3, 3, 4, 5, 7)
KINDS: Final = ("grid", "grid", "normal", "normal", "wide", "ends", "positive", "whole", "near one")
"""How the numbers of an array are drawn."""


def ends(name: str) -> list[float]:
    """The ends of a floating-point dtype, zeros, infinities and NaN."""
    f = FORMATS[name]
    eps = 2 * f.unit
    numbers = [
        *(f.largest, f.largest / 2, f.largest * (1 - eps), f.least, f.least * (1 + eps)),
        *(f.least / 2, f.least * (1 - eps), f.smallest, eps, 1 + eps, 1 - f.unit),
        *(0.0, 1.0, 3.0, 49.0, 0.1, np.inf, 1 / eps, 2 / eps + 2),
    ]
    return [*numbers, *[-each for each in numbers], np.nan]


def array(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> NDArray:
    """An array of awkward values of one kind."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    if dtype == "bool_":
        return np.asarray(numbers.integers(0, 2, shape)).astype(bool)
    if dtype not in FORMATS:
        return _integers(rng, numbers, dtype, shape)
    f = FORMATS[dtype]
    with np.errstate(all="ignore"):
        return np.asarray(_reals(rng.choice(KINDS), numbers, dtype, shape)).astype(f.dtype)


def _reals(kind: str, numbers: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    f = FORMATS[dtype]
    sign = numbers.choice([-1.0, 1.0], shape)
    match kind:
        case "grid":
            return numbers.integers(-16, 17, shape) / 4
        case "whole":
            return numbers.integers(-60, 61, shape) * 1.0
        case "wide":
            low, high = np.log2(f.least), np.log2(f.largest)
            return sign * 2.0 ** numbers.uniform(low, high, shape)
        case "ends":
            plain = numbers.normal(size=shape)
            return np.where(
                numbers.uniform(size=shape) < 0.5, numbers.choice(ends(dtype), shape), plain
            )
        case "positive":
            return numbers.uniform(0.25, 4, shape)
        case "near one":
            return 1 + numbers.integers(-9, 10, shape) * 2 * f.unit
        case _:
            return numbers.normal(size=shape) * 3


def _integers(
    rng: random.Random, numbers: np.random.Generator, dtype: str, shape: tuple[int, ...]
) -> NDArray:
    info = integers(dtype)
    kind = rng.choice(("all", "small", "ends"))
    if kind == "small":
        return numbers.integers(max(info.min, -9), 10, shape).astype(info.dtype)
    found = numbers.integers(info.min, info.max, shape, info.dtype, endpoint=True)
    if kind == "ends":
        some = [info.min, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, info.min + 1]
        chosen = numbers.choice(np.array(some, info.dtype), shape)
        found = np.where(numbers.uniform(size=shape) < 0.6, chosen, found)
    return np.asarray(found).astype(info.dtype)


def number(rng: random.Random, dtype: str) -> tuple[str, Any]:
    """A constant as it is written, and what it is."""
    if dtype == "bool_":
        return rng.choice((("True", True), ("False", False)))
    if dtype not in FORMATS:
        info = integers(dtype)
        whole = rng.choice((0, 1, 2, 3, 7, 10, -1, -2, -3, info.max, info.min, info.max // 2))
        whole = max(int(info.min), int(whole))
        return f"({whole})" if whole < 0 else str(whole), whole
    f = FORMATS[dtype]
    plain = [2.0, 0.5, 3.0, -1.0, 1.0, 7.0, 10.0, 49.0, 41.0, 100.0, 0.1, 1 / 3, -2.5, 1e-3, 0.0]
    far = [f.largest, f.largest**0.75, f.largest**-0.75, f.least, f.least / 4, f.smallest]
    far += [1 / f.unit, 2 / f.unit, 1e4, 3e-5, f.largest**0.5, -f.largest, -(f.largest**0.75)]
    value = float(rng.choice(plain if rng.random() < 0.6 else far))
    if rng.random() < 0.08:
        value = rng.choice((np.nan, np.inf, -np.inf, -0.0))
    written = {"nan": "np.nan", "inf": "np.inf", "-inf": "(-np.inf)"}.get(repr(value), repr(value))
    return f"({written})" if written[0] == "-" else written, value
