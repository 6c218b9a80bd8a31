"""Several results in one loop: which programs that is for, and that results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, f32, f64, i32
from pscdsl.forms import VARIABLE
from pscdsl.primitives import special as special  # fills the table
from pscdsl.primitives.elementwise import TABLE
from pscdsl.typing.signatures import Choice
from pscdsl.xla import exactness, module_options, siblings
from pscdsl.xla.cache import emitted
from pscdsl.xla.compile import compile_module
from pscdsl.xla.executable import Executable
from pscdsl.xla.keys import Request, module_key
from tests.test_wide_vectors import alone, assert_same, beside, operands

TOGETHER = {siblings.OPTION: "true"}


@psc.kernel
def turned(x: f32["n"], y: f32["n"], c: f32, s: f32) -> tuple[f32["n"], f32["n"]]:
    return c * x - s * y, s * x + c * y


@psc.kernel
def lorenz(x: f64["n"], y: f64["n"], z: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"]]:
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


@psc.kernel
def ordered(x: i32["n"], y: i32["n"]) -> tuple[i32["n"], i32["n"]]:
    return np.minimum(x, y), np.maximum(x, y)


@psc.kernel
def rows(x: f32["m n"], shift: f32["m"], scale: f32["n"]) -> tuple[f32["m n"], f32["m n"]]:
    return (x - shift[:, None]) * scale, x * scale + shift[:, None]


@psc.kernel(donate=("x", "y"))
def in_place(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return x + y * y, y - x * x


GOOD: tuple[Any, ...] = (turned, lorenz, ordered, rows, in_place)


@psc.kernel
def shared(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return np.abs(x - y) + x, np.abs(x - y) * y


@psc.kernel
def chained(p: f32["n"], v: f32["n"], g: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    v = 0.9 * v + g
    return p - 0.1 * v, v


@psc.kernel
def same(x: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    y = x * x
    return y, y


@psc.kernel
def passed(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return x, x + y


@psc.kernel
def filled(x: f32["n"], a: f32) -> tuple[f32["n"], f32["n"]]:
    return np.full_like(x, a), x * a


@psc.kernel
def expensive(x: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return np.exp(x), x * x


@psc.kernel
def lengths(x: f32["n"]) -> tuple[f32["n"], f32]:
    return x * x, np.sum(x)


@psc.kernel
def shapes(x: f32["m n"], y: f32["n"]) -> tuple[f32["m n"], f32["n"]]:
    return x * y, y + 1


@psc.kernel
def complexes(x: c64["n"], y: c64["n"]) -> tuple[c64["n"], c64["n"]]:
    return x + y, x - y


@psc.kernel
def looped(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return psc.fori_loop(0, 3, lambda _, z: z * y, x), x + y


@psc.kernel
def stepped(
    p: f32["n"], q: f32["n"], dp: f32["n"], dq: f32["n"], rate: f32
) -> tuple[f32["n"], f32["n"]]:
    return p - rate * dp, q - rate * dq


@psc.kernel
def spread(x: f32["m"], y: f32["n"]) -> tuple[f32["m n"], f32["m n"]]:
    return x[:, None] + y, x[:, None] * y


@psc.kernel
def one(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return x + y


OTHERS: tuple[Any, ...] = (
    *(shared, chained, same, passed, filled, expensive),
    *(lengths, shapes, complexes, looped, stepped, one),
)


def module_of(kernel: Any, n: int) -> tuple[Any, Request]:
    sizes = {name: {"m": 3, "n": n}[name] for name in kernel.optimised(Choice()).dims}
    lowered = kernel.lower(**sizes)
    request = Request(lowered.program, lowered.sizes, lowered.donate)
    return emitted(request), request


def test_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernel in GOOD:
        assert siblings.options(module_of(kernel, siblings.FEWEST)[0]) == TOGETHER
        assert not siblings.options(module_of(kernel, siblings.FEWEST // 3 - 1)[0]), "too few"
    for other in OTHERS:
        assert not siblings.options(module_of(other, siblings.FEWEST)[0])
    assert not siblings.options(module_of(spread, siblings.FEWEST - 1)[0]), "it reads little"
    module, request = module_of(turned, siblings.FEWEST)
    with monkeypatch.context() as patch:
        patch.setattr(siblings, "MOST", 3)
        assert not siblings.options(module), "too many arrays at a time"
    with_it = module_key(module, request)
    others = exactness.options(module)
    assert module_options.options(module) == {**others, **TOGETHER}
    monkeypatch.setenv(VARIABLE, siblings.SIBLINGS_TOGETHER.name)
    assert module_options.options(module) == others
    assert module_key(module, request) != with_it


def loops(made: Executable) -> int:
    return made.text().count(" fusion(")


@pytest.mark.parametrize("kernel", [turned, lorenz, rows, in_place])
def test_one_loop_computes_all_results(kernel: Any) -> None:
    module, _ = module_of(kernel, siblings.FEWEST)
    assert loops(module_options.compiled(module)) == 1
    assert loops(compile_module(module)) > 1


@pytest.mark.parametrize("n", [1, 37, 300, siblings.FEWEST])
@pytest.mark.parametrize("kernel", GOOD)
def test_results_are_the_same(kernel: Any, n: int) -> None:
    module, _ = module_of(kernel, n)
    together, apart = (compile_module(module, options=each) for each in (TOGETHER, {}))
    random = np.random.default_rng(n)
    given: list[Any] = []
    for each in together.inputs:
        x = np.asarray(random.normal(size=each.shape) * 5)
        if each.dtype.kind == "f" and x.size > 8:
            x.flat[::7] = np.resize(SPECIAL_NUMBERS, x.flat[::7].shape)
        given.append(x.astype(each.dtype))
    for first, second in zip(together.run(given), apart.run(given), strict=True):
        size = 1 + max(np.nanmax(np.abs(x[np.isfinite(x)])) for x in given) ** 2
        epsilon = np.finfo(first.dtype).eps if first.dtype.kind == "f" else 0
        np.testing.assert_allclose(first, second, rtol=0, atol=2 * epsilon * size)


SPECIAL_NUMBERS = [0.0, -0.0, 1e-40, 30, np.inf, np.nan, -7, -np.inf]


@pytest.mark.parametrize("code", ["f4", "f8", "i4", "u1", "?"])
def test_every_operation_has_the_same_results(code: str) -> None:
    functions = [
        (each, each.arity)
        for each in dict.fromkeys(TABLE.values())
        if is_cheap(each, operands(code, each.arity, low=True))
    ]
    assert len(functions) > 3
    module = beside(functions, code)
    together, apart = (compile_module(module, options=each) for each in (TOGETHER, {}))
    assert loops(together) < loops(apart)
    assert_same(functions, code, apart, together, ulps=0)


def is_cheap(function: Any, given: tuple[Any, ...]) -> bool:
    """Whether programs of this operation may be compiled so."""
    module = alone(function, given)
    return module is not None and bool(siblings.made_of(module))


def test_donated_arrays_are_overwritten_by_one_loop() -> None:
    n = siblings.FEWEST
    x, y = np.random.default_rng(0).normal(size=(2, n)).astype(np.float32)
    nothing = np.zeros_like(x)
    given: Any = one(x, nothing), one(y, nothing)
    first, second = in_place(*given)
    assert all(each.is_deleted() for each in given)
    np.testing.assert_allclose(first, x + y * y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, y - x * x, rtol=1e-5, atol=1e-5)
