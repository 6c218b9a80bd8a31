"""Products of matrices, large and small, and small systems of equations."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import pscdsl as psc
from benchmarks.workload import Maker, Workload, normal
from pscdsl import bf16, f32, f64, i8, i32

STEPS = 1000


@psc.kernel
def turned_times_vector(x: f32["n k"], h: f32["n"]) -> f32["k"]:
    """A transposed matrix times a vector."""
    return x.T @ h


@psc.kernel
def turned_times_matrix(x: f32["n k"], y: f32["n m"]) -> f32["k m"]:
    """A transposed matrix times a matrix."""
    return np.matmul(x.T, y)


@psc.kernel
def swapped_contraction(x: f32["b n k"], y: f32["b n m"]) -> f32["b k m"]:
    """Transposes before a contraction."""
    return np.einsum("bkn,bnm->bkm", np.swapaxes(x, 1, 2), y)


@psc.kernel
def times_vector(x: f32["n k"], v: f32["k"]) -> f32["n"]:
    """A matrix times a vector."""
    return x @ v


@psc.kernel
def outer(x: f32["n"], y: f32["k"]) -> f32["n k"]:
    """An outer product."""
    return np.outer(x, y)


@psc.kernel
def normal_equations(x: f64["n k"], h: f64["n"], v: f64["k"]) -> f64["k"]:
    """A matrix that is gone through twice."""
    return x.T @ (h * (x @ v))


@psc.kernel
def distances(x: f32["n d"], y: f32["m d"]) -> f32["n m"]:
    """The squared distances of points."""
    return np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2)


@psc.kernel
def batched_f32(a: f32["b n n"], c: f32["b n n"]) -> f32["b n n"]:
    """Many products of small matrices."""
    return a @ c


@psc.kernel
def batched_vectors(a: f32["b n n"], c: f32["b n"]) -> f32["b n"]:
    """Many small matrices times vectors."""
    return np.einsum("bij,bj->bi", a, c)


@psc.kernel
def product_i8(a: i8["n n"], c: i8["n n"]) -> i8["n n"]:
    """A product that wraps around."""
    return a @ c


@psc.kernel
def product_i32(a: i32["n n"], c: i32["n n"]) -> i32["n n"]:
    """A product of 32-bit integers."""
    return a @ c


@psc.kernel
def product_bf16(a: bf16["n n"], c: bf16["n n"]) -> bf16["n n"]:
    """A product of 16-bit floats, accumulated in f32."""
    return a @ c


@psc.kernel
def repeated_f32(a: f32["n n"], x: f32["n n"], like: f32["t"]) -> f32["n n"]:
    """A product in every step of a loop."""
    return psc.fori_loop(0, like.shape[0], lambda i, x: a @ x, x)


@psc.kernel
def definite_solve(a: f32["b n n"], y: f32["b n"]) -> f32["b n"]:
    """Systems with symmetric positive definite matrices."""
    return _definite(a, y[..., None])[..., 0]


def _definite(a: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(a)
    half = psc.triangular_solve(factor, y, lower=True)
    return psc.triangular_solve(factor, half, lower=True, transpose=True)


@psc.kernel
def definite_steps(a: f32["n n"], y: f32["n"], like: f32["t"]) -> f32["n"]:
    """One such system in every step of a loop."""
    return psc.fori_loop(0, like.shape[0], lambda i, y: _definite(a, y[:, None])[:, 0], y)


@psc.kernel
def general_solve(a: f32["b n n"], y: f32["b n k"]) -> f32["b n k"]:
    """Systems of equations."""
    return np.linalg.solve(a, y)


@psc.kernel
def single_solve(a: f32["n n"], y: f32["n"]) -> f32["n"]:
    """One system of equations."""
    return np.linalg.solve(a, y)


@psc.kernel
def general_steps(a: f32["n n"], y: f32["n"], like: f32["t"]) -> f32["n"]:
    """One system in every step of a loop."""
    return psc.fori_loop(0, like.shape[0], lambda i, y: np.linalg.solve(a, y), y)


@psc.kernel
def inverse(a: f32["b n n"]) -> f32["b n n"]:
    """Inverses of small matrices."""
    return np.linalg.inv(a)


@psc.kernel
def determinant(a: f32["b n n"]) -> f32["b"]:
    """Determinants of small matrices."""
    return np.linalg.det(a)


@psc.kernel
def traces(a: f32["b n n"]) -> f32["b"]:
    """Sums of diagonals."""
    return np.trace(a, axis1=1, axis2=2)


def jax_programs(jax: Any) -> dict[str, Callable[..., Any]]:
    """The same functions for jax."""
    jnp, lax = jax.numpy, jax.lax
    cholesky = jax.scipy.linalg.cho_factor, jax.scipy.linalg.cho_solve

    def definite(a: Any, y: Any) -> Any:
        factor, solve = cholesky
        return solve(factor(a, lower=True), y)

    def integers(a: Any, c: Any) -> Any:
        return a @ c

    def accumulated(a: Any, c: Any) -> Any:
        return jnp.matmul(a, c, preferred_element_type=jnp.float32).astype(a.dtype)

    return {
        "turned_times_vector": lambda x, h: x.T @ h,
        "turned_times_matrix": lambda x, y: jnp.matmul(x.T, y),
        "swapped_contraction": lambda x, y: jnp.einsum("bkn,bnm->bkm", jnp.swapaxes(x, 1, 2), y),
        "times_vector": lambda x, v: x @ v,
        "outer": jnp.outer,
        "normal_equations": lambda x, h, v: x.T @ (h * (x @ v)),
        "distances": lambda x, y: jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2),
        "batched_f32": lambda a, c: a @ c,
        "batched_vectors": lambda a, c: jnp.einsum("bij,bj->bi", a, c),
        "product_i8": integers,
        "product_i32": integers,
        "product_bf16": accumulated,
        "repeated_f32": lambda a, x, like: lax.fori_loop(0, len(like), lambda i, x: a @ x, x),
        "definite_solve": lambda a, y: definite(a, y[..., None])[..., 0],
        "definite_steps": lambda a, y, like: lax.fori_loop(
            0, len(like), lambda i, y: definite(a, y), y
        ),
        "general_solve": jnp.linalg.solve,
        "single_solve": jnp.linalg.solve,
        "general_steps": lambda a, y, like: lax.fori_loop(
            0, len(like), lambda i, y: jnp.linalg.solve(a, y), y
        ),
        "inverse": jnp.linalg.inv,
        "determinant": jnp.linalg.det,
        "traces": lambda a: jnp.trace(a, axis1=1, axis2=2),
    }


def _theirs(name: str) -> Maker:
    return lambda jax: jax_programs(jax)[name]


def _integers(*shape: int, dtype: Any) -> Any:
    most = np.iinfo(dtype).max
    return np.random.default_rng(sum(shape)).integers(-most, most, shape, dtype)


def _turned(columns: int, rows: int) -> tuple[Any, Any]:
    return normal(rows, columns), normal(rows)


def _many(size: int, count: int) -> tuple[Any, Any]:
    return normal(count, size, size), normal(count, size, size)


def _repeated(size: int, steps: int) -> tuple[Any, Any, Any]:
    return _rotation(size), normal(size, size), normal(steps)


def _definite_many(size: int, count: int) -> tuple[Any, Any]:
    a = normal(count, size, size)
    return a @ a.swapaxes(1, 2) + np.eye(size, dtype=np.float32), normal(count, size)


def _definite_one(size: int, steps: int) -> tuple[Any, Any, Any]:
    a, y = _definite_many(size, 1)
    return a[0], y[0], normal(steps)


def _general_one(size: int) -> tuple[Any, Any]:
    return _regular(size, 1)[0], normal(size)


def _general_many(size: int, count: int) -> tuple[Any, Any]:
    return _regular(size, count), normal(count, size, 1)


def _regular(size: int, count: int) -> Any:
    return normal(count, size, size) + 2 * np.eye(size, dtype=np.float32)


def _rotation(size: int) -> Any:
    return np.linalg.qr(normal(size, size))[0].astype(np.float32)


def _work(
    label: str,
    kernel: Any,
    arguments: Callable[[int], tuple[Any, ...]],
    scale: int,
    goal: float | None = None,
    **rest: Any,
) -> Workload:
    name = kernel.__name__
    return Workload(label, kernel, arguments, scale, _theirs(name), goal=goal, **rest)


WORKLOADS = (
    *(
        _work(
            f"X.T @ h, {n}x{k}",
            turned_times_vector,
            partial(_turned, k),
            n,
            goal,
        )
        for n, k, goal in ((100, 10, None), (1000, 1000, 0.3), (10_000, 100, 0.3))
    ),
    _work(
        "matmul(X.T, Y)", turned_times_matrix, lambda n: (normal(n, 300), normal(n, 20)), 1000, 1.0
    ),
    _work(
        "einsum of swapped axes",
        swapped_contraction,
        lambda n: (normal(16, n, 64), normal(16, n, 32)),
        256,
        1.0,
    ),
    _work("X @ v, 1000x1000", times_vector, lambda n: (normal(n, n), normal(n)), 1000, 1.0),
    _work("outer product", outer, lambda n: (normal(n), normal(n)), 1000, 1.0),
    _work(
        "X.T @ (h * (X @ v)), 48 MB",
        normal_equations,
        lambda n: (
            normal(n, 300, dtype=np.float64),
            normal(n, dtype=np.float64),
            normal(300, dtype=np.float64),
        ),
        20_000,
        0.4,
        double=True,
    ),
    _work("squared distances", distances, lambda n: (normal(n, 16), normal(n, 16)), 1000, 1.0),
    *(
        _work(
            f"{count} products of {size}x{size}",
            batched_f32,
            partial(_many, size),
            count,
            goal,
        )
        for size, count, goal in (
            (2, 10_000, 1.0),
            (4, 10_000, 0.1),
            (8, 2000, 1.0),
            (16, 1000, 1.0),
            (64, 100, 1.0),
        )
    ),
    _work(
        "10000 4x4 matrices times vectors",
        batched_vectors,
        lambda n: (normal(n, 4, 4), normal(n, 4)),
        10_000,
        0.3,
    ),
    _work(
        "product i8 512x512",
        product_i8,
        lambda n: (_integers(n, n, dtype=np.int8), _integers(n, n, dtype=np.int8)),
        512,
        1.05,
    ),
    _work(
        "product i32 512x512",
        product_i32,
        lambda n: (_integers(n, n, dtype=np.int32), _integers(n, n, dtype=np.int32)),
        512,
        1.0,
    ),
    _work(
        "product bf16 512x512",
        product_bf16,
        lambda n: tuple([normal(n, n).astype(ml_dtypes.bfloat16)] * 2),
        512,
        1.0,
    ),
    *(
        _work(
            f"{size}x{size} product in a loop",
            repeated_f32,
            partial(_repeated, size),
            STEPS,
            goal,
        )
        for size, goal in ((2, 1.0), (4, 1.0), (8, 0.4), (16, 0.6), (32, 1.0))
    ),
    *(
        _work(
            f"2000 definite {size}x{size} systems",
            definite_solve,
            partial(_definite_many, size),
            2000,
            goal,
        )
        for size, goal in ((2, 0.2), (4, 0.2), (8, 0.5))
    ),
    *(
        _work(
            f"definite {size}x{size} system in a loop",
            definite_steps,
            partial(_definite_one, size),
            STEPS,
            0.3,
        )
        for size in (2, 4, 8)
    ),
    *(
        _work(
            f"2000 {size}x{size} systems",
            general_solve,
            partial(_general_many, size),
            2000,
            goal,
        )
        for size, goal in ((2, 0.3), (4, 0.3), (8, 0.5))
    ),
    _work(
        "4x4 system in a loop",
        general_steps,
        lambda t: (_regular(4, 1)[0], normal(4), normal(t)),
        STEPS,
        0.3,
    ),
    _work(
        "8x8 system in a loop",
        general_steps,
        lambda t: (_regular(8, 1)[0], normal(8), normal(t)),
        STEPS,
        0.4,
    ),
    *(
        _work(f"{size}x{size} system", single_solve, _general_one, size, goal, tolerance=1e-3)
        for size, goal in ((16, 1.05), (64, 0.9), (200, 1.05))
    ),
    _work("2000 4x4 inverses", inverse, lambda n: (_regular(4, n),), 2000, 0.4),
    _work("2000 4x4 determinants", determinant, lambda n: (_regular(4, n),), 2000, 0.3),
    _work(
        "200x200 determinant",
        determinant,
        lambda n: (_regular(n, 1) / 4,),
        200,
        1.05,
        tolerance=1e-2,
    ),
    _work("500 16x16 traces", traces, lambda n: (_regular(16, n),), 500, 0.7),
)
