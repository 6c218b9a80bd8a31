"""Vectors of 512 bits, and of 128: what may be compiled for them has the same results without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, f32
from pscdsl._src.primitives import special as special  # fills the table
from pscdsl._src.primitives.elementwise import TABLE, Clamp, Convert
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.executable_store import module_key
from pscdsl._src.xla.runtime.executable import Executable
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.stdlib import activations
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import F32, F64, I32
from tests.support.numpy_harness import build

COUNT = 4096 + 37
CODES = ("f4", "f8", "i4", "u1", "?")


def operands(code: str, count: int, low: bool) -> tuple[Any, ...]:
    """Numbers between 0 and 1, or of any sign."""
    random = np.random.default_rng(count)
    if code == "?":
        return tuple([random.random(COUNT) < 0.5 for _ in range(count)])
    if code[0] in "iu":
        return tuple([random.integers(1, 100, COUNT).astype(code) for _ in range(count)])
    draw = random.uniform(0.05, 0.95, (count, COUNT)) if low else random.normal(size=(count, COUNT))
    return tuple([(each * (1 if low else 4)).astype(code) for each in draw])


def functions(code: str) -> list[tuple[Any, int]]:
    """The functions that take a dtype and consist of validated operations, and their operands."""
    found: list[tuple[Any, int]] = []
    more = [(Convert(each), 1) for each in (F32, F64, I32)]
    for function, count in [*((each, each.arity) for each in TABLE.values()), *more]:
        module = alone(function, operands(code, count, low=True))
        if module is not None and module_options.expensive(module) is not None:
            found.append((function, count))
    return found


def module_of(function: Any, given: tuple[Any, ...]) -> Any:
    """A module of a function at the types of what it is given."""
    built = build(function, given, {})
    return lower_module(built.function, built.sizes)


def alone(function: Any, given: tuple[Any, ...]) -> Any:
    """The same; None if the function does not take such operands."""
    try:
        return module_of(function, given)
    except (psc.CheckError, TypeError, ValueError, Failure):
        return None


def beside(functions: Sequence[tuple[Any, int]], code: str) -> Any:
    """A module that gives what each function makes of as many operands as it takes."""

    def every(*xs: Any) -> Any:
        return tuple([function(*xs[:count]) for function, count in functions])

    return module_of(every, operands(code, max(count for _, count in functions), low=True))


def assert_same(
    functions: Sequence[tuple[Any, int]], code: str, one: Executable, other: Executable, ulps: int
) -> None:
    """Compare what two executables of `beside` give."""
    for low in (True, False):
        given = operands(code, max(count for _, count in functions), low)
        for (function, _), x, y in zip(functions, one.run(given), other.run(given), strict=True):
            first, second = np.asarray(x), np.asarray(y)
            bound = ulps * np.finfo(first.dtype).eps if first.dtype.kind == "f" else 0
            np.testing.assert_allclose(second, first, rtol=bound, err_msg=str(function))


@pytest.mark.parametrize("width", ["128", "512"])
@pytest.mark.parametrize("code", CODES)
def test_validated_operations_have_the_same_results(code: str, width: str) -> None:
    if width == "512" and not module_options.has_wide_vectors():
        pytest.skip("a processor without AVX-512")
    allowed = functions(code)
    if code[0] == "f":
        allowed.append((Clamp(), 3))
    module = beside(allowed, code)
    assert module_options.expensive(module) is not None
    plain = compile_module(module)
    other = compile_module(module, options={module_options.VECTOR_WIDTH: width})
    assert_same(allowed, code, plain, other, ulps=8)


def operations(module: Any) -> set[str]:
    """The names of the operations of a module."""
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        found.add(operation.name)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def test_every_validated_operation_is_compared() -> None:
    seen = {"stablehlo.clamp"}
    for code in CODES:
        for function, count in functions(code):
            built = build(function, operands(code, count, low=True), {})
            seen |= operations(lower_module(built.function, built.sizes))
    moving = ("broadcast_in_dim", "iota", "reshape", "return")
    assert module_options.VALIDATED - seen <= {
        "func.call",
        *[f"stablehlo.{name}" for name in moving],
    }


@psc.kernel
def gelu(x: f32["n"]) -> f32["n"]:
    return activations.gelu(x)


@psc.kernel
def angle(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return np.exp(x) / np.exp(y) + np.arctan2(np.exp(x), y)


@psc.kernel
def arc(x: f32["n"]) -> f32["n"]:
    return np.exp(np.exp(x)) * np.arctan(x)


@psc.kernel
def turned(x: c64["n"]) -> c64["n"]:
    return np.exp(np.exp(x))


def chosen(kernel: Any, n: int) -> Any:
    lowered = kernel.lower(n=n)
    return module_options.wide_options(lower_module(lowered.program, lowered.sizes))


def test_what_is_compiled_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_options, "has_wide_vectors", lambda: True)
    assert chosen(gelu, module_options.FEWEST) == {module_options.VECTOR_WIDTH: "512"}
    assert not chosen(gelu, 100)
    for kernel in (angle, arc, turned):
        assert not chosen(kernel, module_options.FEWEST)
    lowered = gelu.lower(n=module_options.FEWEST)
    request = Specialisation(lowered.program, lowered.sizes)
    module = lower_module(lowered.program, lowered.sizes)
    with_them = module_key(module, request, module_options)
    monkeypatch.setattr(module_options, "has_wide_vectors", lambda: False)
    assert module_key(module, request, module_options) != with_them
    monkeypatch.setattr(module_options, "has_wide_vectors", lambda: True)
    monkeypatch.setenv(VARIABLE, "wide_vectors")
    assert not chosen(gelu, module_options.FEWEST)
