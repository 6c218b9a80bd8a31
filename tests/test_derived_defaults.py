"""Kernels that are derived from others have their defaults, records among them."""

# pyright: reportUnknownMemberType=false, reportCallIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import f32

X = np.arange(3, dtype=np.float32)


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


class Map(pyrsistent.PRecord):
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


@pytest.mark.parametrize("kernel", WANTED, ids=lambda kernel: kernel.name)
def test_derivatives_have_the_defaults(kernel: Any) -> None:
    slope = psc.grad(kernel)
    for _ in range(3):
        np.testing.assert_allclose(slope(X), WANTED[kernel])
        np.testing.assert_allclose(psc.value_and_grad(kernel)(X)[1], WANTED[kernel])
    np.testing.assert_allclose(psc.vmap(slope, in_axes=(0,))(np.stack([X, X]))[1], WANTED[kernel])
