"""Exported kernels: what comes back is what was exported, and calls are checked as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Static, f32, f64
from tests.support.exported import P, Pair, Params, X, loaded, rnn

pytestmark = pytest.mark.jaxlib


def test_a_loaded_kernel_does_what_the_kernel_does(tmp_path: Path) -> None:
    path = tmp_path / "rnn.psca"
    data = rnn.export(path, {"t": 4}, {"t": 6}, h=3)
    assert path.read_bytes() == data
    (tmp_path / "any").touch()
    modes = {each.stat().st_mode for each in tmp_path.iterdir()}
    assert len(modes) == 1, "whoever may read any file may load this one"
    found = psc.load(path)
    np.testing.assert_array_equal(found(P, X), rnn(P, X))
    np.testing.assert_array_equal(found(P, xs=X, scale=1.0), rnn(P, X, 1.0))
    long = np.concatenate([X, X[:2]])
    np.testing.assert_array_equal(found(P, long), rnn(P, long))
    assert found.sizes == ({"h": 3, "t": 4}, {"h": 3, "t": 6})
    assert str(found.signature) == str(rnn.signature)
    assert found.signature.parameters == rnn.signature.parameters
    assert found.preconditions == ("t % 2 == 0",)
    assert found.needs == ()
    assert found.name == "rnn"
    assert found.version == psc.__version__


def test_what_does_not_fit_is_refused_as_by_the_kernel() -> None:
    found = loaded(rnn, {"t": 4}, {"t": 6}, h=3)
    calls: list[Callable[[Any], Any]] = [
        lambda f: f(P, X.astype(np.float64)),
        lambda f: f(P, X[:3]),
        lambda f: f(P, X[:, :2]),
        lambda f: f(P, X[0]),
        lambda f: f(X, X),
        lambda f: f((P.w, P.b), X),
        lambda f: f(Pair(P.w, P.b), X),
        lambda f: f(Params(P.w, P.w), X),
        lambda f: f(P, [1.0]),
        lambda f: f(P, X, 1j),
        lambda f: f(P),
        lambda f: f(P, X, X=1),
    ]
    for call in calls:
        with pytest.raises(psc.ArgumentError) as wanted:
            call(rnn)
        with pytest.raises(psc.ArgumentError) as got:
            call(found)
        assert str(got.value) == str(wanted.value)
    with pytest.raises(psc.ArgumentError, match=r"not exported for h=3, t=8.*t=4; h=3, t=6"):
        found(P, np.concatenate([X, X]))


def test_sizes_that_break_a_precondition_are_not_exported() -> None:
    with pytest.raises(psc.ArgumentError, match=r"needs t % 2 == 0"):
        rnn.export(None, t=3, h=2)
    with pytest.raises(psc.ArgumentError, match="sizes h, t; given are: t"):
        rnn.export(None, t=4)
    with pytest.raises(ValueError, match="'any' or 'cpu', not 'tpu'"):
        rnn.export(None, t=4, h=2, target="tpu")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not sizes by name"):
        rnn.export(None, 4, h=2)  # type: ignore[arg-type]


@psc.kernel
def raised(x: Float["*batch n"], power: Static[int], name: Static[str] = "a") -> Float["*batch n"]:
    return x**power + (1 if name == "a" else 2)


def test_what_a_signature_leaves_open_is_exported_as_chosen() -> None:
    two, three = np.full((2, 3), 2.0), np.full(3, 3, np.float32)
    found = loaded(raised, (two, 2), (three, 3, "b"))
    np.testing.assert_array_equal(found(two, 2), two**2 + 1)
    np.testing.assert_array_equal(found(three, 3, "b"), three**3 + 2)
    np.testing.assert_array_equal(found(three, power=3, name="b"), three**3 + 2)
    for args in ((two, 3), (three, 3), (three, 3, "c"), (two.astype(np.float32), 2)):
        with pytest.raises(psc.ArgumentError, match=r"raised was not exported for .*it was for: "):
            found(*args)
    named = loaded(raised, power=4, name="a", batch=0, Float=f64, n=2)
    np.testing.assert_array_equal(named(np.array([1.0, 2.0]), 4), [2, 17])


class Kind:
    """Something static that is no data."""


@psc.kernel
def of_kind(x: f32, kind: Static[object]) -> f32:
    return x


def test_static_values_that_are_no_data_are_refused() -> None:
    with pytest.raises(psc.ArgumentError, match=r"cannot be exported with <.*of class Kind"):
        of_kind.export(None, (np.float32(1), Kind()))


def test_true_is_not_one_among_static_values() -> None:
    found = loaded(of_kind, (np.float32(1), True), (np.float32(1), (1.5, None, b"x", f32)))
    assert found(np.float32(2), True) == 2
    assert found(np.float32(2), (1.5, None, b"x", f32)) == 2
    with pytest.raises(psc.ArgumentError, match="not exported for kind=1"):
        found(np.float32(2), 1)
