"""Results of kernels beside a jax: they mean what they meant, jax takes them, and its own are its.

See `array_outcomes` for what is compared: every attribute, operator and function of NumPy.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.xla.runtime.devices import is_result
from tests.interop.array_kernels import kernel

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy

ROOT = Path(__file__).parents[2]


@lru_cache
def outcomes(whose: str, when: str, attributes: str = "") -> tuple[list[str], dict[str, Any]]:
    """What comes of each expression in a process of its own."""
    command = [sys.executable, "-m", "tests.interop.array_outcomes", whose, when]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=attributes)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found[0], found[1]


@pytest.mark.parametrize("when", ["first", "after"])
def test_results_mean_what_they_meant_before_jax_was_imported(when: str) -> None:
    attributes, without = outcomes("ours", "never")
    _, beside = outcomes("ours", when, json.dumps(attributes))
    assert without.keys() == beside.keys()
    assert len(without) > 8000
    different = {key: (without[key], beside[key]) for key in without if without[key] != beside[key]}
    assert not different


@pytest.mark.parametrize("when", ["first", "after"])
def test_arrays_of_jax_are_what_they_are_without_us(when: str) -> None:
    """Without: pscdsl is imported, but nothing was computed with it."""
    _, alone = outcomes("theirs", "never")
    _, beside = outcomes("theirs", when)
    assert alone.keys() == beside.keys()
    assert len(alone) > 500
    assert not {key: (alone[key], beside[key]) for key in alone if alone[key] != beside[key]}


USES: list[Callable[[Any], Any]] = [
    jnp.asarray,
    jnp.array,
    jnp.sum,
    jnp.sort,
    lambda x: jnp.add(x, 1),
    lambda x: jnp.stack([x, x]),
    lambda x: jnp.asarray([x, x]),
    lambda x: jnp.where(x > 1, x, 0),
    lambda x: jnp.einsum("ij,kj->ik", x, x),
    lambda x: jnp.linalg.norm(x),
    lambda x: jnp.ones(3) + x,
    lambda x: x + jnp.ones(3),
    lambda x: x @ jnp.ones(3),
    lambda x: jnp.ones(2) @ x,
    lambda x: x == jnp.ones(3),
    lambda x: x[jnp.array([0, 1])],
    lambda x: x[jnp.array([0, 1]), 0],
    lambda x: x.at[0].set(2.0),
    lambda x: x.dot(jnp.ones(3)),
    lambda x: x.clip(jnp.float32(1), 2),
    lambda x: jax.lax.add(x, x),
    lambda x: jax.lax.cond(x[0, 0] > 1, jnp.sin, jnp.cos, x),
    lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y + x[i % 2], x[0]),
    jax.jit(lambda x: x),
    jax.jit(lambda x: x * 2 + 1),
    jax.jit(lambda x: x.sum(0)),
    lambda x: jax.jit(lambda: x * 2)(),
    lambda x: jax.jit(lambda i: x[i])(1),
    lambda x: jax.jit(lambda y: x + y)(2.0),
    lambda x: jax.jit(lambda y: y + x)(x),
    lambda x: jax.jit(lambda y, z: y @ z)(x, jnp.ones(3)),
    jax.grad(lambda x: (x * x).sum()),
    jax.value_and_grad(lambda x: jnp.tanh(x).sum()),
    lambda x: jax.grad(lambda y: (y * x).sum())(x),
    lambda x: jax.vjp(jnp.sin, x)[1](x),
    lambda x: jax.jvp(jnp.sin, (x,), (x,)),
    jax.hessian(lambda x: (x**3).sum()),
    jax.vmap(lambda row: row / row.sum()),
    lambda x: jax.vmap(lambda row: row + x)(x),
    jax.checkpoint(lambda x: jnp.sin(x)),
    lambda x: jax.pmap(jnp.sin)(x[None]),
    lambda x: jax.device_put(x, jax.devices()[0]),
    lambda x: jax.device_put(x, jax.device_put(1.0, jax.devices()[0]).sharding),
    lambda x: jax.jit(jnp.add)(x, jax.device_put(jnp.ones(3), jax.devices()[0])),
    lambda x: jax.tree.map(lambda leaf: leaf * jnp.ones(3), {"a": (x, [x])}),
    lambda x: jax.random.normal(jax.random.key(0), x.shape) + jnp.asarray(x),
    lambda x: jnp.from_dlpack(x),
    lambda x: jax.nn.softmax(x),
    lambda x: jax.scipy.special.logsumexp(x, axis=0),
    lambda x: jax.experimental.multihost_utils.process_allgather(x) * jnp.ones(3),
    kernel.to_jax(),
    jax.jit(kernel.to_jax()),
]


@pytest.mark.parametrize("at", range(len(USES)))
def test_jax_takes_results(at: int) -> None:
    """As it takes its own arrays; what it gives is jax's, on jax's device."""
    use, values = USES[at], np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = jax.tree.leaves(use(jnp.asarray(values)))
    for _ in range(3):
        found = jax.tree.leaves(use(kernel(values)))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert isinstance(one, jax.Array)
            assert not is_result(one)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.devices() == other.devices()
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@pytest.mark.parametrize("wide", [True, False])
def test_results_of_64_bits_keep_them_in_jax(dtype: str, wide: bool) -> None:
    values = (np.arange(3) + 2**40 + 1).astype(dtype)
    device = jax.devices()[0]
    with jax.enable_x64(wide):
        x = kernel(values)
        found = [jnp.asarray(x), jax.jit(lambda y: y)(x)]
        if wide:
            found.append(jax.device_put(x, device))
        else:
            with pytest.raises(ValueError, match="switched off"):
                jax.device_put(x, device)
            found.append(jax.device_put(jnp.asarray(x), device))
        for each in found:
            assert each.dtype == dtype
            assert not is_result(each)
            np.testing.assert_array_equal(each, values)
        assert type(x + 1) is np.ndarray
        assert (x + 1).dtype == dtype


def test_results_go_back_into_kernels_from_jax() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = jax.jit(lambda x: x * 2)(kernel(values))
    back = kernel(there)
    assert is_result(back)
    np.testing.assert_array_equal(back, values * 2)


def test_keys_of_jax_are_given_as_their_words() -> None:
    key = jax.random.key(3)
    with pytest.raises(psc.ArgumentError, match="key_data"):
        psc.random.normal(key, (3,))
    found = psc.random.normal(jax.random.key_data(key), (3,), np.float32)
    wanted = jax.random.normal(key, (3,), "float32")  # whether or not it has 64-bit types
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_jax_traces_is_refused_outside_of_kernels() -> None:
    with pytest.raises(psc.ArgumentError, match="to_jax"):
        jax.jit(lambda x: psc.update(x, 0, 1.0))(jnp.ones(3))
