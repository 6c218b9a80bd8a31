"""Elements that take many operations are computed once, however often they are repeated."""

from __future__ import annotations

import re
from typing import Any

import numpy as onp
import pytest

import pscdsl as psc
import pscdsl.numpy as np
from pscdsl import Float, f32, f64
from pscdsl.forms import VARIABLE
from pscdsl.primitives import repeating
from pscdsl.primitives.repeating import COMPUTED_ONCE

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
    monkeypatch.setattr(repeating, "EFFORT", 0)

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
