"""Exported kernels as functions of jax arrays."""

# jax is not installed where types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64
from tests.artefacts.test_admission import KEY, VECTOR, artefact, main

jax: Any = pytest.importorskip("jax")


class Line(psc.Record):
    """A record."""

    slope: f32["n"]
    offset: f32


@psc.kernel
def loss(line: Line, x: f32["n"], key: psc.Key) -> f32:
    assert x.shape[0] >= 2
    noise = psc.random.normal(key, x.shape)
    return np.sum(np.sort(line.slope * x + noise) ** 2) + psc.special.erf(line.offset)


LINE = Line(np.array([1, 2, 3], np.float32), np.float32(1))
X = np.array([3, 1, 2], np.float32)


def test_jax_compiles_around_it() -> None:
    key = np.array([1, 2], np.uint32)
    function = psc.load(loss.export(None, n=3), types=[Line]).to_jax()
    doubled = jax.jit(lambda line, x, key: 2 * function(line, x, key))
    np.testing.assert_allclose(doubled(LINE, X, key), 2 * np.asarray(loss(LINE, X, key)), rtol=1e-5)
    gradient = psc.load(psc.grad(loss).export(None, n=3), types=[Line]).to_jax()
    found = jax.jit(gradient)(LINE, X, key)
    assert type(found) is Line
    np.testing.assert_allclose(found.slope, psc.grad(loss)(LINE, X, key).slope, rtol=1e-5)
    with pytest.raises(psc.ArgumentError, match="was not exported for n=2"):
        function(Line(X[:2], X[0]), X[:2], key)
    with pytest.raises(psc.ArgumentError, match="needs"):
        function(Line(X[:1], X[0]), X[:1], key)


def test_a_module_that_is_none_of_a_kernel_is_not_given_to_jax() -> None:
    body = f"%r = call @main(%a) : ({VECTOR}) -> {VECTOR}\nreturn %r : {VECTOR}"
    function = psc.load(artefact(main(body)), trust=KEY).to_jax()
    with pytest.raises(psc.ArtefactError, match="`main` calls itself"):
        function(np.ones(4, np.float32))


def test_64_bits_are_asked_for() -> None:
    @psc.kernel
    def inverse(a: f64["n n"]) -> f64["n n"]:
        return np.linalg.inv(a)

    function = psc.load(inverse.export(None, n=5)).to_jax()
    a = np.eye(5) * 4
    if not jax.config.jax_enable_x64:
        with pytest.raises(psc.ArgumentError, match="jax_enable_x64"):
            function(a)
