"""Parts of arrays that are padded and chosen by a mask, or written in their places."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.targets.forms import VARIABLE
from tests.support.used_forms import normal


@psc.kernel
def neighbours(x: f64["n m"]) -> f64["n m"]:
    assert x.shape[0] >= 3

    def step(_: Any, x: f64["n m"]) -> f64["n m"]:
        return psc.update(x, np.s_[1:-1], 0.3 * (x[1:-1] + x[:-2] + x[2:]))

    return psc.fori_loop(0, 3, step, x)


@psc.kernel
def own_places(x: f64["n m"]) -> f64["n m"]:
    assert x.shape[1] >= 2
    return psc.fori_loop(0, 3, lambda _, x: psc.update(x, np.s_[:, 1:], 0.9 * x[:, 1:] + 0.5), x)


@psc.kernel
def added(x: f64["n m"], y: f64["n m"]) -> f64["n m"]:
    assert x.shape[1] >= 2

    def step(_: Any, x: f64["n m"]) -> f64["n m"]:
        return psc.update(x, np.s_[:, 1:], y[:, 1:] - y[:, :-1], combine="add")

    return psc.fori_loop(0, 3, step, x)


def reference(name: str, x: Any, y: Any) -> Any:
    x = x.copy()
    for _ in range(3):
        if name == "neighbours":
            x[1:-1] = 0.3 * (x[1:-1] + x[:-2] + x[2:])
        elif name == "own_places":
            x[:, 1:] = 0.9 * x[:, 1:] + 0.5
        else:
            x[:, 1:] += y[:, 1:] - y[:, :-1]
    return x


@pytest.mark.parametrize("kernel", [neighbours, own_places, added])
def test_only_parts_made_of_other_places_are_padded(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = normal(700, 700), normal(700, 700)
    given = (x, y) if kernel is added else (x,)
    padded = kernel.lower(n=700, m=700).text()
    monkeypatch.setenv(VARIABLE, "padded_update")
    in_place = kernel.lower(n=700, m=700).text()
    assert (padded != in_place) == (kernel is neighbours)
    monkeypatch.delenv(VARIABLE)
    np.testing.assert_allclose(kernel(*given), reference(kernel.__name__, x, y), 1e-12, 1e-12)
