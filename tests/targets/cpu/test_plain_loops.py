"""XLA's older emitter of loops: which programs it gets, and that results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bf16, f32, f64, i32
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.primitives.elementwise import TABLE
from pscdsl._src.primitives.special import SPECIAL
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.executable_store import module_key
from pscdsl._src.xla.runtime.executable import knows
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.stdlib import activations
from tests.targets.cpu.test_wide_vectors import CODES, alone, assert_same, beside, operands


@pytest.fixture(autouse=True)
def _there_are_two() -> None:  # pyright: ignore[reportUnusedFunction]
    if not knows(module_options.FUSION_EMITTERS, False):
        pytest.skip("this version of XLA has one emitter of loops")


@psc.kernel
def angle(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return np.floor(y) + np.sin(x) ** 1.7 + np.fmod(x, 3.0)


@psc.kernel
def gelu(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return activations.gelu(x) / y


@psc.kernel
def distances(x: f32["n"]) -> f32["n n"]:
    return np.exp(-((x[:, None] - x[None, :]) ** 2))


@psc.kernel
def integers(i: i32["n"]) -> i32["n"]:
    return (3 * i + 1) // 7 % 5


@psc.kernel
def halves(x: bf16["n"]) -> bf16["n"]:
    return np.tanh(x) * x + 1


@psc.kernel
def two(x: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return np.exp(x), np.exp(-x)


@psc.kernel
def doubles(x: f64["n"]) -> f64["n"]:
    return x * 2 + 1


@psc.kernel
def arcus(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return np.arctan2(x, y)


@psc.kernel
def total(x: f32["n"]) -> f32:
    return np.sum(x)


@psc.kernel
def stepped(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(0, 3, lambda _, y: y * y, x)


def module_of(kernel: Any, n: int) -> Any:
    lowered = kernel.lower(n=n)
    request = Specialisation(lowered.program, lowered.sizes)
    return lower_module(lowered.program, lowered.sizes), request


def test_what_is_compiled_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernel in (angle, gelu, distances, integers, halves):
        assert (
            module_options.plain_loop_options(module_of(kernel, 20)[0])[
                module_options.FUSION_EMITTERS
            ]
            is False
        )
    others: tuple[Any, ...] = (two, total, stepped, doubles, arcus)
    for other in others:
        assert module_options.FUSION_EMITTERS not in module_options.plain_loop_options(
            module_of(other, 20)[0]
        )
    module, request = module_of(angle, 20)
    with_it = module_key(module, request, module_options)
    monkeypatch.setenv(VARIABLE, "plain_loops")
    assert module_options.FUSION_EMITTERS not in module_options.plain_loop_options(module)
    assert module_key(module, request, module_options) != with_it


@pytest.mark.parametrize("n", [1, 37, 300])
@pytest.mark.parametrize("kernel", [angle, gelu, distances, integers, halves])
def test_results_are_the_same(kernel: Any, n: int) -> None:
    module, request = module_of(kernel, n)
    random = np.random.default_rng(0)
    given: list[Any] = []
    for each in request.program.body.in_types:
        x = random.normal(size=n) * 5
        if each.dtype.is_float:
            x[::7] = np.resize([0.0, -0.0, 1e-40, 30, np.inf, np.nan, -7, -np.inf], len(x[::7]))
        given.append(x.astype(to_numpy(each.dtype)))
    older, newer = (
        np.asarray(
            compile_module(module, options={module_options.FUSION_EMITTERS: on}).run(given)[0]
        )
        for on in (False, True)
    )
    np.testing.assert_array_equal(older.astype(np.float64), newer.astype(np.float64))


@pytest.mark.parametrize("code", sorted({*CODES} - {"f8"}))
def test_every_operation_has_the_same_results(code: str) -> None:
    functions = [
        (each, each.arity)
        for each in dict.fromkeys((*TABLE.values(), *SPECIAL))
        if admitted(each, operands(code, each.arity, low=True))
    ]
    assert len(functions) > 8
    module = beside(functions, code)
    older, newer = (
        compile_module(module, options={module_options.FUSION_EMITTERS: on}) for on in (False, True)
    )
    assert_same(functions, code, newer, older, ulps=8)


def admitted(function: Any, given: tuple[Any, ...]) -> bool:
    """Whether a program of this operation alone is compiled by the older emitter."""
    module = alone(function, given)
    return module is not None and module_options.fits_plain_loops(module)


@psc.kernel
def scaled(x: f32["n"], y: f32) -> f32["n"]:
    """Of which XLA makes two loops, one of them for the factor."""
    return np.sqrt(y * y + 1) * np.exp(x)


def test_several_loops_are_made_by_the_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[Any] = []

    def observed(module: Any, **given: Any) -> Any:
        chosen.append(given["options"].get(module_options.FUSION_EMITTERS))
        return compile_module(module, **given)

    monkeypatch.setattr(module_options, "compile_module", observed)
    module_options.compiled(module_of(gelu, 20)[0])
    assert chosen == [False]
    module_options.compiled(module_of(scaled, 1 << 16)[0])
    assert chosen[1:] == [False, None]
