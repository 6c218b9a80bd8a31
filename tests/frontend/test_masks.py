"""What a mask selects: elements that keep their places, or the refusal of their number."""

# Python numbers become arrays.
# mypy: disable-error-code="assignment"

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bool_, f64, i64
from pscdsl._src.checker.check import check_source

pytestmark = pytest.mark.quick_code

X = np.array([1.0, -2.0, 3.0, 0.0, 0.5])
Y = np.array([4.0, 1.0, 0.25, 9.0, 2.0])


def stored(x: f64["n"], y: f64["n"], s: f64) -> f64["n"]:
    z = np.zeros_like(x)
    m = x > 0
    z[m] = np.log(x[m]) * s + y[m] / 2
    z[x > 0] += x[x > 0]
    z[m] **= 2
    z[~m] = -x[~m]
    return z


def from_numbers(x: f64["n"], y: f64["n"], s: f64) -> f64["n"]:
    z = np.zeros(x.shape[0])
    z[x > s] = y[x > s] ** -0.5
    return z


def through_names(x: f64["n"], y: f64["n"], s: f64) -> tuple[f64["n"], f64]:
    m = (x > 0) & (y < 3 * s)
    some, others = x[m], y[m]
    changed = np.where(some > others, some, others)
    x = x.copy()
    x[0] = 100.0  # of which `some` is a copy
    x[m] = np.maximum(changed, s) - np.abs(-some)
    return x, changed.sum() + some.max()


def sums(x: f64["n"], y: f64["n"], s: f64) -> tuple[f64, f64, f64, f64, f64, f64, bool_, bool_]:
    w = x[y > s]
    some = (w.sum(), np.prod(w), w.mean(), np.min(w))
    return *some, w.max(), w @ y[y > s], (w > 0).any(), np.all(w != 0)


def counted(x: f64["n"], y: f64["n"], s: f64) -> tuple[f64, f64, i64]:
    w = x[x > s]
    return w.sum() / len(w), y.sum() * w.size, np.sum((w > 1).astype(np.int64))


def in_a_loop(x: f64["n"], y: f64["n"], s: f64) -> tuple[f64["n"], f64]:
    z = x.copy()
    total = 0.0
    while total < 50.0:
        inside = np.abs(z) < s + total
        z[inside] = z[inside] * 0.5 + y[inside]
        total += 10.0 + z[inside].sum() * 0.0
    return z, total


def in_branches(x: f64["n"], y: f64["n"], s: f64) -> f64["n"]:
    z = y.copy()
    m = x > 0
    w = x[m]
    if s > 1:
        z[m] = w + 1
    else:
        w = y[m]
        z[m] = w - 1
    return z


def given(v: Any, s: Any) -> Any:
    return np.sqrt(v) + s


def by_functions(x: f64["n"], y: f64["n"], s: f64) -> f64["n"]:
    z = x.copy()
    z[x > 0] = given(x[x > 0], s)
    parts = [y[x > 0], x[x > 0]]
    z[x > 0] *= parts[0] - parts[1]
    return z


def of_matrices(x: f64["n"], y: f64["n"], s: f64) -> tuple[f64["n n"], f64]:
    a = np.outer(x, y)
    b = a.copy()
    b[a > s] = 1 / a[a > s]
    row = b[0]
    row[x > 0] = row[x > 0] * 2
    return b, a[a < 0].sum()


KERNELS = (
    stored,
    from_numbers,
    through_names,
    sums,
    counted,
    in_a_loop,
    in_branches,
    by_functions,
    of_matrices,
)


def leaves(value: Any) -> list[Any]:
    alone = type(value) is not tuple
    return [np.asarray(each) for each in ([value] if alone else value)]


@pytest.mark.parametrize("function", KERNELS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("s", [0.75, 2.0])
def test_as_under_numpy(function: Callable[..., Any], s: float) -> None:
    kernel: Any = psc.kernel(function)
    for one, other in zip(leaves(function(X, Y, s)), leaves(kernel(X, Y, s)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=1e-14)


@psc.kernel
def roots(x: f64["n"]) -> f64:
    return (
        np.sqrt(x[x > 0]).sum()
        + np.log(x[x > 0] - 0.25).sum()
        + np.arccosh(x[x > 1]).mean()
        + np.arcsin(x[np.abs(x) < 1]).sum()
        + (x[x > 0] ** -1.5).max()
    )


def test_derivatives_do_not_see_what_is_not_selected() -> None:
    x = np.array([-2.0, 3.0, 0.0, 0.5, -1.0, 1.0])
    found = np.asarray(psc.grad(roots)(x))
    step = 1e-6
    for place in (1, 3):
        change = np.zeros_like(x)
        change[place] = step
        slope = (float(roots(x + change)) - float(roots(x - change))) / (2 * step)
        assert abs(found[place] - slope) < 1e-6
    assert np.isfinite(found).all()


@psc.kernel
def of_nothing(x: f64["n"]) -> tuple[f64, f64, f64, f64, i64]:
    w = x[x > np.inf]
    return w.mean(), w.max(), w.min(), w.sum(), len(w) + 0


def test_nothing_is_selected() -> None:
    found = [float(each) for each in of_nothing(X)]
    np.testing.assert_equal(found, [np.nan, np.nan, np.nan, 0.0, 0.0])


def refused(body: str, code: str = "PSC317") -> None:
    head = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32, f64, i32, bool_\n\n"
    head += "@psc.kernel\ndef f(x: f64['n'], y: f64['n'], k: i32['n'], m: bool_['n'], s: f64):\n"
    text = head + "".join(f"    {line}\n" for line in body.split("; "))
    codes = {each.code for each in check_source(text, "masked.py").diagnostics}
    assert codes == {code}, codes


@pytest.mark.parametrize(
    "body",
    [
        "return x[m]",
        "return [x[m]]",
        "return x[m] + y",
        "return (x[m] + y[~m]).sum()",
        "return x[m].sum() + (x[m] + k).sum()",
        "return np.sort(x[m])",
        "return np.cumsum(x[m])",
        "return x[m].reshape(2, -1)",
        "return x[m].shape",
        "return x[m][0]",
        "return x[m].sum(axis=0)",
        "return np.median(x[m])",
        "return k[m].max()",
        "return np.dot(x[m], y)",
        "return [v + 1 for v in x[m]]",
        "return np.concatenate([x[m], y])",
        "z = x.copy(); z[m] = y[~m]; return z",
        "z = x.copy(); z[:] = x[m]; return z",
        "z = x.copy(); z[m] += y[x > 0]; return z",
        "w = x[m]; w += 1; return w.sum()",
        "w = x[m]; w[0] = 1; return w.sum()",
        "z = x.copy(); a = z > 0; w = x[z > 0]; z[0] = -1; z[z > 0] = w; return z",
        "return np.exp(x[m], out=x.copy()[m])",
        "return psc.map(np.exp, x[m])",
        "return sum(x[m])",
        "return max(x[m])",
        "return x[m] if s > 0 else y[m]",
        "w = x[m]; w = y[m] if s > 0 else w; return w.sum()",
        "return f'{x[m]}'",
        "return np.array([x[m], x[m]])",
        "return not x[m]",
        "a, b = x[m]; return a",
        "return x[m].T.sum()",
        "return [x[m]] @ y",
        "return [x[m]] + y",
        "return y + (x[m],)",
        "return [x[m]] == [y]",
        "a = [x[m]] * 2; return a[0].sum()",
        "a = [x[m]] + [y]; return a[0].sum()",
    ],
)
def test_what_needs_the_number_of_elements_is_refused(body: str) -> None:
    refused(body)


def test_names_of_loops_hold_no_selected_elements() -> None:
    loop = "for i in range(len(x)):; \tt += w.sum(); \tw = w * 2"
    refused(f"w = x[m]; t = 0.0; {loop}; return t")
