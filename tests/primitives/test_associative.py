"""`associative_scan` and `map_reduce` against folds in Python, gradients against scans."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Equation, Function, Var
from pscdsl._src.primitives import associative as module
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.elementwise import add
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.emit.context import module_text
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import name
from tests.support.associative_kernels import (
    Affine,
    affine,
    backwards,
    branching,
    first_largest,
    gradient,
    half,
    many,
    moments,
    of_any_length,
    of_any_width,
    product_gradient,
    product_loss,
    products,
    products_along,
    spread_gradients,
    spread_hessian,
    sum_of_losses,
    summary,
    weak,
)
from tests.support.law_rows import array_types
from tests.support.law_rows_b import block

pytestmark = pytest.mark.quick_code

LENGTHS = (1, 2, 3, 40, 300, 5000)
"""Rows one after the other, blocks of them, and rests."""


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(sum(shape)).uniform(0.6, 1.1, shape)


# Values.


@pytest.mark.parametrize("length", LENGTHS)
def test_affine_maps(length: int) -> None:
    scale, offset = random(length), random(length) - 0.8
    for kernel, step in ((affine, 1), (backwards, -1)):
        found = kernel(Affine(scale, offset))
        assert isinstance(found, Affine)
        a, b = 1.0, 0.0
        rows: list[tuple[Any, Any]] = []
        for s, t in zip(scale[::step], offset[::step], strict=True):
            a, b = a * s, b * s + t
            rows.append((a, b))
        wanted: Any = np.array(rows)[::step]
        np.testing.assert_allclose(found.scale, wanted[:, 0], rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(found.offset, wanted[:, 1], rtol=1e-12)


@pytest.mark.parametrize("length", LENGTHS[:-1])
def test_matrix_products(length: int) -> None:
    x = random(length, 2, 2) / 2
    wanted: list[Any] = [x[0]]
    for each in x[1:]:
        wanted.append(wanted[-1] @ each)
    np.testing.assert_allclose(products(x), wanted, rtol=1e-12)
    up, down = products_along(x.transpose(1, 0, 2))
    np.testing.assert_allclose(up, np.stack(wanted, axis=1), rtol=1e-12)
    wanted = [x[-1]]
    for each in x[-2::-1]:
        wanted.append(each @ wanted[-1])
    np.testing.assert_allclose(down, np.stack(wanted[::-1], axis=1), rtol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_reductions(length: int) -> None:
    x = random(length, 3)
    place = int(np.argmax(x[:, 0]))
    found = first_largest(x[:, 0].astype(np.float32))
    assert (found[0], found[1]) == (x[:, 0].astype(np.float32)[place], place)
    many = moments(x)
    assert many.weight == length
    np.testing.assert_allclose(many.mean, x.mean(0), rtol=1e-12)
    np.testing.assert_allclose(many.squares, length * x.var(0), rtol=1e-10, atol=1e-12)
    w = np.array([1.0, -2.0, 0.5])
    total, most, positive, count = summary(x, w)
    np.testing.assert_allclose(total, (x @ w).sum(), rtol=1e-12)
    np.testing.assert_array_equal(most, x.max(0))
    assert (bool(positive), int(count)) == (True, length)


def test_parts_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 64)

    @psc.kernel
    def sums(x: f64["n 8"], w: f64["8"]) -> tuple[f64["8"], f64]:
        return psc.map_reduce(lambda r: (r * w, r[0]), lambda a, b: (a[0] + b[0], a[1] * b[1]), x)

    w = random(8)
    for length in (1, 8, 15, 16, 24, 100):
        x = random(length, 8)
        total, product = sums(x, w)
        np.testing.assert_allclose(total, x.sum(0) * w, rtol=1e-12)
        np.testing.assert_allclose(product, x[:, 0].prod(), rtol=1e-12)


def test_nothing_to_combine() -> None:
    start = random(2)
    prefixes, total = of_any_length(np.zeros((0, 2)), start)
    assert prefixes.shape == (0, 2)
    np.testing.assert_array_equal(total, start)
    x = random(1, 2)
    prefixes, total = of_any_length(x, start)
    np.testing.assert_array_equal(prefixes, x)
    np.testing.assert_allclose(total, start * 2 * x[0] + 2 * x[0])


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_no_elements(length: int) -> None:
    found = of_any_width(np.zeros((length, 0)))
    assert [each.shape for each in found] == [(length, 0), (0,), (0,)]


def test_numbers_take_the_dtype_that_they_meet() -> None:
    b = random(5)
    scale, offset, *_ = weak(b)
    np.testing.assert_allclose(scale, 0.5 ** np.arange(1, 6))
    wanted: list[Any] = [b[0]]
    for each in b[1:]:
        wanted.append(wanted[-1] * 0.5 + each)
    np.testing.assert_allclose(offset, wanted)


def test_half_precision_sums_are_accumulated_in_single_precision() -> None:
    ones = np.ones(4096, np.float32)
    prefixes, total = half(ones.astype(np.dtype("bfloat16")))
    assert float(total) == 4096
    assert float(prefixes[-1]) == 1


# Derivatives.


@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_prefixes(length: int) -> None:
    maps = Affine(random(length), random(length) - 0.8)
    found, wanted = gradient(maps, random(length))
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-9)
    np.testing.assert_allclose(found.offset, wanted.offset, rtol=1e-9)


def test_gradients_by_what_is_captured() -> None:
    x, m = random(150, 2, 2) * 0.6, np.array([[0.9, -0.2], [0.3, 0.8]])
    found = product_gradient(x, m)
    step = 1e-6
    for given, gradient_ in zip((x, m), found, strict=True):
        direction = np.random.default_rng(1).normal(size=given.shape)
        ends: list[float] = []
        for sign in (1, -1):
            moved = [y + sign * step * direction if y is given else y for y in (x, m)]
            ends.append(float(product_loss(*moved)))
        slope = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(np.asarray(gradient_) * direction), slope, rtol=1e-6)


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_gradients_of_reductions(length: int) -> None:
    x = random(length, 3) * np.array([1.0, 2.0, -1.0])
    w = np.array([1.0, 0.5, 0.7])
    by_x, by_w, wanted = spread_gradients(x, w)
    np.testing.assert_allclose(by_x, wanted, rtol=1e-7, atol=1e-12)
    if length < 300:
        found, directly = spread_hessian(x, w)
        np.testing.assert_allclose(found, directly, rtol=1e-7, atol=1e-12)
    assert by_w.shape == (3,)


def test_gradients_of_sums() -> None:
    w, x = random(3, 4), random(50, 3)
    found, wanted, by_x = sum_of_losses(w, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    y = np.tanh(x @ w)
    np.testing.assert_allclose(by_x, 2 * y * (1 - y**2) @ w.T, rtol=1e-12)


def test_branches_are_not_taken_that_would_not_be() -> None:
    """A batch of a `cond` takes both branches, and the derivative of a root is infinite at 0."""
    x = np.array([4.0, 0.0, 1.0, 0.0, 0.0])
    found, slope = branching(x)
    np.testing.assert_array_equal(found, [2, 0, 3, 0, 0])
    assert float(slope) == 1.5


# Batches.


@pytest.mark.parametrize("length", [1, 7, 200])
def test_batches(length: int) -> None:
    scale, offset, w = random(3, length), random(length, 3), random(3)
    prefixes, totals_ = many(scale, offset, w)
    for lane in range(3):
        wanted = affine(Affine(scale[lane], offset[:, lane])).offset
        np.testing.assert_allclose(prefixes[lane], np.asarray(wanted) * w[lane], rtol=1e-12)
        np.testing.assert_allclose(totals_[lane], np.asarray(wanted)[-1] * w[lane], rtol=1e-12)


# What they are made of.


def modules(primitive: Primitive, types: str, lengths: Sequence[int]) -> list[str]:
    """The modules of a program of one equation at several lengths."""
    params = tuple(map(Var, array_types(types)))
    outputs = tuple(map(Var, primitive.type_rule(Assumptions(), *[x.type for x in params])))
    block = Block(params, (Equation(primitive, params, outputs),), outputs)
    function = Function("f", ("n",), Assumptions(), block)
    return [module_text(lower_module(function, {"n": length})) for length in lengths]


def test_programs_do_not_grow_with_the_number_of_rows() -> None:
    pair = block("f32, f32, f32, f32", lambda a, b, c, d: [a * c, b * c + d])
    lengths = (5000, 100_000, 10_000_000)
    scan = modules(AssociativeScan(pair, 0, name("n")), "f32[n], f32[n]", lengths)
    same = block("f32, f32", lambda a, b: [a, b])
    reduction = MapReduce(same, pair, 0, 0, 0, name("n"))
    for found in (scan, modules(reduction, "f32[n], f32[n]", lengths)):
        assert max(text.count("\n") for text in found) < 300


def test_what_cannot_be_batched_is_done_row_after_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> NoReturn:
        raise Failure(NoRule(primitive="add", rule="a batching rule"))

    monkeypatch.setattr(type(add), "batch", refuse)
    both = block("f32, f32", lambda a, b: [a + b])
    scan = AssociativeScan(both, 0, name("n"))
    assert "while" in modules(scan, "f32[n]", (5000,))[0]
    twice = block("f32", lambda x: [x + x])
    reduction = MapReduce(twice, both, 0, 0, 0, name("n"))
    assert "while" in modules(reduction, "f32[n]", (5000,))[0]
