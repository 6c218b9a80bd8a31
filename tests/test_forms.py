"""Faster ways to compute an operation can be switched off, and change no result."""

from __future__ import annotations

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl.forms import FORMS, VARIABLE


@psc.kernel
def step(a: f64["n n"], x: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 20, lambda _, x: np.tanh(a.T @ x), x)


@psc.kernel
def loss(a: f64["n n"], x: f64["n"]) -> f64:
    return np.sum(step(a, x))


def test_a_form_that_is_switched_off_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = psc.grad(loss).lower(n=64)
    given = lowered.text()
    monkeypatch.setenv(VARIABLE, "turned_factors, sums_afterwards")
    assert lowered.text() != given


def test_names_of_forms_that_do_not_exist_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nonsense")
    with pytest.raises(ValueError, match=r"nonsense; there are: .*turned_factors"):
        step.lower(n=3).text()


def test_forms_say_what_they_are() -> None:
    for name, each in FORMS.items():
        assert each.name == name
        assert each.summary.endswith(".")
