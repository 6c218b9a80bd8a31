"""Functions of `psc` outside of kernels: what a kernel gives, for every public name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import Key, f32, f64, i32
from pscdsl._src.frontend.modules.live import trace_of
from pscdsl._src.frontend.modules.traces import Opaque
from pscdsl._src.kernels import eager
from pscdsl._src.xla.runtime.devices import is_result
from pscdsl.typing.python_containers import is_tuple
from tests.support.hidden_writes import rebound

pytestmark = pytest.mark.quick_code(but=4)

X = np.linspace(-1, 2, 6, dtype=np.float32)
Y = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
N = np.array([2, 0, 1], np.int32)
TRIANGLE = np.array([[2, 0, 0], [1, 3, 0], [0, 1, 4]], np.float32)
SQUARE = psc.constant(np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], np.float32))
IMAGE = np.arange(50, dtype=np.float32).reshape(1, 2, 5, 5)
FILTER = np.ones((3, 2, 2, 2), np.float32)
KEY = psc.random.key(3)


def add(a: Any, b: Any) -> Any:
    return a + b


def double(a: Any) -> Any:
    return 2 * a


BRANCHES: tuple[Any, ...] = (np.sin, np.cos, double)


def small(a: Any) -> Any:
    return a < 30


def counted(i: Any, a: Any) -> Any:
    return a + i.astype(np.float32)


def both(c: Any, x: Any) -> Any:
    return c + x, c * x


def jacobi(matvec: Any, b: Any) -> Any:
    return psc.fori_loop(0, 60, lambda _, y: y + (b - matvec(y)) / 5, b * 0)


def times_square(v: Any) -> Any:
    return SQUARE @ v


def cubic(v: Any) -> Any:
    return v**3 - 2


def newton(f: Any, guess: Any) -> Any:
    return psc.fori_loop(0, 30, lambda _, v: v - f(v) / (3 * v**2), guess)


def divided(g: Any, v: Any) -> Any:
    return v / g(1.0)


# A kernel, and the same called here; a name without a row fails a test below.


@psc.kernel
def scan(x: f32["n"]) -> tuple[f32, f32["n"]]:
    return psc.scan(both, 1.0, x)


@psc.kernel
def map_(x: f32["n"]) -> f32["n"]:
    return psc.map(double, x)


@psc.kernel
def associative_scan(x: f32["n d"]) -> f32["n d"]:
    return psc.associative_scan(add, x, reverse=True, axis=1)


@psc.kernel
def map_reduce(x: f32["n"]) -> f32:
    return psc.map_reduce(double, add, x, 0.5)


@psc.kernel
def fori_loop(x: f32["n"]) -> f32["n"]:
    return psc.fori_loop(1, 4, counted, x)


@psc.kernel
def while_loop(x: f32) -> f32:
    return psc.while_loop(small, double, x, max_steps=40)


@psc.kernel
def cond(x: f32["n"]) -> f32["n"]:
    return psc.cond(x[0] < 0, np.sin, np.cos, x)


@psc.kernel
def switch(i: i32, x: f32["n"]) -> f32["n"]:
    return psc.switch(i, BRANCHES, x)


@psc.kernel
def update(x: f32["n d"], i: i32["k"], y: f32["k d"]) -> f32["n d"]:
    return psc.update(x, i, y, "add")


@psc.kernel
def dynamic_slice(x: f32["n d"], i: i32) -> f32["2 1"]:
    assert x.shape[0] >= 2
    return psc.dynamic_slice(x, [i, 0], [2, 1])


@psc.kernel
def dynamic_update(x: f32["n d"], y: f32["1 1"], i: i32) -> f32["n d"]:
    return psc.dynamic_update(x, y, [i, 1])


@psc.kernel
def complex_(x: f32["n"]) -> psc.c64["n"]:
    return psc.complex(x, -x)


@psc.kernel
def top_k(x: f32["n"]) -> tuple[f32["2"], i32["2"]]:
    assert x.shape[0] >= 2
    return psc.top_k(x, 2)


@psc.kernel
def triangular_solve(a: f32["n n"], b: f32["n"]) -> f32["n"]:
    return psc.triangular_solve(a, b, lower=True)


@psc.kernel
def conv(x: f32["1 2 5 5"], w: f32["3 2 2 2"]) -> f32["1 3 4 4"]:
    return psc.conv(x, w)


@psc.kernel
def conv_transpose(x: f32["1 2 5 5"], w: f32["3 2 2 2"]) -> f32["1 3 10 10"]:
    return psc.conv_transpose(x, w, strides=2)


@psc.kernel
def max_pool(x: f32["1 2 5 5"]) -> f32["1 2 2 2"]:
    return psc.max_pool(x, 2, 2)


@psc.kernel
def avg_pool(x: f32["1 2 5 5"]) -> f32["1 2 4 4"]:
    return psc.avg_pool(x, 2, 1)


@psc.kernel
def reduce_window(x: f32["1 2 5 5"]) -> f32["1 2 4 3"]:
    return psc.reduce_window(x, "max", (2, 3))


@psc.kernel
def custom_linear_solve(b: f32["3"]) -> f32["3"]:
    return psc.custom_linear_solve(times_square, b, jacobi, symmetric=True)


@psc.kernel
def custom_root(x: f32) -> f32:
    return psc.custom_root(cubic, x, newton, divided)


@psc.kernel
def stop_gradient(x: f32["n"]) -> f32["n"]:
    return psc.stop_gradient(x)


@psc.kernel
def constant(x: f32["n"]) -> f32["n"]:
    return psc.constant(x)


@psc.kernel
def reveal_type(x: f32["n"]) -> f32["n"]:
    return psc.reveal_type(x)


@psc.kernel
def scope(x: f32["n"]) -> f32["n"]:
    with psc.scope("doubled"):
        y = 2 * x
    return y


@psc.kernel
def place(x: f32["n d"]) -> f32["n d"]:
    return psc.place(x, "n@data d")


def scoped(x: Any) -> Any:
    with psc.scope("doubled"):
        y = 2 * x
    return y


ONE = np.float32(1)
AT = np.int32(1)
ROWS: dict[str, tuple[Any, Callable[[], Any], tuple[Any, ...]]] = {
    "scan": (scan, lambda: psc.scan(both, 1.0, X), (X,)),
    "map": (map_, lambda: psc.map(double, X), (X,)),
    "associative_scan": (
        associative_scan,
        lambda: psc.associative_scan(add, Y, reverse=True, axis=1),
        (Y,),
    ),
    "map_reduce": (map_reduce, lambda: psc.map_reduce(double, add, X, 0.5), (X,)),
    "fori_loop": (fori_loop, lambda: psc.fori_loop(1, 4, counted, X), (X,)),
    "while_loop": (while_loop, lambda: psc.while_loop(small, double, ONE, max_steps=40), (ONE,)),
    "cond": (cond, lambda: psc.cond(X[0] < 0, np.sin, np.cos, X), (X,)),
    "switch": (switch, lambda: psc.switch(AT, BRANCHES, X), (AT, X)),
    "update": (update, lambda: psc.update(Y, N, Y, "add"), (Y, N, Y)),
    "dynamic_slice": (dynamic_slice, lambda: psc.dynamic_slice(Y, [AT, 0], [2, 1]), (Y, AT)),
    "dynamic_update": (
        dynamic_update,
        lambda: psc.dynamic_update(Y, np.ones((1, 1), np.float32), [AT, 1]),
        (Y, np.ones((1, 1), np.float32), AT),
    ),
    "complex": (complex_, lambda: psc.complex(X, -X), (X,)),
    "top_k": (top_k, lambda: psc.top_k(X, 2), (X,)),
    "triangular_solve": (
        triangular_solve,
        lambda: psc.triangular_solve(TRIANGLE, TRIANGLE[1], lower=True),
        (TRIANGLE, TRIANGLE[1]),
    ),
    "conv": (conv, lambda: psc.conv(IMAGE, FILTER), (IMAGE, FILTER)),
    "conv_transpose": (
        conv_transpose,
        lambda: psc.conv_transpose(IMAGE, FILTER, strides=2),
        (IMAGE, FILTER),
    ),
    "max_pool": (max_pool, lambda: psc.max_pool(IMAGE, 2, 2), (IMAGE,)),
    "avg_pool": (avg_pool, lambda: psc.avg_pool(IMAGE, 2, 1), (IMAGE,)),
    "reduce_window": (reduce_window, lambda: psc.reduce_window(IMAGE, "max", (2, 3)), (IMAGE,)),
    "custom_linear_solve": (
        custom_linear_solve,
        lambda: psc.custom_linear_solve(times_square, X[:3], jacobi, symmetric=True),
        (X[:3],),
    ),
    "custom_root": (custom_root, lambda: psc.custom_root(cubic, ONE, newton, divided), (ONE,)),
    "stop_gradient": (stop_gradient, lambda: psc.stop_gradient(X), (X,)),
    "constant": (constant, lambda: psc.constant(X), (X,)),
    "reveal_type": (reveal_type, lambda: psc.reveal_type(X), (X,)),
    "scope": (scope, lambda: scoped(X), (X,)),
    "place": (place, lambda: psc.place(Y, "n@data d"), (Y,)),
}

OWN_TESTS = {
    *("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "vmap", "checkpoint"),
    *("jvp", "vjp", "linearize", "linear_transpose", "custom_jvp", "custom_vjp", "check_grads"),
}
"""What makes functions of functions, with tests of its own."""
ABOUT_KERNELS = {
    *("kernel", "compile_all", "load", "stand_in", "pure", "primitive", "from_dlpack", "devices"),
    *("register_translation_rule", "profile", "gather"),
}
"""What makes or loads kernels, or says what they may call: it stands outside of them anyway."""
EFFECTS = {"check", "progress"}
"""What has no result; its tests are in `test_effects`."""
ONE_DEVICE: dict[str, Callable[[], object]] = {
    "on_each": lambda: psc.on_each("data", np.sum),
    "axis_sum": lambda: psc.axis_sum(np.ones(2), "data"),
    "axis_gather": lambda: psc.axis_gather(np.ones(2), "data"),
    "axis_shift": lambda: psc.axis_shift(np.ones(2), "data"),
    "axis_index": lambda: psc.axis_index("data"),
    "axis_size": lambda: psc.axis_size("data"),
}
"""What concerns one device's part of a kernel."""


@pytest.mark.parametrize("name", ONE_DEVICE)
def test_one_devices_part_is_a_part_of_a_kernel(name: str) -> None:
    with pytest.raises(TypeError, match=rf"psc\.{name} is for functions that "):
        ONE_DEVICE[name]()


def same(found: Any, wanted: Any) -> None:
    if is_tuple(wanted):
        assert is_tuple(found)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ROWS)
def test_a_call_gives_what_a_kernel_gives(name: str) -> None:
    kernel, outside, arguments = ROWS[name]
    wanted = kernel(*arguments)
    for _ in range(2):
        found = outside()
        same(found, wanted)
        if name not in ("constant", "stop_gradient", "reveal_type", "scope", "place"):
            assert all(map(is_result, found if is_tuple(found) else (found,)))


def test_every_public_function_has_a_row() -> None:
    text = Path(psc.__file__).with_suffix(".pyi").read_text()
    names = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    functions = {name for name in names if inspect.isfunction(getattr(psc, name))}
    assert functions == {*ROWS, *OWN_TESTS, *ABOUT_KERNELS, *EFFECTS, *ONE_DEVICE}


DRAWS: dict[str, tuple[Any, ...]] = {
    "bits": ((3,), np.uint8),
    "uniform": ((3,), None, -1.0, 2.0),
    "randint": ((3,), 0, 9),
    "bernoulli": (0.3, (4,)),
    "rademacher": ((4,),),
    "normal": ((3, 2), np.float64),
    "truncated_normal": (-1.0, 1.0, (3,)),
    "exponential": ((3,),),
    "laplace": ((3,),),
    "gumbel": ((3,),),
    "logistic": ((3,),),
    "gamma": (2.0, (3,)),
    "loggamma": (2.0, (3,)),
    "beta": (2.0, 3.0, (3,)),
    "dirichlet": (TRIANGLE[1] + 1,),
    "poisson": (4.0, (3,)),
    "permutation": (Y,),
    "choice": (X, (2,), False),
    "categorical": (Y.astype(np.float64),),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_kernels(name: str, tmp_path: Path) -> None:
    draw = getattr(psc.random, name)
    arguments = psc.constant(DRAWS[name])
    assert inspect.isfunction(draw)

    @psc.kernel
    def kernel(key: Key):  # type: ignore[no-untyped-def]
        return draw(key, *arguments)

    same(draw(KEY, *DRAWS[name]), kernel(KEY))


def test_every_distribution_has_a_row() -> None:
    public = {
        name
        for name, each in vars(psc.random).items()
        if inspect.isfunction(each) and each.__module__ == "pscdsl.random" and name[0] != "_"
    }
    assert public == {*DRAWS, "key", "split", "fold_in"}


# What may be an argument.


class Pair(psc.Record):
    """A record of arrays."""

    x: f32["n"]
    n: i32


def swap(pair: Any, _: Any) -> Any:
    return Pair(pair.x * 2, pair.n + 1), pair.n


def test_trees_are_arguments_and_results() -> None:
    pair, counts = psc.scan(swap, Pair(X, np.int32(0)), None, 3)
    assert isinstance(pair, Pair)
    np.testing.assert_array_equal(pair.x, X * 8)
    assert counts.tolist() == [0, 1, 2]
    many: Any = pyrsistent.pmap({"a": X, "b": pyrsistent.pvector([X])})
    found = psc.fori_loop(0, 2, lambda i, m: m, many)
    assert found.keys() == many.keys()
    same(found["b"][0], X)


def test_keys_are_keys_where_only_those_will_do() -> None:
    keys = psc.random.split(KEY, 3)
    found = psc.map(lambda key: psc.random.normal(key, ()), keys)
    same(found, np.array([psc.random.normal(key, ()) for key in keys]))
    same(psc.map(lambda words: words + np.uint32(1), keys), keys + 1)

    def noise(key: Key) -> Any:
        return psc.random.normal(key, ())

    same(psc.map(noise, keys), found)
    last, _ = psc.scan(lambda key, _: (psc.random.split(key)[0], None), KEY, None, 2)
    assert (last.dtype, last.shape) == (np.uint32, (2,))


def test_as_few_arrays_are_keys_as_will_do() -> None:
    words = np.arange(6, dtype=np.uint32).reshape(3, 2)
    key, sums = psc.scan(lambda key, x: (psc.random.split(key)[0], x.sum() + x.ndim), KEY, words)
    assert np.asarray(sums).tolist() == [2, 6, 10]
    assert (key.dtype, key.shape) == (np.uint32, (2,))
    found = psc.random.permutation(KEY, words, axis=1, independent=True)
    assert np.sort(found, axis=1).tolist() == words.tolist()
    many = tuple(psc.random.key(seed) for seed in range(eager.MOST_KEYS + 1))
    for keys in (many, many[:2]):
        split = psc.fori_loop(0, 1, lambda _, c: tuple([psc.random.split(k)[0] for k in c]), keys)
        same(split, tuple([psc.random.split(each)[0] for each in keys]))


def test_a_key_is_used_once() -> None:
    def twice(key: Any) -> Any:
        return psc.random.normal(key, ()) + psc.random.uniform(key, ())

    with pytest.raises(psc.CheckError, match="PSC601"):
        psc.map(twice, psc.random.split(KEY, 3))


def test_numbers_are_literals_and_scalars_of_numpy_are_arguments() -> None:
    assert psc.cond(True, double, np.sin, 3.0).item() == 6  # the other one is never looked at
    found = psc.fori_loop(0, 2, counted, X)
    assert found.dtype == np.float32
    before = len(eager.CALLS)
    for at in range(5):
        same(psc.update(X, np.int32(at), 0.0), np.where(np.arange(6) == at, np.float32(0), X))
    assert len(eager.CALLS) == before + 1


SIZE: Any = np.int64(3)


@psc.kernel
def sized(key: Key, x: f64["4"]):  # type: ignore[no-untyped-def]
    first, second, third, fourth = psc.random.split(key, 4)
    return (
        psc.random.normal(first, SIZE),
        psc.random.permutation(second, SIZE),
        psc.random.choice(third, SIZE, (SIZE, 2)),
        psc.random.randint(fourth, (SIZE,), SIZE, SIZE + 9),
        psc.top_k(x, SIZE),
        psc.scan(lambda c, _: (c + 1, c), 0, None, SIZE),
    )


def test_integers_of_numpy_are_sizes_as_in_kernels() -> None:
    x, (first, second, third, fourth) = X[:4].astype(np.float64), psc.random.split(KEY, SIZE + 1)
    found = (
        psc.random.normal(first, SIZE),
        psc.random.permutation(second, SIZE),
        psc.random.choice(third, SIZE, (SIZE, 2)),
        psc.random.randint(fourth, (SIZE,), SIZE, SIZE + 9),
        psc.top_k(x, SIZE),
        psc.scan(lambda c, _: (c + 1, c), 0, None, SIZE),
    )
    same(found, sized(KEY, x))
    for size in (SIZE, SIZE + 1, SIZE):  # each has a program of its own
        assert psc.random.normal(KEY, (size, 1)).shape == (size, 1)
    true: Any = np.bool_(True)
    same(psc.associative_scan(add, Y, reverse=true, axis=SIZE - 2), associative_scan(Y))
    with pytest.raises(psc.CheckError, match="0 <= -3"):
        psc.random.normal(KEY, -SIZE)


@pytest.mark.parametrize("number", [-1, (2, -1), 1.5, None, True, "a"])
def test_only_sizes_say_how_many_keys(number: Any) -> None:
    with pytest.raises(TypeError, match="a number of keys or a shape"):
        psc.random.split(KEY, number)


# What is known between calls.

scale = 2.0


def scaled(a: Any) -> Any:
    return a * scale


def test_names_around_a_function_are_what_they_are_now() -> None:
    same(psc.map(scaled, X), X * np.float32(2))
    with rebound("tests.kernels.test_eager.scale", 5.0):
        same(psc.map(scaled, X), X * np.float32(5))


class Scaling(psc.Record):
    """A record with a method that looks up a global name."""

    x: f32["n"]

    def scaled(self) -> Any:
        """The field times what is global."""
        return self.x * scale


def test_methods_see_the_names_around_them_as_they_are_now() -> None:
    def call() -> Any:
        return psc.cond(True, lambda s: s.scaled(), lambda s: s.x, Scaling(X))

    same(call(), X * np.float32(2))
    with rebound("tests.kernels.test_eager.scale", 5.0):
        same(call(), X * np.float32(5))
    trace = trace_of(Scaling)
    assert trace is not None
    with pytest.raises(Opaque, match="was changed"):  # nothing that met it is kept
        trace.digest()


def test_captured_values_are_what_they_are_now() -> None:
    weights = np.ones(6, np.float32)
    for factor in range(3):
        found = psc.fori_loop(0, 6, lambda i, s: s + factor * weights[i], 0.0)  # noqa: B023
        assert found == 6.0 * factor * weights[0]
        weights = weights + 1


def test_functions_are_told_apart_by_what_they_are() -> None:
    for power in range(4):
        same(psc.map(lambda v: v**power, X), X**power)  # noqa: B023


def test_a_call_like_another_one_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("compiled once more")

    first = psc.map(lambda v: v * 4, X)
    monkeypatch.setattr(eager, "obtained", refuse)
    same(psc.map(lambda v: v * 4, X), first)
    with pytest.raises(AssertionError, match="compiled"):
        psc.map(lambda v: v * 77, X)


def test_few_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "MOST_PROGRAMS", 4)
    known = eager.Recent()
    for number in range(9):
        known.put(number, number + 1)
    assert [known.get(number) for number in range(9)] == [None] * 5 + [6, 7, 8, 9]


# What is refused.


def test_findings_are_those_of_kernels_with_the_place_of_the_call() -> None:
    with pytest.raises(psc.CheckError) as caught:
        psc.update(X, 9, 1.0)
    assert "psc.update(X, 9, 1.0)" in str(caught.value)
    assert [each.code for each in caught.value.diagnostics] == ["PSC314"]
    line = inspect.currentframe().f_lineno - 3  # type: ignore[union-attr]
    assert caught.value.diagnostics[0].span.line == line

    def wrong(c: Any, x: Any) -> Any:
        return c + x[0], c

    with pytest.raises(psc.CheckError) as caught:
        psc.scan(wrong, 0.0, X)
    assert "x[0]" in str(caught.value)
    with pytest.raises(psc.CheckError, match="the carry starts as this"):
        psc.scan(lambda c, x: (c[None], x), X, X)


def test_impure_functions_are_refused() -> None:
    def printing(v: Any) -> Any:
        print(v)
        return v

    with pytest.raises(psc.CheckError, match="PSC201"):
        psc.map(printing, X)


@dataclass
class Mutable:
    """What has no meaning in a kernel."""

    x: f32


def test_classes_without_a_meaning_are_refused() -> None:
    with pytest.raises(psc.CheckError, match="mutable dataclass"):
        psc.fori_loop(0, 2, lambda _, c: c, Mutable(ONE))


@pytest.mark.parametrize(
    "value", [np.ma.array(X, mask=X > 0), np.array(["a"]), np.array([object()])]
)
def test_what_is_no_array_is_refused(value: Any) -> None:
    with pytest.raises(psc.ArgumentError, match=r"psc\.update"):
        psc.update(value, 0, 1)
