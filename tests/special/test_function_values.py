"""Values of functions: beside mpmath within bounds, and beside NumPy and SciPy at special ones."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.function_values import COMPLEX, REAL, Row, mp

HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import c64, c128, f32, f64


"""
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


@pytest.fixture
def computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """What kernels with these bodies give, of arguments of one dtype."""

    def run(dtype: str, bodies: Iterable[str], *arguments: Any) -> list[Any]:
        names = "xy"[: len(arguments)]
        parameters = [f"{name}: {dtype}['n']" for name in names]
        head = f"({', '.join(parameters)})"
        kernels = [
            f"@psc.kernel\ndef k{place}{head}:\n    return {body}\n\n\n"
            for place, body in enumerate(bodies)
        ]
        every = "".join(f"k{place}({', '.join(names)}), " for place in range(len(kernels)))
        text = f"{HEAD}{''.join(kernels)}@psc.kernel\ndef every{head}:\n    return ({every})\n"
        path = tmp_path / f"values_{dtype}_{zlib.crc32(text.encode())}.py"
        path.write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return list(importlib.import_module(path.stem).every(*arguments))

    return run


def _real_points(dtype: Any) -> Any:
    most, random = 37 if dtype is np.float32 else 300, np.random.default_rng(3)
    sizes = [
        *(10.0 ** np.linspace(-most, most, 15)),
        *(10.0 ** random.uniform(-4, 3, 25)),
        *random.uniform(0, 12, 25),
        *(1 - 10.0 ** random.uniform(-6, -1, 6)),
        *(1 + 10.0 ** random.uniform(-6, -1, 6)),
        *(0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0),
    ]
    return np.array([sign * size for size in sizes for sign in (1, -1)]).astype(dtype)


def _complex_points(dtype: Any) -> Any:
    random = np.random.default_rng(4)
    sizes = 10.0 ** random.uniform(-3, 1.3, (70, 1)) * random.normal(size=(70, 2))
    far = 10.0 ** random.uniform(-15, 15, (20, 2)) * random.choice([-1, 1], (20, 2))
    parts = np.concatenate([sizes, far])
    return (parts[:, 0] + 1j * parts[:, 1]).astype(dtype)


def _units(found: Any, exact: Any, info: Any) -> float:
    """How far off a value is, in units in the last place of the exact one's size."""
    size = abs(exact)
    unit = mp.power(2, mp.floor(mp.log(size, 2))) * float(info.eps)
    return float(abs(mp.mpmathify(complex(found)) - exact) / unit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_within_their_bounds(dtype: str, computed: Callable[..., list[Any]]) -> None:
    is_complex = dtype.startswith("c")
    rows: Mapping[str, Row] = COMPLEX if is_complex else REAL
    points = (_complex_points if is_complex else _real_points)(DTYPES[dtype])
    info: Any = np.finfo(DTYPES[dtype])
    precision = ["f32", "f64", "c64", "c128"].index(dtype) % 2
    least, most = 4 * float(info.smallest_normal), float(info.max) / 4
    off: list[str] = []
    with mp.workprec(180):
        for (name, row), values in zip(
            rows.items(),
            computed(dtype, [row.text for row in rows.values()], points),
            strict=True,
        ):
            for x, value in zip(points, values, strict=True):
                exact = row.exact(mp.mpmathify(complex(x) if is_complex else float(x)))
                if exact is None or not least < abs(exact) < most:
                    continue
                units = _units(value, exact, info)
                if not units <= row.bounds[precision]:
                    off.append(f"{name} at {x}: {value}, {units:.1f} units off {mp.nstr(exact, 9)}")
    assert not off, "\n".join(off)


ONE = (
    "reciprocal sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan "
    "sinh cosh tanh arcsinh arccosh arctanh sinc square absolute sign negative floor ceil rint "
    "trunc deg2rad rad2deg fabs isnan isinf isfinite signbit"
).split()
TWO = (
    "add subtract multiply divide floor_divide remainder fmod power arctan2 hypot maximum minimum "
    "fmax fmin copysign nextafter logaddexp heaviside less equal"
).split()
SPECIAL = (
    "expit log_expit logit erf erfc erfcx erfinv erfcinv ndtr log_ndtr ndtri gamma gammaln digamma "
    "i0e i1e entr"
).split()
OF_COMPLEX = (
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh square absolute sign negative conjugate angle isnan isinf isfinite"
).split()
ZEROS = set("maximum minimum fmax fmin erfinv erfcinv log_expit i1e".split())
"""Of which NumPy or SciPy give zeros with another sign than the argument's, or any."""


def _special(dtype: Any) -> Any:
    info = np.finfo(dtype)
    sizes = [
        0.0,
        1.0,
        2.0,
        0.5,
        3.0,
        2.5,
        1e5,
        float(info.max),
        float(info.smallest_normal),
        np.inf,
    ]
    sizes += [float(info.eps), 1 - float(info.epsneg), 1 + float(info.eps)]
    return np.array([*sizes, *[-each for each in sizes], np.nan]).astype(dtype)


def _alike(found: Any, wanted: Any, info: Any, signs: bool) -> Any:
    if wanted.dtype == bool:
        return found == wanted
    near = np.isclose(
        found, wanted, rtol=100 * info.eps, atol=4 * info.smallest_normal, equal_nan=True
    )
    zeros = (wanted == 0) & (found == 0)
    return near & (~zeros | (np.signbit(found) == np.signbit(wanted)) | (not signs))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_values_are_those_of_numpy_and_scipy(
    dtype: str, computed: Callable[..., list[Any]]
) -> None:
    scipy: Any = importlib.import_module("scipy.special")
    info: Any = np.finfo(DTYPES[dtype])
    values = _special(DTYPES[dtype])
    pairs = [each.ravel() for each in np.meshgrid(values, values)]
    one = [*((np, name, f"np.{name}(x)") for name in ONE)]
    one += [(scipy, name, f"psc.special.{name}(x)") for name in SPECIAL]
    two = [(np, name, f"np.{name}(x, y)") for name in TWO]
    off: list[str] = []
    for functions, arguments in ((one, [values]), (two, pairs)):
        results = computed(dtype, [text for _, _, text in functions], *arguments)
        for (module, name, _), found in zip(functions, results, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = np.asarray(getattr(module, name)(*arguments))
            right = _alike(np.asarray(found), wanted, info, name not in ZEROS)
            for place in np.nonzero(~right)[0]:
                given = ", ".join(str(each[place]) for each in arguments)
                if (name, given) not in BETTER:
                    off.append(f"{name}({given}): {found[place]}, must be {wanted[place]}")
    assert not off, "\n".join(off)


BETTER = {
    # SciPy takes numbers next to a pole or a root for it.
    ("digamma", "-0.9999999999999999"),
    ("gammaln", "0.9999999999999999"),
    ("gammaln", "1.0000000000000002"),
}


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_special_complex_values_are_those_of_numpy(
    dtype: str, computed: Callable[..., list[Any]]
) -> None:
    info: Any = np.finfo(DTYPES[dtype])
    sizes = np.array([0.0, 1.0, 0.5, 3.0, 30.0, 1e10, np.inf, 4 * float(info.smallest_normal)])
    sizes = np.concatenate([sizes, -sizes, [np.nan]])
    real, imag = (each.ravel() for each in np.meshgrid(sizes, sizes))
    points: Any = np.empty(real.size, DTYPES[dtype])
    points.real, points.imag = real, imag
    off: list[str] = []
    results = computed(dtype, [f"np.{name}(x)" for name in OF_COMPLEX], points)
    for name, result in zip(OF_COMPLEX, results, strict=True):
        found: Any = np.asarray(result)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted: Any = np.asarray(getattr(np, name)(points))
            if wanted.dtype.kind != "c":
                right = _alike(found, wanted, info, signs=True)
            else:
                finite = np.isfinite(found) & np.isfinite(wanted)
                near = (
                    abs(found - wanted) <= 100 * info.eps * abs(wanted) + 8 * info.smallest_normal
                )
                # C99 leaves signs of zeros open beside infinities; its reals stay on their axis.
                axis = (points.imag == 0) & np.isfinite(points)
                kept = np.signbit(found.imag) == np.signbit(wanted.imag)
                right = np.where(finite, near & (kept | ~axis), _kind(found) == _kind(wanted))
        off += [
            f"{name}({points[place]}): {found[place]}, must be {wanted[place]}"
            for place in np.nonzero(~right)[0]
        ]
    assert not off, "\n".join(off)


def _kind(values: Any) -> Any:
    """Finite, infinite, which counts though one part be NaN, or NaN."""
    infinite = np.isinf(values.real) | np.isinf(values.imag)
    return np.where(infinite, 1, np.where(np.isnan(values), 2, 0))
