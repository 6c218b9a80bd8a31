"""Numbers and arrays of different dtypes meet as NumPy promotes them, or are refused."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c128, f64
from pscdsl._src.checker.check import check_source
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing import dtypes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BF16, BOOL, DType, widens
from tests.support.numpy_differential import meaning, theirs
from tests.support.numpy_harness import run
from tests.support.share import due, some

pytestmark = pytest.mark.quick_code

DTYPES = [each for each in dtypes.ALL if each is not BF16]
"""Those that NumPy's promotion knows."""


def values(dtype: DType) -> Any:
    """Numbers of a dtype, its ends among them."""
    found = to_numpy(dtype)
    if dtype is BOOL:
        return np.array([True, False, True])
    if dtype.is_integer:
        low, high = dtype.range
        return np.array([low, 3, high], found)
    return np.array([-2.5, 3.0, float(np.finfo(found).max)], found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("narrow", DTYPES, ids=str)
def test_what_widens_is_exact_and_numpys(narrow: DType) -> None:
    for wide in filter(partial(widens, narrow), DTYPES):
        assert np.result_type(to_numpy(narrow), to_numpy(wide)) == to_numpy(wide)
        x = values(narrow)
        if not (narrow.is_integer and narrow.bits == 64):
            assert x.astype(to_numpy(wide)).astype(to_numpy(narrow)).tolist() == x.tolist()


@pytest.mark.parametrize("narrow", DTYPES, ids=str)
def test_what_numpy_promotes_to_one_of_two_widens(narrow: DType) -> None:
    """But for a mixed precision of floats, which is rarely meant."""
    for wide in DTYPES:
        promoted = np.result_type(to_numpy(narrow), to_numpy(wide)) == to_numpy(wide)
        precision = narrow.is_inexact and narrow.real is not wide.real
        assert widens(narrow, wide) == (promoted and not precision), wide


LISTS = {"concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"}
CALLS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    **{f"numpy.{name}": lambda x, y: ([x, y],) for name in LISTS},
    "numpy.where": lambda x, y: (np.array([True, False, True]), x, y),
    "numpy.clip": lambda x, y: (x, y, None),
    "numpy.tensordot": lambda x, y: (x, y, 0),
}
RANKS = (((3,), (3,)), ((3,), ()), ((), (3,)), ((), ()))


def small(dtype: DType, shape: tuple[int, ...], from_: int) -> Any:
    return np.resize(np.arange(from_, from_ + 3), shape).astype(to_numpy(dtype))


def same_dtype(wanted: Any, found: Any, given: DType) -> bool:
    """Whether a dtype is NumPy's; functions like `/` make f64 of integers."""
    if given.is_inexact or wanted.kind not in "fc":
        return bool(wanted == found)
    return from_numpy(found) is dtypes.F64


WIDENING = sorted(
    {each.name for each in MEANINGS.values() if isinstance(each, Meaning) and each.widens}
)


@pytest.mark.parametrize("name", WIDENING)
@pytest.mark.filterwarnings("ignore")
def test_functions_of_mixed_dtypes_are_numpys(name: str) -> None:
    accepted = 0
    for left, right, ranks in some(product(DTYPES, DTYPES, RANKS), 3, name):
        if left is right:
            continue
        x, y = small(left, ranks[0], 1), small(right, ranks[1], 2)
        args = CALLS.get(name, lambda x, y: (x, y))(x, y)
        try:
            found = mixed(name, args)
        except Failure:
            continue
        wanted = theirs(name, *args)  # which raises where NumPy refuses
        accepted += 1
        for one, other in zip(results(wanted), results(found), strict=True):
            met = left if widens(right, left) else right
            told = f"{name} of {left}{ranks[0]} and {right}{ranks[1]}"
            assert one.shape == other.shape, told
            assert same_dtype(one.dtype, other.dtype, met), f"{told}: {other.dtype}"
            tolerance = 1e-2 if met.bits == 16 or one.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(
                other.astype(complex), one.astype(complex), rtol=tolerance, err_msg=told
            )
    assert accepted > due(12, 3)


def mixed(name: str, args: tuple[Any, ...]) -> Any:
    """What a kernel gets that calls a function."""
    return run(lambda *given: meaning(name).of_mixed(None, given, {}), *args)


def results(value: Any) -> list[Any]:
    return [np.asarray(each) for each in (value if isinstance(value, tuple) else (value,))]


HEAD = """import numpy as np
import pscdsl as psc
from pscdsl import bool_, c64, c128, f32, f64, i8, i32, i64, u8, u32, u64

@psc.kernel
def f(x: {x}, y: {y}):
    return {expression}
"""


def codes(x: str, y: str, expression: str) -> list[str]:
    text = HEAD.format(x=x, y=y, expression=expression)
    return [each.code for each in check_source(text, "mixed.py").diagnostics]


@pytest.mark.parametrize(
    ("x", "y", "expression"),
    [
        ('f64["n"]', 'i32["n"]', "x / y"),
        ('f32["n"]', 'bool_["n"]', "x * y"),
        ('f64["n n"]', 'i32["n"]', "x @ y"),
        ("i64", "u8", "(x & 1) ^ (y & 1)"),
        ('i64["n"]', "u8", "x + y"),
        ('f64["n"]', "i64", "1.0 / y * x"),
        ("i32", 'f64["n"]', "x * 0.5 + y"),
        ("i64", "f64", "x < y"),
        ("f32", 'c64["n"]', "x * y"),
        ('f32["n"]', 'c64["n"]', "x * y"),
        ('f64["n"]', "c128", "x * y"),
        ('f64["n n"]', 'c128["n"]', "x @ y"),
        ("bool_", 'f32["n"]', "x * y"),
        ('f64["n"]', 'i64["n"]', "x * y"),
        ('f64["n n"]', 'u64["n"]', "x @ y"),
        ('i64["n"]', 'i32["n"]', "x * y"),
        ('u8["n"]', "i64", "x + y"),
        ('i32["n"]', 'f64["n"]', "x * 0.5 + y"),
        ('bool_["n"]', 'f64["n"]', "x * 0.5 + y"),
        ('bool_["n"]', 'c128["n"]', "x * 1j + y"),
        ('i32["n"]', 'f64["n"]', "x + np.linspace(0, 1, len(x)) + y"),
        ('i64["n"]', 'f64["n"]', "np.where(x > 0.5, x, 0.5) + np.maximum(x, 1.5) + y"),
    ],
)
def test_kernels_with_mixed_dtypes(x: str, y: str, expression: str) -> None:
    assert codes(x, y, expression) == []


@pytest.mark.parametrize(
    ("x", "y", "expression"),
    [
        ('f32["n"]', 'f64["n"]', "x * y"),
        ('f32["n"]', "f64", "x * y"),
        ('f32["n"]', 'i32["n"]', "x * y"),
        ('f32["n"]', "i32", "x * y"),
        ('u64["n"]', 'i8["n"]', "x + y"),
        ('u32["n"]', 'i32["n"]', "x + y"),
        ('i64["n"]', 'c64["n"]', "x + y"),
        ('i32["n"]', 'f32["n"]', "x * 0.5 + y"),
        ('f32["n"]', 'c128["n"]', "x * y"),
        ('f64["n"]', 'c64["n"]', "x * y"),
        ("i32", 'f32["n"]', "x * 0.5 + y"),
        ("i64", "f64", "max(x, y)"),  # Python gives either, as it is
        ("i64", "f64", "[x, y][0] if x > 0 else y"),
    ],
)
def test_what_would_change_precision_is_refused(x: str, y: str, expression: str) -> None:
    assert codes(x, y, expression) != []


@psc.kernel
def real_and_complex(x: f64["n"], z: c128["n"], m: c128["n n"]) -> f64:
    met = x * z + m @ x
    either: Any = np.where(x > 0.5, x, z) ** 2
    stored = z.copy()
    stored[1:] = x[1:] * z[1:]
    stored += x
    together = np.concatenate([x, z])
    power = (x**z).real
    return np.sum(
        np.abs(met / (2.0 + x)) ** 2 + either.imag + np.abs(stored) ** 3 + power
    ) + np.imag(np.dot(together, together))


def test_derivatives_of_real_beside_complex_numbers_are_differences() -> None:
    rng = np.random.default_rng(0)
    z, *m = rng.normal(size=(5, 4)) + 1j * rng.normal(size=(5, 4))
    x, step = rng.uniform(0.6, 1, 4), 1e-6
    found = psc.grad(real_and_complex)(x, z, np.array(m))
    for place in range(4):
        ahead, behind = (x + sign * step * np.eye(4)[place] for sign in (1, -1))
        change = real_and_complex(ahead, z, np.array(m)) - real_and_complex(behind, z, np.array(m))
        np.testing.assert_allclose(found[place], change / (2 * step), rtol=1e-6)


def test_a_store_is_not_raised_by_a_float() -> None:
    assert codes('i32["n"]', 'i32["n"]', "psc.update(x, 0, 0.5)") == ["PSC402"]
