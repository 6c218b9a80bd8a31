"""Functions for which types are found: jax computes what our typed programs do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests.interop.jax_runs import imported, inferred, runs

jax: Any = pytest.importorskip("jax")

HEAD: Final = """
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

SCALE = 2.0
"""
FUNCTIONS: Final = """
def softmax(x, axis=-1):
    e = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True))
    return e / jnp.sum(e, axis=axis, keepdims=True)

def dense(x, w, b):
    return SCALE * (x @ w) + b

def attention(q, k, v, mask=None):
    scores = jnp.einsum("id,jd->ij", q, k) / jnp.sqrt(q.shape[-1])
    scores = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ v

def counted(mask, x):
    return jnp.sum(jnp.where(mask & 1, x, 0)), mask.sum()

def drawn(key, shape):
    return jax.random.normal(key, shape)

@partial(jax.jit, static_argnums=1)
def noise(key, n):
    return jax.random.normal(key, (n, n))

@jax.jit
def flagged(x, flag=True):
    return x if flag else -x

def pair(rng):
    one, two = jax.random.split(rng)
    return jax.random.normal(one), jax.random.randint(two, (3,), 0, 9)

def accumulated(xs):
    return lax.scan(lambda total, x: (total + x, total * x), 0.0, xs)

def halvings(x):
    return lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

def chosen(flag, x):
    return lax.cond(flag > 0, lambda v: v.sum(), lambda v: v.max(initial=0.0), x)

def scattered(x, i, *, value=1.0):
    return x.at[i].add(value), x[i]

def slope(w, x):
    return jax.value_and_grad(lambda v: jnp.sum(jnp.tanh(x @ v) ** 2))(w)

def layers(first, second, x):
    for layer in (first, second):
        x = jnp.tanh(x * layer)
    return {"out": x, "norm": jnp.linalg.norm(x)}

def named(x, kind="relu"):
    return {"relu": jax.nn.relu, "tanh": jnp.tanh}[kind](x), kind

def twice(f, x):
    return f(f(x))

def handed_on(x, other):
    return x + 1, other

def sizes(x):
    n, d = x.shape
    return n * d, x.reshape(n * d), x.size > 3

def bins(x, n):
    return jnp.linspace(0, 1, n) * x.sum()

def windows(x, n):
    assert x.shape[0] >= n
    return x[:n], x[-n:]

def momentum(rate):
    def init(params):
        return jax.tree.map(jnp.zeros_like, params)

    def update(grads, state):
        state = jax.tree.map(lambda g, s: g + 0.9 * s, grads, state)
        return jax.tree.map(lambda s: -rate * s, state), state

    return init, update

def energy(particle):
    return particle.mass * jnp.sum(particle.velocity**2) / 2

class State(NamedTuple):
    mean: jax.Array
    count: int

    def scaled(self, by):
        return self._replace(mean=self.mean * by)

def step(state: State, x):
    return state._replace(mean=state.mean + (x - state.mean) / state.count, count=state.count + 1)

@dataclass
class Normal:
    mean: jax.Array
    scale: jax.Array

    def log_density(self, x):
        return -0.5 * jnp.sum(((x - self.mean) / self.scale) ** 2) - jnp.log(self.scale)

    def sample(self, key):
        return self.mean + self.scale * jax.random.normal(key, self.mean.shape)

class Net:
    def __init__(self, key, n, m):
        self.w = jax.random.normal(key, (n, m))
        self.b = jnp.zeros(m)

    def __call__(self, x):
        return self.applied(x)

    def applied(self, x):
        return x @ self.w + self.b

    @property
    def size(self):
        return self.b.size

    @cached_property
    def norm(self):
        return jnp.sqrt(jnp.sum(self.w**2))

    @staticmethod
    def relu(x):
        return jnp.maximum(x, 0)

    @classmethod
    def doubled(cls, x):
        return cls.relu(2 * x)

    @partial(jax.jit, static_argnums=0)
    def rows(self, i):
        return self.w[i]

@jax.custom_vjp
def clipped(x):
    return x * 2

def clipped_forward(x):
    return clipped(x), x

def clipped_backward(kept, cotangent):
    return (jnp.clip(kept * cotangent, -1, 1),)

clipped.defvjp(clipped_forward, clipped_backward)
"""
REFUSED: Final = """
@jax.jit
def traced_size(key, n):
    return jax.random.normal(key, (n,))

@partial(jax.jit, static_argnames="n")
def traced_function(f, x, n):
    return f(x), jnp.zeros(n)
"""

PARTS: Final = 6


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ModuleType]]:
    """The functions as a file, and as a module of jax."""
    path = tmp_path_factory.mktemp("runs") / "inferred_functions.py"
    path.write_text(HEAD + FUNCTIONS + REFUSED)
    yield path, imported(path, "inferred_functions")
    sys.modules.pop("inferred_functions", None)


def test_these_functions_are_proven(program: tuple[Path, ModuleType]) -> None:
    names = {each.name.rpartition(".")[2] for each in inferred(program[0], seconds=5)}
    lines = (line.strip() for line in FUNCTIONS.split("\n") if line.strip()[:4] == "def ")
    inner = {"init", "update"}
    assert names == {line[4:].partition("(")[0] for line in lines} - inner


@pytest.mark.parametrize("part", range(PARTS))
def test_jax_computes_the_same(program: tuple[Path, ModuleType], part: int) -> None:
    path, module = program
    functions = inferred(path, seconds=5)[part::PARTS]
    tried = [run for each in functions for run in runs(each, module)]
    assert {run.program.name for run in tried} == {each.name for each in functions}
    different = [str(run) for run in tried if run.difference]
    assert not different, "\n".join(different)
