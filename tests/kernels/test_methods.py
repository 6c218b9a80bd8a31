"""Kernels that are methods, called from Python: of their own class, and of those that inherit."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false

from __future__ import annotations

import dataclasses
import gc
import pickle
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime.devices import to_numpy

pytestmark = pytest.mark.quick_code
X = np.array([1, 2.5, 0.5], np.float32)


class Layer(psc.Record):
    """An affine map."""

    w: f32["i o"]
    b: f32["o"]

    @psc.kernel
    def __call__(self, x: f32["i"]) -> f32["o"]:
        """Twice the image."""
        return self.apply(x) * 2

    @psc.kernel
    def apply(self, x: f32["i"]) -> f32["o"]:
        """The image of a vector."""
        return x @ self.w + self.b

    @psc.kernel
    def squares(self) -> f32:
        """The sum of all squares."""
        return np.sum(self.w**2) + np.sum(self.b**2)


@dataclass(frozen=True)
class Descent:
    """A point and how far it moves."""

    at: f32["n"]
    rate: float = 0.5

    @psc.kernel
    def step(self, slope: f32["n"], times: int = 1) -> Self:
        """The point after some steps."""
        made = self
        for _ in range(times):
            made = dataclasses.replace(made, at=made.at - self.moved(slope))
        return made

    def moved(self, slope: Any) -> Any:
        """How far."""
        return self.rate * slope


@dataclass(frozen=True)
class Heavy(Descent):
    """The same with a mass."""

    mass: float = 2.0

    def moved(self, slope: Any) -> Any:
        """Less far."""
        return self.rate * slope / self.mass


@dataclass(frozen=True, slots=True)
class Slotted:
    """A dataclass that Python makes twice."""

    w: f32["n"]

    @psc.kernel
    def doubled(self) -> f32["n"]:
        """Twice the array."""
        return self.w * 2


class Line(NamedTuple):
    """A named tuple."""

    slope: f32["n"]
    offset: f32

    @psc.kernel
    def at(self, x: f32["n"]) -> f32:
        """The value at a place."""
        return np.sum(self.slope * x) + self.offset


class Plain:
    """No record."""

    @psc.kernel
    def scaled(self, x: f32["n"]) -> f32["n"]:
        """Of an instance that has no type."""
        return x * 2


def test_methods_are_called_with_their_instance() -> None:
    layer = Layer(np.ones((3, 2), np.float32), np.zeros(2, np.float32))
    assert to_numpy(layer.apply(X)).tolist() == [4, 4]
    assert to_numpy(layer(X)).tolist() == [8, 8]
    assert to_numpy(Layer.apply(layer, X)).tolist() == [4, 4]
    assert to_numpy(layer.squares()) == 6
    assert to_numpy(psc.grad(Layer.squares)(layer).w).tolist() == [[2, 2]] * 3
    rows = psc.vmap(Layer.apply, in_axes=(None, 0))(layer, np.stack([X, -X]))
    assert to_numpy(rows).tolist() == [[4, 4], [-4, -4]]
    assert to_numpy(Line(X, np.float32(1)).at(X)) == 8.5
    assert to_numpy(Slotted(X).doubled()).tolist() == (X * 2).tolist()
    assert to_numpy(pickle.loads(pickle.dumps(layer.apply))(X)).tolist() == [4, 4]


def test_a_class_has_the_kernels_that_it_inherits() -> None:
    found = Descent(X).step(X)
    assert type(found) is Descent
    assert to_numpy(found.at).tolist() == (X / 2).tolist()
    heavy = Heavy(X)
    found = heavy.step(X, 2)
    assert type(found) is Heavy
    assert to_numpy(found.at).tolist() == (X / 2).tolist()
    assert to_numpy(Heavy.step(heavy, X).at).tolist() == (X * 0.75).tolist()
    assert Heavy.step is Heavy.step
    assert Descent.step is not Heavy.step
    assert str(Heavy.step.signature).startswith("step(self: Heavy, ")
    assert to_numpy(pickle.loads(pickle.dumps(heavy.step))(X).at).tolist() == (X * 0.75).tolist()
    changed = Descent.step.with_options(fast_math=True)
    assert str(changed.signature).startswith("step(self: Descent, ")


def test_a_class_that_inherits_is_not_held() -> None:
    class Local(Descent):
        """Seen once."""

    seen = weakref.ref(Local)
    assert Local.step is not Descent.step
    del Local
    gc.collect()
    assert seen() is None


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(psc.CheckError, match="make a record of the class `Plain`"):
        Plain().scaled(X)
