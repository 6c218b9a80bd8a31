"""Two products with one matrix, in processes with one processor, are made in one pass over it."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, Num, bf16, f32, f64, i32
from pscdsl.forms import VARIABLE
from pscdsl.primitives.control import one_pass
from pscdsl.xla import emit, processors

D = 70


@pytest.fixture(autouse=True)
def _alone(  # pyright: ignore[reportUnusedFunction]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One processor, and small matrices count as large."""
    monkeypatch.setattr(emit, "processors", lambda: 1)
    monkeypatch.setattr(one_pass, "LEAST_BYTES", 1)


@psc.kernel
def normal_equations(x: Float["n d"], v: Float["d"]) -> Float["d"]:
    return x.T @ (x @ v)


@psc.kernel
def weighted(x: Float["n d"], h: Float["n"], v: Float["d"]) -> Float["d"]:
    return x.T @ (h * (x @ v))


@psc.kernel
def from_the_left(x: Float["n d"], h: Float["n"], v: Float["d"]) -> Float["d"]:
    return np.einsum("nd,n->d", x, np.where(h > 0.5, v @ x.T, 0.0) + 2)


@psc.kernel
def of_scalars(x: f64["n d"], h: f64["n"], v: f64["d"], s: f64) -> f64["d"]:
    u = x @ v
    mean = np.full(u.shape, np.mean(h))
    return np.clip(s * u - mean, -1, np.max(v)).astype(f32).astype(f64) @ x


def _loss(w: Any, x: Any, y: Any) -> Any:
    return np.mean(np.logaddexp(np.zeros_like(y), -y * (x @ w)))


@psc.kernel
def loss(w: f64["d"], x: f64["n d"], y: f64["n"]) -> f64:
    return _loss(w, x, y) + 0.1 * (w @ w)


@psc.kernel
def gradient(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    return psc.grad(loss)(v, x, h)


@psc.kernel
def value_too(x: f64["n d"], h: f64["n"], v: f64["d"]) -> tuple[f64, f64["d"]]:
    value, slope = psc.value_and_grad(loss)(v, x, h)
    return value, slope


@psc.kernel
def hessian_product(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    def slope(w: f64["d"]) -> f64["d"]:
        return psc.grad(loss)(w, x, h)

    return psc.jvp(slope, (v,), (v + 1,))[1]


@psc.kernel
def weights_too(x: f64["n d"], h: f64["n"], v: f64["d"]) -> tuple[f64["d"], f64["n"], f64]:
    u = x @ v
    weights = np.tanh(u * h)
    return weights @ x, np.sort(weights), np.max(u)


@psc.kernel
def two_vectors(x: f64["n d"], v: f64["d"], c: f64["d"]) -> tuple[f64["d"], f64["n"]]:
    one, other = x @ v, x @ c
    return x.T @ (one * np.exp(-(other**2))), other + 1


@psc.kernel
def one_after_the_other(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    v = x.T @ (h * (x @ v))
    return x.T @ (h * (x @ (v / np.sqrt(v @ v))))


@psc.kernel
def descended(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    return psc.fori_loop(0, 3, lambda _, v: v - 0.1 * psc.grad(loss)(v, x, h), v)


@psc.kernel
def halted(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    def step(state: tuple[f64["d"], i32]) -> tuple[f64["d"], i32]:
        v, i = state
        y = x.T @ (h * (x @ v))
        return y / np.sqrt(y @ y), i + 1

    return psc.while_loop(lambda state: state[1] < 3, step, (v, 0))[0]


@psc.kernel
def scanned(x: f64["n d"], v: f64["d"], hs: f64["3 n"]) -> f64["3 d"]:
    return psc.scan(lambda v, h: (v / 2, x.T @ np.maximum(h - x @ v, 0)), v, hs)[1]


@psc.kernel
def chosen(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
    return psc.cond(v[0] < 9, lambda: x.T @ (h * (x @ v)), lambda: v)


@psc.kernel
def normalised(x: f64["n d"], v: f64["d"]) -> f64["d"]:
    """The weights of a row depend on all rows."""
    u = x @ v
    return x.T @ (u / np.sum(u))


@psc.kernel
def another_matrix(x: f64["n d"], z: f64["n d"], v: f64["d"]) -> f64["d"]:
    return z.T @ (x @ v)


@psc.kernel
def columns_first(x: f64["n d"], h: f64["d"], c: f64["n"]) -> f64["n"]:
    return x @ (h * (x.T @ c))


@psc.kernel
def many_vectors(x: f64["n d"], vs: f64["d 3"]) -> f64["d 3"]:
    return x.T @ (x @ vs)


@psc.kernel
def many_matrices(xs: f64["2 n d"], v: f64["d"]) -> f64["2 d"]:
    def one(x: f64["n d"]) -> f64["d"]:
        return x.T @ (x @ v)

    return psc.vmap(one)(xs)


@psc.kernel
def moved(x: f64["n d"], v: f64["d"]) -> f64["d"]:
    u = x @ v
    return (x + u[0]).T @ u


@psc.kernel
def of_neighbours(x: f64["n d"], v: f64["d"]) -> f64["d"]:
    return x.T @ np.roll(x @ v, 1)


@psc.kernel
def half_precise(x: bf16["n d"], v: bf16["d"]) -> bf16["d"]:
    return x.T @ (x @ v)


@psc.kernel
def costly(x: f64["n d"], v: f64["d"]) -> f64["d"]:
    return x.T @ np.sin(np.exp(np.sin(np.tanh(np.cos(x @ v)))))


FOUND = (
    normal_equations,
    weighted,
    from_the_left,
    of_scalars,
    gradient,
    value_too,
    hessian_product,
    weights_too,
    two_vectors,
    one_after_the_other,
    descended,
    halted,
    scanned,
    chosen,
)
NOT_FOUND = (
    normalised,
    another_matrix,
    columns_first,
    many_vectors,
    many_matrices,
    moved,
    of_neighbours,
    half_precise,
    costly,
)


def arguments(kernel: Any, n: int, d: int, dtype: Any = np.float64) -> list[Any]:
    """What a kernel takes."""
    random = np.random.default_rng(n)
    shapes: dict[str, tuple[int, ...]] = {
        "x": (n, d),
        "z": (n, d),
        "xs": (2, n, d),
        "h": (d if kernel is columns_first else n,),
        "hs": (3, n),
        "v": (d,),
        "c": (n if kernel is columns_first else d,),
        "vs": (d, 3),
        "s": (),
    }
    names = [each.name for each in kernel.signature.parameters]
    dtype = "bfloat16" if kernel is half_precise else dtype
    return [np.asarray(random.normal(size=shapes[name]) / 4).astype(dtype) for name in names]


def text(kernel: Any, **chosen: Any) -> str:
    """The module of a kernel."""
    return str(kernel.lower(**{"n": 100, "d": D, **chosen}).text())


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    """Whether all results agree."""
    founds, wanteds = ([*x] if isinstance(x, tuple) else [x] for x in (found, wanted))
    for one, other in zip(founds, wanteds, strict=True):
        scale = np.max(np.abs(np.asarray(other)))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("kernel", [*FOUND, *NOT_FOUND], ids=lambda kernel: str(kernel.name))
def test_results_are_the_same(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = {"Float": "f64"} if "Float" in str(kernel.signature) else {}
    given = arguments(kernel, 61, D)
    found, new = kernel(*given), text(kernel, **dtype)
    monkeypatch.setenv(VARIABLE, "one_pass")
    assert (text(kernel, **dtype) != new) == (kernel in FOUND)
    close(found, psc.kernel(kernel.__wrapped__)(*given), 0.02 if kernel is half_precise else 1e-11)


@pytest.mark.parametrize("kernel", [weighted, from_the_left, gradient], ids=lambda k: str(k.name))
def test_no_product_of_the_matrix_is_left(kernel: Any) -> None:
    found = text(kernel, **({} if kernel is gradient else {"Float": "f32"}))
    assert found.count("stablehlo.while") == 2
    assert "dot_general" not in found.replace("%arg0, %arg0, contracting_dims = [0] x [0]", "")


def test_a_loop_has_one_product_instead_of_two() -> None:
    assert text(descended).count("stablehlo.while") == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d"),
    [(1, 64), (2, 65), (7, 100), (8, 96), (9, 300), (513, 71), (1031, 64), (13, 1365), (515, 1000)],
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, dtype: Any, n: int, d: int) -> None:
    given = arguments(weighted, n, d, dtype)
    found = weighted(*given)
    name = {np.float32: "f32", np.float64: "f64"}[dtype]
    used = text(weighted, n=n, d=d, Float=name)
    monkeypatch.setenv(VARIABLE, "one_pass")
    assert text(weighted, n=n, d=d, Float=name) != used
    x, h, v = (each.astype(np.longdouble) for each in given)
    scale = np.abs(x).T @ (np.abs(h) * (np.abs(x) @ np.abs(v)))
    error = np.max(np.abs(np.asarray(found) - x.T @ (h * (x @ v))) / scale)
    assert error <= 8 * np.finfo(dtype).eps


def test_long_sums_are_accurate() -> None:
    """Where all terms have one sign, one sum after another loses digits."""
    random = np.random.default_rng(0)
    x, v = random.uniform(size=(200_003, 64)).astype(np.float32), np.ones(64, np.float32)
    wide = x.astype(np.float64)
    exact = wide.T @ (wide @ v)
    error = np.max(np.abs(np.asarray(normal_equations(x, v)) - exact)) / np.max(exact)
    assert error <= 16 * np.finfo(np.float32).eps


def test_what_is_not_finite_spreads() -> None:
    x, h, v = arguments(weighted, 21, D)
    h[3] = np.inf
    x[5, 1] = np.nan
    x[7, :] = 0
    h[7] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = x.T @ (h * (x @ v))
    np.testing.assert_array_equal(np.isnan(weighted(x, h, v)), np.isnan(wanted))
    h[7], x[5, 1] = 1, 1
    np.testing.assert_array_equal(weighted(x, h, v), x.T @ (h * (x @ v)))


def test_derivatives_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def size(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64:
        return np.sum(np.sin(x.T @ np.tanh(h * (x @ v))))

    def product(x: f64["n d"], h: f64["n"], v: f64["d"]) -> f64["d"]:
        def slope(v: f64["d"]) -> f64["d"]:
            return psc.grad(size, argnums=2)(x, h, v)

        return psc.jvp(slope, (v,), (v,))[1]

    given = arguments(weighted, 33, D)
    x, h, v = given

    def slopes(at: Any) -> Any:
        return psc.grad(psc.kernel(size), argnums=(0, 1, 2))(x, h, at)

    found, second = slopes(v), psc.kernel(product)(*given)
    used = text(psc.kernel(product))
    monkeypatch.setenv(VARIABLE, "one_pass")
    assert text(psc.kernel(product)) != used
    close(found, slopes(v))
    step = 1e-6
    ahead, behind = (np.asarray(slopes(v * (1 + sign * step))[2]) for sign in (1, -1))
    close(second, (ahead - behind) / (2 * step), 1e-6)


def test_where_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small, narrow and wide matrices, more processors, integers, and other devices."""
    monkeypatch.setattr(one_pass, "LEAST_BYTES", 9 << 18)
    small = {"n": 3000, "d": 98}
    given = {**small, "n": 3010}
    narrow, wide = {"n": 10_000, "d": 63}, {"n": 900, "d": 1366}
    for sizes, used in ((small, False), (given, True), (narrow, False), (wide, False)):
        assert ("while" in text(weighted, **sizes, Float="f64")) == used
    assert "while" in text(weighted, **wide, Float="f32")
    assert "while" in text(two_vectors, n=400, d=1024)
    assert "while" not in text(two_vectors, n=400, d=1025)

    @psc.kernel
    def whole(x: Num["n d"], v: Num["d"]) -> Num["d"]:
        return x.T @ (x @ v)

    assert "while" not in str(whole.lower(**given, Num="i64").text())
    lowered = weighted.lower(**given, Float="f64")
    for_jax = emit.lower_module(lowered.program, lowered.sizes, native=False)
    assert "while" not in emit.module_text(for_jax)
    monkeypatch.setattr(emit, "processors", lambda: 2)
    assert "while" not in text(weighted, **given, Float="f64")


def test_how_many_processors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    count = processors.processors.__wrapped__
    for given, found in (("1", 1), ("0", 1), (" 3 ", 3)):
        monkeypatch.setenv(processors.VARIABLE, given)
        assert count() == found
    monkeypatch.setenv(processors.VARIABLE, "many")
    assert count() >= 1
