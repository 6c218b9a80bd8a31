"""Mistakes in programs over devices under jax: what the page about many devices says of them.

That a collective in a branch which some devices take never ends is not run here: it takes a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = """
import json
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",))


def run(f, *arrays, out=P()):
    lies = NamedSharding(mesh, P("data"))
    cut = [x if len(x) % 8 else jax.device_put(x, lies) for x in arrays]
    mapped = jax.shard_map(f, mesh=mesh, in_specs=(P("data"),) * len(cut), out_specs=out)
    return np.asarray(jax.jit(mapped)(*cut)).tolist()


def error(f, *arrays, **options):
    try:
        return run(f, *arrays, **options)
    except ValueError as problem:
        return str(problem)


def sum_of(x):
    return jax.lax.psum(x, "data")


def own_mean(x, counts):
    return jax.lax.pmean((x * counts).sum() / jnp.maximum(counts.sum(), 1), "data")


def drawn(x):
    return x * 0 + jax.random.normal(jax.random.key(0), x.shape)


x = jnp.arange(16.0) - 5
counts = (jnp.arange(16) < 9).astype(jnp.float32)
print(json.dumps({
    "right": run(lambda x: sum_of(x.sum()), x),
    "missing": error(lambda x: x.sum(), x),
    "twice": run(lambda x: sum_of(sum_of(x.sum())), x),
    "added means": run(lambda x: sum_of(x.mean()), x),
    "mean of means": run(own_mean, x, counts),
    "one key": run(drawn, x, out=P("data")),
    "uneven": error(lambda x: x, jnp.arange(17.0), out=P("data")),
}))
"""


def test_what_jax_says_of_mistakes_on_eight_devices() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **flags}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert "can't be statically inferred" in found.pop("missing")
    assert "not evenly divisible" in found.pop("uneven")
    draws = found.pop("one key")
    assert draws == draws[:2] * 8
    assert found == {"right": 40, "twice": 320, "added means": 20, "mean of means": -0.375}
