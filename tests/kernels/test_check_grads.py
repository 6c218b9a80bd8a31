"""`psc.check_grads` accepts right rules, and says what is wrong of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c128, f16, f32, f64, i32

pytestmark = pytest.mark.quick_code

X = np.array([0.3, -1.2, 0.7])
Y = np.array([1.1, 0.4, -0.6])


class Layer(psc.Record):
    """A record with two leaves."""

    w: f64["n n"]
    b: f64["n"]


class State(NamedTuple):
    """A tuple with a leaf that has no tangent."""

    x: f64["n"]
    steps: i32


@psc.kernel
def network(layers: tuple[Layer, Layer], s: State, k: psc.Key) -> tuple[f64, State]:
    h = s.x + 0.1 * psc.random.normal(k, s.x.shape, np.float64)
    for layer in layers:
        h = np.tanh(layer.w @ h + layer.b)
    return np.sum(h), State(h * s.steps.astype(np.float64), s.steps)


def test_trees_integers_and_keys() -> None:
    rng = np.random.default_rng(0)
    layers = tuple(Layer(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(2))
    psc.check_grads(network, (layers, State(X, np.int32(3)), psc.random.key(0)), order=1)


@psc.kernel
def wave(x: f32["n"]) -> f32:
    return np.sum(np.exp(x) * np.sin(3 * x))


@psc.kernel
def turned(z: c128["n"]) -> c128["n"]:
    return z * z * np.conj(z)


def power(x: f64["n"], k: psc.Static[int]) -> f64["n"]:
    return x**k


@psc.custom_jvp
def product(x: f64["n"], y: f64["n"]) -> f64["n"]:
    return x * x * y


@product.defjvp
def product_rule(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return product(x, y), 2 * x * y * dx + x * x * dy


@psc.custom_vjp
def cube(x: f64["n"]) -> f64["n"]:
    return x * x * x


def cube_forward(x: Any) -> Any:
    return x * x * x, x


def cube_backward(x: Any, ct: Any) -> Any:
    return (3.0 * x * x * ct,)


cube.defvjp(cube_forward, cube_backward)


@psc.primitive
def squared(x: f64["n"]) -> f64["n"]:
    return x * x


@squared.translation
def squared_translation(hlo: Any, x: Any) -> Any:
    return hlo.binary("multiply", x, x)


@squared.jvp
def squared_rule(outputs: Any, primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return 2 * x * dx


RIGHT: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (wave, (X.astype(np.float32),), {}),
    (turned, (X + 1j * Y,), {}),
    (power, (np.abs(X), 3), {}),
    (product, (X, Y), {}),
    (product, (X, Y), {"modes": "rev", "order": 3}),
    (cube, (X,), {"modes": "rev"}),
    (squared, (X,), {}),
    (psc.grad(wave), (X.astype(np.float32),), {"order": 1}),
    (psc.vmap(product), (np.stack([X, Y]), np.stack([Y, X])), {"order": 1}),
]


@pytest.mark.parametrize(("fun", "args", "options"), RIGHT, ids=[str(i) for i in range(len(RIGHT))])
def test_right_rules(fun: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    psc.check_grads(fun, args, **options)


@psc.custom_jvp
def twice_too_much(p: State, y: f64["n"]) -> tuple[f64["n"], f64]:
    return p.x * y * y, np.sum(y)


@twice_too_much.defjvp
def twice_too_much_rule(primals: Any, tangents: Any) -> Any:
    (p, y), (dp, dy) = primals, tangents
    return twice_too_much(p, y), (dp.x * y * y + 4 * p.x * y * dy, np.sum(dy))


@psc.custom_vjp
def ill_typed(x: f64["n"]) -> f64["n"]:
    return x * x


def ill_typed_backward(x: Any, ct: Any) -> Any:
    return (np.ones(3) * x * ct,)


ill_typed.defvjp(cube_forward, ill_typed_backward)


@psc.custom_vjp
def wrong_in_one_place(x: f64["n"], y: f64["n"]) -> f64["n"]:
    return x * x * x * y


def wrong_forward(x: Any, y: Any) -> Any:
    return x * x * x * y, (x, y)


def wrong_backward(saved: Any, ct: Any) -> Any:
    x, y = saved
    factor: Any = np.where(np.arange(ct.size) == 1, 2.0, 3.0)  # pyright: ignore[reportUnknownArgumentType]
    return factor * x * x * y * ct, x * x * x * ct


wrong_in_one_place.defvjp(wrong_forward, wrong_backward)


@psc.custom_jvp
def right_once(x: f64["n"]) -> f64["n"]:
    return np.sin(x)


@right_once.defjvp
def right_once_rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return right_once(x), psc.stop_gradient(np.cos(x)) * dx


@psc.custom_jvp
def not_a_number(x: f64) -> f64:
    return x


@not_a_number.defjvp
def not_a_number_rule(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] * np.log(-psc.stop_gradient(primals[0]))


WRONG: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (
        twice_too_much,
        (State(X, np.int32(1)), Y),
        {},
        r"derivative of `twice_too_much` is wrong\n"
        r"order 1, forward mode: the tangent of `result\[0\]` along `y` is not what .*\n"
        r"  by differences  -?0\.\d+ at \(2,\)\n  by the rules    -?1\.\d+ at \(2,\)\n"
        r"they differ by .*, more than .*: atol=1e-06, and rtol=1e-06 of .* \(eps=0.001\)$",
    ),
    (
        twice_too_much,
        (State(X, np.int32(1)), Y),
        {"modes": ["rev"]},
        r"order 1, reverse mode: the cotangent of `y` at \(0,\)",
    ),
    (
        wrong_in_one_place,
        (X, Y),
        {"modes": "rev", "order": 1},
        r"order 1, reverse mode: the cotangent of `x` at \(1,\)",
    ),
    (
        right_once,
        (X,),
        {},
        r"order 2, forward mode of forward mode: the tangent of the tangent of `result` along `x`",
    ),
    (
        right_once,
        (X,),
        {"modes": ("rev", "fwd")},
        r"order 2, reverse mode of reverse mode: the cotangent of `x` at \(0,\)",
    ),
    (not_a_number, (1.5,), {}, r"by the rules    nan\n"),
    (wave, (X.astype(np.float32),), {"rtol": 1e-12, "atol": 0}, r"atol=0, and rtol=1e-12"),
    (np.log, (1e-3,), {}, r"not finite near by: choose other arguments, or a smaller eps"),
]


def log(x: f64) -> f64:
    return np.log(x)


@pytest.mark.parametrize(
    ("fun", "args", "options", "says"), WRONG, ids=[str(i) for i in range(len(WRONG))]
)
def test_wrong_rules(fun: Any, args: tuple[Any, ...], options: dict[str, Any], says: str) -> None:
    psc.check_grads(log, (2.0,), order=1)
    with pytest.raises(AssertionError, match=says):
        psc.check_grads(log if fun is np.log else fun, args, **options)


def test_right_once_is_right_to_the_first_order() -> None:
    psc.check_grads(right_once, (X,), order=1)


@psc.kernel
def halves(x: f16["n"]) -> f16["n"]:
    return x * x


@psc.kernel
def counts(x: f64["n"]) -> i32["n"]:
    return np.argsort(x)


def test_what_cannot_be_checked() -> None:
    with pytest.raises(psc.ArgumentError, match="f16 has too few digits"):
        psc.check_grads(halves, (X.astype(np.float16),))
    with pytest.raises(psc.ArgumentError, match="nothing to differentiate"):
        psc.check_grads(counts, (X,))
    with pytest.raises(psc.CheckError, match="PSC300"):
        psc.check_grads(ill_typed, (X,))
    with pytest.raises(psc.CheckError, match="PSC300"):
        psc.vjp(ill_typed, X)
    with pytest.raises(psc.CheckError, match="PSC520"):
        psc.check_grads(cube, (X,))
    with pytest.raises(ValueError, match="'fwd' and 'rev', not 'backward'"):
        psc.check_grads(wave, (X,), modes="backward")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        psc.check_grads(wave, (X.astype(np.float32),), order=0)
    with pytest.raises(psc.ArgumentError, match="`x` of `wave`"):
        psc.check_grads(wave, (X,))
    with pytest.raises(TypeError, match="takes a kernel"):
        psc.check_grads(np.sum, (X,))


def test_forward_mode_of_a_rule_for_reverse_mode_says_what_can_be_checked() -> None:
    with pytest.raises(psc.CheckError, match='check reverse mode alone: `modes="rev"`'):
        psc.check_grads(cube, (np.linspace(0.5, 1.5, 3),))
