"""Kernels that combine rows, and what they are compared with."""

# What is inside of kernels is checked by `pscdsl check`.
# mypy: disable-error-code="no-untyped-def, no-any-return"
# pyright: standard, reportAbstractUsage=false

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import bf16, bool_, f32, f64, i32


class Affine(psc.Record):
    """`x -> scale * x + offset`."""

    scale: f64["n"]
    offset: f64["n"]


class Gaussian(NamedTuple):
    """How many numbers, their mean, and the sum of their squared distances from it."""

    weight: f64
    mean: f64["d"]
    squares: f64["d"]


def after(first, second):
    """One affine map, and then another."""
    scale = first.scale * second.scale
    return Affine(scale, first.offset * second.scale + second.offset)


def merged(a, b):
    """Moments of two sets of numbers (Chan, Golub, LeVeque 1979)."""
    weight = a.weight + b.weight
    step = b.mean - a.mean
    squares = a.squares + b.squares + step * step * (a.weight * b.weight / weight)
    return Gaussian(weight, a.mean + step * (b.weight / weight), squares)


@psc.kernel
def affine(maps: Affine) -> Affine:
    return psc.associative_scan(after, maps)


@psc.kernel
def backwards(maps: Affine) -> Affine:
    return psc.associative_scan(after, maps, reverse=True)


@psc.kernel
def products(x: f64["n k k"]) -> f64["n k k"]:
    return psc.associative_scan(lambda a, b: a @ b, x)


@psc.kernel
def products_along(x: f64["k n k"]) -> tuple[f64["k n k"], f64["k n k"]]:
    up = psc.associative_scan(lambda a, b: a @ b, x, axis=1)
    return up, psc.associative_scan(lambda a, b: b @ a, x, axis=-2, reverse=True)


@psc.kernel
def first_largest(x: f32["n"]) -> tuple[f32, i32]:
    def larger(a, b):
        keep = a[0] >= b[0]
        return np.where(keep, a[0], b[0]), np.where(keep, a[1], b[1])

    return psc.map_reduce(lambda row: row, larger, (x, np.arange(x.shape[0])))


@psc.kernel
def moments(x: f64["n d"]) -> Gaussian:
    def one(row):
        return Gaussian(f64(1), row, np.zeros_like(row))

    return psc.map_reduce(one, merged, x)


@psc.kernel
def summary(x: f64["n d"], w: f64["d"]) -> tuple[f64, f64["d"], bool_, i32]:
    def one(row):
        return (row * w).sum(), row, np.all(row > 0), 1

    def both(a, b):
        return a[0] + b[0], np.maximum(b[1], a[1]), a[2] & b[2], a[3] + b[3]

    return psc.map_reduce(one, both, x, init=(0.0, np.full(x.shape[1], -np.inf), True, 0))


@psc.kernel
def of_any_length(x: f64["n 2"], start: f64["2"]) -> tuple[f64["n 2"], f64["2"]]:
    assert x.shape[0] >= 0
    prefixes = psc.associative_scan(lambda a, b: a * b + a, x)
    return prefixes, psc.map_reduce(lambda r: 2 * r, lambda a, b: a * b + b, x, init=start)


@psc.kernel
def of_any_width(x: f64["n d"]) -> tuple[f64["n d"], f64["d"], f64["d"]]:
    assert x.shape[1] >= 0
    total = psc.map_reduce(lambda r: 2 * r, np.add, x)
    last = psc.map_reduce(lambda r: r, lambda a, b: a * b + b, x)
    return psc.associative_scan(np.add, x), total, last


@psc.kernel
def weak(b: f64["n"]) -> tuple[f64["n"], f64["n"], f64, f64]:
    ones = np.ones(b.shape[0])
    scale, offset = psc.associative_scan(
        lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (0.5 * ones, b)
    )
    powers = psc.map_reduce(
        lambda x: (1, x), lambda p, q: (p[0] * 0.5 + q[1] * q[0], p[1] + q[1]), b, init=(0, 1)
    )
    return scale, offset, *powers


@psc.kernel
def half(x: bf16["n"]) -> tuple[bf16["n"], bf16]:
    return psc.associative_scan(np.maximum, x), psc.map_reduce(lambda v: v, np.add, x)


def scanned(maps: Affine) -> Affine:
    """What `associative_scan` computes, step by step."""

    def step(carry, row):
        scale = carry[0] * row[0]
        offset = carry[1] * row[0] + row[1]
        return (scale, offset), (scale, offset)

    one, zero = np.ones_like(maps.scale[0]), np.zeros_like(maps.scale[0])
    return Affine(*psc.scan(step, (one, zero), (maps.scale, maps.offset))[1])


def distance(maps: Affine, weights: f64["n"]) -> f64:
    return (np.sin(maps.scale) * weights).sum() + (maps.offset**2 * weights).sum()


@psc.kernel
def gradient(maps: Affine, weights: f64["n"]) -> tuple[Affine, Affine]:
    def blockwise(given):
        return distance(psc.associative_scan(after, given), weights)

    def in_order(given):
        return distance(scanned(given), weights)

    return psc.grad(blockwise)(maps), psc.grad(in_order)(maps)


@psc.kernel
def product_gradient(x: f64["n 2 2"], m: f64["2 2"]) -> tuple[f64["n 2 2"], f64["2 2"]]:
    def loss(x, m):
        y = psc.associative_scan(lambda a, b: a @ m @ b, x)
        return np.sum(np.tanh(y) * y)

    return psc.grad(loss, argnums=(0, 1))(x, m)


@psc.kernel
def product_loss(x: f64["n 2 2"], m: f64["2 2"]) -> f64:
    y = psc.associative_scan(lambda a, b: a @ m @ b, x)
    return np.sum(np.tanh(y) * y)


def spread(x: f64["n d"], w: f64["d"]) -> f64:
    many = psc.map_reduce(lambda r: Gaussian(f64(1), r * w, np.zeros_like(r)), merged, x)
    return np.sum(np.sqrt(many.squares / many.weight) + many.mean**3)


@psc.kernel
def spread_gradients(x: f64["n d"], w: f64["d"]) -> tuple[f64["n d"], f64["d"], f64["n d"]]:
    def directly(x):
        y = x * w
        return np.sum(np.std(y, axis=0) + np.mean(y, axis=0) ** 3)

    return (*psc.grad(spread, argnums=(0, 1))(x, w), psc.grad(directly)(x))


@psc.kernel
def spread_hessian(x: f64["n d"], w: f64["d"]) -> tuple[f64["d d"], f64["d d"]]:
    def directly(w):
        y = x * w
        return np.sum(np.std(y, axis=0) + np.mean(y, axis=0) ** 3)

    return psc.hessian(lambda w: spread(x, w))(w), psc.hessian(directly)(w)


@psc.kernel
def sum_of_losses(w: f64["d h"], x: f64["n d"]) -> tuple[f64["d h"], f64["d h"], f64["n d"]]:
    def loss(w, x):
        return psc.map_reduce(lambda row: np.sum(np.tanh(row @ w) ** 2), np.add, x)

    directly = psc.grad(lambda w: np.sum(np.tanh(x @ w) ** 2))(w)
    return psc.grad(loss)(w, x), directly, psc.grad(loss, argnums=1)(w, x)


@psc.kernel
def branching(x: f64["n"]) -> tuple[f64["n"], f64]:
    def combine(a, b):
        return psc.cond(b > 0, lambda: b, lambda: a)

    def last(x):
        return psc.associative_scan(combine, x).sum()

    def root(v):
        return psc.cond(v > 0, lambda: np.sqrt(v), lambda: 0.0)

    return psc.grad(last)(x), psc.grad(lambda s: psc.map_reduce(root, np.add, s * x))(f64(1))


@psc.kernel
def many(scale: f64["b n"], offset: f64["n b"], w: f64["b"]) -> tuple[f64["b n"], f64["b"]]:
    def one(s, t, w):
        return psc.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (s, t))[1] * w

    def last(s, t, w):
        fold = psc.map_reduce(
            lambda r: (r[0], r[1] * w), lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (s, t)
        )
        return fold[1]

    axes = (0, 1, 0)
    return psc.vmap(one, in_axes=axes)(scale, offset, w), psc.vmap(last, in_axes=axes)(
        scale, offset, w
    )
