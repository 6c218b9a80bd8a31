"""Comprehensions and generators over arrays and symbolic ranges, beside NumPy."""

# Python numbers become arrays, and lists grow in loops.
# mypy: disable-error-code="assignment"

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.checker.check import check_source

pytestmark = pytest.mark.quick_code

X = np.array([1.0, -2.0, 3.0, 0.0, 0.5])
A = np.arange(15.0).reshape(5, 3) - 4


def elements(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    doubled = [2 * v for v in x]
    return np.array(doubled) + doubled[0] + len(doubled)


def rows(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    return np.array([row.max() - sum(row) for row in a])


def places(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    return np.array([x[i] - x[i - 1] if i > 0 else x[i] for i in range(len(x))])


def pairs(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    products = [u * v for u, v in zip(x, x[::-1], strict=True)]
    return np.array([i * v for i, v in enumerate(products)])


def tables(x: f64["n"], a: f64["n m"]) -> f64["n n"]:
    table = [[u * v for u in x] for v in x]
    return np.array(table) + np.array(table[0]) * sum(table[0])


def tables_of_loops(x: f64["n"], a: f64["n m"]) -> f64["n n"]:
    table: list[Any] = []
    for v in x:
        table.append([u - v for u in x])
    total = 0.0
    for row in table:
        for v in row:
            total += abs(v)
    return np.array(table) / (1 + total)


def sums(x: f64["n"], a: f64["n m"]) -> tuple[f64, f64]:
    return sum(v * v for v in x), sum(sum(u * v for u in x) for v in x)


def truths(x: f64["n"], a: f64["n m"]) -> f64:
    return np.where(any(v > 2 for v in x), 1.0, 2.0) + np.where(all(v > -1 for v in x), 10.0, 20.0)


def parts(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    return np.array([sum(x[j] * x[i - j] for j in range(i + 1)) for i in range(len(x))])


def stores(x: f64["n"], a: f64["n m"]) -> tuple[f64["n"], f64]:
    y = x.copy()

    def moved(i: Any) -> Any:
        y[i] += 1
        return y[i] * y.sum()

    found = [moved(i) for i in range(len(x))]
    return y, sum(found)


def walrus(x: f64["n"], a: f64["n m"]) -> tuple[f64["n"], f64]:
    total = 0.0
    found = [(total := total + v) for v in x]
    return np.array(found), total


def names_of_its_own(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    v = 5.0
    found = [v * 2 for v in x]
    return np.array(found) + v


def numbers(x: f64["n"], a: f64["n m"]) -> f64["n"]:
    return np.array([i / 2 for i in range(len(x))]) + x


KERNELS = (
    *(elements, rows, places, pairs, tables, tables_of_loops, sums, truths, parts, stores, walrus),
    *(names_of_its_own, numbers),
)


@pytest.mark.parametrize("function", KERNELS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_under_numpy(function: Callable[..., Any], size: int) -> None:
    kernel: Any = psc.kernel(function)
    x, a = X[:size], A[:size]
    expected, found = function(x, a), kernel(x, a)
    several = isinstance(expected, tuple)
    for one, other in zip(
        expected if several else [expected], found if several else [found], strict=True
    ):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(other, one, rtol=1e-14)


@psc.kernel
def many(x: f64["100"], y: f64["20"]) -> tuple[f64["100"], f64["20"]]:
    squares = [v * v for v in x]
    few = [v + 1 for v in y]
    few.reverse()  # of so few items it is a list like any other
    return np.array(squares[::-1]), np.array(few)


def test_known_sizes() -> None:
    x, y = np.arange(100.0), np.arange(20.0)
    squares, few = many(x, y)
    np.testing.assert_array_equal(squares, (x * x)[::-1])
    np.testing.assert_array_equal(few, (y + 1)[::-1])


@psc.kernel
def of_squares(x: f64["n"]) -> f64:
    return sum(np.sin(v) * v for v in x)


def test_derivatives() -> None:
    np.testing.assert_allclose(psc.grad(of_squares)(X), np.cos(X) * X + np.sin(X), rtol=1e-14)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return np.array([v for v in x if v > 0])", "PSC109"),
        ("g = (v for v in x); return sum(g) + sum(g)", "PSC101"),
        ("z = [v for v in x]; z[0] = 1; return np.array(z)", "PSC205"),
        ("y = x.copy(); z = [y for v in x]; y[0] = 1; return z[0]", "PSC205"),
        ("y = x.copy(); return sum((y.fill(v), v)[1] for v in x)", "PSC205"),
        ("y = x.copy(); return sum(v for y[0] in x for v in (1.0,))", "PSC205"),
        (
            "y = x.copy(); g = lambda v: (y.fill(v), True)[1]; "
            "any(v > 0.5 for v in (1.0, 2.0) if g(v)); return y",
            "PSC205",
        ),
        (
            "y = x.copy(); g = lambda v: (y.fill(v), True)[1]; "
            "return sum(u * v for u in x for v in (1.0, 2.0) if g(v))",
            "PSC205",
        ),
        ("y = x.copy(); return [v for v in (u * 2 for u in y)][0]", "PSC101"),
        ("y = x.copy(); return [v for v in enumerate(u * 2 for u in y)][0]", "PSC109"),
        ("y = x.copy(); return sum((u * 2 for u in y), (y.fill(3.0), 0)[1])", "PSC210"),
        ("y = x.copy(); return sum((u * 2 for u in (y, y)), (y.fill(3.0), 0)[1])", "PSC210"),
        ("y = x.copy(); return sum(map(lambda u: u * y, (x, x)), (y.fill(3.0), 0)[1])", "PSC210"),
        ("z = [[v, v] for v in x]; return np.array(z)", "PSC109"),
        ("z = [v for row in a for v in row]; return np.array(z)", "PSC122"),
        ("z = [[i for i in range(len(x))] for v in x]; return np.array(z)", "PSC109"),
        ("z = []; [z.append((v, [v for v in x])) for v in x]; return np.array(z)", "PSC527"),
        ("return sum(v > 0 for v in x)", "PSC109"),
        ("return {v: 1 for v in x}", "PSC122"),
        ("return {1 for v in x}", "PSC122"),
        ("return x[0] + sum(v + max(u * v for u in (1.0, 2.0)) for v in x)", "PSC123"),
    ],
)
def test_refusals(body: str, code: str) -> None:
    head = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f64\n\n"
    head += "@psc.kernel\ndef f(x: f64['n'], a: f64['n m']):\n"
    text = head + "".join(f"    {line}\n" for line in body.split("; "))
    codes = {each.code for each in check_source(text, "comprehended.py").diagnostics}
    assert codes == {code}, codes
