"""Rows for primitives of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f32
from pscdsl.custom import Custom
from tests.law_rows import Row, array_type, array_types, finite


@psc.primitive
def product_and_sum(x: f32["n m"], y: f32["n m"]) -> tuple[f32["n m"], f32["n m"]]:
    """Two results of two operands."""
    with np.errstate(all="ignore"):
        return x * y, x + y


@product_and_sum.translation
def emit(hlo: Any, x: Any, y: Any) -> Any:
    """The same in StableHLO."""
    return hlo.binary("multiply", x, y), hlo.binary("add", x, y)


RESULTS = (array_type("f32[n m]"), array_type("f32[n m]"))
ROWS = (
    Row(
        Custom("product_and_sum", RESULTS, product_and_sum),
        array_types("f32[n m], f32[n m]"),
        {"n": 3, "m": 4},
        finite,
    ),
)
