"""States of every class that kernels take, with a step and a loss for each."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyrsistent

import pscdsl as psc
from pscdsl import Float, Static, f64


class Named(NamedTuple):
    """A NamedTuple with a default."""

    x: f64["n"]
    by: f64 = np.float64(2)


class Own(psc.Record):
    """A record of ours with a static field."""

    x: f64["n"]
    by: f64
    power: Static[int] = 2


@dataclass(frozen=True)
class Plain:
    """A dataclass with a default, a keyword and a static field between others."""

    x: f64["n"]
    power: Static[int] = 3
    by: f64 = field(default=np.float64(2), kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """A dataclass without a `__dict__`, made by keywords alone, in another order."""

    by: f64
    x: f64["n"]


@dataclass(frozen=True)
class Checked:
    """A dataclass that looks at its values when it is made by hand."""

    x: f64["n"]
    by: f64

    def __post_init__(self) -> None:
        assert self.x.shape[0] > 1


class Typed(pyrsistent.PRecord):  # type: ignore[type-arg]
    """A PRecord whose fields take arrays and nothing else."""

    x = pyrsistent.field(type=f64["n"], mandatory=True)
    by = pyrsistent.field(type=f64, initial=np.float64(2))


class Positive(pyrsistent.PRecord):  # type: ignore[type-arg]
    """A PRecord with invariants, of a field and of the whole."""

    x = pyrsistent.field(type=f64["n"], invariant=lambda x: (bool((x > 0).all()), "not positive"))
    by = pyrsistent.field(type=f64)
    __invariant__ = lambda self: (bool(self.by < 10), "too large")  # noqa: E731


class Object(pyrsistent.PClass):
    """The same without being a map."""

    x = pyrsistent.field(type=f64["n"], mandatory=True)
    by = pyrsistent.field(type=f64, invariant=lambda by: (bool(by < 10), "too large"))


class Nested(psc.Record):
    """States in states."""

    typed: Typed
    many: pyrsistent.PVector[Named]
    named: pyrsistent.PMap[str, Plain]
    pair: tuple[Positive, Slots]


@psc.kernel
def named_step(s: Named) -> Named:
    return s._replace(x=s.x * s.by)


@psc.kernel
def own_step(s: Own) -> Own:
    return s.replace(x=s.x**s.power * s.by)


@psc.kernel
def plain_step(s: Plain) -> Plain:
    return replace(s, x=s.x**s.power * s.by)


@psc.kernel
def slots_step(s: Slots) -> Slots:
    return Slots(x=s.x * s.by, by=s.by)


@psc.kernel
def checked_step(s: Checked) -> Checked:
    assert s.x.shape[0] > 1
    return Checked(s.x * s.by, s.by)


@psc.kernel
def typed_step(s: Typed) -> Typed:
    return s.set(x=s.x * s.by)  # type: ignore[no-any-return]


@psc.kernel
def positive_step(s: Positive) -> Positive:
    return psc.tree.map(lambda x: 2 * x if x.ndim else x, s)


@psc.kernel
def object_step(s: Object) -> Object:
    return s.set(x=s.x * s.by)


@psc.kernel
def map_step(s: pyrsistent.PMap[str, f64["n"]]) -> pyrsistent.PMap[str, f64["n"]]:
    return s.set("x", s["x"] * 2)


@psc.kernel
def vector_step(s: pyrsistent.PVector[f64["n"]]) -> pyrsistent.PVector[f64["n"]]:
    return s.set(0, s[0] * 2)


@psc.kernel
def nested_step(s: Nested) -> Nested:
    return s.replace(typed=s.typed.set(x=s.typed.x * 2))


@psc.kernel
def loss(state: psc.Tree[Float]) -> f64:
    """Of any of them, nothing but squares, so that its gradient is twice the state."""
    return psc.tree.reduce(lambda total, x: total + np.sum(x**2), state, np.float64(0))


X, BY = np.array([1.0, 2.0, 3.0]), np.float64(2)
STATES: dict[str, tuple[Any, Any]] = {
    "named tuple": (named_step, Named(X, BY)),
    "record": (own_step, Own(X, BY)),
    "dataclass": (plain_step, Plain(X, by=BY)),
    "slots": (slots_step, Slots(x=X, by=BY)),
    "post-init": (checked_step, Checked(X, BY)),
    "typed precord": (typed_step, Typed(x=X)),
    "precord with invariants": (positive_step, Positive(x=X, by=BY)),
    "pclass": (object_step, Object(x=X, by=BY)),
    "pmap": (map_step, pyrsistent.pmap({"x": X, "a": X + 1})),
    "pvector": (vector_step, pyrsistent.v(X, X + 1)),
    "nested": (
        nested_step,
        Nested(
            Typed(x=X, by=BY),
            pyrsistent.v(Named(X, BY), Named(X + 1, BY)),
            pyrsistent.m(b=Plain(X, 2, by=BY), a=Plain(X + 1, 2, by=BY)),
            (Positive(x=X, by=BY), Slots(x=X, by=BY)),
        ),
    ),
}
CLASSES = (Named, Own, Plain, Slots, Checked, Typed, Positive, Object, Nested)
Change: TypeAlias = Callable[[Any], Any]


def mapped(change: Change, state: Any) -> Any:
    """A state of the same classes, its arrays changed; static fields are kept."""
    if isinstance(state, int):
        return state
    if isinstance(state, pyrsistent.PMap | pyrsistent.PClass):
        names = list(state) if isinstance(state, pyrsistent.PMap) else ["x", "by"]
        read = state.__getitem__ if isinstance(state, pyrsistent.PMap) else state.__getattribute__
        for name in names:
            state = state.set(name, mapped(change, read(name)))
        return state
    if isinstance(state, pyrsistent.PVector):
        return pyrsistent.pvector([mapped(change, each) for each in state])
    if isinstance(state, tuple):
        parts = [mapped(change, each) for each in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    if hasattr(state, "__dataclass_fields__"):
        names = list(state.__dataclass_fields__)
        return replace(state, **{name: mapped(change, getattr(state, name)) for name in names})
    return change(state)


def same(found: Any, wanted: Any) -> None:
    """Raise if two states differ in a class, in the order of fields, or in an array."""
    if isinstance(wanted, pyrsistent.PMap | pyrsistent.PVector | pyrsistent.PClass | tuple) or (
        hasattr(wanted, "__dataclass_fields__")
    ):
        assert type(found) is type(wanted)
        mine, other = parts(found), parts(wanted)
        assert [name for name, _ in mine] == [name for name, _ in other]
        for (_, one), (_, another) in zip(mine, other, strict=True):
            same(one, another)
        return
    if isinstance(wanted, int):
        assert found == wanted
        assert type(found) is int
        return
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-12)


def parts(state: Any) -> list[tuple[Any, Any]]:
    """What a state consists of, by name, in its order; maps, PRecords too, have none."""
    if isinstance(state, pyrsistent.PMap):
        return sorted(state.items())
    if isinstance(state, pyrsistent.PClass):
        return [(name, getattr(state, name)) for name in vars(type(state))["_pclass_fields"]]
    if hasattr(state, "__dataclass_fields__"):
        return [(name, getattr(state, name)) for name in state.__dataclass_fields__]
    return list(enumerate(state))
