"""How large the bodies of native loops may be: chosen for each program by what its loops move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.targets.cpu.loops import LARGEST, loop_bytes
from pscdsl._src.transforms.simplify import simplify
from pscdsl._src.xla.runtime.settings import LOOP_BYTES

pytestmark = pytest.mark.jaxlib


@psc.kernel
def gradients(a: f32["n n"], b: f32["n"]) -> f32["n"]:
    """Conjugate gradients, 50 steps."""

    def step(_: Any, state: tuple[Any, Any, Any]) -> Any:
        x, r, p = state
        ap = a @ p
        rr = r @ r
        alpha = rr / (p @ ap + 1e-9)
        later = r - alpha * ap
        return x + alpha * p, later, later + (later @ later) / (rr + 1e-9) * p

    return psc.fori_loop(0, 50, step, (np.zeros_like(b), b, b))[0]


@psc.kernel
def elementwise(x: f32["m"]) -> f32["m"]:
    return psc.fori_loop(0, 50, lambda _, x: np.tanh(x) * 1.1, x)


@psc.kernel
def both(a: f32["n n"], b: f32["n"], x: f32["m"]) -> tuple[f32["n"], f32["m"]]:
    return gradients(a, b), elementwise(x)


@psc.kernel
def straight(a: f32["n n"], b: f32["n"]) -> f32["n"]:
    return a @ b


def bound(kernel: Kernel[Any, Any], **sizes: int) -> int:
    """What is chosen for a kernel."""
    return loop_bytes(simplify(kernel.ir()), sizes)


def native(kernel: Kernel[Any, Any], sizes: Mapping[str, int]) -> bool:
    """Whether XLA has made a native function of a kernel's loop."""
    return "xla_cpu_small_call" in kernel.compile(**sizes).text()


@pytest.mark.parametrize("n", [16, 128, 200])
def test_small_loops_need_no_other_bound(n: int) -> None:
    assert bound(gradients, n=n) == LOOP_BYTES
    assert native(gradients, {"n": n})


@pytest.mark.parametrize("n", [256, 400, 600])
def test_loops_that_move_a_matrix_may_be_larger(n: int) -> None:
    assert 4 * n * n < bound(gradients, n=n) <= LARGEST
    assert native(gradients, {"n": n})


def test_loops_that_threads_help_keep_the_bound() -> None:
    for n in (700, 1024):
        assert bound(gradients, n=n) == LOOP_BYTES
    assert not native(gradients, {"n": 1024})
    for m in (1000, 1 << 16, 1 << 20):
        assert bound(elementwise, m=m) == LOOP_BYTES
    assert not native(elementwise, {"m": 1 << 17})


def test_a_bound_lies_between_the_loops_of_a_program() -> None:
    between = bound(both, n=300, m=1 << 18)
    assert 4 * 300 * 300 < between <= 4 * (1 << 18)
    assert bound(both, n=500, m=1 << 16) == LOOP_BYTES, "the other one could become native too"


def test_programs_without_loops_have_the_bound_of_all() -> None:
    assert bound(straight, n=400) == LOOP_BYTES
