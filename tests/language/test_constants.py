"""`psc.constant`: copies that nothing can write, and that kernels read."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.checker.check import check_paths
from pscdsl._src.language.elements import is_frozen

ARRAYS = [
    np.ones(3, np.float32),
    np.ones((2, 0), np.int8),
    np.array(2.0),
    np.arange(12).reshape(3, 4).T,
    np.ones(3, ml_dtypes.bfloat16),
    np.array([True, False]),
    np.arange(3, dtype=">i4"),
]


class Pair(NamedTuple):
    """Two."""

    a: Any
    b: Any


class Layer(psc.Record):
    """Weights."""

    w: f32["n"]


@dataclass(frozen=True)
class Frozen:
    """Weights, as a dataclass."""

    w: f32["n"]


class Mode(Enum):
    """Of what can be in a tree."""

    A = 1


@pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}-{each.shape}")
def test_a_copy_cannot_be_made_writeable(array: Any) -> None:
    found = psc.constant(array)
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()
    for each in (found, found[...], found.T, found.reshape(-1)):
        assert is_frozen(each)
        with pytest.raises(ValueError, match="WRITEABLE"):
            each.flags.writeable = True
    assert not np.shares_memory(found, array)
    assert array.flags.writeable


def test_trees_are_made_of_what_cannot_be_changed() -> None:
    w = np.ones(2, np.float32)
    tree = {"a": [w, 1], "b": Pair(w, {2}), "c": Layer(w), "d": Frozen(w), "e": Mode.A, "f": None}
    found: Any = psc.constant(tree)
    assert isinstance(found, pyrsistent.PMap)
    assert isinstance(found["a"], tuple)
    assert isinstance(found["b"], Pair)
    assert found["b"].b == frozenset({2})
    assert isinstance(found["c"], Layer)
    assert isinstance(found["d"], Frozen)
    assert found["e"] is Mode.A
    for each in (found["a"][0], found["b"].a, found["c"].w, found["d"].w):
        assert is_frozen(each)


@pytest.mark.parametrize("value", [np.array([[], 1], object), object(), iter(())])
def test_what_cannot_be_kept_from_changing_is_refused(value: Any) -> None:
    with pytest.raises(psc.ArgumentError, match=r"psc\.constant"):
        psc.constant(value)


TREE: Any = psc.constant({"w": [np.ones(3, np.float32), np.full(3, 2, np.float32)], "scale": 2.0})
LAYER = psc.constant(Layer(np.ones(3, np.float32)))


@psc.kernel
def read(x: f32["3"]) -> f32["3"]:
    return psc.constant(x) * TREE["w"][1] * TREE["scale"] + LAYER.w


def test_kernels_read_constants() -> None:
    assert not read.check()
    assert read(np.ones(3, np.float32)).tolist() == [5, 5, 5]


def test_kernels_read_constants_that_functions_have_around_them() -> None:
    def made(w: Any) -> Any:
        table = psc.constant(w)

        @psc.kernel
        def kernel(x: f32["3"]) -> f32["3"]:
            return x * table

        return kernel

    x = np.ones(3, np.float32)
    assert [made(x * n)(x).tolist()[0] for n in (2, 3)] == [2, 3]


TABLE = psc.constant(abs(np.array([0.5, -1.0, -2.0], np.float32)))
NEGATIVE = psc.constant(np.array([-1, -2, -128], np.int8))
LESS = np.float32(-2)


@psc.kernel
def magnitudes(x: f32["3"]) -> f32["3"]:
    return x * abs(TABLE) * abs(LESS) + abs(NEGATIVE).astype(np.float32)


def test_the_magnitude_of_a_constant_is_numpys() -> None:
    x = np.array([1, -2, 3], np.float32)
    wanted = x * abs(TABLE) * abs(LESS) + abs(NEGATIVE).astype(np.float32)
    np.testing.assert_array_equal(magnitudes(x), wanted)
    status = {each.name: each.status for each in check_paths([__file__]).kernels}
    assert status["magnitudes"] == "ok"  # where the module is not run either
