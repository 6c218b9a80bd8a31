"""A primitive of one's own: a meaning in NumPy, and a rule for its translation to StableHLO.

How many binary digits do handwritten digits need?  `reduce_precision` is an operation of
StableHLO that NumPy lacks: it rounds to the numbers that a narrower format has.  The two
primitives below round to bfloat16, and to an 8-bit format with 4 bits of exponent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from sklearn.datasets import load_digits

import pscdsl as psc
from pscdsl import f32, i32


@psc.primitive
def round_to_bfloat16(x: f32["*s"]) -> f32["*s"]:
    """The nearest number that bfloat16 has, as f32."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


@round_to_bfloat16.translation
def _(hlo: Any, x: Any) -> Any:
    attributes = {"exponent_bits": 8, "mantissa_bits": 7}
    return hlo.op("reduce_precision", [x], [hlo.type_of(x)], attributes)


@psc.primitive
def round_to_float8(x: f32["*s"]) -> f32["*s"]:
    """The nearest number with 4 bits of exponent and 3 of mantissa, as f32."""
    return x.astype(ml_dtypes.float8_e4m3).astype(np.float32)


def translate_float8(hlo: Any, x: Any) -> Any:
    """The rule, as a function with a name."""
    attributes = {"exponent_bits": 4, "mantissa_bits": 3}
    return hlo.op("reduce_precision", [x], [hlo.type_of(x)], attributes)


psc.register_translation_rule(round_to_float8, translate_float8)
