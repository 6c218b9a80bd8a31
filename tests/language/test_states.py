"""States go into kernels and come out of them: the same class, and the same order of fields."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import f64
from tests.support.states import BY, CLASSES, STATES, Object, Positive, Typed, X, loss, mapped, same


def changed(name: str, state: Any) -> Any:
    """What the step of a state makes of it."""
    if name == "pmap":
        return state.set("x", 2 * X)
    if name == "pvector":
        return state.set(0, 2 * X)
    if name == "nested":
        return state.replace(typed=state.typed.set(x=2 * X))
    x = 2 * X ** getattr(state, "power", 1)
    return mapped(lambda leaf: x if leaf is X else leaf, state)


@pytest.mark.parametrize("name", STATES)
def test_through_kernels(name: str) -> None:
    step, state = STATES[name]
    for _ in range(3):  # found, and by way of C++
        same(step(state), changed(name, state))
    again = step(step(state))
    same(psc.tree.map(np.asarray, again), changed_twice(name, state))
    same(psc.grad(loss)(state), mapped(lambda leaf: 2 * leaf, state))


def changed_twice(name: str, state: Any) -> Any:
    once = changed(name, state)
    x = 2 * (2 * X ** getattr(state, "power", 1)) ** getattr(state, "power", 1)
    if name in ("pmap", "pvector"):
        return once.set("x" if name == "pmap" else 0, 4 * X)
    if name == "nested":
        return state.replace(typed=state.typed.set(x=4 * X))
    return mapped(lambda leaf: x if leaf.ndim else leaf, once)


@pytest.mark.parametrize("name", STATES)
def test_through_artefacts(name: str) -> None:
    step, state = STATES[name]
    found = psc.load(step.export(None, (state,)), types=CLASSES)
    for _ in range(2):
        same(found(state), changed(name, state))
    slope = psc.load(psc.grad(loss).export(None, (state,)), types=CLASSES)
    same(slope(state), mapped(lambda leaf: 2 * leaf, state))


@psc.kernel
def negated(s: Positive) -> Positive:
    return psc.tree.map(lambda x: -x, s)


def test_what_a_kernel_returns_is_a_record_like_any_other() -> None:
    step, state = STATES["typed precord"]
    found = step(state)
    assert found == found.set(x=found.x)
    assert isinstance(found, Typed)
    with pytest.raises(pyrsistent.PTypeError):
        found.set(x="no array")
    step, state = STATES["pclass"]
    with pytest.raises(AttributeError):
        step(state).x = X
    _, state = STATES["precord with invariants"]
    below = negated(state)  # what it is made of was computed elsewhere
    with pytest.raises(pyrsistent.InvariantException):
        below.set(x=below.x)


class Loose(pyrsistent.PRecord):  # type: ignore[type-arg]
    """Fields that need not be there, that are made, or that are converted."""

    x = pyrsistent.field(type=f64["n"], factory=lambda x: x * 2)
    made = pyrsistent.field(type=f64, initial=lambda: np.float64(3))
    free = pyrsistent.field(type=f64)


@psc.kernel
def loosened(x: f64["n"], s: f64) -> Loose:
    return Loose(x=x, free=s).set(x=x, free=2 * s)  # type: ignore[no-any-return]


@psc.kernel
def total(state: Loose) -> f64:
    return np.sum(state.x) + state.free


def test_initial_values_and_factories() -> None:
    found = loosened(X, BY)
    wanted = Loose(x=X, free=BY).set(x=X, free=2 * BY)
    assert set(found) == set(wanted)
    for name, value in found.items():
        np.testing.assert_array_equal(value, wanted[name])


def test_a_field_that_is_not_there_is_named() -> None:
    for _ in range(2):
        with pytest.raises(psc.ArgumentError, match="of class Loose without `free`"):
            total(Loose(x=X))
        with pytest.raises(psc.ArgumentError, match="of class Object without `by`"):
            loss(Object(x=X))
    with pytest.raises(psc.ArgumentError, match="of class Loose without `free`"):
        psc.tree.map(np.asarray, Loose(x=X))
    assert float(np.asarray(total(Loose(x=X, free=BY)))) == 14


def test_invariants_hold_for_what_is_made_outside() -> None:
    with pytest.raises(pyrsistent.InvariantException):
        Positive(x=-X, by=BY)
