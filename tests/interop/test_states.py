"""States of every class in and out of jax's functions around kernels, unchanged."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import Static, f64
from tests.support.states import BY, CLASSES, STATES, Own, Plain, Typed, X, loss, same

jax: Any = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", STATES)
def test_jit_grad_and_vmap(name: str) -> None:
    step, state = STATES[name]
    function, wanted = step.to_jax(), step(state)
    same(function(state), wanted)
    same(jax.jit(function)(state), wanted)
    same(jax.jit(lambda s: function(function(s)))(state), step(wanted))
    slope = jax.tree.map(lambda leaf: 2 * leaf, state)
    same(jax.grad(loss.to_jax())(state), slope)
    same(jax.jit(jax.grad(lambda s: loss.to_jax()(s)))(state), slope)
    many = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), state)
    same(jax.vmap(function)(many), jax.tree.map(lambda leaf: np.stack([leaf, leaf]), wanted))
    slopes = jax.vmap(jax.grad(loss.to_jax()))(many)
    same(slopes, jax.tree.map(lambda leaf: 2 * leaf, many))
    last, _ = jax.lax.scan(lambda s, _: (function(s), None), state, None, 2)
    same(last, step(wanted))


@pytest.mark.parametrize("name", STATES)
def test_loaded_artefacts(name: str) -> None:
    step, state = STATES[name]
    function = psc.load(step.export(None, (state,)), types=CLASSES).to_jax()
    same(function(state), step(state))
    same(jax.jit(function)(state), step(state))


@pytest.mark.parametrize("name", STATES)
def test_jax_takes_states_apart_without_their_checks(name: str) -> None:
    _, state = STATES[name]
    loss.to_jax()(state)  # which makes the classes known to jax
    leaves, structure = jax.tree.flatten(state)
    marks = [object() for _ in leaves]
    again = jax.tree.unflatten(structure, marks)
    assert jax.tree.leaves(again) == marks
    assert jax.tree.structure(again) == structure
    assert hash(structure) == hash(jax.tree.structure(state))


def test_static_fields_are_no_leaves() -> None:
    function = loss.to_jax()
    function(Own(X, BY, 2))
    assert len(jax.tree.leaves(Own(X, BY, 2))) == 2
    assert jax.tree.structure(Own(X, BY, 2)) != jax.tree.structure(Own(X, BY, 3))
    step = STATES["dataclass"][0].to_jax()
    cubed = jax.jit(step)
    for power in (2, 3):
        same(cubed(Plain(X, power, by=BY)), Plain(2 * X**power, power, by=BY))


def test_results_of_kernels_become_arrays_of_jax() -> None:
    step, state = STATES["typed precord"]
    wanted = step(step(state))
    same(jax.jit(step.to_jax())(step(state)), wanted)
    result = step(state)
    there = jax.tree.map(jax.numpy.from_dlpack, result)
    assert np.asarray(there.x).ctypes.data == np.asarray(result.x).ctypes.data
    same(jax.jit(step.to_jax())(there), wanted)
    same(step.to_jax()(step(state)), wanted)
    same(step(there), wanted)


@psc.kernel
def powered(x: f64["n"], power: Static[int]) -> f64["n"]:
    return x**power


def test_a_static_value_that_jax_traces_is_refused() -> None:
    with pytest.raises(psc.ArgumentError, match="static_argn"):
        jax.jit(powered.to_jax())(X, 2)
    same(jax.jit(powered.to_jax(), static_argnames="power")(X, power=2), X**2)


class Loose(pyrsistent.PRecord):  # type: ignore[type-arg]
    """A field that need not be there."""

    x = pyrsistent.field(type=f64["n"])
    free = pyrsistent.field(type=f64)


@psc.kernel
def total(state: Loose) -> f64:
    return np.sum(state.x) + state.free


def test_what_a_record_lacks_is_named() -> None:
    for function in (total.to_jax(), jax.jit(total.to_jax())):
        with pytest.raises(psc.ArgumentError, match="of class Loose without `free`"):
            function(Loose(x=X))
        assert float(function(Loose(x=X, free=BY))) == 8


def test_types_are_checked_where_people_set_fields() -> None:
    found = jax.jit(STATES["typed precord"][0].to_jax())(Typed(x=X))
    same(found.set(by=found.by), found)
    with pytest.raises(pyrsistent.PTypeError):
        found.set(by="no array")
