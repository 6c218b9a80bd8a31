"""A primitive of one's own: a meaning in NumPy, and a rule for its translation to StableHLO.

How many binary digits do handwritten digits need?  `reduce_precision` is an operation of
StableHLO that NumPy lacks: it rounds numbers as a narrower format would.  Of the 23 fractional
bits of f32, one primitive keeps 7, as bfloat16 does, the other a single one.
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import pscdsl as psc
from pscdsl import f32, i32


@psc.primitive
def keep_7_bits(x: f32["*s"]) -> f32["*s"]:
    """The nearest number with 7 fractional bits, as f32."""
    return nearest_number(x, 7)


@keep_7_bits.translation
def _(hlo: Any, x: Any) -> Any:
    return reduce_precision(hlo, x, 7)


@psc.primitive
def keep_1_bit(x: f32["*s"]) -> f32["*s"]:
    """The nearest number with 1 fractional bit, as f32."""
    return nearest_number(x, 1)


def translate_keep_1_bit(hlo: Any, x: Any) -> Any:
    """A rule can also be registered apart from its primitive."""
    return reduce_precision(hlo, x, 1)


psc.register_translation_rule(keep_1_bit, translate_keep_1_bit)


def nearest_number(x: np.ndarray, bits: int) -> np.ndarray:
    """The meaning of both: of two numbers that are equally near, the even one."""
    dropped = np.uint32(23 - bits)
    one = np.uint32(1)
    word = x.view(np.uint32)
    last_kept = (word >> dropped) & one
    word = word + last_kept + (one << (dropped - one)) - one
    return (word >> dropped << dropped).view(np.float32)


def reduce_precision(hlo: Any, x: Any, bits: int) -> Any:
    """The StableHLO operation that both rules emit."""
    attributes = {
        "exponent_bits": hlo.parse_attribute("8 : i32"),
        "mantissa_bits": hlo.parse_attribute(f"{bits} : i32"),
    }
    return hlo.op("reduce_precision", [x], [hlo.type_of(x)], attributes)


@psc.kernel
def distances(x: f32["n d"], centres: f32["k d"]) -> f32["n k"]:
    """The squared distance of each image from each centre."""
    return ((x[:, None] - centres) ** 2).sum(axis=-1)


@psc.kernel
def nearest(x: f32["n d"], centres: f32["k d"]) -> i32["n"]:
    """The nearest centre of each image."""
    return distances(x, centres).argmin(axis=1).astype(np.int32)


@psc.kernel
def nearest_with_7_bits(x: f32["n d"], centres: f32["k d"]) -> i32["n"]:
    """The same from rounded numbers."""
    return nearest(keep_7_bits(x), keep_7_bits(centres))


@psc.kernel
def nearest_with_1_bit(x: f32["n d"], centres: f32["k d"]) -> i32["n"]:
    """The same from numbers that are rounded to one fractional bit."""
    return nearest(keep_1_bit(x), keep_1_bit(centres))


@psc.kernel
def rounded(x: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    """Both primitives, to be compared with their meanings."""
    return keep_7_bits(x), keep_1_bit(x)


class Result(NamedTuple):
    """What came out."""

    differences: int
    """How many numbers the translations round otherwise than the meanings."""
    accuracies: dict[str, float]
    """How many of the images were recognised."""


def run() -> Result:
    """Recognise each image of the second half by the means of the first half's classes."""
    digits: Any = load_digits()
    x: np.ndarray = (digits.data / 16).astype(np.float32)
    labels: np.ndarray = digits.target
    half = len(x) // 2
    centres = np.stack([x[:half][labels[:half] == k].mean(axis=0) for k in range(10)])

    numbers = np.random.default_rng(0).standard_normal(100_000, np.float32)
    found: list[np.ndarray] = [np.asarray(each) for each in rounded(numbers)]
    expected = [meaning(numbers) for meaning in (keep_7_bits, keep_1_bit)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    kernels = {"23": nearest, "7": nearest_with_7_bits, "1": nearest_with_1_bit}
    return Result(
        int(np.count_nonzero(np.stack(found) != np.stack(expected))),
        {
            bits: float((np.asarray(kernel(x[half:], centres)) == labels[half:]).mean())
            for bits, kernel in kernels.items()
        },
    )


def main() -> None:
    """Print what came out."""
    result = run()
    print(rounded.ir())
    for line in rounded.lower(n=8).text().splitlines():
        if "reduce_precision" in line:
            print(line.strip())
    print(f"numbers rounded otherwise than by NumPy: {result.differences} of 200000", end=", ")
    print("none is allowed")
    for bits, accuracy in result.accuracies.items():
        print(f"digits recognised with {bits} fractional bits: {accuracy:.1%}")


if __name__ == "__main__":
    main()
