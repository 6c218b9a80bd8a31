"""Stores into what functions give: results that nobody else holds, and those that others may."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64

pytestmark = pytest.mark.quick_code


def middle(x: f64["n"]) -> tuple[f64, f64, f64]:
    m = np.median(x)
    before = m
    m += 1
    n = np.nanmedian(x)
    n /= 2
    return m, before, n


def along(x: f64["n"]) -> f64["n"]:
    m = np.median(np.outer(x, x), axis=1)
    same = m
    m += 1
    return same


def others(x: f64["n"]) -> f64["n"]:
    a = np.round(x * 2.26, 1)
    a += 1
    b = np.einsum("i,i->i", x, x)
    b *= a
    c = np.nan_to_num(x)
    c[0] = 7
    d = np.linalg.matrix_power(np.outer(x, x), 2)
    d[0] = 0
    return b + c + d[-1]


def steps(x: f64["n"]) -> f64["n-1"]:
    assert x.shape[0] >= 2
    d = np.diff(x)
    d *= 2
    return d


def shaped(x: f64["n"]) -> tuple[f64["n 1"], f64["2 3"], f64["n"], f64["n"], f64["n n"]]:
    a = (x * 2).reshape(-1, 1)
    a += 1
    b = np.linspace(0, 1, 6).reshape(2, 3)
    b[0] = 5
    c = np.asarray(x + 1)
    c[0] = 0
    d = np.squeeze(np.expand_dims(-x, 1))
    d[-1] = 0
    e = np.outer(x, x).ravel().reshape(len(x), -1)
    e[0] *= 2
    return a, b, c, d, e


def one_element(x: f64["n"]) -> tuple[f64, f64]:
    a = np.sum(x, keepdims=True).reshape(())
    same = a
    a += 1
    b = x.sum(keepdims=True).squeeze()
    b -= 1
    return same, b


def looped(x: f64["n"]) -> f64["n"]:
    total = np.zeros(len(x))
    for i in range(40):
        y = (x * i).reshape(-1)
        y[0] += 1
        total += y
    return total


def matched(wanted: Any, found: Any) -> None:
    """The same values, dtypes and shapes."""
    if isinstance(wanted, tuple):
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found, strict=True):
            matched(one, other)
        return
    one, other = np.asarray(wanted), np.asarray(found)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [middle, along, others, steps, shaped, one_element, looped],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_under_numpy(function: Callable[..., Any], size: int) -> None:
    if function is steps and size < 2:
        return
    x = np.array([3.0, -1.0, 2.5, 8.0, 0.5])[:size]
    if function is shaped and size == 1:
        return  # NumPy squeezes all axes away
    kernel: Any = psc.kernel(function)
    matched(function(x.copy()), kernel(x))


def held(y: Any, holders: list[Any]) -> Any:
    holders.append(y)
    return y


def held_elsewhere(x: f64["n"]) -> f64["n"]:
    holders: list[Any] = []
    a = held(x * 2, holders).reshape(-1)
    a[0] = 7
    return holders[0]


def named_within(x: f64["n"]) -> f64["n"]:
    a = (y := x * 2).reshape(-1)
    a[0] = 7
    return y


def named_before(x: f64["n"]) -> f64["n"]:
    y = x * 2
    a = np.reshape(y, -1)
    a[0] = 7
    return y


def given_back(x: f64["n"]) -> f64["n"]:
    y = x * 2
    z = np.diff(y, n=0)
    z += 1
    return y


def first_power(x: f64["n"]) -> f64["n n"]:
    y = np.outer(x, x)
    z = np.linalg.matrix_power(y, 1)
    z += 1
    return y


@pytest.mark.parametrize(
    "function",
    [held_elsewhere, named_within, named_before, given_back, first_power],
    ids=lambda x: x.__name__,
)
def test_what_others_may_hold_is_refused(function: Callable[..., Any]) -> None:
    kernel: Any = psc.kernel(function)
    with pytest.raises(psc.CheckError, match=r"PSC205|PSC210"):
        kernel(np.ones(3))


def test_a_stale_view_is_reported_where_it_is_returned() -> None:
    def stale(x: f64["n"]) -> f64["n"]:
        y = x * 2
        flat = y.reshape(-1)
        y[0] = 0
        return flat

    with pytest.raises(psc.CheckError) as caught:
        psc.kernel(stale)(np.ones(3))
    (found,) = caught.value.diagnostics
    assert found.code == "PSC210"
    assert found.span.line == stale.__code__.co_firstlineno + 4


def test_help_says_that_a_kernel_may_write_to_its_argument() -> None:
    def added(x: f64["n"]) -> f64["n"]:
        x += 1
        return x

    with pytest.raises(psc.CheckError, match=r'declare it: `@psc.kernel\(writes="x"\)`'):
        psc.kernel(added)(np.ones(3))


def test_what_differs_has_the_name_that_it_is_bound_to() -> None:
    def chosen(x: f64["n"]) -> f64["n"]:
        assert x.shape[0] >= 2
        y = x if x[0] > 0 else x[1:]
        return y

    def given(x: f64["n"]) -> f64["n"]:
        assert x.shape[0] >= 2
        if x[0] > 0:
            return x
        return x[1:]

    with pytest.raises(psc.CheckError, match="`y` is "):
        psc.kernel(chosen)(np.ones(3))
    with pytest.raises(psc.CheckError, match="what `given` returns is "):
        psc.kernel(given)(np.ones(3))


CAPTURED = np.ones(3)


def test_help_says_to_write_to_a_copy_of_what_is_captured() -> None:
    def stored(x: f64["3"]) -> f64["3"]:
        CAPTURED[0] = 1
        return x

    with pytest.raises(psc.CheckError, match=r"write to a copy, `CAPTURED.copy\(\)`"):
        psc.kernel(stored)(np.ones(3))
