"""Loops over single elements copy nothing in a step, and compute what they did before."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bool_, f16, f32, f64, i8, i64, u8, u64
from pscdsl._src.ir.program import Equation, Literal, Var, evaluate
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.targets.cpu.scalar_loops import Lines
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.pipeline import VERIFY, Pipeline
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import I32, I64
from tests.fuzz.element_programs import generate
from tests.fuzz.numpy_differences import CAMPAIGN, arguments
from tests.support.kernels_of import kernels_of
from tests.targets.cpu.test_loops_in_place import bodies, of_program, optimised
from tests.targets.test_rewrites import Rewritten

COPYING_NOTHING = "biquad smoothed drawdown run_lengths kalman reflected binned merged".split()


def copied(text: str) -> list[str]:
    """The copies in the steps of loops, of numbers too."""
    return [each.line for _, body in bodies(text) for each in body if each.operation == "copy"]


@pytest.mark.parametrize("name", COPYING_NOTHING)
def test_steps_copy_nothing(name: str, tmp_path: Path) -> None:
    text = of_program(name, tmp_path)
    assert "body=" in text
    assert "conditional(" not in text
    assert copied(text) == []


def test_without_the_form_numbers_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSCDSL_WITHOUT", "scalar_loops")
    assert copied(of_program("biquad", tmp_path)) != []


@psc.kernel
def struck(marks: i64["n"]) -> tuple[i64["n"], i64]:
    marks, count = marks.copy(), 0
    for i in range(2, len(marks)):
        if marks[i] == 1:
            count += 1
            j = i * i
            while j < len(marks):
                marks[j] = 0
                j += i
    return marks, count


def test_a_loop_is_begun_only_where_its_branch_is_chosen() -> None:
    text = optimised(struck, (np.ones(100, np.int64),))
    assert "conditional(" in text
    assert not [each for each in copied(text) if "s64[100]" in each]


@psc.kernel
def rarely(x: f64["n"], table: f64["m"]) -> f64["n"]:
    assert len(table) >= 2
    y = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 3.0:
            a = x[i]
            for _ in range(6):
                a = a * a * 0.5 + table[0] / (a * a + 1.0) - a / (a * a + table[1])
                a = (a + 1.0) / (2.0 + a * a) - (a - 1.0) / (3.0 + a * a)
            y[i] = a
    return y


def test_a_large_branch_is_not_computed_in_every_step() -> None:
    x, table = np.random.default_rng(0).normal(size=(2, 9))
    assert "conditional(" in optimised(rarely, (x, table))


# Random loops, bit for bit: what they are rewritten to, and what XLA makes of that.


@pytest.mark.parametrize("wild", [False, True], ids=["inside", "wild"])
@pytest.mark.parametrize("seed", range(10))
def test_random_loops_are_rewritten_to_what_they_mean(
    seed: int, wild: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERIFY, "1")
    definition = kernels_of(generate(seed, wild))["main"]
    try:
        (function,) = [definition.instance(each) for each in definition.signature.choices() or ()]
    except Failure:
        return  # a place that is never in range
    for n, m in ((1, 1), (1, 4), (5, 3), (9, 9)):
        sizes = {"n": n, "m": m}
        if function.facts.admits(sizes):
            given = [*map(np.asarray, arguments(function, sizes, seed).values())]
            found = Rewritten(Pipeline(CPU)).call(function, sizes, given)
            for one, other in zip(found, evaluate(function, sizes, given), strict=True):
                assert one.tobytes() == other.tobytes(), (n, m)


def test_random_loops_compute_what_python_does() -> None:
    figures = CAMPAIGN.here(range(500, 512), "--grammar", "elements", "--xla", "2")
    assert not figures.problems, figures.shown
    assert figures.count("equal") >= 6


# Bits of numbers that pass through a loop.


@psc.kernel
def shifted(
    a: f64["n"], b: f32["n"], c: f16["n"], d: i8["n"], g: u8["n"], h: u64["n"], k: bool_["n"]
) -> tuple[f64["n"], f32["n"], f16["n"], i8["n"], u8["n"], u64["n"], bool_["n"]]:
    o, p, q = np.zeros_like(a), np.zeros_like(b), np.zeros_like(c)
    r, s, t, u = np.zeros_like(d), np.zeros_like(g), np.zeros_like(h), np.zeros_like(k)
    va, vb, vc, vd, vg, vh, vk = a[0], b[0], c[0], d[0], g[0], h[0], k[0]
    for i in range(len(a)):
        o[i], p[i], q[i], r[i], s[i], t[i], u[i] = va, vb, vc, vd, vg, vh, vk
        va, vb, vc, vd, vg, vh, vk = a[i], b[i], c[i], d[i], g[i], h[i], k[i]
    return o, p, q, r, s, t, u


def test_carried_numbers_keep_their_bits() -> None:
    bits = np.random.default_rng(3).integers(0, 256, 40 * 8, dtype=np.uint8)
    special = np.array([-0.0, np.inf, -np.inf, 1.5])
    a = np.concatenate([special, bits.view(np.float64)])
    count = len(a)
    wide = np.resize(bits, count * 8)
    b = np.concatenate([special.astype(np.float32), wide[: (count - 4) * 4].view(np.float32)])
    c = np.concatenate([special.astype(np.float16), wide[: (count - 4) * 2].view(np.float16)])
    given: tuple[Any, ...] = (
        *(a, b, c),
        *(wide[:count].view(np.int8), wide[:count], wide.view(np.uint64), wide[:count] > 99),
    )
    for found, wanted in zip(shifted(*given), given, strict=True):
        moved = np.concatenate([wanted[:1], wanted[:-1]])
        assert np.asarray(found).tobytes() == moved.tobytes()


# Elements that the step before has stored.


def recurrence(y: f64["n"], x: f64["n"], back: i64, ahead: i64) -> f64["n"]:
    y = y.copy()
    for i in range(1, len(x) - 1):
        y[i] = 0.5 * y[i - 1] + x[i] + y[i + ahead] * y[i - back]
    for i in range(len(x) - 2, -1, -1):
        y[i] -= 0.25 * y[i + 1]
    return y


def in_rows(a: f64["n m"]) -> f64["n m"]:
    a = a.copy()
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += 0.5 * a[i, j - 1] - 0.25 * a[i - 1, j] + 0.125 * a[j % 2, i % 2]
    return a


def from_the_end(x: f64["n"]) -> f64["n"]:
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] + 0.5 * y[i - 1]  # the last element, at first
    return y


@pytest.mark.parametrize("count", [2, 3, 17])
def test_elements_stored_by_the_step_before(count: int) -> None:
    draw = np.random.default_rng(count)
    x, y = draw.normal(size=(2, count))
    if count > 2:
        kernel = psc.kernel(recurrence)
        found = kernel(y, x, np.int64(1), np.int64(1))
        np.testing.assert_allclose(found, recurrence(y, x, 1, 1), 1e-12)
    a = draw.normal(size=(count, count + 1))
    np.testing.assert_allclose(psc.kernel(in_rows)(a), in_rows(a), 1e-12)
    np.testing.assert_allclose(psc.kernel(from_the_end)(x), from_the_end(x), 1e-12)


def test_only_the_place_of_the_step_before_is_known() -> None:
    step, near, far, wide, back = (Var(ArrayType(each)) for each in (I32, I32, I32, I64, I64))
    rows = [
        (e.add, (step, Literal(3, I32)), near),
        (e.add, (step, Literal((1 << 31) - 4, I32)), far),  # which overflows after four steps
        (e.Convert(I64), (near,), wide),
        (e.subtract, (wide, Literal(1, I64)), back),
    ]
    lines = Lines(step, 9, [Equation(op, ins, (out,)) for op, ins, out in rows], ())
    assert lines.of(wide) == (1, 3)
    assert lines.of(far) is None
    assert lines.one_before([wide], [wide]) is None
    assert lines.one_before([back], [wide]) is None
    first = lines.one_before([wide], [back])
    assert first is not None
    assert isinstance(first[0], Literal)
    assert first[0].value == 2
    assert lines.one_before([far], [back]) is None
    assert lines.one_before([wide, back], [back, back]) is None
    other = Var(ArrayType(I64))
    assert lines.one_before([wide, other], [back, other]) is None, "it may change"


# Branches, and loops in them.


def in_branches(x: i64["n"], table: i64["m"], limit: i64) -> tuple[i64["m"], i64]:
    assert len(table) >= 3
    table = table.copy()
    total = 0
    for i in range(len(x)):
        if x[i] > limit:
            k = x[i]
            while k > 0:
                table[k % len(table)] += k
                k = k // 2
                total += 1
        elif x[i] == limit:
            table[0] = total
        else:
            for j in range(3):
                table[j] -= table[(x[i] + j) % len(table)]
    return table, total


def test_branches_store_only_where_they_are_chosen() -> None:
    draw = np.random.default_rng(8)
    kernel = psc.kernel(in_branches)
    for count in (1, 2, 40):
        x, table = draw.integers(0, 9, count), draw.integers(0, 9, 5)
        found, total = kernel(x, table, np.int64(4))
        wanted, expected = in_branches(x, table, 4)
        np.testing.assert_array_equal(found, wanted)
        assert int(total) == expected


def exchanged(x: f64["n"], y: f64["n"]) -> tuple[f64["n"], f64["n"]]:
    a, b = x.copy(), y.copy()
    for i in range(len(x)):
        a[i] += b[i - 1]
        a, b = b, a
    return a, b


def test_arrays_that_change_their_names() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 7))
    for one, other in zip(psc.kernel(exchanged)(x, y), exchanged(x, y), strict=True):
        np.testing.assert_allclose(one, other)


@psc.kernel
def sums(x: f64["n"]) -> f64["n"]:
    def step(total: f64, x: f64) -> tuple[f64, f64]:
        return total + x, total * x

    return psc.scan(step, 0.0, x)[1]


@psc.kernel
def total_of_sums(x: f64["n"]) -> f64:
    return np.sum(sums(x))


def test_derivatives() -> None:
    x = np.random.default_rng(2).normal(size=9)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    np.testing.assert_allclose(sums(x), before * x)
    slope = psc.grad(total_of_sums)(x)
    np.testing.assert_allclose(slope, np.sum(x) - x)
    assert copied(optimised(sums, (x,))) == []
