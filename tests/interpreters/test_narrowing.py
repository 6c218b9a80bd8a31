"""Calls and loops that compute only what is used of them: rows that are carries, parts of calls."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import bool_, f32, f64
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.program import Block, Equation, Function, evaluate
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Concatenate
from pscdsl._src.transforms.simplify import simplify
from pscdsl.stdlib.hmm import backward, forward, log_likelihood


@psc.kernel
def states(xs: f64["t n"], h: f64["n"]) -> f64["t n"]:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h + x)
        return h, h

    return psc.scan(step, h, xs)[1]


@psc.kernel
def from_start(xs: f64["t n"], h: f64["n"]) -> f64["t+1 n"]:
    return np.concatenate([h[None], states(xs, h)])


@psc.kernel
def to_end(xs: f64["t n"], h: f64["n"]) -> f64["t+1 n"]:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h + x)
        return h, h

    return np.concatenate([psc.scan(step, h, xs, reverse=True)[1], h[None]])


@psc.kernel
def several(xs: f64["t n"], h: f64["n"]) -> tuple[f64["t n"], f64["t"], f64["n"], bool_["t n"]]:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h + x)
        return h, (h * 2, np.sum(x), h > 0)

    last, (doubled, sums, signs) = psc.scan(step, h, xs)
    return doubled, sums, last, signs


@psc.kernel
def of_carry(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return states(xs, h)[-1]


@psc.kernel
def of_other(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return several(xs, h)[0][-1]


@psc.kernel
def of_scalars(xs: f64["t n"], h: f64["n"]) -> f64:
    return several(xs, h)[1][-1]


@psc.kernel
def of_truths(xs: f64["t n"], h: f64["n"]) -> tuple[bool_["n"], f64]:
    _, sums, _, signs = several(xs, h)
    return signs[-1], np.sum(sums)


@psc.kernel
def of_part(xs: f64["t n"], h: f64["n"]) -> f64:
    return states(xs, h)[-1, 0]


@psc.kernel
def of_join(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return from_start(xs, h)[-1]


@psc.kernel
def of_short_join(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    found = np.concatenate([h[None] * 2, states(xs, h)])
    return found[-1]


@psc.kernel
def of_own_join(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    def step(h: Any, x: Any) -> Any:
        return np.tanh(h + x), h * x

    found = np.concatenate([h[None], psc.scan(step, h, xs[1:])[1]])
    return found[-1]


@psc.kernel
def of_reverse(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return to_end(xs, h)[0]


@psc.kernel
def of_functions(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    found = states(xs, h)
    return (np.exp(found) * h + np.where(found > 0, found, 1))[-1]


@psc.kernel
def of_rows(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return psc.map(lambda x: np.exp(x) * h, xs)[-1]


@psc.kernel
def of_first_row(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return psc.map(lambda x: np.exp(x) * h, xs)[0]


@psc.kernel
def in_loops(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    return psc.scan(lambda h, x: (states(xs + x, h)[-1] + of_rows(xs, h), None), h, xs)[0]


@psc.kernel
def of_both(xs: f64["t n"], h: f64["n"]) -> f64["t n"]:
    found = states(xs, h)
    return found * found[-1]


@psc.kernel
def of_two_ends(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    found = states(xs, h)
    return found[0] * found[-1]


@psc.kernel
def squares(xs: f64["t n"], h: f64["n"]) -> f64:
    return np.sum(from_start(xs, h)[-1] ** 2)


@psc.kernel
def bounded(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
    found = psc.while_loop(lambda h: np.sum(h) < 3, lambda h: h + 1, h, max_steps=5)
    return states(xs, found)[-1]


NARROWED: list[Kernel[Any, Any]] = [
    of_carry,
    of_other,
    of_scalars,
    of_part,
    of_join,
    of_short_join,
    of_own_join,
    of_reverse,
    of_functions,
    of_rows,
    of_first_row,
    in_loops,
    bounded,
]
WHOLE: list[Kernel[Any, Any]] = [of_both, of_two_ends, of_truths]
GRADIENTS: list[Kernel[Any, Any]] = [psc.grad(squares, argnums=(0, 1)), psc.grad(of_part)]


def arguments(steps: int) -> tuple[Any, ...]:
    """States and inputs."""
    rng = np.random.default_rng(steps)
    return rng.normal(size=(steps, 3)), rng.normal(size=3)


def everything(function: Function) -> Iterator[tuple[Block, Equation]]:
    """Every equation of a program and of those that it calls, with its block."""
    due, met = [function.body], {function}
    while due:
        block = due.pop()
        for equation in block.equations:
            yield block, equation
            due.extend(equation.primitive.blocks())
            if isinstance(equation.primitive, Call) and equation.primitive.function not in met:
                met.add(equation.primitive.function)
                due.append(equation.primitive.function.body)


def stacks(function: Function) -> int:
    """How many results of loops are stacked, those of single steps left out."""
    return sum(
        len(each.outputs) - each.primitive.carried
        for _, each in everything(function)
        if isinstance(each.primitive, Scan) and each.primitive.length != 1
    )


def same_values(kernel: Kernel[Any, Any], simple: Function) -> None:
    """The simplified program computes the same, as NumPy and compiled."""
    verify(simple)
    assert simplify(simple) is simple
    program = kernel.ir()
    for steps in (1, 2, 5):
        given = arguments(steps)
        sizes = {"t": steps, "n": 3}
        wanted = evaluate(program, sizes, given)
        found = evaluate(simple, sizes, given)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        compiled = kernel.compile(**sizes).run(given)
        for one, other in zip(compiled, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


@pytest.mark.parametrize("kernel", NARROWED, ids=lambda kernel: kernel.name)
def test_a_row_that_alone_is_used_is_carried(kernel: Kernel[Any, Any]) -> None:
    simple = simplify(kernel.ir())
    assert not stacks(simple)
    same_values(kernel, simple)


@pytest.mark.parametrize("kernel", WHOLE, ids=lambda kernel: kernel.name)
def test_a_stack_that_is_used_otherwise_stays(kernel: Kernel[Any, Any]) -> None:
    simple = simplify(kernel.ir())
    assert stacks(simple) == 1
    same_values(kernel, simple)


@pytest.mark.parametrize("kernel", GRADIENTS, ids=lambda kernel: kernel.name)
def test_gradients_pass_no_rows_of_zeros(kernel: Kernel[Any, Any]) -> None:
    """What a step saves is stacked, and the results; cotangents of the states are not."""
    simple = simplify(kernel.ir())
    names = {type(each.primitive).__name__ for _, each in everything(simple)}
    assert "Pad" not in names or kernel.name == "grad(of_part)"
    verify(simple)
    given = arguments(4)
    sizes = {"t": 4, "n": 3}
    wanted = evaluate(kernel.ir(), sizes, given)
    for one, other in zip(kernel.compile(**sizes).run(given), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


def test_results_of_calls_that_nobody_takes_are_not_computed() -> None:
    simple = simplify(of_scalars.ir())
    (call,) = [each for _, each in everything(simple) if isinstance(each.primitive, Call)]
    assert len(call.outputs) == 1
    assert len(call.inputs) == 1  # sums of rows need no first state


def test_a_function_is_narrowed_once_for_each_need() -> None:
    @psc.kernel
    def both(xs: f64["t n"], h: f64["n"]) -> f64["n"]:
        return states(xs, h)[-1] + states(xs, h + 1)[-1] + states(xs, h)[-1]

    simple = simplify(both.ir())
    calls = [each.primitive for _, each in everything(simple) if isinstance(each.primitive, Call)]
    assert len(calls) == 2
    assert len({call.function for call in calls if isinstance(call, Call)}) == 1


def test_the_likelihood_of_a_model_keeps_one_message() -> None:
    simple = simplify(log_likelihood.ir())
    assert not stacks(simple)
    assert not any(isinstance(each.primitive, Concatenate) for _, each in everything(simple))
    verify(simple)
    assert stacks(simplify(forward.ir())) == 1
    assert stacks(simplify(backward.ir())) == 1


def test_memory_of_the_stack_is_not_taken() -> None:
    sizes = {"t": 4096, "n": 16}
    taken = of_other.compile(**sizes).executable.memory()["temporaries"]
    assert taken < 4096 * 16 * 8 / 10
    assert several.compile(**sizes).executable.memory()["results"] > 4096 * 16 * 8


@psc.kernel
def drawn(key: psc.Key, h: f32["n"]) -> f32["n"]:
    def step(key: Any, x: Any) -> Any:
        now, later = psc.random.split(key)
        return later, x + psc.random.normal(now, h.shape)

    return psc.scan(step, key, np.zeros((5, h.shape[0]), np.float32))[1][-1]


def test_keys_are_carried_as_they_were() -> None:
    simple = simplify(drawn.ir())
    assert not stacks(simple)
    verify(simple)
