"""Many small parts in groups: the same results as without, and groups where they pay."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.ir.program import Block
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.targets.cpu import blocks
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.forms import VARIABLE, Context
from pscdsl._src.targets.pipeline import PORTABLE, lower_module
from pscdsl._src.targets.rewriting import Target
from pscdsl._src.xla.emit.context import module_text
from tests.support.random_programs import compiled
from tests.support.share import due


class Moments(psc.Record, dims="n"):
    """A parameter's, as Adam keeps them."""

    first: f32["n n"]
    second: f32["n n"]


@psc.kernel
def adam(
    ps: tuple[f32["n n"], ...],
    gs: tuple[f32["n n"], ...],
    ms: tuple[Moments["n"], ...],
    t: f32,
) -> tuple[tuple[f32["n n"], ...], tuple[Moments["n"], ...], f32]:
    """A step with a rate of 0.01."""
    t = t + 1
    firsts = [0.9 * m.first + 0.1 * g for m, g in zip(ms, gs, strict=True)]
    seconds = [0.999 * m.second + 0.001 * g * g for m, g in zip(ms, gs, strict=True)]
    one, two = 1 - np.float32(0.9) ** t, 1 - np.float32(0.999) ** t
    steps = [(m / one) / (np.sqrt(v / two) + 1e-8) for m, v in zip(firsts, seconds, strict=True)]
    moments = tuple([Moments(m, v) for m, v in zip(firsts, seconds, strict=True)])
    return tuple([p - 0.01 * step for p, step in zip(ps, steps, strict=True)]), moments, t


@psc.kernel
def clipped(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    """By the norm of all, and each then by the greatest of all."""
    norm = np.sqrt(sum([np.sum(x * x) for x in xs]))
    ys = [x / np.maximum(norm, 1.0) for x in xs]
    most = np.max(np.stack([np.max(np.abs(y)) for y in ys]))
    return tuple([y / most for y in ys])


@psc.kernel
def centred(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    return tuple([x - np.mean(x, axis=1)[:, None] for x in xs])


@psc.kernel
def activated(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    """By functions with derivatives of their own."""
    return tuple([np.logaddexp(x, 0.0) for x in xs])


@psc.kernel(donate="xs")
def given_back(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    return tuple([x * 0.5 + 1.0 for x in xs])


@psc.kernel
def chained(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    """Each depends on all before."""
    found = [xs[0]]
    for x in xs[1:]:
        found = [*found, found[-1] * 0.5 + np.sin(x)]
    return tuple(found)


def halved(x: f32["n m"]) -> f32["n m"]:
    return psc.while_loop(lambda x: np.max(x) > 1.0, lambda x: x * 0.5, x)


@psc.kernel
def halved_each(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    """By loops in functions."""
    return tuple([halved(x) for x in xs])


@psc.kernel
def looped(xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
    def body(_: i32, xs: tuple[f32["n m"], ...]) -> tuple[f32["n m"], ...]:
        return tuple([x * 0.5 + 1.0 for x in xs])

    return psc.fori_loop(0, 3, body, xs)


def arrays(many: int, *shape: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple([rng.normal(size=shape).astype(np.float32) for _ in range(many)])


def steps(many: int, n: int) -> tuple[Any, ...]:
    moments = [Moments(m, m * m) for m in arrays(many, n, n)]
    return arrays(many, n, n), arrays(many, n, n), tuple(moments), np.float32(3)


def text(kernel: Kernel[Any, Any], *args: Any) -> str:
    return kernel.lower_for(*args).text()


def groups_of(kernel: Kernel[Any, Any], *args: Any) -> int:
    return text(kernel, *args).count("inlineable")


def leaves(kernel: Kernel[Any, Any], *args: Any) -> list[Any]:
    return [np.asarray(x) for x in psc.tree.leaves(kernel.lower_for(*args).compile()(*args))]


@pytest.mark.parametrize(
    ("kernel", "args"),
    [
        (adam, steps(4, 16)),
        (adam, steps(30, 16)),
        (clipped, (arrays(10, 16, 16),)),
        (clipped, (arrays(100, 16, 16),)),
        (centred, (arrays(9, 4, 64),)),
        (activated, (arrays(10, 16, 16),)),
    ],
)
def test_results_are_those_without_groups(
    kernel: Kernel[Any, Any], args: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert groups_of(kernel, *args)
    found = leaves(kernel, *args)
    monkeypatch.setenv(VARIABLE, "small_groups")
    assert not groups_of(kernel, *args)
    for x, y in zip(found, leaves(kernel, *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("many", [4, 10, 30, 100])
def test_functions_have_few_parts_each_and_the_program_calls_few(many: int) -> None:
    module = text(adam, *steps(many, 16))
    main, *others = module.split("func.func private")
    assert 0 < main.count("inlineable") < blocks.MOST
    for each in others:
        results = re.findall("tensor", each.split(") -> ")[1].split(" {")[0])
        calls = each.count("inlineable")
        assert calls <= blocks.MOST if calls else len(results) <= blocks.MOST
    alike = {each.split("(", 1)[1] for each in others}
    assert len(alike) <= 6  # parts that compute the same are one function


def test_xla_leaves_the_calls_as_they_are() -> None:
    args = steps(10, 16)
    entry = adam.lower_for(*args).compile().text().split("ENTRY")[1]
    assert entry.count(" call(") == groups_of(adam, *args) == 5


@pytest.mark.parametrize(
    ("kernel", "args"),
    [
        (centred, (arrays(8, 16, 16),)),  # few
        (centred, (arrays(100, 2, 8),)),  # XLA runs them where they are
        (centred, (arrays(10, 256, 256),)),  # large
        (chained, (arrays(12, 16, 16),)),  # one part
        (looped, (arrays(12, 16, 16),)),
        (halved_each, (arrays(12, 16, 16),)),
    ],
)
def test_what_would_gain_nothing_is_left_as_it_is(kernel: Kernel[Any, Any], args: Any) -> None:
    assert groups_of(kernel, *args) == 0


def test_what_takes_long_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    args = (arrays(10, 16, 16),)
    monkeypatch.setattr(blocks, "GROUP_OPERATIONS", 1000)
    assert groups_of(clipped, *args) == 0


def test_portable_modules_have_no_groups() -> None:
    lowered = adam.lower_for(*steps(10, 16)).specialisation
    module = lower_module(lowered.program, lowered.sizes, target=PORTABLE)
    assert "inlineable" not in module_text(module)


def test_results_take_donated_memory() -> None:
    args = (arrays(12, 16, 16),)
    assert groups_of(given_back, *args)
    lowered = given_back.lower_for(*args).specialisation
    assert given_back.executable(lowered).memory()["aliased"] == 12 * 16 * 16 * 4


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Target:
    """Whatever can be parted is, two by two."""

    @blocks.SMALL_GROUPS.block_pass
    def always(block: Block, here: Context) -> Block:
        return block if here.nested else blocks.grouped(block, blocks.Parts(block))

    monkeypatch.setattr(blocks, "MOST", 2)
    return replace(CPU, passes=(always,))


@pytest.mark.parametrize("start", range(0, due(60, 3), 20))
def test_random_programs_keep_their_meaning(start: int, everywhere: Target) -> None:
    calls = sum(
        [compiled(seed, 40, everywhere).count("inlineable") for seed in range(start, start + 20)]
    )
    assert calls > 40
