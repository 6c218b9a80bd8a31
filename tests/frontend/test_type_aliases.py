"""Applied types with a name: read from source and loaded, they say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple, Optional, TypeVar

import numpy as np
import pytest
from jaxtyping import Float32
from pyrsistent import PMap, PVector, pmap, pvector

import pscdsl as psc
from pscdsl import Float, f32, i32
from pscdsl._src.checker.check import load_definition

T = TypeVar("T", bound=psc.Tree[Float])


class Layer(psc.Record, dims="i o"):
    """A record with sizes."""

    w: f32["o i"]


class Two(NamedTuple, Generic[T]):
    """A generic named tuple."""

    left: T
    right: T


class State(psc.Record, Generic[T]):
    """A generic record."""

    value: T
    step: i32


Vector = f32["n"]
Reals = Float["*b n"]
Square = Layer["n n"]
Foreign = Float32[np.ndarray, "n m"]
Nested = Float32[Foreign, "b"]
Pair = tuple[Vector, Layer["n m"]]
Many = tuple[Vector, ...]
Nothing = tuple[()]
Rows = PVector[Vector]
Named = PMap[str, Vector]
Inner = State[Square]
Both = Two[Vector]
Mode = psc.Static[Literal["a", "b"]]
Noted = Annotated[f32["*b n"], "a note"]
Maybe = Optional[Vector]  # noqa: UP045


@psc.kernel
def arrays(x: Vector, y: Reals, z: Noted) -> tuple[Vector, Reals]:
    """Arrays."""
    return x + 0 * z.sum(), 2 * y


@psc.kernel
def foreign(x: Foreign, y: Nested) -> Nested:
    """Of jaxtyping."""
    return y + x  # type: ignore[no-any-return]


@psc.kernel
def records(x: Square, y: Inner, z: Both) -> tuple[Square, Inner, Both]:
    """Records, generic ones too."""
    return x, Inner(x, y.step), Both(z.right, z.left)


@psc.kernel
def containers(p: Pair, many: Many, none: Nothing, rows: Rows, named: Named) -> Pair:
    """Tuples, vectors and maps."""
    return p[0] + rows[0] + named["a"], p[1]


@psc.kernel
def others(x: Vector, mode: Mode, y: Maybe = None) -> Vector:
    """Static values, and what may be missing."""
    return x if mode == "a" or y is None else y


KERNELS = [arrays, foreign, records, containers, others]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_loaded_aliases_say_what_source_says(kernel: psc.Kernel[..., object]) -> None:
    static = load_definition(Path(__file__), kernel.name)
    assert str(kernel.signature) == str(static.signature)
    assert kernel.signature == static.signature


def test_calls() -> None:
    x = np.ones(2, np.float32)
    layer = Layer(w=np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(arrays(x, x, x)[1], 2 * x)
    assert foreign(layer.w, layer.w[None]).shape == (1, 2, 2)
    found = records(layer, State(value=layer, step=1), Two(x, 2 * x))
    assert isinstance(found[1], State)
    np.testing.assert_array_equal(found[2].left, 2 * x)
    total, _ = containers((x, layer), (x,), (), pvector([x]), pmap({"a": x}))
    np.testing.assert_array_equal(total, 3 * x)
    np.testing.assert_array_equal(others(x, "b", 2 * x), 2 * x)


Wrong = f32["n &"]


@psc.kernel
def wrong(x: Wrong) -> f32:
    """Never checked."""
    return x.sum()


def test_a_wrong_shape_is_told() -> None:
    with pytest.raises(psc.CheckError, match="annotation `n &`"):
        wrong(np.ones(2))
