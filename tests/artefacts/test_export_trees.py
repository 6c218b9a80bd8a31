"""Records and other trees go through exported kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64, i32
from pscdsl._src.language.instances import stand_in_class
from pscdsl.typing.array_types import RecordName
from tests.support.exported import P, Pair, Params, X, loss, same

pytestmark = pytest.mark.jaxlib

T = TypeVar("T", bound=psc.Tree[Float])


@dataclass(frozen=True)
class Box:
    """A dataclass."""

    inside: f64["n"]
    kept_: Pair


class Layer(pyrsistent.PRecord):  # type: ignore[type-arg]
    """A record of pyrsistent."""

    v = pyrsistent.field(f32["n"])


def test_records_come_back_as_named_tuples_or_as_their_class() -> None:
    data = psc.grad(loss).export(None, t=4, h=3)
    wanted = psc.grad(loss)(P, X)
    plain = psc.load(data)(P, X)
    assert type(plain).__name__ == "Params"
    assert plain._fields == ("w", "b")
    np.testing.assert_array_equal(plain.w, wanted.w)
    again = psc.load(data)(psc.load(data).records["Params"](P.w, P.b), X)
    np.testing.assert_array_equal(again.b, wanted.b)
    known = psc.load(data, types=[Pair, Params])
    assert type(known(P, X)) is Params
    np.testing.assert_array_equal(known(known(P, X), X).w, psc.grad(loss)(wanted, X).w)


@psc.kernel
def trees(  # type: ignore[no-untyped-def]
    box: Box,
    layer: Layer,
    items: tuple[f64["n"], ...],
    named: pyrsistent.PMap[str, f32],
    many: pyrsistent.PVector[i32],
    maybe: f32["n"] | None,
):
    total = sum(items, np.zeros_like(box.inside))
    first = box.kept_.first if maybe is None else maybe
    return Box(total, Pair(first, box.kept_.second)), layer, named, many, None, maybe


@pytest.mark.parametrize("maybe", [None, np.array([5, 6], np.float32)])
def test_trees_of_every_kind(maybe: Any) -> None:
    box = Box(np.ones(2), Pair(np.array([1, 2], np.float32), np.int32(3)))
    args = (
        box,
        Layer(v=np.array([1, 2], np.float32)),
        (np.ones(2), np.ones(2)),
        pyrsistent.pmap({"a": np.float32(1), "b": np.float32(2)}),
        pyrsistent.pvector([np.int32(1)]),
        maybe,
    )
    found = same(trees, *args)
    got = found(*args)
    assert type(got[0]).__name__ == "Box"
    assert got[0].kept_.second == 3
    assert isinstance(got[2], pyrsistent.PMap)
    assert isinstance(got[3], pyrsistent.PVector)
    again = psc.load(trees.export(None, args), types=[Box, Pair, Layer])
    assert type(again(*args)[0]) is Box
    assert type(again(*args)[1]) is Layer
    with pytest.raises(psc.ArgumentError, match=r"was not exported for .*len\(items\)=1"):
        found(*args[:2], (np.ones(2),), *args[3:])


def test_fields_that_no_named_tuple_has() -> None:
    made = stand_in_class(RecordName("State", "somewhere"), ["_old", "new"])
    assert made.kind == "dataclass"
    assert made.constructor(1, 2)._old == 1


@psc.kernel
def halved(t: T) -> T:
    return psc.tree.map(lambda x: x / 2, t)


def test_kernels_over_any_tree() -> None:
    data = psc.load(halved.export(None, (P,), ((X, X[0]),)))
    np.testing.assert_array_equal(data((X, X[0]))[1], X[0] / 2)
    np.testing.assert_array_equal(data(P).w, P.w / 2)
    assert type(psc.load(halved.export(None, (P,)), types=[Params])(P)) is Params
    with pytest.raises(psc.ArgumentError, match="halved was not exported for"):
        data((X, X, X))
