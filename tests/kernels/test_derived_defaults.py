"""Kernels that are derived from others have their defaults, records among them."""

# pyright: reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownVariableType=false, reportUntypedBaseClass=false
# ruff: noqa: B008

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import f32

pytestmark = pytest.mark.quick_code(but=4)

X = np.arange(3, dtype=np.float32)
WEIGHTS = np.array([1, 2, 3], np.float32)


class Rates(psc.Record):
    """Numbers, and a static value."""

    a: f32 = 0.5
    power: psc.Static[int] = 2


class Pair(NamedTuple):
    """A record in a tuple."""

    first: f32
    rates: Rates


@dataclass(frozen=True)
class Data:
    """A data class."""

    first: f32


class Map(pyrsistent.PRecord):  # type: ignore[type-arg]
    """One of pyrsistent's."""

    first: f32 = pyrsistent.field()


@psc.kernel
def record(x: f32["n"], r: Rates = Rates(power=3)) -> f32:
    return np.sum(x**r.power) * r.a


@psc.kernel
def pair(x: f32["n"], p: Pair = Pair(2.0, Rates())) -> f32:
    return np.sum(x**p.rates.power) * p.first * p.rates.a


@psc.kernel
def data(x: f32["n"], *, d: Data = Data(1.5)) -> f32:
    return np.sum(x * x) * d.first


@psc.kernel
def mapped(x: f32["n"], m: Map = Map(first=1.5)) -> f32:
    return np.sum(x * x) * m.first


@psc.kernel
def several(x: f32["n"], rs: tuple[Rates, f32] = (Rates(), 3.0)) -> f32:
    return np.sum(x ** rs[0].power) * rs[1]


WANTED: dict[Any, Any] = {
    record: 1.5 * X**2,
    pair: 2 * X,
    data: 3 * X,
    mapped: 3 * X,
    several: 6 * X,
}


@psc.kernel
def scaled(x: f32["n"], by: f32 = 2.0, plus: f32["n"] | None = None, *, r: Rates = Rates()) -> f32:
    y = x if plus is None else x + plus
    return np.sum(y**r.power) * by * r.a


@pytest.mark.parametrize("kernel", WANTED, ids=lambda kernel: kernel.name)
def test_derivatives_have_the_defaults(kernel: Any) -> None:
    slope = psc.grad(kernel)
    for _ in range(3):
        np.testing.assert_allclose(slope(X), WANTED[kernel])
        np.testing.assert_allclose(psc.value_and_grad(kernel)(X)[1], WANTED[kernel])


@pytest.mark.parametrize("wrap", [np.copy, psc.from_dlpack])
@pytest.mark.parametrize("in_axes", [0, (0,), (0, 0), (0, None), (0, None, 0)])
@pytest.mark.parametrize("kernel", [*WANTED, scaled], ids=lambda kernel: kernel.name)
def test_a_default_is_the_same_for_all_rows(kernel: Any, in_axes: Any, wrap: Any) -> None:
    xs = np.stack([X, 2 * X, X - 1])
    if kernel is not scaled and in_axes == (0, None, 0):
        with pytest.raises(psc.CheckError, match="in_axes has 3 items"):
            psc.vmap(kernel, in_axes=in_axes)(xs)
        return
    if kernel is data and in_axes not in (0, (0,)):
        with pytest.raises(psc.CheckError, match="in_axes has 2 items"):
            psc.vmap(kernel, in_axes=in_axes)(xs)
        return
    batched = psc.vmap(kernel, in_axes=in_axes)
    rows = psc.vmap(psc.grad(kernel), in_axes=in_axes)
    twice = psc.vmap(batched)
    values = [float(kernel(x)) for x in xs]
    for _ in range(3):
        np.testing.assert_allclose(batched(wrap(xs)), values, rtol=1e-6)
        np.testing.assert_allclose(rows(wrap(xs)), [psc.grad(kernel)(x) for x in xs], rtol=1e-6)
        if in_axes == 0:
            np.testing.assert_allclose(twice(wrap(np.stack([xs, xs])))[1], values, rtol=1e-6)


def test_what_has_a_default_may_be_mapped() -> None:
    xs, by = np.stack([X, X + 1]), np.array([1, 5], np.float32)
    batched = psc.vmap(scaled)
    assert str(batched.signature) == (
        "vmap(scaled)(x: f32[batch n], by: f32[batch] | None, plus: f32[batch n] | None, "
        "r: Rates(a: f32[batch], power: Static[int]) | None)"
    )
    batched.check()
    rates = Rates(np.array([0.5, 2], np.float32))
    for _ in range(3):
        np.testing.assert_allclose(batched(xs, by), np.sum(xs * xs, 1) * by / 2)
        np.testing.assert_allclose(batched(xs, by=by), np.sum(xs * xs, 1) * by / 2)
        np.testing.assert_allclose(batched(xs, None, None), np.sum(xs * xs, 1))
        np.testing.assert_allclose(batched(xs, r=rates), np.sum(xs * xs, 1) * 2 * rates.a)
        np.testing.assert_allclose(batched(xs, by, xs), np.sum(4 * xs * xs, 1) * by / 2)
    with pytest.raises(psc.ArgumentError, match="leaves out `by`, but gives `plus`"):
        batched(xs, plus=xs)
    with pytest.raises(psc.ArgumentError, match=r"`by` .* is f32, but f32\[batch\]"):
        batched(xs, 2.0)


def test_other_axes() -> None:
    @psc.kernel
    def product(x: f32["n"], y: f32["n"], by: f32 = 2.0) -> f32:
        return np.sum(x * y) * by

    xs, ys = np.ones((2, 3), np.float32), np.full((3, 2), 4, np.float32)
    for in_axes in ((0, 1), (0, 1, 0), (0, 1, None)):
        np.testing.assert_allclose(psc.vmap(product, in_axes=in_axes)(xs, ys), [24, 24])

    @psc.kernel
    def inside(x: f32["b n"], y: f32["n b"]) -> f32["b"]:
        return psc.vmap(product, in_axes=(0, 1, None))(x, y)

    np.testing.assert_allclose(inside(xs, ys), [24, 24])


def test_in_axes_that_end_before_a_default() -> None:
    rows: Any = psc.vmap(scaled, in_axes=(0,))
    with pytest.raises(psc.ArgumentError, match=r"leave it out; .* `in_axes` have no item for it"):
        rows(np.stack([X, X]), X[:2])


def test_none_that_is_a_value_is_given() -> None:
    @psc.kernel
    def made(x: f32["n"], y: f32["n"] | None = None, by: f32 = 2.0) -> f32:
        return np.sum(x * x if y is None else x * y) * by

    call: Any = psc.grad(made)
    rows: Any = psc.vmap(made, in_axes=(0, None, 0))
    for _ in range(3):
        np.testing.assert_allclose(call(X, None, 3.0), 6 * X)
        np.testing.assert_allclose(call(X, by=3.0), 6 * X)
        np.testing.assert_allclose(call(X, X, 3.0), 3 * X)
        xs, by = np.stack([X, X]), np.array([1, 2], np.float32)
        np.testing.assert_allclose(rows(xs, None, by), np.sum(X * X) * by)
        np.testing.assert_allclose(rows(xs, by=by), np.sum(X * X) * by)


def test_defaults_that_are_arrays() -> None:
    @psc.kernel
    def made(x: f32["n"], w: f32["3"] = WEIGHTS) -> f32:
        return np.sum(x) * np.sum(w)

    for in_axes in (0, (0,), (0, None), (0, 0)):
        rows = psc.vmap(made, in_axes=in_axes)
        for _ in range(3):
            np.testing.assert_allclose(rows(np.stack([X, X])), [18, 18])
