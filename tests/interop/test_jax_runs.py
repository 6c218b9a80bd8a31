"""Functions that the checker accepts: jax computes what our typed programs do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from pscdsl._src.discover.equality import sizes_of
from tests.interop.jax_runs import accepted, difference, imported, runs

jax: Any = pytest.importorskip("jax")

HEAD: Final = """
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Complex64, Float, Int, PRNGKeyArray, UInt8


class Normal(NamedTuple):
    mean: Float[Array, "d"]
    scale: Float[Array, "d"]


class Layer(eqx.Module):
    weight: Float[Array, "out in"]
    bias: Float[Array, "out"]

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        return jax.nn.relu(self.weight @ x + self.bias)

"""
FUNCTIONS: Final = """
def cumulative(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    def step(total, row):
        total = 0.5 * total + row
        return total, jnp.tanh(total)

    return lax.scan(step, jnp.zeros(x.shape[1]), x)[1]

def reverse_scan(x: Float[Array, "n"], y: Int[Array, "n"]):
    return lax.scan(lambda c, p: (c + p[0], c * p[1]), 0.0, (x, y), reverse=True)

def halvings(x: Float[Array, ""]) -> Int[Array, ""]:
    def going(state):
        return (jnp.abs(state[0]) > 1) & (state[1] < 20)

    return lax.while_loop(going, lambda s: (s[0] / 2, s[1] + 1), (x, 0))[1]

def powers(x: Float[Array, "n"], k: Int[Array, ""]) -> Float[Array, "n"]:
    return lax.fori_loop(0, jnp.clip(k, 0, 4), lambda i, y: y * x + i, jnp.ones_like(x))

def branch(flag: Bool[Array, ""], x: Float[Array, "n"]):
    return lax.cond(flag, lambda v: v.sum(), lambda v: v.max(initial=-1.0), x)

def chosen(i: Int[Array, ""], x: Float[Array, "n"]):
    return lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x)

def distances(x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sum((a - b) ** 2))(y))(x)

def batched(x: Float[Array, "n d"], w: Float[Array, "d n"]):
    return jax.vmap(jnp.dot, in_axes=(0, 1), out_axes=0)(x, w)

def counted(i: Int[Array, "n"], x: Float[Array, "n"]):
    return jnp.zeros(4).at[i].add(x)

def stored(i: Int[Array, ""], x: Float[Array, "n"]):
    return x.at[i].set(7), x.at[i].multiply(2.0), x.at[i].min(0.0), x.at[1:].set(0)

def picked(i: Int[Array, "k"], x: Float[Array, "n d"]):
    return x[i], x[i, 0], jnp.take(x, i, axis=0), x.at[i].get(mode="fill", fill_value=-1.0)

def row(i: Int[Array, ""], x: Float[Array, "n d"]):
    return x[i], lax.dynamic_slice(x, (i, 0), (1, x.shape[1])), x[-1]

def noise(key: PRNGKeyArray, x: Float[Array, "n"]):
    first, second = jax.random.split(key)
    return x + jax.random.normal(first, x.shape), jax.random.permutation(second, x)

def drawn(key: PRNGKeyArray, p: Float[Array, "n"]):
    keys = jax.random.split(key, 4)
    return (
        jax.random.categorical(keys[0], p),
        jax.random.randint(keys[1], (3,), 0, p.shape[0]),
        jax.random.gamma(keys[2], jnp.ones(2)),
        jax.random.choice(keys[3], p, (2,)),
    )

def density(z: Float[Array, "d"], of: Normal) -> Float[Array, ""]:
    return jax.scipy.stats.norm.logpdf(z, of.mean, jnp.abs(of.scale) + 1).sum()

def moved(of: Normal, by: Float[Array, "d"]) -> Normal:
    return of._replace(mean=of.mean + by)

def either(x: Float[Array, "n"] | Int[Array, "n"] | Float[Array, ""]):
    return x + 1, x / 2, jnp.square(x)

def mixed(x: Float[Array, "n"], k: Int[Array, "n"], b: Bool[Array, "n"], u: UInt8[Array, "n"]):
    return x + k, k / 2, k * 2.5, b + b, u + 1, u + k, jnp.where(b, k, 0.5), b.sum(), u.sum()

def scalars(x: Float[Array, "n"], scale: float, power: int):
    return x * scale, x**power, scale + power, jnp.asarray(scale), x * 1j

def reduced(x: Float[Array, "n d"]):
    return x.mean(0), x.std(1), jnp.var(x, ddof=1), jnp.median(x), x.any(), jnp.prod(x, axis=1)

def extremes(x: Float[Array, "n"]):
    return jnp.argmax(x), jnp.argmin(x), jnp.nanmax(x), jnp.max(x), jnp.min(x)

def ordered(x: Float[Array, "n"], k: Int[Array, "n"]):
    return jnp.sort(x), jnp.argsort(x), jnp.argsort(k), jnp.sort(x, descending=True), x[::-1]

def solved(a: Float[Array, "n n"], b: Float[Array, "n"]):
    a = a @ a.T / 100 + 3 * jnp.eye(a.shape[0])
    return jnp.linalg.solve(a, b), jnp.linalg.cholesky(a), jnp.linalg.slogdet(a)

def norms(x: Float[Array, "n d"]):
    return jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x, 1), jnp.trace(x.T @ x)

def spectrum(x: Float[Array, "n"], z: Complex64[Array, "n"]):
    return jnp.fft.fft(x), jnp.fft.ifft(z), jnp.abs(z), z.conj() * x

def encoded(i: Int[Array, "n"]):
    return jax.nn.one_hot(i, 4), jax.nn.one_hot(i, 3, dtype=jnp.int32)

def contracted(x: Float[Array, "b i"], y: Float[Array, "b j"]):
    return jnp.einsum("bi,bj->ij", x, y), jnp.tensordot(x, y, axes=(0, 0)), jnp.outer(x[0], y[0])

def softened(x: Float[Array, "n d"]):
    return jax.nn.softmax(x), jax.nn.log_softmax(x, axis=0), jax.nn.logsumexp(x), jax.nn.gelu(x)

def slope(x: Float[Array, "n"]):
    return jax.grad(lambda v: jnp.sum(jnp.tanh(v) ** 2))(x), jax.jacfwd(jnp.sin)(x)

def pieces(x: Float[Array, "n d"]):
    return jnp.concatenate([x, x]), jnp.stack([x, -x]), jnp.pad(x, 1), jnp.roll(x, 1, 0), x[:, None]

def tree(x: Normal | tuple[Float[Array, "n"], Int[Array, ""]]):
    return jax.tree.map(lambda leaf: leaf + 1, x)

def clipped(x: Float[Array, "n"]):
    return jnp.clip(x, -1, 1), jnp.round(x), jnp.sign(x), jnp.floor(x), jnp.nan_to_num(x)

@partial(jax.jit, static_argnames="axis")
def totals(x: Float[Array, "n d"], axis: int = 0):
    return x.sum(axis), jnp.cumsum(x, axis)

def segments(x: Float[Array, "n"], i: Int[Array, "n"]):
    return jax.ops.segment_sum(x, i, num_segments=3), jnp.bincount(i, length=4)

def triangles(x: Float[Array, "n n"]):
    return jnp.tril(x), jnp.triu(x, 1), jnp.diag(x), jnp.eye(x.shape[0])

def whole(k: Int[Array, "n"]):
    return k // 2, k % 3, k**2, -k, ~k, k << 1, k >> 1, jnp.abs(k), k.mean(), k.max(initial=0)
"""

PARTS: Final = 8


class _Annotation(type):
    """A class that any subscript leaves as it is, for names of jaxtyping."""

    def __getitem__(cls, item: Any) -> Any:
        return cls


class _Module:
    """A class whose subclasses are frozen dataclasses, for that of equinox."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ModuleType]]:
    """The functions as a file, and as a module of jax."""
    path = tmp_path_factory.mktemp("runs") / "accepted_functions.py"
    path.write_text(HEAD + FUNCTIONS)
    names = "Array Bool Complex64 Float Int PRNGKeyArray UInt8".split()
    stand_ins: dict[str, Any] = {
        "jaxtyping": SimpleNamespace(**{name: _Annotation(name, (), {}) for name in names}),
        "equinox": SimpleNamespace(Module=_Module),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, module in stand_ins.items():
            patch.setitem(sys.modules, name, module)
        yield path, imported(path, "accepted_functions")
    sys.modules.pop("accepted_functions", None)


def test_these_functions_are_accepted(program: tuple[Path, ModuleType]) -> None:
    names = {each.name for each in accepted(program[0])}
    written = {line[4:].partition("(")[0] for line in FUNCTIONS.split("\n") if line[:4] == "def "}
    assert names == {*written, "Layer.__call__"}


@pytest.mark.parametrize("part", range(PARTS))
def test_jax_computes_the_same(program: tuple[Path, ModuleType], part: int) -> None:
    path, module = program
    functions = accepted(path)[part::PARTS]
    different = [str(run) for each in functions for run in runs(each, module) if run.difference]
    assert not different, "\n".join(different)


def test_three_sizes_of_each_name_are_tried_and_1_where_it_is_admitted(
    program: tuple[Path, ModuleType],
) -> None:
    for function in accepted(program[0]):
        for each in function.programs():
            tried = [*sizes_of(each.function)]
            for name in each.function.dims:
                found = {sizes[name] for sizes in tried}
                assert len(found) >= 3, (function.name, name)


@pytest.mark.parametrize(
    "wanted",
    [
        "TypeError: no",
        [np.zeros(3, np.float32)] * 2,
        [np.zeros(3)],
        [np.zeros(2, np.float32)],
        [np.full(3, 1e-3, np.float32)],
        [np.full(3, np.nan, np.float32)],
    ],
)
def test_differences_are_seen(wanted: Any) -> None:
    ours = [np.zeros(3, np.float32)]
    assert difference(ours, wanted)
    assert not difference(ours, ours)
