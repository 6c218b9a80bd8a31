"""Complex numbers: NumPy's vocabulary on them, in kernels of every form, and at the boundary."""

# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, c128, f32, f64, i32
from pscdsl._src.ir.program import evaluate
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from tests.support.kernels_of import kernels_of
from tests.support.numpy_differential import agree, check, normal, refused
from tests.support.numpy_harness import run

pytestmark = pytest.mark.quick_code(but=4)

HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import bool_, c128, f64, i32\n"
Z, W, X = normal(4, dtype="c16"), normal(3, 4, dtype="c16"), normal(4)
GIVEN: dict[str, tuple[str, Any]] = {
    "z": ('c128["4"]', Z),
    "w": ('c128["3 4"]', W),
    "q": ('c128["4 4"]', np.outer(Z, Z.conj()) + np.eye(4)),
    "x": ('f64["4"]', X),
    "b": ('bool_["4"]', X > 0),
    "i": ('i32["4"]', np.array([2, 0, 1, 3], np.int32)),
    "s": ("c128", np.complex128(0.5 - 2j)),
}
EXPRESSIONS = """
z + 1j | 1j * z | z * (2 + 3j) | 2 - z | z / 2 | 1 / z | z / z | -z | +z | abs(z)
z ** 2 | z ** 3 | z ** -1 | z ** 0.5 | z ** 2.5 | z ** (1 + 2j) | z ** z | 2 ** z | (1 + 2j) ** z
z.real | z.imag | z.conj() | z.conjugate() | x.real | x.imag | x.conj() | z.T
z.sum() | z.mean() | z.var() | z.std() | z.prod() | z.cumsum() | z.round(1) | z.dot(z) | z.copy()
z[i] | z[::-1] | w[:, 1] | z == z | z != 1j | complex(1, 2) * z | complex(3) + z | z.real + X2
w @ z | w @ w.T | w @ w.conj().T | z @ z | q.trace() | q.diagonal() | sum(z) | 1j ** 2 * z
x.astype(np.complex128) * 1j | z.astype(np.complex64) | np.complex64(1j)
"""
FUNCTIONS = """
real imag conj conjugate angle abs absolute exp exp2 expm1 log log2 log10 log1p sqrt square
reciprocal sign sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sinc
isreal iscomplex isnan isinf isfinite nan_to_num negative positive rint round sum prod mean var std
nansum nanprod nanmean nanvar nanstd cumsum cumprod cumulative_sum nancumsum sort argsort
sort_complex count_nonzero any all logical_not diff ediff1d gradient trapezoid diag diagflat flip
ravel zeros_like ones_like iscomplexobj isrealobj
""".split()
CALLS = """
np.angle(z, deg=True) | np.angle(x) | np.isreal(x) | np.iscomplex(x) | np.iscomplexobj(x)
np.mean(w, axis=0) | np.var(w, axis=1, ddof=1) | np.std(w) | np.average(z, weights=z)
np.where(b, z, 0) | np.where(b, z, 1j) | np.where(z, 1.0, 2.0) | np.where(x > 0, z, np.conj(z))
np.select([b], [z], 0) | np.isclose(z, z + 1e-12) | np.allclose(z, z) | np.array_equal(z, z)
np.logical_and(z, z) | np.add(z, 1j) | np.multiply(z, 1j) | np.divide(z, 2) | np.power(z, 2)
np.power(z, 0.5) | np.float_power(z, 2) | np.convolve(z, z) | np.correlate(z, z) | np.polyval(z, z)
np.convolve(z, z, 'same') | np.polyval([1, 2, 3], z) | np.polyval(z, 2.0) | np.polymul(z, [1j, 2])
np.linspace(s, 1, 4) | np.geomspace(s, 1 + 1j, 3, endpoint=False) | np.geomspace(z, 2 * z, 5)
np.zeros(3, dtype=np.complex128) | np.full(3, 1j, dtype=np.complex128) | np.zeros(3, dtype=complex)
np.eye(3, dtype=np.complex128) | np.arange(3, dtype=np.complex128) | np.full_like(z, 1j)
np.einsum('i,i->', z, z) | np.einsum('ij,j->i', w, z) | np.einsum('ij,kj->ik', w, w.conj())
np.matmul(w, z) | np.dot(w, z) | np.vdot(z, z) | np.vdot(w, w) | np.vecdot(w, w) | np.inner(z, w)
np.outer(z, z) | np.tensordot(w, w, axes=([1], [1])) | np.kron(z, z) | np.trace(q) | np.cov(w)
np.cross(w[:, 0], w[:, 1]) | np.linalg.norm(w, axis=1) | np.linalg.solve(q, z) | np.linalg.det(q)
np.linalg.inv(q) | np.linalg.cholesky(q) | np.linalg.eigvalsh(q) | np.fft.fft(z)
np.concatenate([z, z]) | np.stack([z, 1j * z]) | np.roll(z, 1) | np.pad(z, 1, constant_values=1j)
np.repeat(z, 2) | np.tile(z, 2) | np.take(z, i) | np.tril(q) | np.triu(q) | np.vander(z)
np.sum(z, initial=1j) | np.mean(z, dtype=np.complex64)
"""
OPEN = """
np.linspace(0, 1j, 5) | np.logspace(0, 1j, 4) | np.geomspace(1, 1j, 4) | np.geomspace(-1, 1j, 4)
np.full(3, 1j) | np.array([1j, 2]) | np.exp(-2j * np.pi * np.arange(4) / 4) | np.arange(3) * 1j
"""


def listed(text: str) -> list[str]:
    """The expressions of a table."""
    return [each.strip() for line in text.strip().split("\n") for each in line.split("|")]


ALL = [
    *listed(EXPRESSIONS.replace("X2", "x")),
    *[f"np.{name}(z)" for name in FUNCTIONS],
    *listed(CALLS),
    *listed(OPEN),
]
NAMES = {np.bool_: "bool_", np.int32: "i32", np.int64: "i32", np.float64: "f64", np.float32: "f32"}


def annotation(value: Any) -> str:
    """The type of an array as a kernel declares it."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        name = "psc.c64" if array.dtype == np.complex64 else "c128"
    else:
        name = NAMES[array.dtype.type]
    return f'{name}["{" ".join(map(str, array.shape))}"]' if array.ndim else name


@pytest.mark.parametrize("expression", ALL)
def test_the_vocabulary(expression: str) -> None:
    used = [name for name in GIVEN if re.search(rf"(?<![.\w]){name}\b", expression)]
    values = {name: GIVEN[name][1] for name in used}
    with np.errstate(all="ignore"):
        wanted = eval(expression, {"np": np}, values)
    made = np.asarray(wanted)
    if expression in listed(OPEN):  # where nothing decides
        made = made.astype(np.complex64)
    params = ", ".join(f"{name}: {GIVEN[name][0]}" for name in used)
    result = annotation(made)
    text = f"@psc.kernel\ndef f({params}) -> {result}:\n    return {expression}\n"
    definition = kernels_of(HEAD + text, "complex.py")["f"]
    choices = definition.signature.choices()
    assert choices is not None
    function = definition.instance(choices[0])
    operands = [np.asarray(values[name]) for name in used]
    rtol = 1e-5 if made.dtype == np.complex64 else 1e-10
    agree(evaluate(function, {}, operands)[0], wanted, rtol)
    agree(compile_module(lower_module(function, {})).run(operands)[0], wanted, rtol)


def test_what_is_refused() -> None:
    for name in "less greater maximum minimum max argmax median ptp nanmax floor trunc".split():
        operands = [Z] * (2 if name in ("less", "greater", "maximum", "minimum") else 1)
        refused(DtypeNotAccepted, f"numpy.{name}", *operands)
    for name in "isposinf isneginf signbit cbrt fabs".split():
        refused(DtypeNotAccepted, f"numpy.{name}", Z)
    for name in "arctan2 hypot logaddexp copysign floor_divide remainder heaviside".split():
        refused(DtypeNotAccepted, f"numpy.{name}", Z, Z)
    refused(DtypeNotAccepted, "pscdsl.complex", Z, Z)


def test_made_of_their_parts() -> None:
    edges = np.array([0.0, -0.0, np.inf, np.nan, 1.0])
    real, imag = (v.ravel() for v in np.meshgrid(edges, edges))
    for dtype, wanted in (("f4", "c8"), ("f8", "c16"), ("f2", "c8"), ("i4", "c16")):
        with np.errstate(invalid="ignore"):
            parts = real.astype(dtype), imag.astype(dtype)
        found = run("pscdsl.complex", *parts)
        assert found.dtype == wanted
        np.testing.assert_array_equal(found.real, parts[0])
        np.testing.assert_array_equal(found.imag, parts[1])
    assert run("pscdsl.complex", np.ones((3, 1)), 2.0).shape == (3, 1)
    assert run("pscdsl.complex", np.ones((3, 1)), np.ones(2)).shape == (3, 2)


class State(psc.Record):
    """Complex numbers in a record."""

    z: c64["n"]
    s: c64


@psc.kernel
def carried(z: c64["n"]) -> tuple[c64, c64["n"], c64]:
    def step(c: c64, x: c64) -> tuple[c64, c64]:
        c = c * 1j + x
        return c, c

    last, every = psc.scan(step, 0j, z)
    total, _ = psc.scan(lambda c, x: (c + x, None), 0, z)
    return last, every, total


@psc.kernel
def grown(z: c64) -> c64:
    return psc.while_loop(lambda c: np.abs(c) < 10, lambda c: c * z, z)


@psc.kernel
def horner(z: c64) -> c64:
    return psc.fori_loop(0, 5, lambda i, c: c * z + i.astype(c64), 1)


@psc.kernel
def chosen(i: i32, p: State) -> State:
    def turned(z: c64["n"]) -> c64["n"]:
        return 1j * z

    z = psc.switch(i, [lambda z: z, lambda z: np.conj(z), turned], p.z)
    s = psc.cond(i > 1, np.conj, lambda s: s * 2, p.s)
    return State(z=z, s=s)


def test_carries_and_branches() -> None:
    z = Z.astype(np.complex64)
    last, every, total = carried(z)
    wanted = [z[0]]
    for each in z[1:]:
        wanted.append(wanted[-1] * 1j + each)
    np.testing.assert_allclose(np.asarray(every), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(last), wanted[-1], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(total), z.sum(), rtol=1e-5)
    base, power = np.complex64(1.5 + 1j), np.complex64(1.5 + 1j)
    while abs(power) < 10:
        power *= base
    np.testing.assert_allclose(np.asarray(grown(base)), power, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(horner(0.5j)), np.polyval([1, 0, 1, 2, 3, 4], 0.5j))
    for index, (first, second) in enumerate(((z, 2j), (z.conj(), 2j), (1j * z, -1j))):
        found = chosen(index, State(z=z, s=1j))
        np.testing.assert_allclose(np.asarray(found.z), first)
        np.testing.assert_allclose(np.asarray(found.s), second)


@psc.kernel
def scaled(z: c64["n"], k: psc.Static[complex] = 2j) -> c64["n"]:
    return psc.update(z, 0, 1j) * k


def test_the_boundary() -> None:
    z = np.arange(1, 4).astype(np.complex64)
    np.testing.assert_array_equal(np.asarray(scaled(z)), [-2, 4j, 6j])
    np.testing.assert_array_equal(np.asarray(scaled(z, k=2)), [2j, 4, 6])
    result = scaled(z)
    assert result.dtype == np.complex64
    assert result.real.dtype == np.float32
    np.testing.assert_array_equal(result.conj() + 1, [-1, 1 - 4j, 1 - 6j])
    assert complex(grown(20)) == 20
    assert complex(horner(np.complex64(1))) == 11
    with pytest.raises(psc.ArgumentError, match="c128"):
        scaled(z.astype(np.complex128))
    with pytest.raises(psc.ArgumentError, match="f32"):
        scaled(np.ones(3, np.float32))


@psc.kernel
def power(z: c128["n"]) -> f64:
    return np.sum(np.abs(z) ** 2)


@psc.kernel
def real_square(z: c64) -> f32:
    return (z * z).real


def test_gradients_are_conjugates_of_the_steepest_ascent() -> None:
    z = Z.astype(np.complex128)
    np.testing.assert_allclose(np.asarray(psc.grad(power)(z)), 2 * z.conj(), rtol=1e-12)
    assert complex(psc.grad(real_square)(1 + 2j)) == 2 + 4j


@psc.kernel
def noise(key: psc.Key) -> tuple[c64["1000"], c128["1000"]]:
    one, other = psc.random.split(key)
    return psc.random.normal(one, (1000,), c64), psc.random.normal(other, (1000,), c128)


def test_normal_numbers() -> None:
    for sample in (np.asarray(each) for each in noise(psc.random.key(7))):
        assert abs(np.mean(np.abs(sample) ** 2) - 1) < 0.15
        assert abs(np.mean(sample)) < 0.1
        assert abs(np.mean(sample**2)) < 0.1


def test_nearest() -> None:
    x = np.array([0.5 + 1.5j, -2.5 - 0.4j, 1e9 + 3j])
    check("numpy.rint", x, compiled=True)


HOLOMORPHIC = """
exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan arcsin arccos arctan sinh
cosh tanh arcsinh arccosh arctanh
""".split()


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_derivatives_on_the_axes(name: str) -> None:
    """There a part of the result may be zero, and its derivative is not."""
    numbers = [2j, -0.5j, 0.5, 2, -2, 0.5 + 0.5j, 0.5 + 20j]
    points: Any = np.array([*numbers, *np.conj(numbers), *(-np.array(numbers))])
    result = f"psc.jvp(lambda v: np.{name}(v), (z,), (t,))[1]"
    text = f'@psc.kernel\ndef f(z: c128["21"], t: c128["21"]) -> c128["21"]:\n    return {result}\n'
    definition = kernels_of(HEAD + text, "complex.py")["f"]
    choices = definition.signature.choices()
    assert choices is not None
    function, step = definition.instance(choices[0]), 1e-5
    plain = getattr(np, name)
    for direction in (1, 1j):
        tangents = np.full_like(points, direction)
        found = evaluate(function, {}, [points, tangents])[0]
        ahead, behind = points.copy(), points.copy()
        for moved, by in (
            (ahead, step),
            (behind, -step),
        ):  # the other part's zeros keep their signs
            if direction == 1:
                moved.real = points.real + by
            else:
                moved.imag = points.imag + by
        differences = (plain(ahead) - plain(behind)) / (2 * step) / direction
        smooth = abs(differences) < 1e4  # else a cut lies between
        wanted = (differences * direction)[smooth]
        np.testing.assert_allclose(found[smooth], wanted, rtol=1e-5, atol=1e-8)
        assert smooth.sum() >= 12
