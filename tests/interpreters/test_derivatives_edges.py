"""Gradients where functions are not smooth, or where formulas for them would divide by zero.

Ties share the derivative; kinks have the mean of both sides; jumps have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.derivatives.programs import assert_close, results

pytestmark = pytest.mark.quick_code

INF, NAN = np.inf, np.nan
ROOT = "psc.cond(x > 0, np.sqrt, np.zeros_like, x)"
"""A function whose other branch is steep where it is not chosen."""
ROWS: list[tuple[str, list[Any], list[Any]]] = [
    # Ties of two operands, and kinks.
    ("np.maximum(x, 0)", [[-1, 0, 2]], [[0, 0.5, 1]]),
    ("np.maximum(0, x)", [[-1, 0, 2]], [[0, 0.5, 1]]),
    ("np.minimum(x, x)", [[1, 2]], [[1, 1]]),
    ("np.maximum(x, y)", [[1, 2, 3], [1, 5, 0]], [[0.5, 0, 1], [0.5, 1, 0]]),
    ("np.minimum(x, y)", [[1, 2, 3], [1, 5, 0]], [[0.5, 1, 0], [0.5, 0, 1]]),
    ("np.fmax(x, y)", [[1, 2, NAN], [1, NAN, 3]], [[0.5, 1, 0], [0.5, 0, 1]]),
    ("np.fmin(x, y)", [[1, 2, NAN], [1, NAN, 3]], [[0.5, 1, 0], [0.5, 0, 1]]),
    ("np.clip(x, 0, 1)", [[-1, 0, 0.5, 1, 2]], [[0, 0.5, 1, 0.5, 0]]),
    ("np.clip(x, y, 1)", [[-1, 0, 0.5], [0, 0, 0]], [[0, 0.5, 1], [1, 0.5, 0]]),
    ("np.abs(x)", [[-2, 0, 3]], [[-1, 0, 1]]),
    ("np.fabs(x)", [[-2, 0, 3]], [[-1, 0, 1]]),
    ("np.copysign(x, y)", [[0, -2, 2], [1, 1, -1]], [[0, -1, -1], [0, 0, 0]]),
    ("np.hypot(x, y)", [[0, 3], [0, 4]], [[0, 0.6], [0, 0.8]]),
    ("np.logaddexp(x, y)", [[1, -INF, 0], [1, 0, -INF]], [[0.5, 0, 1], [0.5, 1, 0]]),
    ("np.sqrt(x * x)", [[-2, 3]], [[-1, 1]]),
    # Ties along an axis.
    ("np.max(x)", [[1, 3, 3, 2]], [[0, 0.5, 0.5, 0]]),
    ("np.min(x)", [[1, 1, 1, 2]], [[1 / 3, 1 / 3, 1 / 3, 0]]),
    ("np.max(x, axis=0)", [[[1, 3], [1, 2]]], [[[0.5, 1], [0.5, 0]]]),
    ("np.max(x, axis=(0, 1))", [[[3, 3], [1, 3]]], [[[1 / 3, 1 / 3], [0, 1 / 3]]]),
    ("np.ptp(x)", [[1, 3, 3, 1, 2]], [[-0.5, 0.5, 0.5, -0.5, 0]]),
    ("np.maximum.accumulate(x)", [[1, 3, 3, 2]], [[1, 3, 0, 0]]),
    ("np.sort(x) * np.array([1.0, 2.0, 3.0])", [[2, 1, 2]], [[2, 1, 3]]),
    ("x[np.argsort(x)] * np.array([1.0, 2.0, 3.0])", [[2, 1, 2]], [[2, 1, 3]]),
    ("np.diff(np.sort(x))", [[1, 1, 2]], [[-1, 0, 1]]),
    ("np.median(x)", [[1, 3, 2, 5]], [[0, 0.5, 0.5, 0]]),
    ("np.median(x)", [[2, 2, 2]], [[0, 1, 0]]),
    ("np.quantile(x, 0.25)", [[1, 2, 2, 4, 5]], [[0, 1, 0, 0, 0]]),
    ("psc.top_k(x, 2)[0]", [[1, 3, 3, 3]], [[0, 1, 1, 0]]),
    # Products with zeros.
    ("np.prod(x)", [[2, 0, 3]], [[0, 6, 0]]),
    ("np.prod(x)", [[0, 0, 3]], [[0, 0, 0]]),
    ("np.cumprod(x)", [[2, 0, 3]], [[1, 8, 0]]),
    ("np.cumprod(x)", [[0, 0, 3]], [[1, 0, 0]]),
    # Powers.
    ("x ** 0", [[-3, 0, 2]], [[0, 0, 0]]),
    ("x ** 1", [[-3, 0, 2]], [[1, 1, 1]]),
    ("x ** 2", [[-3, 0, 2]], [[-6, 0, 4]]),
    ("x ** 2.0", [[-3, 0, 2]], [[-6, 0, 4]]),
    ("x ** 3", [[-3, 0, 2]], [[27, 0, 12]]),
    ("x ** -1", [[-2, 4]], [[-0.25, -0.0625]]),
    ("x ** 0.5", [[0, 4]], [[INF, 0.25]]),
    ("2.0 ** x", [[-1, 0]], [[np.log(2) / 2, np.log(2)]]),
    ("0.0 ** x", [[1, 2, 0]], [[0, 0, 0]]),
    ("x ** y", [[0, 0, 0, 2], [0, 1, 2, 0]], [[0, 1, 0, 0], [0, 0, 0, np.log(2)]]),
    ("x ** y", [[-2], [2]], [[-4], [NAN]]),
    ("np.float_power(x, y)", [[0, 2], [2, 0]], [[0, 0], [0, np.log(2)]]),
    # The edges of domains.
    ("np.sqrt(x)", [[0, 4]], [[INF, 0.25]]),
    ("np.cbrt(x)", [[0, 8]], [[INF, 1 / 12]]),
    ("np.log(x)", [[0, 1]], [[INF, 1]]),
    ("np.log1p(x)", [[-1, 0]], [[INF, 1]]),
    ("np.arcsin(x)", [[1, 0]], [[INF, 1]]),
    ("np.arctanh(x)", [[1, 0]], [[INF, 1]]),
    ("np.reciprocal(x)", [[0, -2]], [[-INF, -0.25]]),
    ("np.sinc(x)", [[0, 1]], [[0, -1]]),
    ("np.tanh(x)", [[1000, -1000]], [[0, 0]]),
    ("np.exp(x)", [[-INF, 1000]], [[0, INF]]),
    ("np.expm1(x)", [[0, -INF]], [[1, 0]]),
    # A choice shields from what it does not choose, if operands are chosen too.
    ("np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)", [[-1, 0, 2]], [[0, 0, 0.5]]),
    ("np.where(x > 0, np.sqrt(x), 0.0)", [[-1, 0, 4]], [[NAN, NAN, 0.25]]),
    ("np.where(x == 0, 0.0, x * np.log(np.where(x == 0, 1.0, x)))", [[0, 1]], [[0, 1]]),
    ("np.where(x > 0, x, x * x)", [[-1, 0, 4]], [[-2, 0, 1]]),
    # What jumps, and what is not a number.
    ("np.sign(x)", [[-2, 0, 3]], [[0, 0, 0]]),
    ("np.floor(x) + np.ceil(x) + np.rint(x) + np.trunc(x)", [[1, 1.5]], [[0, 0]]),
    ("x % 1", [[1, 1.5, -0.5]], [[1, 1, 1]]),
    ("x % y", [[1, -1.5], [1, 0.5]], [[1, 1], [-1, 3]]),
    ("np.fmod(x, y)", [[1, -1.5], [1, 0.6]], [[1, 1], [-1, 2]]),
    ("np.heaviside(x, 0.5)", [[0, 1]], [[0, 0]]),
    ("np.nan_to_num(x)", [[NAN, INF, 1]], [[0, 0, 1]]),
    ("np.nansum(x)", [[NAN, 2]], [[0, 1]]),
    ("np.nanmax(x)", [[NAN, 2, 2]], [[0, 0.5, 0.5]]),
    ("np.interp(x, np.array([0.0, 1.0]), np.array([0.0, 2.0]))", [[-1, 0.5, 3]], [[0, 2, 0]]),
    # Branches that a row has not chosen.
    (f"psc.vmap(lambda x: {ROOT})(x)", [[-1, 4, 0]], [[0, 0.25, 0]]),
    (f"psc.vmap(lambda x, y: {ROOT} * y, (0, None))(x, y)", [[-1, 4], 3], [[0, 0.75], 2]),
    (f"psc.vmap(psc.vmap(lambda x: {ROOT}))(x)", [[[-1, 4], [9, 0]]], [[[0, 0.25], [1 / 6, 0]]]),
    (
        "psc.vmap(lambda x, y: psc.cond(x > 0, lambda: np.sqrt(x * y), lambda: y))(x, y)",
        [[-1, 4], [1, 4]],
        [[0, 0.5], [1, 0.5]],
    ),
    # Stable forms stay stable.
    ("np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x)", [[-INF, 0, 0]], [[0, 0.5, 0.5]]),
    ("np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x)", [[1000, 0, 1000]], [[0.5, 0, 0.5]]),
    ("np.var(x)", [[1, 1, 1]], [[0, 0, 0]]),
    # Places that several elements share.
    ("x[[0, 0, 1]] * np.array([1.0, 2.0, 4.0])", [[1, 1, 1]], [[3, 4, 0]]),
    ("psc.update(x, [1, 1], y, 'add') * np.array([1.0, 5.0])", [[1, 1], [2, 3]], [[1, 5], [5, 5]]),
    ("psc.update(x, [0, 0], y, 'maximum')", [[1, 1], [3, 3]], [[0, 1], [0.5, 0.5]]),
    ("psc.update(x, [0, 0], y, 'minimum')", [[3, 1], [3, 4]], [[0.5, 1], [0.5, 0]]),
]
SECOND: list[tuple[str, list[float], list[list[float]]]] = [
    ("x ** 2", [0, 3], [[2, 0], [0, 2]]),
    ("x ** 3", [0, 3], [[0, 0], [0, 18]]),
    ("np.prod(x)", [0, 0, 3], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    ("np.prod(x)", [2, 0, 3], [[0, 3, 0], [3, 0, 2], [0, 2, 0]]),
    ("np.maximum(x, 0) ** 2", [-1, 2], [[0, 0], [0, 2]]),
    ("np.sinc(x)", [0], [[-(np.pi**2) / 3]]),
    ("np.logaddexp(x, 0)", [0], [[0.25]]),
    ("np.logaddexp(x[0], x[1])", [1, 1], [[0.25, -0.25], [-0.25, 0.25]]),
    ("np.hypot(x[0], x[1])", [0, 2], [[0.5, 0], [0, 0]]),
    ("np.abs(x) * x", [-1, 2], [[-2, 0], [0, 2]]),
    ("np.max(x) ** 2", [1, 2], [[0, 0], [0, 2]]),
    ("np.var(x)", [1, 1], [[0.5, -0.5], [-0.5, 0.5]]),
    ("np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0)", [-1, 2], [[0, 0], [0, -0.25]]),
]


def kernel(transformation: str, code: str, count: int, sizes: list[str]) -> str:
    """A kernel that applies a transformation to the sum of an expression."""
    names = "xy"[:count]
    params = ", ".join(f'{n}: f64["{s}"]' for n, s in zip(names, sizes, strict=True))
    args, places = ", ".join(names), (*range(count),)
    call = f"psc.{transformation}(lambda {args}: np.sum({code}), {places})({args})"
    return f"@psc.kernel\ndef kernel({params}):\n    return {call}\n"


@pytest.mark.parametrize(
    ("code", "values", "wanted"), ROWS, ids=[f"{code} {values}" for code, values, _ in ROWS]
)
def test_gradients(code: str, values: list[Any], wanted: list[Any]) -> None:
    arrays = [np.asarray(x, np.float64) for x in values]
    sizes = [" ".join(map(str, x.shape)) for x in arrays]
    found = results(kernel("grad", code, len(arrays), sizes), *arrays)
    assert_close(found, [np.asarray(x, np.float64) for x in wanted])
    if all(np.all(np.isfinite(x)) for x in found):  # a tangent of 0 times infinity is no number
        assert_close(results(kernel("jacfwd", code, len(arrays), sizes), *arrays), found)


@pytest.mark.parametrize(
    ("code", "values", "wanted"), SECOND, ids=[f"{code} {values}" for code, values, _ in SECOND]
)
def test_second_derivatives(code: str, values: list[float], wanted: list[list[float]]) -> None:
    x = np.asarray(values, np.float64)
    found = results(kernel("hessian", code, 1, [str(len(x))]), x)
    assert_close(found, [np.asarray(wanted, np.float64)])
