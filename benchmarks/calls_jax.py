"""The same as `calls_ours`, for jax."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

jax: Any = importlib.import_module("jax")
put: Any = jax.numpy.array
put_number: Any = jax.numpy.array
leaves: Any = jax.tree.leaves


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two arrays."""

    w: Any
    b: Any

    @jax.jit  # type: ignore[untyped-decorator]
    def apply(self, x: Any) -> Any:
        """A method of the two and an array."""
        return self.w * x + self.b


@dataclasses.dataclass(frozen=True)
class Layer:
    """Two arrays, and a static value."""

    w: Any
    b: Any
    times: int


@dataclasses.dataclass(frozen=True)
class Scaled:
    """An array and what it is multiplied by."""

    x: Any
    by: Any


@dataclasses.dataclass(frozen=True)
class Settings:
    """Six numbers."""

    a: Any
    b: Any
    c: Any
    d: Any
    e: Any
    f: Any


jax.tree_util.register_dataclass(Settings, ["a", "b", "c", "d", "e", "f"], [])
jax.tree_util.register_dataclass(Pair, ["w", "b"], [])
jax.tree_util.register_dataclass(Layer, ["w", "b"], ["times"])
jax.tree_util.register_dataclass(Scaled, ["x", "by"], [])


def _arrays(xs: Any) -> Any:
    """Each array, changed."""
    return tuple([x + 1 for x in xs])


def _records(xs: Any) -> Any:
    """Each record, changed."""
    return tuple([Pair(x.w + 1, x.b + 1) for x in xs])


def _layer(x: Any) -> Any:
    """A record, changed according to a static field."""
    return Layer(x.w + x.times, x.b + 1, x.times)


def _one(x: Any) -> Any:
    """One array, changed."""
    return x + 1


def _static(x: Any, times: int) -> Any:
    """One array, changed according to a static value."""
    return x + times


def _scaled(x: Any, by: float) -> Any:
    """One array, changed by one of Python's numbers."""
    return x * by


def _layer_by(x: Any, by: float) -> Any:
    """A record with a static field, changed by one of Python's numbers."""
    return Layer(x.w * by, x.b + 1, x.times)


def _product(s: Any) -> Any:
    """What a record with a number says."""
    return s.x * s.by


def _shifted(x: Any, y: Any, by: Any = 0.5) -> Any:
    """Two arrays, and a number that need not be given."""
    return x + y * by


def _many_defaults(x: Any, a: float = 0.5, b: float = 1.5, c: float = 2.5, d: float = 3.5) -> Any:
    """An array, and numbers that need not be given."""
    return (x * a - b) * c - d


def _all_moved(xs: Any, y: Any) -> Any:
    """Ten arrays, in their own memory."""
    return tuple([x + y for x in xs])


def _moved(x: Any, y: Any) -> Any:
    """One array, in its own memory."""
    return x + y


def _named(x: Any) -> Any:
    """The sum of a dict."""
    return x["a"] + x["b"] + x["c"] + x["d"]


def _three(x: Any, y: Any, z: Any) -> Any:
    """Three arrays as one."""
    return x * y + z


def _word(x: Any, how: str) -> Any:
    """One array, changed as a word says."""
    return x * 2 if how == "twice" else x


TABLE = np.arange(8, dtype=np.float32)


def _captured(x: Any) -> Any:
    """One array, with an array of the module."""
    return x + TABLE


def _sum(*numbers: Any) -> Any:
    """A sum of numbers."""
    return sum(numbers[1:], numbers[0])


def _settings(x: Any, by: Any) -> Any:
    """One array, changed by a record of numbers."""
    return (x * by.a + by.b) * by.c + by.d * by.e + by.f


def _factors(by: Any) -> Any:
    """The sum of a dict of numbers."""
    return by["a"] + by["b"] + by["c"] + by["d"]


def _chosen(x: Any, a: Any, b: Any, n: Any) -> Any:
    """One array, changed as truth values say."""
    return jax.numpy.where(a & b, x, x + n)


def _turned(z: Any) -> Any:
    """A complex number, changed."""
    return z * z


def _large(x: Any) -> Any:
    """A sum of a few elements of a large array."""
    return jax.numpy.sum(x[0, :8])


def _changed(x: Any, y: Any) -> Any:
    """What is written to an array."""
    return x.at[:].set(y + 1)


def written(x: Any, y: Any) -> None:
    """Write to an array."""
    np.copyto(x, _written(x, y))


named = jax.jit(_named)
three = jax.jit(_three)
word = jax.jit(_word, static_argnames="how")
captured = jax.jit(_captured)
two_numbers = jax.jit(_sum)
four_numbers = jax.jit(_sum)
numbers = jax.jit(_sum)
device_numbers = jax.jit(_sum)
integers = jax.jit(_sum)
settings = jax.jit(_settings)
factors = jax.jit(_factors)
chosen = jax.jit(_chosen)
turned = jax.jit(_turned)
scaled_by = jax.jit(_scaled)
large = jax.jit(_large)
_written = jax.jit(_changed)
arrays = jax.jit(_arrays)
records = jax.jit(_records)
layer = jax.jit(_layer)
one = jax.jit(_one)
scaled = jax.jit(_scaled)
layer_by = jax.jit(_layer_by)
product = jax.jit(_product)
shifted = jax.jit(_shifted)
many_defaults = jax.jit(_many_defaults)
static = jax.jit(_static, static_argnums=1)
all_moved = jax.jit(_all_moved, donate_argnums=0)
moved = jax.jit(_moved, donate_argnums=0)
