"""Kernels and their use, as people write them: no type checker has anything to say.

`test_type_surface.py` runs pyright and mypy, both strict, on this file.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyrsistent import PMap, PRecord, PVector, field, pmap

import pscdsl as psc
from pscdsl import Bool, Float, Int, Key, Num, Shaped, bf16, bool_, c64, f32, f64, i32

Vector = f32["n"]


class Params(psc.Record):
    """The weights of a recurrent network."""

    w: f32["h h"]
    b: f32["h"]


class Layer(psc.Record, dims="i o"):
    """A record with size parameters."""

    w: f32["o i"]
    b: f32["o"]

    def apply(self, x: f32["*batch i"]) -> f32["*batch o"]:
        """The layer on rows."""
        return x @ self.w.T + self.b


T = TypeVar("T", bound=psc.Tree[Float])
U = TypeVar("U", bound=psc.Tree)


class State(psc.Record, Generic[T]):
    """A generic record."""

    first: T
    second: T
    step: i32


class Pair(NamedTuple):
    """A named tuple of arrays."""

    left: f32["n"]
    right: f32["n"]


@dataclass(frozen=True)
class Moments:
    """A dataclass of arrays."""

    mean: f32["n"]
    variance: f32["n"]
    count: i32 = 0


class Scale(PRecord):  # type: ignore[type-arg]
    """A persistent record; pyrsistent's stubs want type arguments that it does not take."""

    factor = field(type=f32["n"])


def framed(x: Float["n"], y: Float["n"]) -> Float["2*n+2"]:
    ends = x.astype(f32)[:1].astype(x.dtype)
    joined = np.concatenate([ends, x, np.concatenate((y, y[-1][None]))])
    return joined


def sigmoid(x: f32["*s"]) -> f32["*s"]:
    return 1 / (1 + np.exp(-x))


@psc.kernel
def rnn(p: Params, xs: f32["t h"], h0: f32["h"]) -> f32["t h"]:
    def step(h: f32["h"], x: f32["h"]) -> tuple[f32["h"], f32["h"]]:
        h = np.tanh(p.w @ h + x + p.b)
        return h, h

    _, hs = psc.scan(step, h0, xs)
    return hs


@psc.kernel
def loss(p: Params, xs: f32["t h"], h0: f32["h"], y: f32["t h"]) -> f32:
    return np.mean((rnn(p, xs, h0) - y) ** 2)


@psc.kernel
def more(x: f32["n m"], idx: i32["k"]) -> tuple[f32["n"], f32["m n"], f32["k m"], f32["n m"]]:
    n = x.shape[0]
    z = np.concatenate([x, np.zeros((n, 1))], axis=1)[:, :-1]
    y = np.where(x > 0, x, 0.0).sum(axis=1)
    u = psc.update(x, (0, 0), 1.0)
    return y, x.T, x[idx], u.reshape(z.shape)


@psc.kernel
def scalars(x: f32, n: i32, flag: bool_) -> tuple[f32, i32, bool_, f32, f32, f32, f32]:
    a = 2 * x + 1 - x / 3
    b = 0.5 * x**2
    c = -abs(x)
    d = np.sqrt(x) if x.ndim == 0 else x
    return a, n // 2 % 3, ~flag & (x > 0), b, c, d, np.float32(1)


@psc.kernel
def transforms(x: f32["n"], y: f32["m n"]) -> tuple[c64["n"], f32["n"], f32["m n"]]:
    n = x.shape[0]
    filtered = np.fft.irfft(np.fft.rfft(x, norm="ortho") * np.fft.rfftfreq(n, 0.5), n, norm="ortho")
    shifted = np.real(np.fft.ifft2(np.fft.fft2(y) * 1j))
    return np.fft.fftshift(np.fft.fft(x)), filtered, shifted


@psc.kernel
def matrices(a: f32["n n"], b: f32["n"], z: c64["n n"]) -> tuple[f32["n"], f32, f32["n n"], f32]:
    values, vectors = np.linalg.eigh(a)
    root = psc.numpy.linalg.cholesky(a)
    x = psc.triangular_solve(root, b, lower=True) + np.linalg.solve(a, b) * values
    _, size = np.linalg.slogdet(a)
    q = np.linalg.qr(vectors).Q + np.linalg.svd(a).U
    return x, size + np.linalg.norm(b) + np.linalg.cond(a), q, np.real(np.linalg.det(z))


@psc.kernel
def reductions(x: f32["b n"]) -> tuple[f32["b"], f32, f32["b"], i32["b"], f32["b"], f32, bool_]:
    m = x.mean(axis=-1)
    centred = x - m[:, None]
    v = np.square(centred).mean(axis=-1)
    w = np.sum(x, axis=1) / x.shape[1]
    norm = np.sqrt((x**2).sum())
    return w, np.max(x), np.sqrt(v + 1e-5), np.argmax(x, axis=1), m, norm, (x > 0).all()


@psc.kernel
def shapes(x: f32["b t d"], y: f32["b d"]) -> tuple[f32["b t*d"], f32["t b d"], f32["b 1 d"]]:
    b, t, d = x.shape
    flat = x.reshape(b, t * d)
    moved = np.transpose(x, (1, 0, 2))
    assert t % 2 == 0
    first, second = x[:, : t // 2], x[:, t // 2 :]
    joined = np.concatenate([first, second], axis=1)
    assert joined.astype(np.int32).shape == joined.astype(i32)[:].shape
    stacked = np.stack([y, y], axis=0)
    ramp = np.arange(t, dtype=f32) / t
    eye = np.eye(d, dtype=np.float32)
    z = np.einsum("btd,de->bte", joined + ramp[None, :, None], eye)
    return flat + z.reshape(b, -1), moved, stacked[0][:, None, :]


@psc.kernel
def casts(x: f32["n"], i: i32["n"]) -> tuple[bf16["n"], f64["n"], i32["n"], c64["n"], f32["n"]]:
    k = (x * 2).astype(i32) + i * i - 1
    z = x.astype(c64) * 1j
    ones = np.ones(x.shape[0], dtype=f32)
    return x.astype(bf16), x.astype(f64), k, z, i.astype(np.float32) * ones


@psc.kernel
def generic(
    x: Float["*b n"], m: Bool["n"], i: Int["k"], q: Num["n"], s: Shaped["n"]
) -> tuple[Float["*b n"], Float["*b"], Num["n"], Shaped["n"], Int["k"]]:
    shifted = x - np.max(x, axis=-1, keepdims=True)
    e = np.where(m, np.exp(shifted), 0)
    return e / e.sum(axis=-1, keepdims=True), x[..., 0], q * q + 1 - q, s, i + 1


@psc.kernel
def static(x: f32["n"], power: psc.Static[int], mode: psc.Static[Literal["a", "b"]]) -> f32["n"]:
    for _ in range(power):
        x = x * x
    if mode == "a":
        x = x + power
    return x


@psc.kernel
def control(x: f32["n"], m: f32["k n"], flag: bool_) -> tuple[f32["n"], f32, f32["k n"], f32["k"]]:
    a = psc.cond(flag, lambda v: v * 2, lambda v: v, x)
    b = psc.cond(flag, lambda: np.sum(x), lambda: 0.0)
    c = psc.fori_loop(0, 10, lambda i, v: v + x[i], 0.0)
    d = psc.while_loop(lambda v: v.sum() < 10, lambda v: v + 1, a, max_steps=5)
    e, rows = psc.scan(lambda s, r: (s + r, s * r), np.zeros(x.shape[0]), m)
    f, _ = psc.scan(lambda s, _: (s + 1, None), x, length=3)
    g = psc.map(lambda r: r @ x, m)
    h = psc.switch(0, [lambda v: v, lambda v: v + 1], d)
    total, count = psc.fori_loop(0, 4, lambda i, s: (s[0] + x[i], s[1] + i), (x, np.int32(0)))
    k, last = psc.associative_scan(lambda a, b: (a[0] + b[0], b[1]), (x, x), reverse=True, axis=-1)
    m1, most = psc.map_reduce(lambda r: (r, 1), lambda a, b: (np.maximum(a[0], b[0]), a[1]), m)
    y = psc.map_reduce(np.exp, np.add, m, init=np.zeros(x.shape[0]))
    z = a + b + c + e + f + h + total + k + last + m1 * most.astype(f32) + y
    return z, d.sum() * count.astype(f32), rows, g.reshape(-1)


@psc.kernel
def records(
    layer: Layer["d h"], pair: Pair, moments: Moments, x: f32["b d"], layers: tuple[f32["n"], ...]
) -> tuple[f32["b h"], Pair, Moments, f32["n"]]:
    y = layer.apply(x)
    total = pair.left
    for each in layers:
        total = total + each
    n = total.shape[0]
    return (
        y + layer.b,
        Pair(total, np.zeros(n)),
        Moments(mean=total, variance=pair.right * 2, count=moments.count + 1),
        sigmoid(moments.mean),
    )


@psc.kernel
def trees(layer: Layer["d h"], slope: Layer["d h"], rate: f32) -> tuple[Layer["d h"], f32]:
    moved = psc.tree.map(lambda p, g: p - rate * g, layer, slope)
    moved = psc.tree.map(np.tanh, psc.tree.map(lambda p, g, z: p + g + z, moved, slope, slope))
    total = psc.tree.reduce(lambda t, x: t + np.sum(x), psc.tree.zeros_like(moved), rate)
    vector, unravel = psc.tree.ravel(moved)
    length = psc.tree.dot(layer, moved) + psc.tree.norm(slope) * psc.tree.size(layer)
    again: Layer = unravel(vector * 2)
    return again, length + total + psc.tree.leaves(again)[0].sum() + moved.w.sum()


@psc.kernel
def adam(p: T, slope: T, state: State[T], rate: Float) -> tuple[T, State[T]]:
    first = psc.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.first, slope)
    moved = psc.tree.map(lambda x, m: x - rate * m, p, first)
    return moved, State(first, psc.tree.zeros_like(state.second), state.step + 1)


@psc.kernel
def generic_records(
    layer: Layer["d h"], state: State[Layer["d h"]], pair: State[tuple[f32["n"], f32]]
) -> tuple[State[Layer["d h"]], f32["n"]]:
    moved, after = adam(layer, layer, state, np.float32(0.1))
    both, x = (moved.w.sum(), after.first.b), pair.first[0]
    return State(after.second, moved, after.step), x * both[0] + pair.second[1]


@psc.kernel
def any_tree(p: U) -> tuple[U, U]:
    return p, psc.tree.map(np.tanh, p)


@psc.kernel
def length(p: psc.Tree[Float], q: psc.Tree) -> f32:
    return psc.tree.norm(p) + psc.tree.norm(q)


def outside(layer: Layer) -> Layer:
    """Calls from ordinary Python keep the tree's type."""
    zeros = psc.tree.zeros_like(layer)
    moved, state = adam(layer, layer, State(first=zeros, second=zeros, step=0), 0.1)
    return any_tree(state.first)[1] if length(moved, state).size else moved


@psc.kernel
def persistent(scale: Scale, many: PMap[str, f32["n"]], row: PVector[f32["n"]]) -> f32["n"]:
    return scale.factor * many["a"] + row[0]


@psc.kernel
def keyed(key: Key, x: f32["n"]) -> tuple[Key, f32["n"]]:
    return key, x


@psc.kernel
def pieces(x: f32["n m"]) -> tuple[f32, f32["2"], i32["2"], f32["m"]]:
    assert x.shape[1] >= 2
    values, indices = psc.top_k(x[0], 2)
    part = psc.dynamic_slice(x, (0, 0), (1, 1))
    with psc.scope("tail"):
        y = psc.dynamic_update(x, part, (0, 0))
    return y[0, 0], values, indices, psc.reveal_type(y[0] * 2)


def others(keys: Key["n"], x: f32["n"] | None = None, *rest: f32) -> tuple[Key, f32["n"] | None]:
    """Annotations for ordinary functions."""
    for each in rest:
        x = each if x is None else np.linalg.norm(x) * each
    rows: list[f32["n"]] = [np.zeros(3), np.exp(rest[0])]
    table: dict[str, Vector] = {"a": rows[0] * 2}
    f: Callable[[f32["n"]], Vector] = np.exp
    return keys[0], f(table["a"]) if x is None else apply(lambda v: 1 - v, x)


def stores(x: f64["n m"], y: f64["m"], i: i32["n"], chosen: bool_["n"]) -> f64["n m"]:
    """Stores into parameters, parts of them and new arrays, as in plain NumPy code."""
    x[0], x[1:, 0], x[i], x[x > 0] = y, 0.0, y, 0
    y[:2] = [1.0, 2.0]
    y[0] = x[0] @ y
    x += y
    x /= 2
    x **= 2
    x[0, :] -= y * x.shape[0]
    i += 1
    i //= 2
    chosen |= x[:, 0] > 0
    new = np.zeros(x.shape)
    new[...] = x
    new[0] *= y[0]
    for k in range(x.shape[0]):
        new[k, k] -= x[k, :k] @ y[:k]
    x.fill(0.0)
    np.add(x, new, out=x)
    return x.copy()


def apply(f: Callable[[Vector], Vector], x: Vector) -> Vector:
    """A function of functions."""
    return f(f(x))


def plain(x: NDArray[np.float32], y: ArrayLike) -> float:
    """Ordinary Python takes results as arrays."""
    return float(np.sum(np.asarray(x) + np.asarray(y)))


def use() -> None:
    """Kernels called from ordinary Python."""
    params = Params(w=np.ones((2, 2), np.float32), b=np.ones(2, np.float32))
    out = loss(
        params, np.ones((3, 2), np.float32), np.zeros(2, np.float32), np.ones((3, 2), np.float32)
    )
    print(float(out), out.shape, np.asarray(out), out.item(), f"{out:.3f}")
    hs = rnn(params, np.ones((3, 2), np.float32), np.zeros(2, np.float32))
    again = rnn(params.replace(b=hs[0]), hs, hs[-1])
    n, d = again.shape
    print(n * d, again.dtype, len(again), [row.sum() for row in again], hs.to_numpy() + 1)
    print(plain(again, again), again.tolist(), np.allclose(hs, again), isinstance(out, psc.Array))
    a, _, _, _, _, _, _ = scalars(1.0, 2, True)
    print(a + 1, 1 + a, a > 0, int(a), others(np.zeros((3, 2), np.uint32), out, 1.0))
    static(np.ones(3, np.float32), 2, mode="a")
    layer = Layer(w=np.ones((3, 2), np.float32), b=np.zeros(3, np.float32))
    applied: Layer["d h"] = layer
    y, pair, moments, _ = records(
        applied,
        Pair(np.ones(2, np.float32), np.ones(2, np.float32)),
        Moments(np.ones(2, np.float32), np.ones(2, np.float32)),
        np.ones((4, 2), np.float32),
        (),
    )
    stores(np.ones((3, 3)), np.ones(3), np.arange(3, dtype=np.int32), np.ones(3, np.bool))
    print(y.shape, pair.left + 1, moments.count)
    persistent(
        Scale(factor=np.ones(2, np.float32)),
        pmap({"a": np.ones(2, np.float32)}),
        pvector_of(np.ones(2, np.float32)),
    )
    dtype = np.dtype(f32)
    print(np.zeros(3, dtype=f32).astype(i32).dtype == dtype, np.issubdtype(dtype, np.floating))


def pvector_of(*arrays: f32["n"]) -> PVector[f32["n"]]:
    """A persistent vector."""
    from pyrsistent import pvector

    return pvector(arrays)
