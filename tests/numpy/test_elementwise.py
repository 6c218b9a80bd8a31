"""Elementwise functions against NumPy."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy import methods
from pscdsl.typing.codes.element_types import (
    DtypeNotAccepted,
    DtypesDiffer,
    NegativePowerOfInteger,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape, ShapesDoNotBroadcast
from pscdsl.typing.diagnostics import Diagnostic, Failure
from tests.support.numpy_harness import run, run_compiled, run_symbolic

pytestmark = pytest.mark.quick_code(but=4)

FEW = settings(max_examples=40, deadline=None)
NAN, INF = np.nan, np.inf
FLOATS = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.5, 0.1, 7.0, -30.0, 1e-3)
INTEGERS = (0, 1, 2, 3, 5, 7, 12, 100)
FLOAT_DTYPES = ("f2", "f4", "f8")
INTEGER_DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
TOLERANCE = {2: 4e-3, 4: 3e-6, 8: 1e-13}


def numbers(code: str) -> Any:
    """Numbers of all sorts in a dtype."""
    if code == "?":
        return np.array([True, False, True, True])
    if code.startswith("f"):
        return np.array(FLOATS).astype(code)
    if code.startswith("c"):
        parts = np.array([0.0, 1.0, -1.0, 0.5, -2.0], code)
        return (parts[:, None] + 1j * parts[None, :]).astype(code).ravel()
    signed = [-x for x in INTEGERS] if code.startswith("i") else []
    return np.array([*INTEGERS, *signed], code)


def pairs(code: str) -> tuple[Any, Any]:
    """Every number with every other."""
    x = numbers(code)
    left, right = np.meshgrid(x, x)
    return left.ravel(), right.ravel()


def inexact(code: str) -> np.dtype[Any]:
    given = np.dtype(code)
    return given if given.kind in "fc" else np.dtype(np.float64)


def close(wanted: Any, got: Any) -> None:
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    size = got.dtype.itemsize // (2 if got.dtype.kind == "c" else 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            got.astype(np.complex128 if got.dtype.kind == "c" else np.float64),
            wanted.astype(np.complex128 if got.dtype.kind == "c" else np.float64),
            rtol=TOLERANCE[size],
            atol=TOLERANCE[size] / 8,
        )


def numpy_of(name: str) -> Callable[..., Any]:
    function = getattr(np, "trunc" if name == "fix" else name)  # NumPy 2.5 calls it that alone

    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call


IN_FLOATING_POINT = (
    "exp expm1 log log1p log2 log10 exp2 sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh asin acos atan asinh acosh atanh rint deg2rad rad2deg degrees radians "
    "sinc fabs"
).split()
OF_TWO_IN_FLOATING_POINT = (
    "arctan2 atan2 copysign nextafter divide true_divide hypot logaddexp logaddexp2 heaviside"
).split()


@pytest.mark.parametrize("code", [*FLOAT_DTYPES, *INTEGER_DTYPES, "?"])
def test_functions_in_floating_point(code: str) -> None:
    x = numbers(code)
    for name in IN_FLOATING_POINT:
        close(numpy_of(name)(x.astype(inexact(code))), run(f"numpy.{name}", x))


@pytest.mark.parametrize("code", ["f4", "f8", "i4", "i8", "?"])
def test_functions_of_two_in_floating_point(code: str) -> None:
    x, y = pairs(code)
    for name in OF_TWO_IN_FLOATING_POINT:
        if name == "nextafter" and code != "f8":
            continue
        wanted = numpy_of(name)(x.astype(inexact(code)), y.astype(inexact(code)))
        close(wanted, run(f"numpy.{name}", x, y))


@pytest.mark.parametrize("code", ["f2", "f4", "f8"])
def test_spacing(code: str) -> None:
    limits: Any = np.finfo(code)
    normal = float(limits.tiny) / float(limits.eps)
    sizes = [0.1, 1.0, 3.0, 4.0, normal, float(limits.max), INF, NAN]
    if code != "f2":  # of which NumPy looks towards infinity, not away from zero
        sizes += [-size for size in sizes]
    x = np.array(sizes, code)
    for runner in (run, run_compiled):
        np.testing.assert_array_equal(runner("numpy.spacing", x), numpy_of("spacing")(x))
        zeros = runner("numpy.spacing", np.array([0.0, -0.0], code))
        assert (abs(zeros) <= limits.smallest_subnormal).all()
    assert run("numpy.spacing", np.array([1, 2**60])).tolist() == [2.0**-52, 256.0]


def test_spacing_of_half_precision() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        wanted = np.spacing(x)
    np.testing.assert_array_equal(run("numpy.spacing", x), wanted)


@pytest.mark.parametrize("code", ["c8", "c16"])
def test_complex_functions(code: str) -> None:
    x = numbers(code)
    x = x[x != 0]
    for name in "exp sin cos tanh sqrt square negative absolute conj real imag angle sign".split():
        close(numpy_of(name)(x), run(f"numpy.{name}", x))
    for name in "add subtract multiply divide equal not_equal power".split():
        close(numpy_of(name)(x, x[::-1]), run(f"numpy.{name}", x, x[::-1]))
    for name in "isnan isinf isfinite iscomplex isreal".split():
        z = np.append(x, [NAN, complex(0, INF), 1.0]).astype(code)
        close(numpy_of(name)(z), run(f"numpy.{name}", z))


SAME_DTYPE = "negative positive absolute abs sign square floor ceil trunc fix".split()
OF_TWO_SAME_DTYPE = "add subtract multiply maximum minimum fmax fmin".split()


@pytest.mark.parametrize("code", [*FLOAT_DTYPES, *INTEGER_DTYPES])
def test_functions_that_keep_the_dtype(code: str) -> None:
    x = numbers(code)
    for name in SAME_DTYPE:
        wanted = numpy_of(name)(x)
        close(wanted.astype(x.dtype), run(f"numpy.{name}", x))
    left, right = pairs(code)
    for name in OF_TWO_SAME_DTYPE:
        close(numpy_of(name)(left, right), run(f"numpy.{name}", left, right))
    for name in "floor_divide remainder mod fmod".split():
        wanted = numpy_of(name)(left, right)
        close(wanted, run(f"numpy.{name}", left, right))


@pytest.mark.parametrize("code", INTEGER_DTYPES)
def test_integers(code: str) -> None:
    left, right = pairs(code)
    for name in "bitwise_and bitwise_or bitwise_xor gcd lcm".split():
        close(numpy_of(name)(left, right), run(f"numpy.{name}", left, right))
    small = np.abs(right) % 7
    for name in "left_shift right_shift bitwise_left_shift bitwise_right_shift".split():
        close(numpy_of(name)(left, small), run(f"numpy.{name}", left, small))
    for name in "invert bitwise_not bitwise_invert bitwise_count".split():
        close(numpy_of(name)(left), run(f"numpy.{name}", left))
    close(np.power(left, small % 4), run("numpy.power", left, small % 4))


def test_signs_of_special_numbers() -> None:
    parts = np.array([0.0, -0.0, 2.5, -1.0, np.inf, -np.inf, np.nan])
    whole = np.empty((7, 7), complex)
    whole.real, whole.imag = parts[:, None], parts
    for x in (parts, parts.astype(np.float32), whole):
        for found in (run("numpy.sign", x), run_compiled("numpy.sign", x)):
            wanted = numpy_of("sign")(x)
            np.testing.assert_array_equal(found, wanted)
            for part in (np.real, np.imag):
                both = ~np.isnan(part(wanted))
                signs = [np.signbit(part(each))[both] for each in (found, wanted)]
                np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_zeros_and_infinities(name: str) -> None:
    x = np.array([0, complex(np.inf, 0), complex(0, np.inf), complex(-np.inf, 1)])
    for found in (run(f"numpy.{name}", x), run_compiled(f"numpy.{name}", x)):
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(found), part(numpy_of(name)(x)))


def test_bools() -> None:
    left, right = pairs("?")
    names = "add multiply maximum minimum logical_and logical_or logical_xor bitwise_and bitwise_or"
    for name in (names + " bitwise_xor equal not_equal less greater_equal").split():
        close(numpy_of(name)(left, right), run(f"numpy.{name}", left, right))
    for name in "logical_not invert floor isnan isfinite real".split():
        close(numpy_of(name)(left).astype(bool), run(f"numpy.{name}", left))
    for name in "subtract power floor_divide remainder left_shift".split():
        assert rejected(DtypeNotAccepted, f"numpy.{name}", left, right)
    for name in "negative sign square positive reciprocal conj".split():
        assert rejected(DtypeNotAccepted, f"numpy.{name}", left)


@pytest.mark.parametrize("code", [*FLOAT_DTYPES, "i4", "u1"])
def test_predicates(code: str) -> None:
    x = numbers(code)
    for name in "isnan isinf isfinite signbit isposinf isneginf logical_not".split():
        close(numpy_of(name)(x), run(f"numpy.{name}", x))
    left, right = pairs(code)
    names = "equal not_equal less less_equal greater greater_equal logical_and logical_or isclose"
    for name in names.split():
        close(numpy_of(name)(left, right), run(f"numpy.{name}", left, right))
    close(
        np.isclose(left, right, equal_nan=True), run("numpy.isclose", left, right, equal_nan=True)
    )


@pytest.mark.parametrize("code", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 8, 9, 0.5, 1.5, -1, -0.5, -2, -3])
def test_static_powers(code: str, exponent: float) -> None:
    x = numbers(code)
    if code[0] != "f":
        if isinstance(exponent, float):
            assert rejected(ScalarDoesNotFit, "numpy.power", x, exponent)
            return
        if exponent < 0:
            kind = NegativePowerOfInteger if code == "i4" else ScalarDoesNotFit
            assert rejected(kind, "numpy.power", x, exponent)
            return
        close(np.power(x, exponent), run("numpy.power", x, exponent))
        return
    with np.errstate(all="ignore"):
        wanted = x ** np.asarray(exponent, x.dtype)
    if abs(exponent) == 0.5:  # where pow and sqrt differ: -inf and -0.0
        x, wanted = x[~np.isneginf(x)], wanted[~np.isneginf(x)]
        x, wanted = np.where(x == 0, 0, x), np.where(x == 0, wanted[x == 0][:1], wanted)
    close(wanted.astype(code), run("numpy.power", x.astype(code), exponent))


def test_a_small_power_is_a_product() -> None:
    x = np.linspace(-3, 3, 1001).astype(np.float32)
    np.testing.assert_array_equal(run("numpy.power", x, 2), x * x)
    np.testing.assert_array_equal(run("numpy.power", x, 3), x * (x * x))


@pytest.mark.parametrize("code", [*FLOAT_DTYPES, "i4", "i8", "c8"])
@pytest.mark.parametrize("decimals", [0, 1, 2, -1, -2])
def test_round(code: str, decimals: int) -> None:
    if code[0] in "fc":
        x = np.array([0.5, 1.5, -0.5, 2.25, 2.35, 123.456, -987.5, 15.0, 25.0], code)
    else:
        x = np.arange(-1050, 1050, 5).astype(code)
    if code == "f2":
        decimals = max(decimals, -1)
    with np.errstate(all="ignore"):
        wanted = np.round(x, decimals)
    close(wanted, run("numpy.round", x, decimals))
    close(wanted, run("numpy.around", x, decimals=decimals))


def test_divmod_and_modf() -> None:
    x, y = pairs("f8")
    for wanted, got in zip(numpy_of("divmod")(x, y), run("numpy.divmod", x, y), strict=True):
        close(wanted, got)
    for wanted, got in zip(numpy_of("modf")(x), run("numpy.modf", x), strict=True):
        close(wanted, got)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_ldexp() -> None:
    x, power = np.array([1.0, -3.5, 1e30, 1e-30]), np.array([0, 3, -900, 900])
    close(np.ldexp(x, power), run("numpy.ldexp", x, power))


@FEW
@given(st.lists(st.integers(0, 3), max_size=3), st.data())
def test_broadcasting(shape: list[int], data: Any) -> None:
    def variant() -> Any:
        own = [1 if data.draw(st.booleans()) else size for size in shape]
        return np.arange(float(np.prod(own))).reshape(own)[(0,) * data.draw(st.integers(0, 0))]

    x, y, z = variant(), variant(), variant()
    close(np.add(x, y), run_symbolic("numpy.add", x, y))
    close(np.where(z > 1, x, y), run_symbolic("numpy.where", z > 1, x, y))
    close(np.clip(x, y, z), run_symbolic("numpy.clip", x, y, z))
    close(np.hypot(x, y), run_symbolic("numpy.hypot", x, y))
    close(np.logaddexp(x, y), run_symbolic("numpy.logaddexp", x, y))
    close(np.fmax(x, y), run_symbolic("numpy.fmax", x, y))


def test_where_select_choose() -> None:
    x, y = pairs("f4")
    close(np.where(x, x, y), run("numpy.where", x, x, y))
    close(np.where(x > 0, x, np.float32(0)), run("numpy.where", x > 0, x, 0.0))
    conditions, choices = [x > 1, y > 1, x < 0], [x, y, np.maximum(x, y)]
    close(np.select(conditions, choices, -1), run("numpy.select", conditions, choices, -1))
    close(np.select(conditions, choices), run_symbolic("numpy.select", conditions, choices))
    index = np.array([0, 2, 1, 0])
    rows = [np.arange(4), np.arange(4) + 10, np.arange(4) + 20]
    close(np.choose(index, rows), run("numpy.choose", index, rows))
    close(np.choose(index, rows), run("numpy.choose", index, np.stack(rows)))
    close(np.choose([5, -1, 1, 0], rows, mode="clip"), run("numpy.choose", [5, -1, 1, 0], rows))
    close(np.choose(index, [rows[0]] * 3)[:0], run("numpy.choose", index[:0], [rows[0][:0]] * 3))
    assert rejected(DataDependentShape, "numpy.where", x > 0)
    assert rejected(BadArguments, "numpy.select", conditions, choices[:2])


@pytest.mark.parametrize("code", ["f4", "f8", "i4", "u1"])
def test_clip(code: str) -> None:
    x = numbers(code)
    close(np.clip(x, 1, 5), run("numpy.clip", x, 1, 5))
    close(np.clip(x, None, 5), run("numpy.clip", x, None, 5))
    close(np.clip(x, 2, None), run("numpy.clip", x, min=2))
    close(np.clip(x, x[::-1], 5), run("numpy.clip", x, x[::-1], a_max=5))
    close(x, run("numpy.clip", x))
    assert rejected(BadArguments, "numpy.clip", x, 0, min=0)


def test_nan_to_num() -> None:
    for code in ("f2", "f4", "f8", "c8", "i4"):
        x = numbers(code)
        if code == "c8":
            x = np.append(x, [NAN, complex(INF, -INF)]).astype(code)
        close(np.nan_to_num(x), run("numpy.nan_to_num", x))
    x = numbers("f4")
    wanted = np.nan_to_num(x, nan=1, posinf=2, neginf=3)
    close(wanted, run("numpy.nan_to_num", x, nan=1, posinf=2, neginf=3.0))
    assert rejected(BadArguments, "numpy.nan_to_num", x, copy=False)


def test_equality_of_arrays() -> None:
    x = numbers("f4")
    for y in (x, x + 1, x[:3], x[None]):
        assert run("numpy.array_equal", x, y) == np.array_equal(x, y)
        assert run("numpy.array_equal", x, y, equal_nan=True) == np.array_equal(
            x, y, equal_nan=True
        )
    finite = np.arange(3.0)
    assert run("numpy.allclose", finite, finite + 1e-9)
    assert not run("numpy.allclose", finite, finite + 1e-3)
    assert run("numpy.array_equiv", finite, np.stack([finite, finite]))
    assert run("numpy.allclose", np.float32(1), 1.0)


def test_angle_and_parts_of_real_arrays() -> None:
    x = numbers("f8")
    close(np.angle(x), run("numpy.angle", x))
    close(np.angle(x, deg=True), run("numpy.angle", x, deg=True))
    for name in "real imag conj conjugate".split():
        close(np.asarray(numpy_of(name)(x)), run(f"numpy.{name}", x))
    assert run("numpy.iscomplexobj", x) is False
    assert run("numpy.isrealobj", x) is True


@pytest.mark.parametrize("code", ["bfloat16"])
def test_bfloat16(code: str) -> None:
    x = np.array([0.5, 1.0, 2.0, 8.0], ml_dtypes.bfloat16)
    for name in "exp sqrt square add multiply divide logaddexp sinc log2".split():
        args = (x, x) if name in ("add", "multiply", "divide", "logaddexp") else (x,)
        got = run(f"numpy.{name}", *args)
        assert got.dtype == x.dtype
        wanted = numpy_of(name)(*(a.astype(np.float32) for a in args))
        np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=2e-2, atol=1e-3)


def test_open_operands() -> None:
    """A number without a dtype takes that of what it meets, at its precision."""

    def meaning(name: str) -> Meaning:
        found = MEANINGS[f"numpy.{name}"]
        assert isinstance(found, Meaning)
        return found

    x = np.array([1.0, 2.0])
    root = run(lambda x: x * meaning("sqrt").apply(x.builder, (2,), {}), x)
    np.testing.assert_array_equal(root, x * np.sqrt(2))
    ratio = run(lambda x: x * meaning("divide").apply(x.builder, (1, 3), {}), x)
    np.testing.assert_array_equal(ratio, x * (1 / 3))
    assert run("numpy.exp", 1).dtype == np.float64
    assert run("numpy.add", 1, 2).dtype == np.int64
    half = run("numpy.add", x.astype(np.float16), 0.1)
    np.testing.assert_array_equal(half, x.astype(np.float16) + np.float16(0.1))
    close(np.sin(np.array([1.0, 2.0])), run("numpy.sin", [1.0, 2.0]))
    close(np.add(x, [1, 2]), run("numpy.add", x, [1, 2]))


def test_operators() -> None:
    x, y = np.array([5, -7, 9]), np.array([2, 3, -4])
    wanted: dict[str, Any] = {
        "Add": x + y, "Sub": x - y, "Mult": x * y, "FloorDiv": x // y, "Mod": x % y,
        "BitAnd": x & y, "BitOr": x | y, "BitXor": x ^ y, "LShift": x << abs(y),
        "RShift": x >> abs(y), "Pow": x ** abs(y), "Div": (x / y),
    }  # fmt: skip
    for name, result in wanted.items():
        right = abs(y) if name in ("LShift", "RShift", "Pow") else y
        close(np.asarray(result), run(methods.BINARY[name], x, right))
    a = np.arange(6.0).reshape(2, 3)
    close(a @ a.T, run(methods.BINARY["MatMult"], a, a.T))
    assert set(methods.BINARY) == {*wanted, "MatMult"}
    for name, result in {"USub": -x, "UAdd": +x, "Invert": ~x}.items():
        close(result, run(methods.UNARY[name], x))
    compared = {"Eq": x == y, "NotEq": x != y, "Lt": x < y, "LtE": x <= y, "Gt": x > y}
    for name, result in {**compared, "GtE": x >= y}.items():
        close(result, run(methods.COMPARE[name], x, y))


def test_refused() -> None:
    f4, f8, i4 = numbers("f4"), numbers("f8"), numbers("i4")
    assert rejected(DtypesDiffer, "numpy.add", f4, f8)
    assert rejected(ShapesDoNotBroadcast, "numpy.add", f4, f4[:3])
    assert rejected(ScalarDoesNotFit, "numpy.add", i4, 0.5)
    assert rejected(DtypeNotAccepted, "numpy.bitwise_and", f4, f4)
    assert rejected(DtypeNotAccepted, "numpy.gcd", f4, f4)
    assert rejected(DtypeNotAccepted, "numpy.less", numbers("c8"), numbers("c8"))
    assert rejected(DtypeNotAccepted, "numpy.reciprocal", i4)
    assert rejected(BadArguments, "numpy.exp", f4, f4)
    assert rejected(BadArguments, "numpy.exp", x=f4)
    assert rejected(BadArguments, "numpy.add", f4, "x")


def test_compiled() -> None:
    x, y = np.linspace(0.1, 0.9, 7), np.linspace(0.5, 0.7, 7)
    single = "sinc exp2 log10 sqrt rint square signbit isnan nan_to_num reciprocal".split()
    double = "hypot logaddexp heaviside fmax isclose power divmod copysign".split()

    def program(x: Any, y: Any) -> Any:
        table: dict[str, Any] = MEANINGS
        return [table[f"numpy.{name}"](x) for name in single] + [
            table[f"numpy.{name}"](x, y) for name in double
        ]

    for wanted, got in zip(run(program, x, y), run_compiled(program, x, y), strict=True):
        for one, other in zip(np.atleast_1d(wanted), np.atleast_1d(got), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    a, b = np.array([12, 18, 0, -4]), np.array([8, 27, 5, 6])
    close(np.gcd(a, b), run_compiled("numpy.gcd", a, b))


def rejected(
    kind: type[Diagnostic], function: Any, *args: Any, **kwargs: Any
) -> tuple[Diagnostic, ...]:
    with pytest.raises(Failure) as caught:
        run(function, *args, **kwargs)
    found = caught.value.diagnostics
    assert all(type(each) is kind for each in found), found
    assert all(each.message() for each in found)
    return found
