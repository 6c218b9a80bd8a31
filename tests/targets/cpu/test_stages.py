"""Long computations in stages: the same results as in one loop, and stages where they pay."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32, f64, i32
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.targets.cpu import blocks
from pscdsl._src.targets.cpu import loops as loops
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.targets.pipeline import PORTABLE, lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.emit.context import module_text
from pscdsl._src.xla.runtime.boot import LOOP_BYTES
from tests.support.random_programs import compiled

MANY = 1 << 20
BOUNDS = (LOOP_BYTES, loops.LARGEST)
"""Of the loops that become native."""


@psc.kernel
def repeated(x: f32["n"]) -> f32["n"]:
    for _ in range(10):
        x = np.tanh(np.sin(x) * 1.5 + x)
    return x


@psc.kernel
def looped(x: f32["n"]) -> f32["n"]:
    def body(_: i32, x: f32["n"]) -> f32["n"]:
        for _ in range(6):
            x = np.tanh(np.sin(x) * 1.5 + x)
        return x

    return psc.fori_loop(0, 3, body, x)


@psc.kernel
def wide(x: f64["n"]) -> f64["n"]:
    for _ in [0] * 80:
        x = x * (3.5 - 3.5 * x)
    return x


@psc.kernel
def short(x: f32["n"]) -> f32["n"]:
    return np.tanh(np.sin(x) * 1.5 + x)


@psc.kernel
def beside_one_another(x: f32["n"]) -> f32["n"]:
    total = x
    for step in range(12):
        total = total + np.tanh(x * (0.5 + step))
    return total


@psc.kernel
def kept_until_the_end(x: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    y = x
    every = x
    for _ in [0] * 60:
        y = y * (3.5 - 3.5 * y)
        every = every * y
    return y, every


@psc.kernel
def of_two(x: f32["n m"], r: f32["m"], a: f32) -> f32["n m"]:
    for _ in [0] * 80:
        x = r * x * (a - x)
    return x


@psc.kernel
def summed_in_a_loop(w: f32["k k"], x: f32["n"]) -> f32:
    """Beside a loop of matrices, for which larger loops are native."""

    def body(_: i32, total: f32) -> f32:
        return total + np.sum(repeated(x + total * 1e-9)) * 1e-6

    def power(_: i32, v: f32["k"]) -> f32["k"]:
        return w @ v

    return psc.fori_loop(0, 3, body, np.float32(0)) + np.sum(
        psc.fori_loop(0, 5, power, np.ones(w.shape[0], np.float32))
    )


@psc.kernel
def squares(x: f32["n"]) -> f32:
    return np.sum(repeated(x) ** 2)


def staged(kernel: Kernel[Any, Any], **sizes: int) -> int:
    """How many stages a kernel has at these sizes, but for the last one."""
    return kernel.lower(**sizes).text().count("inlineable")


def test_chains_of_large_arrays_are_cut_and_parts_that_are_the_same_are_one_function() -> None:
    text = repeated.lower(n=MANY).text()
    assert text.count("inlineable") == 10
    assert text.count("func.func private @part") == 2  # the first sine is of any number
    assert staged(looped, n=MANY) == 6
    assert staged(of_two, n=1 << 10, m=1 << 10) >= 2


@pytest.mark.parametrize("kernel", [wide, short, beside_one_another, kept_until_the_end])
def test_what_would_gain_nothing_is_left_in_one_loop(kernel: Kernel[Any, Any]) -> None:
    assert staged(kernel, n=MANY) == 0


def test_small_arrays_and_little_work_are_left_in_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert staged(repeated, n=blocks.FEWEST - 1) == 0
    assert staged(repeated, n=blocks.FEWEST) == 0
    monkeypatch.setattr(blocks, "WORK", 1)
    assert staged(repeated, n=blocks.FEWEST) == 10


def test_portable_modules_have_no_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    program = repeated.ir()
    assert "inlineable" not in module_text(lower_module(program, {"n": MANY}, target=PORTABLE))
    monkeypatch.setenv(VARIABLE, "stages")
    assert staged(repeated, n=MANY) == 0


@pytest.mark.parametrize("kernel", [repeated, looped])
def test_results_are_those_of_one_loop(
    kernel: Kernel[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=MANY).astype(np.float32)
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40
    compiled = kernel.lower(n=MANY).compile()
    assert compiled.text().count("inlineable") > 2
    found = np.asarray(compiled(x))
    monkeypatch.setenv(VARIABLE, "stages")
    np.testing.assert_allclose(found, np.asarray(kernel.lower(n=MANY).compile()(x)), rtol=1e-6)


@pytest.mark.parametrize("many", [blocks.FEWEST, blocks.FEWEST_IN_LOOPS])
def test_loops_are_compiled_whatever_bound_makes_them_native(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = summed_in_a_loop.ir()
    sizes = {"n": many, "k": 512}
    module = lower_module(program, sizes)
    assert ("inlineable" in module_text(module)) is (many >= blocks.FEWEST_IN_LOOPS)
    rng = np.random.default_rng(3)
    w = rng.normal(size=(512, 512)).astype(np.float32) / 512
    x = rng.normal(size=many).astype(np.float32)
    found = [compile_module(module, loop_bytes=each).run([w, x]) for each in BOUNDS]
    monkeypatch.setenv(VARIABLE, "stages")
    wanted = compile_module(lower_module(program, sizes)).run([w, x])
    for each in found:
        np.testing.assert_allclose(np.asarray(each[0]), np.asarray(wanted[0]), rtol=1e-4)


def test_derivatives_and_batches_of_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(2, MANY // 2)).astype(np.float32)
    made = psc.vmap(psc.grad(squares))
    found = np.asarray(made.lower(batch=2, n=MANY // 2).compile()(x))
    monkeypatch.setenv(VARIABLE, "stages")
    wanted = np.asarray(made.lower(batch=2, n=MANY // 2).compile()(x))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be cut is."""
    monkeypatch.setattr(blocks, "FEWEST_IN_LOOPS", 2)
    for name, value in {
        "FEWEST": 2,
        "LEAST": 3,
        "WORK": 1,
        "WAITING": 0,
        "STAGE_OPERATIONS": 0,
    }.items():
        monkeypatch.setattr(blocks, name, value)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_programs_keep_their_meaning(start: int) -> None:
    cut = sum([compiled(seed, 60).count("inlineable") for seed in range(start, start + 20)])
    assert cut > 40


@psc.kernel
def branches(x: Float["n"], y: Float["n"]) -> tuple[Float["n"], Float["n"]]:
    """What a branch uses from outside, what is used twice, and what comes back later."""
    a = np.tanh(x) + y
    b = np.tanh(a * 2)
    chosen = psc.cond(np.sum(b) > 0, lambda: np.sin(a) + 1, lambda: np.cos(b) - 1)
    c = np.tanh(chosen + b)
    d = np.exp(-np.square(np.tanh(c) + a))
    return np.tanh(d) + np.cumsum(d), np.tanh(np.tanh(c))


@pytest.mark.usefixtures("everywhere")
def test_stages_about_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 32)).astype(np.float32)
    lowered = branches.lower_for(x, y)
    assert lowered.text().count("inlineable") >= 3
    found = lowered.compile()(x, y)
    monkeypatch.setenv(VARIABLE, "stages")
    wanted = branches.lower_for(x, y).compile()(x, y)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)
