"""Kernels over any tree and generic records, called: what is specialised, cached and refused."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pytest
from pyrsistent import pmap, pvector

import pscdsl as psc
from pscdsl import Float, f32, i32

T = TypeVar("T", bound=psc.Tree[Float])
U = TypeVar("U")
W = np.arange(3, dtype=np.float32)


class Layer(psc.Record, dims="i o"):
    """A record with sizes."""

    w: f32["o i"]
    b: f32["o"]


class Moments(psc.Record, Generic[T]):
    """A generic record."""

    first: T
    second: T
    step: i32


class Powered(psc.Record):
    """A record with a static field."""

    w: f32["n"]
    power: psc.Static[int]


class Named(NamedTuple):
    """A named tuple with a static field."""

    w: f32["n"]
    power: psc.Static[int]


@psc.kernel
def descend(p: T, gradient: T, rate: Float) -> T:
    """A step of gradient descent."""
    return psc.tree.map(lambda x, g: x - rate * g, p, gradient)


@psc.kernel
def begin(p: T) -> Moments[T]:
    """No moments yet."""
    zeros = psc.tree.zeros_like(p)
    return Moments(zeros, zeros, 0)


@psc.kernel
def adam(p: T, gradient: T, state: Moments[T], rate: Float) -> tuple[T, Moments[T]]:
    """A step of Adam, without the correction of its bias."""
    first = psc.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, gradient)
    second = psc.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, state.second, gradient)
    moved = psc.tree.map(lambda x, m, v: x - rate * m / (np.sqrt(v) + 1), p, first, second)
    return moved, Moments(first, second, state.step + 1)


@psc.kernel
def doubled(p: U) -> U:
    """Any tree, twice."""
    return psc.tree.map(lambda x: 2 * x, p)


TREES: list[Any] = [
    W,
    (W, (np.ones((2, 2), np.float32), None)),
    Layer(w=np.ones((2, 3), np.float32), b=np.ones(2, np.float32)),
    pmap({"a": W, "b": np.float32(2)}),
    pvector([W, W]),
    W.astype(np.float64),
    (),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
def test_trees_of_all_kinds(tree: Any) -> None:
    found: Any = None
    for _ in range(2):
        found = descend(tree, tree, 0.25)
        assert type(found) is type(tree) or isinstance(found, psc.Array)
        for mine, other in zip(psc.tree.leaves(found), psc.tree.leaves(tree), strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_allclose(mine, 0.75 * other)
    again = descend(found, found, 0.25)
    for mine, other in zip(psc.tree.leaves(again), psc.tree.leaves(tree), strict=True):
        np.testing.assert_allclose(mine, 0.5625 * other)


def test_generic_records_go_in_and_out() -> None:
    p = TREES[2]
    state = begin(p)
    assert isinstance(state, Moments)
    for step in range(1, 3):
        p, state = adam(p, p, state, 0.1)
        assert int(state.step) == step
    assert isinstance(state.second, Layer)
    first = 0.1 * 1
    moved = 1 - 0.1 * first / (np.sqrt(0.01) + 1)
    second = 0.9 * first + 0.1 * moved
    v = 0.99 * 0.01 + 0.01 * moved**2
    np.testing.assert_allclose(p.b, moved - 0.1 * second / (np.sqrt(v) + 1), rtol=1e-6)


def test_a_program_is_made_for_each_kind_of_tree_once() -> None:
    doubled((W, W))
    programs = doubled.definition.elaborations.known
    known = len(programs)
    doubled((np.ones(7, np.float32), np.ones(5, np.float32)))
    assert len(programs) == known
    doubled((W, W, W))
    assert len(programs) == known + 1


@pytest.mark.parametrize("make", [Powered, Named])
def test_static_fields_of_trees_are_never_stale(make: Any) -> None:
    device = doubled(W)
    for power in (1, 2, 1, True, 1.0):
        for w in (W, device):
            found = doubled((make(w, power), w))
            assert type(found[0].power) is type(power)
            assert found[0].power == power
    with pytest.raises(psc.ArgumentError, match="class list"):
        doubled(make(W, [1]))


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(psc.ArgumentError, match=r"`gradient\[1\]` .* both are of type T"):
        descend((W, W), (W, W[:2]), 0.1)
    with pytest.raises(psc.ArgumentError, match=r"`p\[1\]` .* is i32, but T of Float"):
        descend((W, np.int32(1)), (W, np.int32(1)), 0.1)
    with pytest.raises(psc.ArgumentError, match="a tuple of 1, not a list of 1"):
        descend([W], (W,), 0.1)
    with pytest.raises(psc.ArgumentError, match="in another order"):
        descend({"w": W, "b": W}, {"b": W, "w": W}, 0.1)
    with pytest.raises(psc.ArgumentError, match="class set"):
        descend({1}, {1}, 0.1)


def test_lists_and_dicts_are_trees() -> None:
    (found,) = descend([W], [W], 0.5)
    np.testing.assert_array_equal(found, 0.5 * W)
    for keys in ("wb", "bw", "wb"):
        moved = descend(dict.fromkeys(keys, W), dict.fromkeys(keys, W), 0.5)
        np.testing.assert_array_equal(moved["b"], 0.5 * W)


def test_derivatives_and_batches() -> None:
    def length(p: psc.Tree[Float]) -> Float:
        return psc.tree.dot(p, p)

    p = (W, TREES[2])
    slope = psc.grad(psc.kernel(length))(p)
    np.testing.assert_allclose(slope[1].w, 2 * p[1].w)
    rows = psc.vmap(descend, in_axes=(0, 0, None))((p[0], p[0]), (p[0], p[0]), np.float32(1))
    np.testing.assert_array_equal(rows[1], 0 * W)


def test_programs_are_shown_with_a_tree_that_was_tried() -> None:
    assert str(descend.signature) == "descend(p: T, gradient: T, rate: Float) -> T"
    assert "f32[T_0]" in str(descend.ir(Float="f32"))
    assert "tensor<3xf32>" in descend.lower(Float="f32", T_0=3).text()
    assert "tensor<2x3xf32>" in descend.lower_for(TREES[2], TREES[2], 0.1).text()
    compiled = descend.lower_for(TREES[2], TREES[2], 0.1).compile()
    np.testing.assert_allclose(compiled(TREES[2], TREES[2], 0.5).b, 0.5)


def test_donated_trees() -> None:
    step = psc.kernel(descend, donate="p")
    given = doubled((W, W))
    found = step(given, doubled((W, W)), 0.5)
    np.testing.assert_allclose(found[0], W)
    with pytest.raises(psc.ArgumentError, match="memory"):
        step(given, found, 0.5)
