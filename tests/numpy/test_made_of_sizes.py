"""Integers made of sizes: a call gives what NumPy gives, or is refused; it never wraps around."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from tests.frontend.test_scopes_agree import load
from tests.support.share import some

pytestmark = pytest.mark.quick_code(but=4)

EXPRESSIONS = (
    "x * n",
    "x + n**4",
    "x - (n - 5)",
    "x * (n * n * n)",
    "x * 0 + np.arange(n).sum()",
    "x * 0 + (np.arange(n) ** 3).sum()",
    "x + np.arange(n) * 7",
    "x + np.arange(n)[::-1] * np.arange(n)",
    "x * 0 + np.dot(np.arange(n), np.arange(n))",
    "x + np.cumsum(np.arange(n))",
    "x + np.where(x > 3, np.arange(n) * 100, n * n)",
    "np.maximum(x, n * 1000 - 2000)",
    "x + np.concatenate([np.arange(n - 1) * 9, np.array([n])])",
    "x + psc.fori_loop(0, n, lambda i, total: total + i * i, 0)",
    "x + psc.fori_loop(0, n, lambda i, a: (a[0] + i * a[1], a[1] + 3), (0, 1))[0]",
    "x + psc.while_loop(lambda c: c < n * 100, lambda c: c + 3, 0)",
    "x + psc.scan(lambda c, i: (c + i * 1000, None), 0, np.arange(n))[0]",
    "x + np.prod(x.shape) * n",
    "x + (3 - n) * -(n % 7) // 2",
    "x + math.isqrt(n) * 9",
    "x * (math.isqrt(n) ** 3 - 5)",
    "x + psc.map(lambda row: row * 0 + math.isqrt(n) * 40, x)",
)
DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "f32", "f64")
COUNTS = {"i8": (1, 3, 300), "i32": (3, 300, 70_000), "f64": (3, 70_000)}
HEAD = "import math\nimport numpy as np\nimport pscdsl as psc\nfrom pscdsl import *\n\n\n"


def exact(expression: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What Python's integers give."""
    names = {"math": math, "np": np, "psc": Loops, "n": x.shape[0], "x": x.astype(object)}
    wide = expression.replace("np.arange(", "np.arange(0, dtype=object, stop=")
    with np.errstate(all="ignore"):
        return np.asarray(eval(wide, names), object)


class Loops:
    """The loops, in Python."""

    @staticmethod
    def map(function: Callable[[Any], Any], rows: Any) -> Any:
        """A function of every row."""
        return np.array([function(row) for row in rows], object)

    @staticmethod
    def fori_loop(start: int, stop: int, step: Callable[[int, Any], Any], value: Any) -> Any:
        """A counted loop."""
        for index in range(start, stop):
            value = step(index, value)
        return value

    @staticmethod
    def while_loop(goes_on: Callable[[Any], Any], step: Callable[[Any], Any], value: Any) -> Any:
        """A loop that ends when a condition fails."""
        while goes_on(value):
            value = step(value)
        return value

    @staticmethod
    def scan(step: Callable[[Any, Any], Any], value: Any, rows: Any) -> Any:
        """A loop over rows."""
        for row in rows:
            value, _ = step(value, row)
        return value, None


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_what_is_made_of_sizes_is_exact_or_refused(number: int, tmp_path: Path) -> None:
    expression, text = EXPRESSIONS[number], HEAD
    dtypes = ("i8", *some(DTYPES[1:-1], 3, number), "f64")
    for dtype in dtypes:
        code = f"    n = x.shape[0]\n    return {expression}\n\n\n"
        text += f'@psc.kernel\ndef f_{dtype}(x: {dtype}["n"]):\n    assert x.shape[0] >= 1\n{code}'
    path = tmp_path / f"made_of_sizes_{number}.py"
    path.write_text(text, encoding="utf-8")
    module = load(path)
    accepted = refused = 0
    for dtype in dtypes:
        kernel = getattr(module, f"f_{dtype}")
        for n in COUNTS.get(dtype, (300,)):
            x = (np.arange(n) % 5).astype(_numpy(dtype))
            try:
                found = np.asarray(kernel(x))
            except psc.CheckError as error:
                codes = {each.code for each in error.diagnostics}
                refused += codes == {"PSC402"} or "psc." in expression  # loops count in i32
                continue
            accepted += 1
            given = exact(expression, x).astype(np.float64)
            wanted = np.broadcast_to(given, found.shape)
            if found.dtype.kind in "iu":
                # What depends on elements wraps around, as in NumPy; the numbers met did not.
                bits = 8 * found.dtype.itemsize
                assert np.all((found.astype(object) - exact(expression, x)) % 2**bits == 0)
            else:
                assert np.allclose(found, wanted, rtol=1e-5 if dtype == "f32" else 1e-12)
    assert accepted
    assert refused


def _numpy(dtype: str) -> np.dtype[Any]:
    kinds = {"i": "int", "u": "uint", "f": "float"}
    return np.dtype(f"{kinds[dtype[0]]}{dtype[1:]}")


ENDED_BY_ARRAYS = """
@psc.kernel
def steps(x: f32["n"]) -> i32:
    def step(carry):
        return carry[0] + 1, carry[1] * 0.5

    return psc.while_loop(lambda carry: carry[1][0] > 1, step, (0, x))[0]


@psc.kernel
def doubled(x: f32["n"]) -> i32:
    return psc.fori_loop(0, x.shape[0], lambda i, a: a * 2, 1)
"""


def test_what_a_loop_counts_is_refused_only_if_arrays_do_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "ended_by_arrays.py"
    path.write_text(HEAD + ENDED_BY_ARRAYS, encoding="utf-8")
    module = load(path)
    assert module.steps(np.full(3, 100, np.float32)) == 7
    with pytest.raises(psc.CheckError, match="made of sizes, at n=40"):
        module.doubled(np.ones(40, np.float32))
