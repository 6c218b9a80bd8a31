"""Kernels that are exported, and how what comes back is compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.kernels.kernel import Kernel
from pscdsl.typing.python_containers import is_pmap, is_pvector, is_tuple


class Params(psc.Record):
    """A cell."""

    w: f32["h h"]
    b: f32["h"]


class Pair(NamedTuple):
    """A NamedTuple."""

    first: f32["n"]
    second: i32


@psc.kernel
def rnn(p: Params, xs: f32["t h"], scale: f32 = 2.0) -> f32["t h"]:
    assert xs.shape[0] % 2 == 0

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(p.w @ h + p.b + x) * scale
        return h, h

    _, hs = psc.scan(step, np.zeros_like(xs[0]), xs)
    return hs


@psc.kernel
def loss(p: Params, xs: f32["t h"]) -> f32:
    assert xs.shape[0] % 2 == 0
    return np.sum(rnn(p, xs, 1.0) ** 2)


P = Params(np.eye(3, dtype=np.float32), np.ones(3, np.float32))
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def loaded(kernel: Kernel[..., Any], *variants: Any, **sizes: Any) -> psc.Loaded:
    return psc.load(kernel.export(None, *variants, **sizes))


def leaves(tree: Any) -> list[Any]:
    if tree is None:
        return []
    if is_pmap(tree):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if is_tuple(tree) or is_pvector(tree):
        return [leaf for each in tree for leaf in leaves(each)]
    names = getattr(tree, "__dataclass_fields__", None)
    if names is not None:
        return [leaf for name in names for leaf in leaves(getattr(tree, name))]
    return [np.asarray(tree)]


def same(kernel: Kernel[..., Any], *args: Any, exact: bool = False, **options: Any) -> psc.Loaded:
    """Export a kernel for these arguments, and compare what both give."""
    found = loaded(kernel, args, **options)
    for got, wanted in zip(leaves(found(*args)), leaves(kernel(*args)), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        if exact or not np.issubdtype(got.dtype, np.inexact):
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)
    return found
