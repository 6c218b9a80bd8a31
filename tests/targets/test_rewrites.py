"""A target's rewrites and passes compute what the program means, and each of them is used.

The programs are rewritten as for each target, verified after every step, and evaluated by NumPy:
what XLA computes is not asked.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64, i8, i32
from pscdsl._src.ir.primitive import NDArray, Types
from pscdsl._src.ir.program import Block, Evaluator, Function, evaluate
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.forms import Context, Pass, Rewrite
from pscdsl._src.targets.gpu.table import CUDA
from pscdsl._src.targets.pipeline import PORTABLE, VERIFY, Pipeline
from pscdsl._src.targets.rewriting import Target
from pscdsl.typing.dims import Size


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def definite(*shape: int, dtype: Any = np.float64) -> Any:
    a = normal(*shape, dtype=dtype)
    return (a @ a.swapaxes(-1, -2) + 8 * np.eye(shape[-1])).astype(dtype)


@psc.kernel
def repeated_product(a: Float["n n"], x: Float["n m"]) -> Float["n m"]:
    return psc.fori_loop(0, 3, lambda _, x: a.T @ x / 8, x)


@psc.kernel
def norms(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(0, 3, lambda _, x: x / (1 + x @ x), x)


@psc.kernel
def rows(v: f32["n"], a: f32["n m"]) -> f32["m"]:
    return v @ a


@psc.kernel
def turned_step(a: f64["n n"], x: f64["n m"]) -> f64["n m"]:
    def step(_: i32, x: f64["n m"]) -> f64["n m"]:
        return (np.tanh(a + x[0, 0])).T @ x / 8

    return psc.fori_loop(0, 3, step, x)


@psc.kernel
def vectors(w: f32["n n"], h: f32["n"]) -> f32["n"]:
    def step(h: f32["n"], _: None) -> tuple[f32["n"], None]:
        return np.tanh(w @ h), None

    return psc.scan(step, h, length=200)[0]


@psc.kernel
def until(a: f64["n n"], x: f64["n m"]) -> f64["n m"]:
    return psc.while_loop(lambda x: np.sum(x * x) > 1.0, lambda x: a.T @ x / 100, x)


@psc.kernel
def both_sides(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.fori_loop(0, 3, lambda _, v: (a @ v + v @ a) / 8, v)


@psc.kernel
def both_sides_until(a: f64["n n"], v: f64["n"]) -> f64["n"]:
    return psc.while_loop(lambda v: v @ v > 1.0, lambda v: (a @ v + a.T @ v) / 100, v)


@psc.kernel
def recurrent(w: f64["n n"], xs: f64["t b n"], h: f64["b n"]) -> f64:
    def step(h: f64["b n"], x: f64["b n"]) -> tuple[f64["b n"], None]:
        return np.tanh(h @ w + x), None

    return np.sum(psc.scan(step, h, xs)[0])


@psc.kernel
def convolved(x: Float["n c h w"], k: Float["o c a b"]) -> Float["n o h w"]:
    return psc.conv(x, k, padding="same")


@psc.kernel
def place(x: f32["n"]) -> i32:
    return np.argmax(x)


@psc.kernel
def places(x: f32["n m"]) -> i32["n"]:
    return np.argmax(x, axis=1)


@psc.kernel
def factors(a: Float["b n n"]) -> Float["b n n"]:
    return np.linalg.cholesky(a)


@psc.kernel
def solved(a: Float["b n n"], x: Float["b n m"]) -> Float["b n m"]:
    return np.linalg.solve(a, x)


@psc.kernel
def solved_triangular(a: Float["b n n"], x: Float["b n m"]) -> Float["b n m"]:
    return psc.triangular_solve(a, x, lower=True)


@psc.kernel
def gram(a: f64["n k"], b: f64["n m"]) -> f64["k m"]:
    return a.T @ b


@psc.kernel
def steps(xs: tuple[f32["n n"], ...]) -> tuple[f32["n n"], ...]:
    return tuple([x * 0.5 + np.tanh(x) for x in xs])


@psc.kernel
def small_steps(a: f64["n n"], x: f64["n 1"]) -> f64["n 1"]:
    def step(_: i32, x: f64["n 1"]) -> f64["n 1"]:
        half = psc.triangular_solve(np.linalg.cholesky(a), x, lower=True)
        return np.linalg.solve(a, x) + half

    return psc.fori_loop(0, 2, step, x)


@psc.kernel
def decomposed(a: Float["b n m"]) -> tuple[Float["b n m"], Float["b"]]:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * s[:, None, :]) @ vh, np.sum(np.linalg.svd(a, compute_uv=False), axis=1)


@psc.kernel
def set_rows(x: f32["n m"], i: i32["k"], u: f32["k m"]) -> f32["n m"]:
    assert i.shape[0] >= 0
    return psc.update(x, i, u)


@psc.kernel
def set_columns(x: f32["n m"], i: i8["a b"], u: f32["n a b"]) -> f32["n m"]:
    return psc.update(x, (slice(None), i), u)


@psc.kernel
def set_elements(x: f32["b n m"], i: i32["b k"], j: i32["b k"], u: f32["b k"]) -> f32["b n m"]:
    return psc.vmap(lambda x, i, j, u: psc.update(x, (i, j), u))(x, i, j, u)


@psc.kernel
def added_rows(x: f32["n m"], i: i32["k"], u: f32["k m"]) -> f32["n m"]:
    return psc.update(x, i, u, combine="add")


@psc.kernel
def recurrences(x: f64["n"], table: f64["m"]) -> tuple[f64["n"], f64["m"]]:
    y, table = np.zeros_like(x), table.copy()
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
        if y[i] > 0.25:
            for j in range(i % 5):
                table[j] += y[i]
        else:
            table[0] = x[i]
    return y, table


@psc.kernel
def halvings(x: f64["n"], least: f64) -> f64["n"]:
    x = x.copy()
    i = 0
    while i < len(x) and np.abs(x[i]) > least:
        x[i] /= 2.0
        i += 1
    return x


def indices(highest: int, *shape: int, dtype: Any = np.int32) -> Any:
    return np.random.default_rng(highest).integers(0, highest, shape).astype(dtype)


def singles(*shape: int) -> Any:
    return normal(*shape, dtype=np.float32)


CASES = {
    "small products": (repeated_product, normal(8, 8), normal(8, 8)),
    "products of vectors": (norms, normal(64, dtype=np.float32)),
    "rows in parts": (rows, normal(4096, dtype=np.float32), normal(4096, 200, dtype=np.float32)),
    "turned before a loop": (repeated_product, normal(64, 64), normal(64, 16)),
    "turned in a loop": (turned_step, normal(64, 64), normal(64, 16)),
    "turned for vectors": (vectors, normal(32, 32, dtype=np.float32), normal(32, dtype=np.float32)),
    "turned before a loop that stops": (until, normal(64, 64), normal(64, 16)),
    "both sides": (both_sides, normal(12, 12), normal(12)),
    "both sides until": (both_sides_until, normal(12, 12), normal(12)),
    "sums afterwards": (psc.grad(recurrent), normal(32, 32), normal(20, 8, 32), normal(8, 32)),
    "few channels": (convolved, normal(2, 1, 64, 64), normal(8, 1, 3, 3)),
    "place in a vector": (place, normal(1 << 16, dtype=np.float32)),
    "places in rows": (places, normal(64, 2048, dtype=np.float32)),
    "many factors": (factors, definite(600, 6, 6)),
    "many small factors": (factors, definite(600, 3, 3)),
    "many solutions": (solved, definite(600, 6, 6), normal(600, 6, 2)),
    "many small solutions": (solved, definite(600, 3, 3), normal(600, 3, 2)),
    "many triangular solutions": (solved_triangular, definite(600, 6, 6), normal(600, 6, 2)),
    "turned factor of doubles": (gram, normal(80, 64), normal(80, 48)),
    "small solutions in a loop": (small_steps, definite(4, 4), normal(4, 1)),
    "larger solutions in a loop": (small_steps, definite(7, 7), normal(7, 1)),
    "wide decomposition": (decomposed, normal(3, 4, 7)),
    "rows set twice": (set_rows, singles(9, 4), indices(9, 40), singles(40, 4)),
    "no rows set": (set_rows, singles(9, 4), indices(9, 0), singles(0, 4)),
    "columns set twice": (
        set_columns,
        singles(5, 9),
        indices(9, 6, 7, dtype=np.int8),
        singles(5, 6, 7),
    ),
    "elements set twice": (
        set_elements,
        singles(3, 4, 5),
        indices(4, 3, 50),
        indices(5, 3, 50),
        singles(3, 50),
    ),
    "rows added twice": (added_rows, singles(9, 4), indices(9, 40), singles(40, 4)),
    "elements": (recurrences, normal(30), normal(9)),
    "elements until": (halvings, normal(30), np.asarray(0.1)),
    "groups": (steps, tuple([normal(16, 16, dtype=np.float32) for _ in range(12)])),
}


FOR_OTHERS = {name for name in CASES if "wide" in name or "twice" in name or "no rows" in name}
"""The cases that the CPU's table leaves as they are."""
TARGETS = [CPU, PORTABLE, CUDA]


def observed(target: Target, seen: set[Rewrite | Pass]) -> Target:
    """The target, which tells what changes a program."""

    def rewrite(own: Rewrite) -> Rewrite:
        def rule(primitive: Any, inputs: Types, outputs: Types, here: Context) -> Block | None:
            found = own.rule(primitive, inputs, outputs, here)
            if found is not None:
                seen.add(own)
            return found

        return Rewrite(rule, own.form)

    def block_pass(own: Pass) -> Pass:
        def rule(block: Block, here: Context) -> Block:
            found = own.rule(block, here)
            if found is not block:
                seen.add(own)
            return found

        return Pass(rule, own.form)

    rows = {key: tuple(map(rewrite, row)) for key, row in target.rewrites.items()}
    return replace(target, rewrites=rows, passes=tuple(map(block_pass, target.passes)))


class Rewritten(Evaluator):
    """Evaluates functions as a pipeline has rewritten them."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__({})
        self.pipeline = pipeline

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of a function after all steps."""
        numbers = {name: self.size(size) for name, size in sizes.items()}
        body = self.pipeline.prepared(function, numbers, in_loop=False, nested=False)
        return self.block(body, operands)


def evaluated(name: str, target: Target) -> tuple[Any, Any, set[Rewrite | Pass]]:
    """What a program computes rewritten and as it was, and what has changed it."""
    kernel: Any
    kernel, *args = CASES[name]
    lowered = kernel.lower_for(*args).specialisation
    arrays = [x for arg in args for x in (arg if isinstance(arg, tuple) else (arg,))]
    seen: set[Rewrite | Pass] = set()
    here = Rewritten(Pipeline(observed(target, seen)))
    found = here.call(lowered.program, lowered.sizes, arrays)
    return found, evaluate(lowered.program, lowered.sizes, arrays), seen


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("name", CASES)
def test_a_rewritten_program_computes_the_meaning(
    name: str, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERIFY, "1")
    found, wanted, seen = evaluated(name, target)
    assert seen or target is not CPU or name in FOR_OTHERS
    for one, other in zip(found, wanted, strict=True):
        exact = one.dtype.kind in "iub"
        close = 1e-4 if one.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(one, other, 0 if exact else close, 0 if exact else close)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_rewrite_is_used_by_a_program(target: Target) -> None:
    """By one of those above: add one for yours."""
    used = {each for name in CASES for each in evaluated(name, target)[2]}
    rewrites = [each for row in target.rewrites.values() for each in row]
    every: list[Rewrite | Pass] = [*rewrites, *target.passes]
    missing = [each for each in every if each not in used]
    assert not missing, [each.rule.__name__ for each in missing]


@psc.kernel
def product_of_rows(x: f64["n m"], y: f64["n m"]) -> f64["n"]:
    return np.einsum("ij,ij->i", x, y)


@psc.kernel
def product_of_all(x: f64["n m"], y: f64["n m"]) -> f64:
    return np.einsum("ij,ij->", x, y)


@pytest.mark.parametrize("kernel", [product_of_rows, product_of_all])
def test_products_of_matrices_that_are_no_matrix_stay(kernel: Any) -> None:
    x, y = normal(64, 64), normal(64, 64) + 1
    wanted = np.sum(x * y, axis=1 if kernel is product_of_rows else None)
    np.testing.assert_allclose(kernel(x, y), wanted)
