"""`psc.tree` outside of kernels and compiled, on trees of all kinds, against NumPy by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from pyrsistent import PRecord, PVector, field, pmap, pvector

import pscdsl as psc
from pscdsl import bf16, f32, f64, i32

pytestmark = pytest.mark.jaxlib


class Layer(psc.Record):
    """A record with a static field and an integer."""

    w: f32["n"]
    steps: i32
    kind: psc.Static[str] = "plain"


class Pair(NamedTuple):
    """A named tuple, of a tree and None."""

    left: Any
    right: Any = None


@dataclass(frozen=True)
class Point:
    """A dataclass."""

    x: f32["n"]


class Stored(PRecord):  # type: ignore[type-arg]
    """A persistent record."""

    x = field(type=f32["n"])


W = np.arange(3, dtype=np.float32)
LAYER = Layer(w=W, steps=np.int32(2))
TREES = {
    "tuple": (W, (W, None)),
    "list": [W, 1.0],
    "named": Pair(W),
    "record": LAYER,
    "dataclass": Point(W),
    "precord": Stored(x=W),
    "vector": pvector([W, W]),
    "map": pmap({"b": W, "a": 2 * W}),
    "array": W,
    "none": None,
}


@pytest.mark.parametrize("kind", TREES)
def test_map_keeps_what_trees_are(kind: str) -> None:
    tree = TREES[kind]
    found = psc.tree.map(lambda x: x + 1, tree)
    assert type(found) is type(tree)
    for mine, other in zip(psc.tree.leaves(found), psc.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(mine, other + 1)


def test_leaves_are_in_order_and_static_fields_are_none() -> None:
    assert psc.tree.leaves(LAYER) == (LAYER.w, LAYER.steps)
    assert psc.tree.map(lambda x: x, LAYER).kind == "plain"
    first, second = psc.tree.leaves(TREES["map"])
    np.testing.assert_array_equal(first, 2 * second)


def test_several_trees_and_what_is_absent() -> None:
    gradient = LAYER.replace(w=np.ones(3, np.float32), steps=None)
    moved = psc.tree.map(lambda x, g: x if g is None else x - g, LAYER, gradient)
    np.testing.assert_array_equal(moved.w, W - 1)
    assert moved.steps == 2
    with pytest.raises(psc.ArgumentError, match="give the tree with the arrays first"):
        psc.tree.map(lambda g, x: x, gradient, LAYER)
    with pytest.raises(psc.ArgumentError, match=r"tree 3 has .* at `\[1\]`"):
        psc.tree.map(lambda x, y, z: x, (W, W), (W, W), (W, (W, W)))
    with pytest.raises(psc.ArgumentError, match="Static"):
        psc.tree.map(lambda x, y: x, LAYER, LAYER.replace(kind="other"))


@pytest.mark.parametrize("wrong", ["text", {1: W}, object(), np.array(["a"]), {1}])
def test_what_is_no_tree_is_refused(wrong: Any) -> None:
    with pytest.raises(psc.ArgumentError, match=r"psc\.tree\.leaves"):
        psc.tree.leaves((W, wrong))


class Foreign:
    """An array of another library."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


def test_arrays_of_other_libraries_are_leaves() -> None:
    array = Foreign(W)
    assert psc.tree.leaves((W, array))[1] is array
    assert psc.tree.map(lambda x, y: y.held, W, array) is W


def test_reduce_and_size() -> None:
    assert psc.tree.reduce(lambda total, x: total + np.size(x), TREES["tuple"], 0) == 6
    assert psc.tree.size(TREES["tuple"]) == psc.tree.size(TREES["vector"]) == 6
    assert psc.tree.size(None) == 0


def test_sums_are_in_f32_at_least() -> None:
    half = np.full(1000, 0.1, ml_dtypes.bfloat16)
    for tree, dtype in (((half,), "f4"), ((half, np.ones(1)), "f8"), ((W, W + 1j), "c8")):
        assert psc.tree.dot(tree, tree).dtype == np.dtype(dtype)
    np.testing.assert_allclose(psc.tree.dot(half, half), 1000 * float(half[0]) ** 2, rtol=1e-6)
    np.testing.assert_allclose(psc.tree.norm((W, W)), np.sqrt(10), rtol=1e-6)
    assert psc.tree.norm((3 + 4j,)) == 5
    assert psc.tree.norm(()) == psc.tree.dot((), ()) == 0
    with pytest.raises(psc.ArgumentError, match="not on i32"):
        psc.tree.norm(LAYER)
    with pytest.raises(psc.ArgumentError, match=r"tree 2 has f32\[2\]"):
        psc.tree.dot(W, W[:2])


def test_ravel_and_back() -> None:
    tree = (np.ones((2, 3), np.float32), Pair(W))
    vector, unravel = psc.tree.ravel(tree)
    assert vector.shape == (9,)
    back = unravel(2 * vector)
    assert back[0].shape == (2, 3)
    np.testing.assert_array_equal(back[1].left, 2 * W)
    with pytest.raises(psc.ArgumentError, match="vector of 9"):
        unravel(W)
    with pytest.raises(psc.ArgumentError, match="one dtype"):
        psc.tree.ravel((W, np.ones(1)))
    assert psc.tree.ravel(())[0].shape == (0,)


class Small(psc.Record):
    """A part in half precision."""

    x: bf16["n"]


@psc.kernel
def measured(
    a: tuple[f32["n"], PVector[f64["m"]], Small], b: tuple[f32["n"], PVector[f64["m"]], Small]
) -> tuple[f64, f64, tuple[f32["n"], PVector[f64["m"]]]]:
    """Every function at once."""
    vector, unravel = psc.tree.ravel(a[1])

    def length(x: f32["n"]) -> f32:
        return psc.tree.norm((x, 0 * x))

    gradient = psc.grad(length)(0 * a[0])
    total = psc.tree.reduce(lambda x, y: x + np.sum(y).astype(np.float64), a, 0.0)
    mapped = psc.tree.map(lambda x, y: x + y, a, b)
    moved = psc.tree.zeros_like((a[0], a[1]))
    moved = psc.tree.map(lambda z, x: z + x, moved, (gradient + mapped[0], unravel(2 * vector)))
    return psc.tree.dot(a, b), psc.tree.norm(a) + total, moved


def test_compiled_functions_agree_with_those_outside() -> None:
    def tree(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        parts = [rng.normal(size=4) for _ in range(2)]
        small = Small(x=rng.normal(size=3).astype(ml_dtypes.bfloat16))
        return rng.normal(size=3).astype(np.float32), pvector(parts), small

    a, b = tree(0), tree(1)
    dot, norm, (w, v) = measured(a, b)
    total = sum(np.sum(np.asarray(x, np.float64)) for x in psc.tree.leaves(a))
    np.testing.assert_allclose(dot, psc.tree.dot(a, b), rtol=1e-6)
    np.testing.assert_allclose(norm, psc.tree.norm(a) + total, rtol=1e-2)
    np.testing.assert_allclose(w, a[0] + b[0], rtol=1e-6)
    np.testing.assert_allclose(v[1], 2 * a[1][1], rtol=1e-6)
    doubled = psc.tree.map(lambda x: 2 * np.asarray(x), (w, v))
    np.testing.assert_allclose(doubled[0], 2 * (a[0] + b[0]), rtol=1e-6)
