"""Numbers of Python's as parameters mean what they mean in Python and NumPy (NEP 50)."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, f64, i64
from pscdsl._src.xla.runtime.devices import to_numpy
from tests.support.projects import module_of

pytestmark = pytest.mark.quick_code
X = np.array([1, 2.7, 0.3], np.float32)
Y = np.array([0.1, 0.2, 0.7])
ARGUMENTS = ((0.1, 0.37, 2, True), (0.999, 3.3, 1, False), (1e-3, -2.5, 0, True))
EXPRESSIONS = """
a * x, a + x, x / a, x * (1 - a), x * (a * b - a / b), y * a, y + a * x.shape[0]
x * (a / x.shape[0]), a, a * 2, a + k, k + 1, k / 3, k // 3, k % 3, -k % 3, a // b, a % b
a ** 2, 2 ** a, a ** k, k ** 2, k * k - 1, -a, +k, ~k, abs(-a), abs(-k), abs(flag)
flag + 1, flag + flag, flag * a, -flag, +flag, k & 1, k | 4, k >> 1, k ^ 5, flag & True
flag | (a < b), a < b, a == a, k < 3, k == 3, k != 3.0, a <= x.shape[0], k < x.shape[0]
flag == (k > 1)
min(a, b), max(a, b, 0.5), min(k, 3), max(k, x.shape[0]), min([a, b]), float(k), float(flag)
int(k), int(flag), bool(k), bool(a), bool(flag), sum([a, b]), pow(a, 2), divmod(a, b)
isinstance(a, float), isinstance(k, (int, str)), isinstance(flag, int), isinstance(k, float)
a is None
math.sqrt(a), math.fabs(b), math.isnan(a), math.copysign(a, b), math.degrees(a)
np.sqrt(a), np.maximum(a, 0.0), np.maximum(x, a), np.minimum(x, k), np.clip(x, a, 5), np.abs(k)
np.clip(a, 0.0, 0.2), np.where(flag, x, a), np.where(flag, a, b), np.where(flag, k, 0)
np.where(x > a, x, 0), np.where(np.arange(x.shape[0]) < k, x, 0), np.arange(x.shape[0]) * k
np.arange(x.shape[0]) + k, x * flag, x + k, x ** k, (x > a) & flag, np.full(x.shape, a) + y
np.isfinite(a), np.logical_not(flag), np.float32(a) * x, np.float64(a) * y, np.asarray(a) * y
x.astype(np.float64) * a, np.sum(x) * k, np.stack([a * x, x]), (a, k, flag), a * 1j, np.round(a)
np.sign(a), np.sqrt(a).astype(np.float32), -np.sqrt(a), np.array([a, b]) * y[:1], np.array([k, 2])
x[k], x[:k], x.reshape(-1, k + 1 - k), [x, y][0] * (k if flag else a), x + (a if flag else b)
float(x[0]), float(y[1]), float(x[0] > 1), x * float(y[0]), y * float(x[0]), float(np.sum(x)) * x
int(x[1]), int(-y[2] * 9), int(y[0] > 0), x * int(x[1]), y - int(x[1])
x.astype(np.int32) * int(flag)
x.astype(np.int8) * int(x[1] > 2), int(np.float32(a)), int(np.sum(y)), int(x.shape[0] > k), int(a)
round(x[1]), round(y[0] * 5), round(np.float64(2.5) * y[0] / y[0]), x * round(x[1]), round(k)
round(b)
round(x[1], 1), round(y[2] * 10, 1), round(flag), round(x[0] / 2), round(1.5 * x[0]), round(k, 2)
bool(x[0]), bool(y[0] > 3), bool(np.sum(x)) & flag, x[int(x[0])]
np.sort(y)[int(math.ceil(0.5 * a))]
math.sqrt(x[0]), math.sqrt(np.dot(y, y)), x * math.sqrt(y[0]), math.exp(x[1]), math.log(y[0], 3)
math.log(8, y[2]), math.log10(1000 * x[0]), int(math.log10(1000 * x[0])), math.log2(8 * x[0])
int(math.log2(8 * x[0])), math.pow(x[1], 2), math.pow(2, y[1]), math.hypot(x[1], y[0])
math.atan2(1, x[0])
math.erf(y[0]), math.erfc(x[1]), math.gamma(x[0]), math.lgamma(y[0]), math.fmod(x[1], y[2])
math.asinh(x[0]), math.acosh(x[1]), math.atanh(y[0]), math.isnan(x[0]), math.isfinite(y[0])
math.floor(-x[1]), math.ceil(x[1]), math.trunc(-y[1] * 9), math.floor(a), math.ceil(b)
math.trunc(k)
math.ceil(a * len(x)), x * math.floor(x[1]), math.floor(x.shape[0] * 0.7), math.ceil(k)
round(0.5 * len(x))
int(math.log2(x.shape[0] + 5)), int(0.7 * x.shape[0]), math.log10(x.shape[0] * 100 - 200)
x[0].item(), np.sum(y).item() * x, x[:1].item(), y[1].tolist(), (x > 1).sum().item()
x * x[0].item()
np.int32(int(x[1])) * x.astype(np.int32), abs(int(-x[1])), min(int(x[1]), 1), divmod(int(x[1]), 2)
isinstance(int(x[1]), int), sum([float(v) for v in (x[0], x[1])]), float(x[0]) == x[0]
complex(x[0], y[1]), complex(1, x[1]) * y, complex(a), complex(x.shape[0], b), complex(x[0])
-int(x[1]) // 2, 2 ** float(y[0]), x ** int(x[1]), float(k) + float(x[0]), [y, -y][0] * int(y[1])
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A kernel and a function for each expression."""
    path: Path = tmp_path_factory.mktemp("numbers") / "of_python_numbers.py"
    text = "import math\nimport numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32, f64\n"
    for number, each in enumerate(_expressions()):
        text += f"""

@psc.kernel
def kernel_{number}(x: f32["n"], y: f64["n"], a: float, b: float, k: int, flag: bool):
    assert x.shape[0] > 2
    return {each}


def function_{number}(x, y, a, b, k, flag):
    return {each}
"""
    path.write_text(text)
    made = module_of(path)
    yield made
    del sys.modules[path.stem]


def _expressions() -> list[str]:
    """The expressions; a comma inside of brackets is no separator."""
    found: list[str] = []
    for line in EXPRESSIONS.strip().splitlines():
        depth, start = 0, 0
        for place, character in enumerate(f"{line},"):
            depth += (character in "([") - (character in ")]")
            if character == "," and not depth:
                found.append(line[start:place].strip())
                start = place + 1
    return found


@pytest.mark.parametrize(("number", "text"), list(enumerate(_expressions())))
def test_what_numpy_gives(module: ModuleType, number: int, text: str) -> None:
    """Dtypes and values of each expression are those of plain Python."""
    kernel, function = (getattr(module, f"{kind}_{number}") for kind in ("kernel", "function"))
    for arguments in ARGUMENTS:
        found, wanted = kernel(X, Y, *arguments), function(X, Y, *arguments)
        assert isinstance(found, tuple) == isinstance(wanted, tuple)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for mine, theirs in pairs:
            array, expected = np.asarray(mine), np.asarray(theirs)
            assert array.dtype == expected.dtype
            if array.dtype.kind == "f":
                np.testing.assert_array_max_ulp(array, expected, 1)
            else:
                np.testing.assert_array_equal(array, expected)


@psc.kernel
def scaled(x: f32["n"], a: float) -> f32:
    return np.sum((x * a) ** 2)


@psc.kernel
def repeated(x: f32["n"], k: int, flag: bool = True) -> f32["n"]:
    for _ in range(k):
        x = x * 2
    return x if flag else -x


@psc.kernel
def sum_of_repeated(x: f32["n"], k: int) -> f32:
    return np.sum(repeated(x, k))


@psc.kernel
def powers(x: f32["n"], k: int, base: float = 2.0) -> f32["n"]:
    return x * base**k


@psc.kernel
def integers(k: int) -> int:
    return k


@psc.kernel
def sizes(n: int, x: f32["n"], k: int) -> f32["n k"]:
    return x[:, None] * np.ones(k) / n


@psc.kernel
def joined(x: f32["n"], a: float, k: int, flag: bool) -> tuple[f32["n"], float, int]:
    if flag:
        a = 2 * a
        k = 2**40 * k
    total = 0.0
    while k > 2**30:
        k = k // 3
        total = total + a
    return x * (1 - total), total, k


class Rates(psc.Record):
    """Numbers beside an array."""

    rate: float
    steps: int
    down: bool
    w: f32["n"]


@dataclass(frozen=True)
class Pair:
    """A number beside an array."""

    a: float
    w: f32["n"]


@psc.kernel
def step(rates: Rates, x: f32["n"]) -> Rates:
    moved = x - rates.rate * rates.w * rates.steps
    return Rates(rates.rate * 0.9, rates.steps + 1, rates.down, np.where(rates.down, moved, x))


@psc.kernel
def of_dataclass(pair: Pair, scale: float | None = None) -> f32["n"]:
    return pair.a * pair.w if scale is None else pair.a * scale * pair.w


@psc.kernel
def made_inside(x: f32["n"]) -> Rates:
    return step(Rates(0.5, 2, True, x), x)


@psc.custom_vjp
def clipped(x: f32["n"], low: float, high: float) -> f32["n"]:
    return x * 1.0


def _forward(x: Any, low: Any, high: Any) -> Any:
    return x * 1.0, (low, high)


def _backward(saved: Any, cotangent: Any) -> Any:
    return np.clip(cotangent, *saved), np.sum(cotangent), 0.0


clipped.defvjp(_forward, _backward)


@psc.custom_jvp
def bent(x: f32["n"], a: float) -> f32["n"]:
    return np.tanh(x * a)


@bent.defjvp
def _bent(primals: Any, tangents: Any) -> Any:
    (x, a), (dx, da) = primals, tangents
    return bent(x, a), dx * a + x * da


@psc.pure
def half(n: int) -> float:
    return n * 0.5


@psc.kernel
def with_rules(x: f32["n"], a: float) -> f32:
    return np.sum(clipped(x, -a, a) ** 2) * half(2)


@psc.kernel
def by_bent(x: f32["n"], a: float) -> f32:
    return np.sum(bent(x, a))


def untyped(kernel: Any) -> Any:
    """A kernel that type checkers know nothing of."""
    return kernel


def test_a_call_takes_what_python_makes_a_number_of() -> None:
    of_float, of_int = untyped(scaled), untyped(integers)
    wanted = to_numpy(scaled(X, 0.5))
    for given in (np.float32(0.5), np.float64(0.5), np.array(0.5), np.array(0.5, np.float16)):
        assert to_numpy(of_float(X, given)) == wanted
    quarter = scaled(np.array([0.5], np.float32), 1)
    assert to_numpy(of_float(X, quarter)) == to_numpy(scaled(X, 0.25))
    for one in (True, np.int8(1), np.uint64(1), np.array(1)):
        assert to_numpy(of_float(X, one)) == to_numpy(scaled(X, 1))
    for three in (3, np.int16(3), np.array(3, np.uint8)):
        assert to_numpy(of_int(three)) == 3
    assert to_numpy(of_int(True)) == 1
    twice = untyped(repeated)(X, np.int32(1), np.False_)
    assert to_numpy(twice).tolist() == (X * -2).tolist()


@pytest.mark.parametrize("wrong", ["a", 1j, None, np.ones(2), np.datetime64("2020-01-01")])
def test_a_call_refuses_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(psc.ArgumentError, match="float is declared"):
        untyped(scaled)(X, wrong)


@pytest.mark.parametrize("wrong", [2.5, np.float32(2), 2**63, np.uint64(2**63), "a"])
def test_a_call_refuses_what_is_no_integer(wrong: Any) -> None:
    with pytest.raises(psc.ArgumentError, match="int is declared"):
        untyped(integers)(wrong)


def test_a_number_is_no_constant_of_the_program() -> None:
    for a in (0.1, 0.2, 0.3):
        lerped(X, a)
    assert lerped.cache_info().entries == 1
    for k in range(4):
        powers(X, k)
    assert powers.cache_info().entries == 1
    powers(X, 2, 3.0)
    assert powers.cache_info().entries == 2  # one has the default as a constant


def test_the_signature_says_what_is_static() -> None:
    found = str(repeated.signature)
    assert found == "repeated(x: f32[n], k: Static[int], flag: bool) -> f32[n]"
    assert str(sizes.signature) == "sizes(n: Static[int], x: f32[n], k: Static[int]) -> f32[n k]"
    assert str(powers.signature) == "powers(x: f32[n], k: int, base: float) -> f32[n]"
    assert str(psc.grad(scaled, argnums=1).signature) == "grad(scaled)(x: f32[n], a: float)"


def test_static_numbers_are_checked_as_such() -> None:
    assert to_numpy(repeated(X, 3)).tolist() == (X * 8).tolist()
    with pytest.raises(psc.ArgumentError, match="bool"):
        untyped(repeated)(X, 1, 1)


def test_numbers_that_branches_and_loops_join_stay_in_64_bits() -> None:
    """What they are made of is not rounded, either."""
    a, k, total = 2 * 0.123, 2**40 * 7, 0.0
    while k > 2**30:
        k, total = k // 3, total + a
    x, found, count = joined(X, 0.123, 7, True)
    assert to_numpy(found).dtype == np.float64
    assert to_numpy(found) == total
    assert to_numpy(count) == k
    assert to_numpy(x).tolist() == (X * (1 - total)).tolist()


def test_derivatives_and_batches() -> None:
    slope = 2 * 0.5 * float(np.sum(X * X))
    found = to_numpy(psc.grad(scaled, argnums=1)(X, 0.5))
    assert found.dtype == np.float64
    assert found == pytest.approx(slope, rel=1e-6)
    assert to_numpy(psc.jvp(scaled, (X, 0.5), (0 * X, 1.0))[1]) == pytest.approx(slope, rel=1e-6)
    assert to_numpy(psc.vjp(scaled, X, 0.5)[1](np.float32(1))[1]) == pytest.approx(slope, rel=1e-6)
    each = [to_numpy(scaled(X, a)) for a in (0.0, 0.5, 1.0)]
    for given in (np.linspace(0, 1, 3), np.linspace(0, 1, 3, dtype=np.float32)):
        assert to_numpy(psc.vmap(scaled, in_axes=(None, 0))(X, given)).tolist() == each
    slopes = psc.grad(sum_of_repeated)(X, 3)
    assert to_numpy(slopes).tolist() == [8, 8, 8]
    rows = psc.vmap(repeated, in_axes=(0, None, None))(np.stack([X, -X]), 2, True)
    assert to_numpy(rows).tolist() == [(X * 4).tolist(), (X * -4).tolist()]


def test_derivatives_of_an_authors_own() -> None:
    assert to_numpy(psc.grad(with_rules)(X, 0.5)).tolist() == [0.5] * 3
    slope = to_numpy(psc.grad(with_rules, argnums=1)(X, 0.5))
    assert slope == pytest.approx(-2 * float(np.sum(X)), rel=1e-6)
    assert to_numpy(psc.grad(by_bent)(X, 0.5)).tolist() == [0.5] * 3
    slope = to_numpy(psc.grad(by_bent, argnums=1)(X, 0.5))
    assert slope == pytest.approx(float(np.sum(X)), rel=1e-6)


def test_parts_of_records() -> None:
    found = step(Rates(0.5, 2, True, X), X)
    assert to_numpy(found.w).tolist() == (X - 0.5 * X * 2).tolist()
    assert [to_numpy(each).item() for each in (found.rate, found.steps, found.down)] == [
        0.45,
        3,
        True,
    ]
    inside = made_inside(X)
    assert to_numpy(inside.w).tolist() == to_numpy(found.w).tolist()
    again = step(found, X)  # arrays without axes in the place of numbers
    assert to_numpy(again.steps) == 4
    assert to_numpy(of_dataclass(Pair(0.5, X))).tolist() == (0.5 * X).tolist()
    assert to_numpy(of_dataclass(Pair(0.5, X), 3)).tolist() == (1.5 * X).tolist()


def test_an_exported_kernel_takes_the_same(tmp_path: Path) -> None:
    loaded = psc.load(scaled.export(None, n=3))
    assert str(loaded.signature) == str(scaled.signature)
    for given in (0.5, np.float32(0.5), np.float64(0.5)):
        assert to_numpy(loaded(X, given)) == to_numpy(scaled(X, 0.5))


def test_a_large_beta_is_subtracted_before_it_is_rounded() -> None:
    """In f32, `1 - 0.999` has an error of 5e-5."""
    found = to_numpy(lerped(X, 0.999))
    assert found.tolist() == ((1 - 0.999) * X).tolist()
    assert found.tolist() != ((np.float32(1) - np.float32(0.999)) * X).tolist()
    assert math.isclose(found[0], 0.001, rel_tol=1e-7)


@psc.kernel
def lerped(x: f32["n"], beta: float) -> f32["n"]:
    return (1 - beta) * x


@psc.kernel
def itself(x: f64["n"], k: int) -> f64["n"]:
    return itself(x, k)


def test_a_kernel_that_calls_itself_is_refused() -> None:
    with pytest.raises(psc.CheckError, match="itself"):
        itself(Y, 1)


@psc.kernel
def truth_values_times_a_float(x: f64["n"], v: f64["n"], c: float) -> f64["n"]:
    s: Any = np.zeros(3)
    s[:] = x[0]
    t = s > 0
    return x + np.sum(s - t * c) + (v > 0) * c


@psc.kernel
def an_index_that_is_rounded(x: f64["n"], v: f64["n"], c: float) -> f64:
    r = int(np.ceil(c * len(x)))
    return np.sort(x)[r] + x[int(v[0])]


@psc.kernel
def a_condition_on_sizes_as_a_number(x: f64["n"], v: f64["n"], c: float) -> i64:
    return int(len(x) > 1) + int(v[0] > c)


@psc.kernel
def a_norm(x: f64["n"], v: f64["n"], c: float) -> f64:
    return math.sqrt(np.dot(x, x)) * round(v[0]) * float(x[0])


@psc.kernel
def a_fraction(x: f64["n"], v: f64["n"], c: float) -> f64["n"]:
    i = np.floor(x).astype(int)
    return x - i


@psc.kernel
def numbers_in_loops(x: f64["n"], v: f64["n"], c: float) -> tuple[int, float, f64["n"]]:
    s: Any = 0
    t = 0.0
    y: Any = x.copy()
    for u in x:
        s += int(u)
        t += float(u)
        if math.sqrt(abs(u)) > 1.2:
            s -= round(u)
    for k in range(int(v[0])):
        y[k] = math.floor(y[k]) + 0.5
    while int(t) > 3:
        t = t / 2
    return s, t, y


COMPUTED = (
    *(truth_values_times_a_float, an_index_that_is_rounded, a_condition_on_sizes_as_a_number),
    *(a_norm, a_fraction, numbers_in_loops),
)


@pytest.mark.parametrize("kernel", COMPUTED, ids=lambda kernel: kernel.__name__)
def test_numbers_of_computed_scalars_are_pythons(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, v = rng.uniform(-1, 4, 6), np.full(6, rng.uniform(0, 5.9))
        found, wanted = kernel(x, v, 0.3), kernel.__wrapped__(x, v, 0.3)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for mine, theirs in pairs:
            assert np.asarray(mine).dtype == np.asarray(theirs).dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-14)


@psc.kernel
def logarithms(x: f64["n"]) -> tuple[int, int, float, float]:
    a, b = math.log2(x[0]), math.log10(x[-1])
    return int(a), math.floor(b), a, b


@psc.kernel
def binary_logarithm(x: f64["n"]) -> f64:
    return math.log2(x[0])


def test_logarithms_of_powers_are_exact() -> None:
    for k in range(-300, 301, 7):
        found = logarithms(np.array([2.0**k, float(f"1e{k}")]))
        assert [float(each) for each in found] == [k, k, k, k]
    slope: Any = psc.grad(binary_logarithm)(np.array([8.0]))
    np.testing.assert_allclose(slope, [1 / (8 * math.log(2))])


@psc.kernel
def beyond(x: f64["n"]) -> tuple[int, int, float, float]:
    nearest: Any = round(x[0])
    return int(x[0]), nearest, math.sqrt(-abs(x[0])), math.log(0 * x[-1])


@pytest.mark.parametrize(
    ("value", "whole"), [(math.nan, 0), (math.inf, 2**63 - 1), (-1e30, -(2**63)), (-2.5, -2)]
)
def test_what_python_raises_for(value: float, whole: int) -> None:
    found = beyond(np.array([value, 1.0]))
    assert [int(each) for each in found[:2]] == [whole, whole]
    assert math.isnan(found[2])
    assert float(found[3]) == -math.inf
