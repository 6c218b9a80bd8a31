"""Faster ways to compute an operation can be switched off, and change no result."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.targets.forms import VARIABLE, forms


@psc.kernel
def step(a: f64["n n"], x: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 20, lambda _, x: np.tanh(a.T @ x), x)


@psc.kernel
def loss(a: f64["n n"], x: f64["n"]) -> f64:
    return np.sum(step(a, x))


def test_a_form_that_is_switched_off_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = psc.grad(loss).lower(n=64)
    given = lowered.text()
    monkeypatch.setenv(VARIABLE, "prepared_factors, sums_afterwards")
    assert lowered.text() != given


def test_names_of_forms_that_do_not_exist_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nonsense")
    with pytest.raises(ValueError, match=r"nonsense; there are: .*prepared_factors"):
        step.lower(n=3).text()


def test_forms_say_what_they_are() -> None:
    for name, each in forms().items():
        assert each.name == name
        assert each.claim.endswith(".")


def test_every_form_is_known_before_anything_is_imported() -> None:
    names = declared_in_sources()
    assert {"narrow_vectors", "prepared_factors"} <= names == forms().keys()
    asked = "from pscdsl._src.targets.forms import switched_off; print(*sorted(switched_off()))"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, VARIABLE: ",".join(names)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == sorted(names)


def declared_in_sources() -> set[str]:
    """The first argument of each call of `Form`: the tables must have them all."""
    targets = Path(psc.__file__).parent / "_src" / "targets"
    calls = (
        node
        for path in targets.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )
    return {
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Form"
    }
