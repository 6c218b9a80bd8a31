"""Calls with records that have static fields: their programs, their results, what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.dispatch import fast_path_works
from pscdsl._src.xla.runtime.devices import put, to_numpy
from pscdsl.typing.static_values import exact
from tests.calls.test_direct_calls import frames

T = TypeVar("T", bound=psc.Tree)


class Mode(Enum):
    """What is done."""

    ADD = 1
    TAKE = 2


@dataclass(frozen=True)
class Config:
    """Numbers by name."""

    shift: float
    times: int = 1


def twice(x: Any) -> Any:
    """A function as a static value, which kernels hand on."""
    return 2 * x


def thrice(x: Any) -> Any:
    """Another one."""
    return 3 * x


class Layer(psc.Record):
    """An array, and what is done with it."""

    w: f32["n"]
    b: f32["n"]
    sign: psc.Static[float] = 1.0
    mode: psc.Static[Mode] = Mode.ADD
    name: psc.Static[str] = ""
    shape: psc.Static[tuple[int, ...]] = ()
    function: psc.Static[Callable[[Any], Any]] = twice
    config: psc.Static[Config] = Config(0.0)


@psc.kernel
def applied(layer: Layer, x: f32["n"]) -> Layer:
    total = layer.w + layer.b if "-" not in layer.name else layer.w - layer.b
    total = np.copysign(total, layer.sign) + len(layer.name) + len(layer.shape)
    return layer.replace(w=total + x)


def expected(layer: Layer, x: Any) -> Any:
    """What NumPy makes of it."""
    w, b = np.asarray(layer.w), np.asarray(layer.b)
    total = w + b if "-" not in layer.name else w - b
    total = np.copysign(total, layer.sign) + len(layer.name) + len(layer.shape)
    return total + x


VARIANTS: list[dict[str, Any]] = [
    {},
    {"sign": -1.0},
    {"sign": 0.0},
    {"sign": -0.0},
    {"mode": Mode.TAKE},
    {"name": "ab"},
    {"name": "-"},
    {"shape": (1, 2)},
    {"function": thrice},
    {"config": Config(-0.0)},
    {"config": Config(0.0, 2)},
    {"config": Config(0.0, 2), "mode": Mode.TAKE, "name": "abc"},
]


@pytest.mark.parametrize("wrap", [put, np.copy])
def test_each_static_field_counts(wrap: Callable[[Any], Any]) -> None:
    x, w, b = (np.full(8, value, np.float32) for value in (3, 1, 2))
    for _ in range(3):
        for variant in VARIANTS:
            layer = Layer(w=wrap(w), b=wrap(b), **variant)
            found = applied(layer, wrap(x))
            assert type(found) is Layer
            assert to_numpy(found.w).tolist() == expected(layer, x).tolist(), variant
            for name in ("sign", "mode", "name", "shape", "function", "config"):
                assert exact(getattr(found, name)) == exact(getattr(layer, name))


@pytest.mark.parametrize("wrap", [put, np.copy])
def test_numbers_of_numpy_count_as_pythons(wrap: Callable[[Any], Any]) -> None:
    x = wrap(np.ones(2, np.float32))
    for shape in ((np.int64(1), 2), (1, np.int32(2)), (1, 2)):
        found = applied(Layer(x, x, shape=shape), x)  # type: ignore[arg-type]
        assert exact(found.shape) == exact((1, 2))


class Scaled(psc.Record):
    """A number that is not static beside one that is."""

    w: f32["n"]
    rate: f32
    power: psc.Static[int]


@psc.kernel
def scaled(x: Scaled) -> f32["n"]:
    return x.rate * x.w**x.power


@pytest.mark.parametrize("wrap", [put, np.copy])
def test_numbers_that_are_not_static_beside_some_that_are(wrap: Callable[[Any], Any]) -> None:
    w, powers = wrap(np.full(4, 2, np.float32)), (1, 2, np.int64(3))
    power: Any
    for _ in range(2):
        for rate in (1.0, 2.0, np.float32(3), wrap(np.float32(4))):
            for power in powers:
                found = to_numpy(scaled(Scaled(w, rate, power)))
                assert found.tolist() == [float(np.asarray(rate)) * 2 ** int(power)] * 4
    with pytest.raises(psc.ArgumentError, match=r"`x\.power` of `scaled` is Static\[1\.0\]"):
        scaled(Scaled(w, 1.0, 1.0))  # type: ignore[arg-type]


@psc.kernel
def doubled(tree: T) -> T:
    return psc.tree.map(lambda x: x * 2, tree)


def test_records_with_static_fields_in_trees() -> None:
    arrays = put(np.ones(2, np.float32)), put(np.zeros(2, np.float32))
    for _ in range(3):
        for variant in VARIANTS:
            for extra in (1.0, np.float32(2), arrays[0]):
                found, more = doubled((Layer(*arrays, **variant), extra))
                assert to_numpy(found.w).tolist() == [2, 2]
                assert np.max(to_numpy(more)) == 2 * np.max(np.asarray(extra))
                for name, value in variant.items():
                    assert exact(getattr(found, name)) == exact(value)


@psc.kernel(donate="layer")
def moved(layer: Layer, x: f32["n"]) -> Layer:
    return layer.replace(w=layer.w + x, b=layer.b * layer.sign)


def test_records_with_static_fields_are_donated() -> None:
    x = put(np.ones(4, np.float32))
    layer = Layer(put(np.zeros(4, np.float32)), put(np.ones(4, np.float32)), sign=-1.0)
    for step in range(4):
        before, layer = layer, moved(layer, x)
        assert to_numpy(layer.w).tolist() == [step + 1] * 4
        assert to_numpy(layer.b).tolist() == [-1 if step % 2 == 0 else 1] * 4
        with pytest.raises(psc.ArgumentError, match="was donated"):
            moved(before, x)


class Small(psc.Record):
    """Integers only."""

    w: f32["n"]
    width: psc.Static[int]


@psc.kernel
def widened(small: Small) -> Small:
    return small.replace(w=small.w + small.width)


@pytest.mark.skipif(not fast_path_works(), reason="this jaxlib is called from Python")
def test_static_integers_in_records_cost_no_python() -> None:
    small = Small(put(np.zeros(3, np.float32)), 2)
    for _ in range(2):
        for width in (2, 3):
            assert to_numpy(widened(small.replace(width=width)).w).tolist() == [width] * 3
    assert frames(lambda: widened(small))[1:] in ([], ["_given"], ["_given", "__init__"])
