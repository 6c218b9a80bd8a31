"""How large derivatives are, what they save, and that calls stay calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.ir.program import Block, Equation, Function, walk
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.scan import Scan
from tests.derivatives.programs import HEAD, program

pytestmark = pytest.mark.quick_code


def called(function: Function) -> list[Function]:
    """The functions that a function calls, each once, directly or not."""
    found: dict[Function, None] = {}
    due = [function]
    while due:
        for each in walk(due.pop().body):
            if isinstance(each.primitive, Call) and each.primitive.function not in found:
                found[each.primitive.function] = None
                due.append(each.primitive.function)
    return list(found)


def size(function: Function) -> int:
    """How many equations a program has, those of each function that it calls counted once."""
    return sum(sum(1 for _ in walk(each.body)) for each in (function, *called(function)))


def scans(block: Block) -> Iterator[Equation]:
    """The scans of a block, outermost first."""
    for each in walk(block):
        if isinstance(each.primitive, Scan):
            yield each


def stacked(equation: Equation) -> list[str]:
    """The types of what a scan stacks."""
    assert isinstance(equation.primitive, Scan)
    return [str(var.type) for var in equation.outputs[equation.primitive.carried :]]


HELPER = """
@psc.kernel
def cell(x: f64["n"], w: f64["n"]) -> f64["n"]:
    return np.tanh(x * w) + x
"""


@pytest.mark.parametrize("order", [1, 2])
def test_a_kernel_that_is_called_a_hundred_times_is_differentiated_once(order: int) -> None:
    sizes: list[tuple[int, int]] = []
    for count in (4, 100):
        loss = "lambda x: np.sum(chain(x, w))"
        slope = f"psc.grad({loss})"
        if order == 2:
            slope = f"psc.grad(lambda x: np.sum({slope}(x)))"
        text = f"""{HELPER}
def chain(x, w):
    for _ in [0] * {count}:
        x = cell(x, w)
    return x

@psc.kernel
def kernel(x: f64["n"], w: f64["n"]) -> f64["n"]:
    return {slope}(x)
"""
        found = program(text)
        for each in (found.function, found.simple):
            functions = called(each)
            calls = sum(1 for e in walk(each.body) if isinstance(e.primitive, Call))
            assert calls >= count
            sizes.append((len(functions), sum(len(f.body.equations) for f in functions)))
    (few, few_simple, many, many_simple) = sizes
    assert many == few
    assert many_simple == few_simple


CHAINS = {
    "elementwise": "x = np.sin(x) * x",
    "products": "x = w @ x / (1 + x * x)",
    "shaping": "x = np.concatenate([x[1:], x[:1]]) * x",
    "loops": "x, _ = psc.scan(lambda c, a: (c * a, c), x, w)",
    "choices": "x = psc.cond(x[0] > 1, lambda: x * x, lambda: x + x)",
    "calls": "x = cell(x, x)",
    "tanh": "x = np.tanh(x)",
    "powers": "x = x**3 + 1",
}
ORDERS = {
    "grad": "psc.grad(loss)(x)",
    "grad of grad": "psc.grad(lambda x: np.sum(psc.grad(loss)(x)))(x)",
    "jvp of grad": "psc.jvp(psc.grad(loss), (x,), (x,))",
    "grad of grad of grad": (
        "psc.grad(lambda x: np.sum(psc.grad(lambda x: np.sum(psc.grad(loss)(x)))(x)))(x)"
    ),
    "jvp of jvp of jvp": "jvp(jvp(jvp(loss)))(x)",
    "hessian": "psc.hessian(loss)(x)",
    "vmap of grad": "psc.vmap(psc.grad(loss))(np.stack([x, x]))",
}


def sizes(step: str, order: str, count: int) -> tuple[int, int]:
    """How large the derivative of a chain of steps is, as elaborated and simplified."""
    text = f"""{HELPER}
def jvp(f):
    return lambda x: psc.jvp(f, (x,), (x,))[1]

@psc.kernel
def kernel(x: f64["n"], w: f64["n n"], d: f64["9 n"]):
    def loss(x):
        for _ in range({count}):
            {step}
        return np.sum(x)
    return {order}
"""
    made = program(text)  # verified with its sizes as symbols
    return size(made.function), size(made.simple)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("step", CHAINS)
def test_derivatives_grow_linearly_with_the_program(step: str, order: str) -> None:
    found = [sizes(CHAINS[step], ORDERS[order], count) for count in (3, 6, 12)]
    for a, b, c in zip(*found, strict=True):
        assert c - b <= 2 * (b - a) + 4, (a, b, c)


def nested(order: int, one: str) -> str:
    """A derivative of a derivative of ... the loss; `one` has {f} and {k}, which order it is."""
    text = "loss"
    for k in range(order):
        text = one.format(f=text, k=k)
    return f"({text})(x)"


ALONG = {
    "forward, along other directions": "(lambda x: psc.jvp({f}, (x,), (d[{k}],))[1])",
    "backward": "(lambda x: np.sum(d[{k}] * psc.grad({f})(x)))",
    "forward, along one direction": "(lambda x: psc.jvp({f}, (x,), (d[0],))[1])",
}


@pytest.mark.parametrize("way", ALONG)
@pytest.mark.parametrize("step", CHAINS)
def test_each_order_multiplies_a_program_by_about_three(step: str, way: str) -> None:
    """Along k directions there are 2**k tangents, and a product of two factors has 3**k terms.

    So an order costs a factor of about three, whichever it is, after a start that depends on the
    functions.  What this forbids is that tangents of what an order has computed twice, or for
    nothing, make the factor larger.
    """
    found = [sizes(CHAINS[step], nested(order, ALONG[way]), 2) for order in range(1, 5)]
    for (plain, simple), (next_plain, next_simple) in pairwise(found):
        assert next_simple <= 3.3 * simple + 16, found
        assert next_plain <= 3.3 * plain + 40, found


@pytest.mark.parametrize("step", ["elementwise", "powers", "shaping", "choices", "tanh"])
def test_along_one_direction_programs_grow_like_a_polynomial(step: str) -> None:
    """Tangents of the same order are the same, so that there are k of them and not 2**k."""
    way = ALONG["forward, along one direction"]
    found = [sizes(CHAINS[step], nested(order, way), 2) for order in range(1, 6)]
    first = found[0][1]
    for order, (plain, simple) in enumerate(found, 1):
        assert simple <= first * order**2, found
        assert plain <= 2 * first * order**2, found


RNN = """
def loss(w, u, b, xs, h):
    def step(h, x):
        h = np.tanh(w @ h + u @ x + b)
        return h, h
    last, states = psc.scan(step, h, xs)
    return RESULT

@psc.kernel
def kernel(w: f64["h h"], u: f64["h d"], b: f64["h"], xs: f64["t d"], h: f64["h"]):
    return psc.grad(loss, argnums=(0, 1, 2))(w, u, b, xs, h)
"""
SAVED: dict[str, tuple[str, list[str]]] = {
    # The state before a step, for its product with the weights, and tanh, for its slope.
    "the last state of an rnn": (RNN.replace("RESULT", "np.sum(last)"), ["f64[t h]"] * 2),
    # The states that are returned are those that are saved.
    "all states of an rnn": (RNN.replace("RESULT", "np.sum(states**2)"), ["f64[t h]"] * 3),
    "gates": (
        """
def gate(x):
    return 1 / (1 + np.exp(-x))

@psc.kernel
def kernel(w: f64["4 h h"], u: f64["4 h d"], xs: f64["t d"], h: f64["h"]):
    def loss(w, u):
        def step(carry, x):
            h, c = carry
            z = w @ h + u @ x
            c = gate(z[0]) * c + gate(z[1]) * np.tanh(z[2])
            h = gate(z[3]) * np.tanh(c)
            return (h, c), 0
        return np.sum(psc.scan(step, (h, h), xs)[0][0])
    return psc.grad(loss, argnums=(0, 1))(w, u)
""",
        # Both states before the step, three gates, two hyperbolic tangents and their slopes.
        ["f64[t h]"] * 9,
    ),
    "what does not change": (
        """
@psc.kernel
def kernel(w: f64["h h"], x: f64["h"]):
    return psc.grad(
        lambda w: np.sum(psc.fori_loop(0, 9, lambda i, c: np.exp(np.sin(w)) @ c, x))
    )(w)
""",
        ["f64[9 h]"],
    ),
    "what is a slice already": (
        """
@psc.kernel
def kernel(x: f64["t n"], y: f64["t"]):
    def step(c, row):
        x, y = row
        return c + np.sum(x * x) * y, 0
    return psc.grad(lambda x, y: psc.scan(step, 0.0, (x, y))[0], argnums=(0, 1))(x, y)
""",
        # The sum of squares, for the slope in y; x and y themselves are there.
        ["f64[t]"],
    ),
    "what is linear": (
        """
@psc.kernel
def kernel(w: f64["h h"], xs: f64["t h"], h: f64["h"]):
    return psc.grad(lambda h, xs: np.sum(psc.scan(
        lambda h, x: (w @ h + 2 * x - h[::-1], h[0]), h, xs)[0]), argnums=(0, 1))(h, xs)
""",
        [],
    ),
    "what only one branch needs": (
        """
@psc.kernel
def kernel(x: f64["t"], w: f64["n"], big: f64["t n n"]):
    def step(c, row):
        a, m = row
        return psc.cond(a > 0, lambda: c * a * w, lambda: c + np.sum(np.sin(m)) + a), 0
    return psc.grad(lambda x: np.sum(psc.scan(step, w, (x, big))[0]))(x)
""",
        ["f64[t n]"],
    ),
    "what is cheap to compute again": (
        """
@psc.kernel
def kernel(x: f64["t"], y: f64):
    def step(c, a):
        b = 2 * a + 1
        return c * np.maximum(b, -b), 0
    return psc.grad(lambda y: psc.scan(step, y, x)[0])(y)
""",
        [],
    ),
}


@pytest.mark.parametrize("name", SAVED)
def test_what_a_scan_saves(name: str) -> None:
    text, wanted = SAVED[name]
    found = program(text)
    for function in (found.function, found.simple):
        forward = [each for each in scans(function.body) if not _reversed(each)]
        saved = [each for scan in forward for each in stacked(scan)]
        if function is found.simple:
            assert saved == wanted
        backward = [each for each in scans(function.body) if _reversed(each)]
        assert len(backward) == 1
        assert len(forward) <= 1


def _reversed(equation: Equation) -> bool:
    assert isinstance(equation.primitive, Scan)
    return equation.primitive.reverse


def test_a_batch_of_rnns_shares_its_weights() -> None:
    text = """
@psc.kernel
def kernel(w: f64["h h"], xs: f64["n t h"], h: f64["h"]):
    def last(w, xs):
        return psc.scan(lambda h, x: (np.tanh(w @ h + x), 0), h, xs)[0]
    return psc.grad(lambda w: np.sum(psc.vmap(last, in_axes=(None, 0))(w, xs)))(w)
"""
    forward, backward = scans(program(text).simple.body)
    assert stacked(forward) == ["f64[t n h]"] * 2
    assert "f64[n h h]" not in {str(atom.type) for atom in (*forward.inputs, *backward.inputs)}


def test_cotangents_of_what_a_loop_does_not_use_are_not_carried() -> None:
    text = """
@psc.kernel
def kernel(x: f64["n"], y: f64["n"]):
    return psc.grad(lambda x, y: np.sum(psc.fori_loop(0, 3, lambda i, c: c * 2, x) + y),
                    argnums=(0, 1))(x, y)
"""
    (backward,) = scans(program(text).simple.body)
    assert isinstance(backward.primitive, Scan)
    assert backward.primitive.carried == 1


def test_a_key_that_is_used_twice_is_found_in_derivatives_of_derivatives() -> None:
    text = f"""{HEAD}
@psc.kernel
def kernel(key: psc.Key, x: f64["n"]):
    def loss(x):
        one = psc.random.normal(key, (x.shape[0],), np.float64)
        other = psc.random.normal(key, (x.shape[0],), np.float64)
        return np.sum(np.sin(x) * one * other)
    return psc.grad(lambda x: np.sum(psc.grad(loss)(x)))(x)
"""
    assert "PSC601" in {each.code for each in check_source(text, "keys.py").diagnostics}
