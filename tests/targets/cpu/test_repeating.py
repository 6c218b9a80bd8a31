"""Elements that take many operations are computed once, however often they are repeated."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as onp
import pytest

import pscdsl as psc
import pscdsl.numpy as np
from pscdsl import Float, f32, f64
from pscdsl._src.targets.cpu import shaping
from pscdsl._src.targets.cpu.shaping import COMPUTED_ONCE
from pscdsl._src.targets.forms import VARIABLE

N, M = 40, 500


@psc.kernel
def waves(x: f32["n"], y: f32["m"]) -> f32["n m"]:
    return np.cos(x)[:, None] * np.sin(y)


@psc.kernel
def doubles(x: f64["n"], y: f64["m"]) -> f64["n m"]:
    return x[:, None] * np.sin(y)


@psc.kernel
def polynomial(x: f32["n"], y: f32["m"]) -> f32["n m"]:
    p = y
    for k in range(12):
        p = p * y + 0.1 * k
    return x[:, None] + p


@psc.kernel
def few(x: f32["n"], y: f32["m"]) -> f32["n m"]:
    return x[:, None] + (y * y + 1)


@psc.kernel
def along_the_last(x: f32["n"], y: f32["m"]) -> f32["n m"]:
    return np.sin(x)[:, None] + y


@psc.kernel
def in_steps(x: f32["n"], y: f32["m"]) -> f32["n m"]:
    start = np.zeros((x.shape[0], y.shape[0]), f32)
    return psc.fori_loop(0, 3, lambda _, s: s + np.sin(y), start)


def repeats_what_it_computes(kernel: Any, n: int = N, m: int = M) -> bool:
    """Whether one fused computation has both a function, or polynomial, and the whole shape."""
    parts = kernel.compile(n=n, m=m).text().split("\n}\n")
    return any(
        f"[{n},{m}]" in part and re.search(rf"\[{m}\]\S* (sine|cosine|multiply)\(", part)
        for part in parts
    )


@pytest.mark.parametrize("kernel", [waves, doubles, polynomial])
def test_what_is_repeated_is_computed_apart(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not repeats_what_it_computes(kernel)
    monkeypatch.setenv(VARIABLE, COMPUTED_ONCE.name)
    assert repeats_what_it_computes(psc.kernel(kernel.__wrapped__))


def test_what_costs_less_is_left_to_xla() -> None:
    assert repeats_what_it_computes(few)
    for kernel, n, m in (
        (waves, 4, 4),
        (waves, 2, 50000),
        (along_the_last, N, M),
        (in_steps, N, M),
    ):
        assert "stablehlo.clamp" not in kernel.lower(n=n, m=m).text()


SPECIAL = [0.0, -0.0, 1e-40, -1e-45, 1.0, 3e38, onp.inf, -onp.inf, onp.nan, 2.0**31, -5.5]


@pytest.mark.parametrize("dtype", [onp.float32, onp.float64])
def test_numbers_stay_as_they_are(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaping, "EFFORT", 0)

    @psc.kernel
    def repeated(x: Float["n"]) -> Float["100 n"]:
        return np.broadcast_to(x, (100, x.shape[0]))

    with onp.errstate(over="ignore"):
        x = onp.resize(onp.array(SPECIAL).astype(dtype), 300)
    found = onp.asarray(repeated(x))
    (program,) = repeated.dispatcher.programs
    assert "divide" in program.executable.text()
    bits = f"u{x.itemsize}"
    for row in (0, 50, 99):
        onp.testing.assert_array_equal(found[row].view(bits), x.view(bits))


@psc.kernel
def slopes(x: f32["n"]) -> f32["n-1"]:
    assert x.shape[0] >= 2
    return np.diff(np.exp(x))


@psc.kernel
def steepness(x: f32["n"]) -> f32:
    assert x.shape[0] >= 2
    return np.sum(np.diff(np.sin(x)) ** 2)


@psc.kernel
def rows(x: f64["n m"]) -> f64["n-1 m"]:
    assert x.shape[0] >= 2
    return np.diff(np.tanh(x), axis=0)


@psc.kernel
def halves(x: f32["2*n"]) -> f32["n"]:
    gate = np.sin(x)
    n = x.shape[0] // 2
    return gate[:n] * gate[n:]


def anew(kernel: Any) -> Any:
    """The same kernel, of which nothing has been compiled."""
    return psc.kernel(kernel.__wrapped__)


def test_what_slices_read_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def together(kernel: Any) -> bool:
        parts = kernel.compile(n=100_000).text().split("\n}\n")
        return any(" slice(" in part and " exponential(" in part for part in parts)

    assert not together(slopes)
    monkeypatch.setenv(VARIABLE, COMPUTED_ONCE.name)
    assert together(anew(slopes))


def test_slices_of_what_costs_less_are_left_to_xla() -> None:
    assert "stablehlo.clamp" in steepness.lower(n=20_000).text()
    assert "stablehlo.clamp" not in steepness.lower(n=10_000).text()
    assert "stablehlo.clamp" not in slopes.lower(n=20_000).text()
    assert "stablehlo.clamp" not in halves.lower(n=100_000).text()


def test_slices_have_the_values_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    x = onp.random.default_rng(2).normal(size=100_000).astype(onp.float32)
    x[[3, 70, 99_999]] = onp.nan, onp.inf, 1e-40
    y = onp.random.default_rng(3).normal(size=(300, 400))
    kernels: Any = (slopes, steepness, psc.grad(steepness)), (rows,)
    found = [
        [onp.asarray(k(each)) for k in some] for some, each in zip(kernels, (x, y), strict=True)
    ]
    monkeypatch.setenv(VARIABLE, COMPUTED_ONCE.name)
    fresh = anew(steepness)
    again = (
        (anew(slopes), fresh, psc.grad(fresh)),
        (anew(rows),),
    )
    for results, some, each in zip(found, again, (x, y), strict=True):
        for result, k in zip(results, some, strict=True):
            onp.testing.assert_allclose(result, onp.asarray(k(each)), rtol=1e-5, atol=1e-6)
