"""Vectors of 128 bits: what may be compiled for them has the same results without."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Complex, Float
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
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import F32, F64, I32
from tests.support.numpy_harness import build
from tests.support.share import some

SHORT, BOTH = {module_options.VECTOR_WIDTH: str(module_options.BITS)}, (np.float32, np.float64)


@psc.kernel
def forward(first: Float["s"], moves: Float["s s"], seen: Float["t s"]) -> Float:
    def step(message: Float["s"], emission: Float["s"]) -> Any:
        message = psc.special.logsumexp(message[:, None] + moves, axis=0) + emission
        return message, None

    return psc.special.logsumexp(psc.scan(step, first, seen)[0])


@psc.kernel
def product(
    first: Float["s"], moves: Float["s s"], seen: Float["t s"], v: Float["s s"]
) -> Float["s s"]:
    def likelihood(moves: Float["s s"]) -> Float:
        return forward(first, moves, seen)

    return psc.jvp(psc.grad(likelihood), (moves,), (v,))[1]


@psc.kernel
def mixed(first: Float["s"], moves: Float["s s"], seen: Float["t s"]) -> Float["s"]:
    """Products, slices, and what moves elements."""

    def step(x: Float["s"], y: Float["s"]) -> Any:
        turned = np.concatenate((x[1:], x[:1])) + np.flip(y)
        places = np.where(y > 0, 1, 0)
        best = turned * np.max(turned) + psc.update(x[places], places, y, combine="add")
        spread = np.sum(np.tanh(x[:, None] * moves).T * moves, axis=0) + np.pad(x[1:], (1, 0))
        return np.tanh(moves @ best + moves.T @ spread), None

    return psc.scan(step, first, seen)[0]


@psc.kernel
def turned(x: Complex["s"]) -> Complex["s"]:
    return psc.fori_loop(0, 3, lambda _, x: x * x, x)


@psc.kernel
def beside(x: Float["s"], y: Complex["s"]) -> tuple[Float["s"], Complex["s"]]:
    return psc.fori_loop(0, 3, lambda _, x: x * x, x), y * y


@psc.kernel
def angles(x: Float["s"]) -> Float["s"]:
    return psc.fori_loop(0, 3, lambda _, x: np.arctan(x), x)


@psc.kernel
def straight(x: Float["s"]) -> Float["s"]:
    return np.exp(x)


@psc.kernel
def nested(x: Float["s"], y: Float["t"]) -> tuple[Float["s"], Float["t"]]:
    def step(_: Any, state: Any) -> Any:
        x, y = state
        x = psc.fori_loop(0, 3, lambda _, x: np.exp(-x), x)
        return x, y * x[0]

    x, y = psc.fori_loop(0, 2, step, (x, y))
    return x, y


def arguments(kernel: Any, s: int, dtype: Any) -> list[Any]:
    random = np.random.default_rng(s)
    shapes = ((s,), (s, s), (40, s), (s, s))[: len(kernel.signature.parameters)]
    return [random.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("length", sorted(module_options.LENGTHS))
@pytest.mark.parametrize("kernel", [forward, product, mixed])
def test_loops_have_the_same_results(
    monkeypatch: pytest.MonkeyPatch, kernel: Any, length: int, dtype: Any
) -> None:
    s = length * module_options.BITS // (8 * np.dtype(dtype).itemsize)
    given = arguments(kernel, s, dtype)
    name = np.dtype(dtype).name.replace("float", "f")
    module, request = module_of(kernel, Float=name, s=s, t=40)
    assert module_options.narrow_options(module) == SHORT
    key = module_key(module, request, module_options)
    plain = np.asarray(compile_module(module).run(given)[0])
    other = np.asarray(compile_module(module, options=SHORT).run(given)[0])
    bound = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(other, plain, rtol=bound, atol=bound * np.max(np.abs(plain)))
    monkeypatch.setenv(VARIABLE, "narrow_vectors")
    assert not module_options.narrow_options(module)
    assert module_key(module, request, module_options) != key


def module_of(kernel: Any, **sizes: Any) -> Any:
    lowered = kernel.lower(**sizes)
    request = Specialisation(lowered.program, lowered.sizes)
    return lower_module(lowered.program, lowered.sizes), request


def test_what_is_compiled_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(kernel: Any, **sizes: Any) -> bool:
        return bool(module_options.narrow_options(module_of(kernel, **sizes)[0]))

    assert chosen(forward, Float="f64", s=6, t=9)
    for dtype, s in (("f64", 5), ("f64", 8), ("f64", 12), ("f64", 18), ("f32", 6), ("bf16", 24)):
        assert not chosen(forward, Float=dtype, s=s, t=9)
    assert not chosen(turned, Complex="c64", s=6)
    assert not chosen(beside, Float="f64", Complex="c64", s=6)
    assert not chosen(angles, Float="f64", s=6)  # not validated
    assert not chosen(straight, Float="f64", s=6)  # no loop
    assert chosen(nested, Float="f64", s=6, t=100)  # the inner loop decides
    assert not chosen(nested, Float="f64", s=100, t=6)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=256")
    assert not chosen(forward, Float="f64", s=6, t=9)


def operations(module: Any) -> set[str]:
    """The names of the operations of a module."""
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        found.add(operation.name)
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


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


@cache
def functions(code: str) -> Sequence[tuple[Any, int]]:
    """The functions that take a dtype and consist of validated operations, and their operands."""
    found: list[tuple[Any, int]] = []
    more = [(Convert(each), 1) for each in (F32, F64, I32)]
    for function, count in [*((each, each.arity) for each in TABLE.values()), *more]:
        module = alone(function, operands(code, count, low=True))
        if module is not None and operations(module) <= module_options.ELEMENTWISE:
            found.append((function, count))
    return found


def built_module(function: Any, given: tuple[Any, ...]) -> Any:
    """A module of a function at the types of what it is given."""
    built = build(function, given, {})
    return lower_module(built.function, built.sizes)


def alone(function: Any, given: tuple[Any, ...]) -> Any:
    """The same; None if the function does not take such operands."""
    try:
        return built_module(function, given)
    except (psc.CheckError, TypeError, ValueError, Failure):
        return None


def all_together(functions: Sequence[tuple[Any, int]], code: str) -> Any:
    """A module that gives what each function makes of as many operands as it takes."""

    def every(*xs: Any) -> Any:
        return tuple([function(*xs[:count]) for function, count in functions])

    return built_module(every, operands(code, max(count for _, count in functions), low=True))


def assert_same(
    functions: Sequence[tuple[Any, int]], code: str, one: Executable, other: Executable, ulps: int
) -> None:
    """Compare what two executables of `all_together` give."""
    for low in (True, False):
        given = operands(code, max(count for _, count in functions), low)
        for (function, _), x, y in zip(functions, one.run(given), other.run(given), strict=True):
            first, second = np.asarray(x), np.asarray(y)
            bound = ulps * np.finfo(first.dtype).eps if first.dtype.kind == "f" else 0
            np.testing.assert_allclose(second, first, rtol=bound, err_msg=str(function))


@pytest.mark.parametrize("code", CODES)
def test_elementwise_operations_have_the_same_results(code: str) -> None:
    allowed = some(functions(code), 3, code)
    if code[0] == "f":
        allowed.append((Clamp(), 3))
    module = all_together(allowed, code)
    assert operations(module) <= module_options.ELEMENTWISE
    assert_same(
        allowed, code, compile_module(module), compile_module(module, options=SHORT), ulps=8
    )


def test_every_validated_operation_is_compared() -> None:
    moving = ("broadcast_in_dim", "clamp", "iota", "reshape", "return")
    seen = {"func.call", *[f"stablehlo.{name}" for name in moving]}
    for code in CODES:
        for function, count in functions(code):
            seen |= operations(built_module(function, operands(code, count, low=True)))
    for kernel in (forward, product, mixed):
        seen |= operations(module_of(kernel, Float="f64", s=6, t=9)[0])
    assert seen >= module_options.VALIDATED
