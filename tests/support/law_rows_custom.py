"""Rows for primitives of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.extensions.custom import Custom
from tests.support.law_rows import Row, array_type, array_types, finite


@psc.primitive
def product_and_sum(x: f64["*s"], y: f64["*s"]) -> tuple[f64["*s"], f64["*s"]]:
    """Two results of two operands."""
    with np.errstate(all="ignore"):
        return x * y, x + y


@product_and_sum.translation
def emit(hlo: Any, x: Any, y: Any) -> Any:
    """The same in StableHLO."""
    return hlo.binary("multiply", x, y), hlo.binary("add", x, y)


@product_and_sum.jvp
def tangents(outputs: Any, primals: Any, tangents: Any) -> Any:
    """Of both results; what is None is zero."""
    (x, y), (dx, dy) = primals, tangents
    if dx is None:
        return x * dy, dy
    if dy is None:
        return dx * y, dx
    return dx * y + x * dy, dx + dy


@product_and_sum.batch
def over_a_batch(operands: Any, batched: Any, size: Any) -> Any:
    """The same of all elements."""
    x, y = [
        x if many else np.broadcast_to(x, (size, *x.shape))
        for x, many in zip(operands, batched, strict=True)
    ]
    return product_and_sum(x, y), (True, True)


RESULTS = (array_type("f64[n m]"), array_type("f64[n m]"))
ROWS = (
    Row(
        Custom("product_and_sum", RESULTS, product_and_sum.__pscdsl_definition__()),
        array_types("f64[n m], f64[n m]"),
        {"n": 3, "m": 4},
        finite,
    ),
)
