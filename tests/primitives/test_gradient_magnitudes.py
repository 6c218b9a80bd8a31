"""Gradients in f32 and f64 at 40 magnitudes of either sign, beside exact slopes by mpmath."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

from pscdsl._src.primitives.elementwise import TABLE
from pscdsl._src.primitives.special import SPECIAL
from tests.support.share import WHOLE, some

mp: Any = importlib.import_module("mpmath").mp
Slope: TypeAlias = Callable[[Any], Any]
HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import f32, f64
from pscdsl.stdlib import activations, losses


"""
ROUNDINGS = 40
"""Of a slope, besides what rounding its argument changes."""


class Row(NamedTuple):
    """A function of x: its slope as mpmath has it, and where it is defined."""

    text: str
    slope: Slope
    inside: Callable[[Any], bool] = lambda x: True
    worst: float = 1.0
    """How many times `ROUNDINGS` its slope may be off."""


def positive(x: Any) -> bool:
    return bool(x > 0)


def within(x: Any) -> bool:
    return bool(abs(x) < 1)


def share(x: Any) -> bool:
    return bool(0 < x < 1)


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def gaussian(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


ROWS: dict[str, Row] = {
    # Arithmetic.
    "add": Row("x + 1.5", lambda x: 1),
    "subtract": Row("1.5 - x", lambda x: -1),
    "multiply": Row("x * 1.5", lambda x: mp.mpf("1.5")),
    "divide": Row("x / 3.0", lambda x: mp.mpf(1) / 3),
    "divide, below": Row("3.0 / x", lambda x: -3 / x**2),
    "negative": Row("-x", lambda x: -1),
    "absolute": Row("np.abs(x)", mp.sign),
    "sign": Row("np.sign(x) * 1.0", lambda x: 0),
    "copysign": Row("np.copysign(x, -1.0)", lambda x: -mp.sign(x)),
    "maximum": Row("np.maximum(x, 0.0)", lambda x: 1 if x > 0 else 0),
    "minimum": Row("np.minimum(x, 0.0)", lambda x: 1 if x < 0 else 0),
    "nextafter": Row("np.nextafter(x, 0.0)", lambda x: 1),
    "floor_divide": Row("x // 1.5", lambda x: 0),
    "remainder": Row("x % 1.0", lambda x: 1),
    "fmod": Row("np.fmod(x, 1.0)", lambda x: 1),
    "floor": Row("np.floor(x)", lambda x: 0),
    "ceil": Row("np.ceil(x)", lambda x: 0),
    "round_even": Row("np.rint(x)", lambda x: 0),
    "truncate": Row("np.trunc(x)", lambda x: 0),
    "square": Row("np.square(x)", lambda x: 2 * x),
    "reciprocal": Row("np.reciprocal(x)", lambda x: -1 / x**2),
    "log of a quotient": Row("np.log(x / 3.0)", lambda x: 1 / x, positive),
    "log of an inverse": Row("np.log(3.0 / x)", lambda x: -1 / x, positive),
    "hypot": Row("np.hypot(x, 1.0)", lambda x: x / mp.hypot(x, 1)),
    "hypot, both": Row("np.hypot(x, x)", lambda x: mp.sqrt(2) * mp.sign(x)),
    # Powers.
    "power": Row("x ** 1.5", lambda x: mp.mpf("1.5") * mp.sqrt(x), positive),
    "power of 3": Row("x ** 3", lambda x: 3 * x * x),
    "power of -2": Row("x ** -2", lambda x: -2 / x**3),
    "power of -3": Row("x ** -3", lambda x: -3 / x**4),
    "power of -1.5": Row("x ** -1.5", lambda x: mp.mpf("-1.5") * mp.power(x, "-2.5"), positive),
    "power of 0.3": Row("x ** 0.3", lambda x: _power(x, 0.3), positive, 9),
    "power, above": Row("1.5 ** x", lambda x: mp.log("1.5") * mp.power("1.5", x)),
    "exp2": Row("np.exp2(x)", lambda x: mp.log(2) * mp.power(2, x)),
    "sqrt": Row("np.sqrt(x)", lambda x: 1 / (2 * mp.sqrt(x)), positive),
    "rsqrt": Row("x ** -0.5", lambda x: mp.mpf("-0.5") * mp.power(x, "-1.5"), positive),
    "cbrt": Row("np.cbrt(x)", lambda x: 1 / (3 * mp.cbrt(x * x))),
    # Exponentials and logarithms.
    "exp": Row("np.exp(x)", mp.exp),
    "expm1": Row("np.expm1(x)", mp.exp),
    "log": Row("np.log(x)", lambda x: 1 / x, positive),
    "log2": Row("np.log2(x)", lambda x: 1 / (x * mp.log(2)), positive),
    "log10": Row("np.log10(x)", lambda x: 1 / (x * mp.log(10)), positive),
    "log1p": Row("np.log1p(x)", lambda x: 1 / (1 + x), lambda x: x > -1),
    "logaddexp": Row("np.logaddexp(x, 0.0)", logistic),
    "logaddexp2": Row("np.logaddexp2(x, 0.0)", lambda x: 1 / (1 + mp.power(2, -x))),
    "logistic": Row("psc.special.expit(x)", lambda x: logistic(x) * logistic(-x)),
    "log_expit": Row("psc.special.log_expit(x)", lambda x: logistic(-x)),
    "logit": Row("psc.special.logit(x)", lambda x: 1 / (x * (1 - x)), share),
    "xlogy": Row("psc.special.xlogy(2.0, x)", lambda x: 2 / x, positive),
    "xlog1py": Row("psc.special.xlog1py(2.0, x)", lambda x: 2 / (1 + x), lambda x: x > -1),
    "entr": Row("psc.special.entr(x)", lambda x: -mp.log(x) - 1, positive),
    "rel_entr": Row("psc.special.rel_entr(x, 2.0)", lambda x: mp.log(x / 2) + 1, positive),
    "rel_entr, below": Row("psc.special.rel_entr(2.0, x)", lambda x: -2 / x, positive),
    "kl_div": Row("psc.special.kl_div(x, 2.0)", lambda x: mp.log(x / 2), positive),
    "kl_div, below": Row("psc.special.kl_div(2.0, x)", lambda x: 1 - 2 / x, positive),
    # Trigonometric and hyperbolic functions.
    "sin": Row("np.sin(x)", mp.cos),
    "cos": Row("np.cos(x)", lambda x: -mp.sin(x)),
    "tan": Row("np.tan(x)", lambda x: 1 / mp.cos(x) ** 2),
    "asin": Row("np.arcsin(x)", lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), within),
    "acos": Row("np.arccos(x)", lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), within),
    "atan": Row("np.arctan(x)", lambda x: 1 / (1 + x * x)),
    "atan2": Row("np.arctan2(x, 1.0)", lambda x: 1 / (1 + x * x)),
    "atan2, below": Row("np.arctan2(1.0, x)", lambda x: -1 / (1 + x * x)),
    "sinh": Row("np.sinh(x)", mp.cosh),
    "cosh": Row("np.cosh(x)", mp.sinh),
    "tanh": Row("np.tanh(x)", lambda x: 1 / mp.cosh(x) ** 2),
    "asinh": Row("np.arcsinh(x)", lambda x: 1 / mp.sqrt(1 + x * x)),
    "acosh": Row("np.arccosh(x)", lambda x: 1 / mp.sqrt(x * x - 1), lambda x: x > 1),
    "atanh": Row("np.arctanh(x)", lambda x: 1 / ((1 - x) * (1 + x)), within),
    "sinc": Row("np.sinc(x)", lambda x: _sinc(mp.pi * x), lambda x: abs(x) < 50, 4),
    # The error function and the normal distribution.
    "erf": Row("psc.special.erf(x)", gaussian),
    "erfc": Row("psc.special.erfc(x)", lambda x: -gaussian(x)),
    "erfcx": Row("psc.special.erfcx(x)", lambda x: _erfcx(x), lambda x: x < 20, 400),
    "erf_inv": Row("psc.special.erfinv(x)", lambda x: 1 / gaussian(mp.erfinv(x)), within, 20),
    "ndtr": Row("psc.special.ndtr(x)", density),
    "log_ndtr": Row("psc.special.log_ndtr(x)", lambda x: _hazard(x), lambda x: abs(x) < 100),
    # The gamma function and Bessel functions.
    "gammaln": Row("psc.special.gammaln(x)", mp.digamma, positive),
    "digamma": Row("psc.special.digamma(x)", lambda x: mp.polygamma(1, x), positive),
    "gamma": Row("psc.special.gamma(x)", lambda x: mp.gamma(x) * mp.digamma(x), share),
    "i0": Row("psc.special.i0(x)", lambda x: mp.besseli(1, x)),
    "i1": Row(
        "psc.special.i1(x)",
        lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
        lambda x: abs(x) < 80,
    ),
    "jv": Row("psc.special.j0(x)", lambda x: -mp.besselj(1, x)),
    "jv, order 1": Row("psc.special.j1(x)", lambda x: _bessel_j(1, x)),
    "jv, order 5": Row("psc.special.jv(5, x)", lambda x: _bessel_j(5, x)),
    "jv, order -2": Row("psc.special.jv(-2, x)", lambda x: _bessel_j(2, x)),
    "iv": Row("psc.special.iv(0, x)", lambda x: mp.besseli(1, x)),
    "iv, order 3": Row("psc.special.iv(3, x)", lambda x: _bessel_i(3, x)),
    "iv, order 0.5": Row("psc.special.iv(0.5, x)", lambda x: _bessel_i(0.5, x), positive),
    "iv, order -1.5": Row("psc.special.iv(-1.5, x)", lambda x: _bessel_i(-1.5, x), positive),
    "kv": Row("psc.special.k0(x)", lambda x: _bessel_k(0, x), positive),
    "kv, order 1": Row("psc.special.k1(x)", lambda x: _bessel_k(1, x), positive),
    "kv, order 2.25": Row("psc.special.kv(2.25, x)", lambda x: _bessel_k(2.25, x), positive),
    # Activations.
    "silu": Row("activations.silu(x)", lambda x: logistic(x) * (1 + x * logistic(-x))),
    "softplus": Row("activations.softplus(x)", logistic),
    "elu": Row("activations.elu(x)", lambda x: mp.exp(min(x, 0))),
    "log_sigmoid": Row("activations.log_sigmoid(x)", lambda x: logistic(-x)),
    "softsign": Row("activations.softsign(x)", lambda x: 1 / (1 + abs(x)) ** 2),
    "gelu": Row(
        "activations.gelu(x)", lambda x: mp.ncdf(x) + x * density(x), lambda x: abs(x) < 1e6, 9
    ),
    "mish": Row("activations.mish(x)", lambda x: _mish(x)),
    "log_cosh": Row("losses.log_cosh(x, np.zeros_like(x))", mp.tanh),
}
OTHERS = {
    # Linear, or of complex numbers, and tested as such.
    *"real imag conjugate make_complex erfinv".split(),
    # Of several numbers, or inverses: tests of their own have their derivatives.
    *"erfcinv ndtri zeta betaln gammainc gammaincc betainc betaincc".split(),
    # Their slope is a difference of functions that are nearly equal for large arguments.
    *"i0e i1e".split(),
    # What only slopes are made of.
    *"kink bend multiply_absorbing".split(),
}


def _power(x: Any, exponent: float) -> Any:
    exact = mp.mpf(exponent)
    return exact * mp.power(x, exact - 1)


def _sinc(angle: Any) -> Any:
    if abs(angle) < 1e-20:
        return -mp.pi * angle / 3
    return mp.pi * (mp.cos(angle) - mp.sin(angle) / angle) / angle


def _erfcx(x: Any) -> Any:
    return 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi)


def _hazard(x: Any) -> Any:
    return density(x) / mp.ncdf(x)


def _bessel_j(order: int, x: Any) -> Any:
    return (mp.besselj(order - 1, x) - mp.besselj(order + 1, x)) / 2


def _bessel_i(order: float, x: Any) -> Any:
    return (mp.besseli(order - 1, x) + mp.besseli(order + 1, x)) / 2


def _bessel_k(order: float, x: Any) -> Any:
    with mp.workprec(120):  # more takes seconds where the order is an integer
        return -(mp.besselk(order - 1, x) + mp.besselk(order + 1, x)) / 2


def _mish(x: Any) -> Any:
    soft = mp.log1p(mp.exp(x))
    return mp.tanh(soft) + x * logistic(x) / mp.cosh(soft) ** 2


def _points(dtype: Any) -> list[Any]:
    """40 magnitudes over the whole range, half of them where functions bend; of either sign."""
    most = 37 if dtype is np.float32 else 300
    ends = [89.5, 127.5, 128.5] if dtype is np.float32 else [709.5, 1023.5, 1024.5]
    sizes = [*10.0 ** np.linspace(-most, most, 20), *10.0 ** np.linspace(-2.9, 2.1, 17), *ends]
    return [dtype(sign * size) for size in sizes for sign in (-1, 1)]


def _is_close(row: Row, x: Any, exact: Any, error: Any, eps: float) -> bool:
    """Return whether a slope is off by roundings of its own and of its argument at most."""
    own = row.worst * ROUNDINGS * abs(exact) * eps
    beside = x * (1 + mp.mpf(eps))
    if error <= own or not row.inside(beside):
        return bool(error <= own)
    return bool(error <= own + 4 * abs(row.slope(beside) - exact))


@pytest.mark.quick_code(but=2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_are_exact_to_some_roundings(
    dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "f32" if dtype is np.float32 else "f64"
    rows = dict([*ROWS.items()] if WHOLE else [*ROWS.items()][name == "f64" :: 2])
    body = "".join(
        f"@psc.kernel\ndef k{place}(x: {name}) -> {name}:\n    return {row.text}\n\n"
        for place, row in enumerate(rows.values())
    )
    slopes = ", ".join(f"psc.vmap(psc.grad(k{place}))(x)" for place in range(len(rows)))
    body += f'@psc.kernel\ndef every(x: {name}["n"]):\n    return ({slopes})\n'
    points = some(_points(dtype), 2, name)
    path = tmp_path / f"gradients_{name}.py"
    path.write_text(HEAD + body, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = importlib.import_module(path.stem).every(np.array(points))
    info = np.finfo(dtype)
    off: list[str] = []
    with mp.workprec(400):
        for (label, row), got in zip(rows.items(), found, strict=True):
            for x, slope in zip(points, got, strict=True):
                exact_x = mp.mpf(float(x))
                if not row.inside(exact_x):
                    continue
                exact = row.slope(exact_x)
                if abs(exact) > float(info.max):
                    right = np.isinf(slope) and np.sign(slope) == mp.sign(exact)
                else:
                    error = abs(mp.mpf(float(slope)) - exact) if np.isfinite(slope) else math.inf
                    # Below the normal numbers, what a slope is made of is zero.
                    right = error <= 1024 * float(info.smallest_normal)
                    right = right or _is_close(row, exact_x, exact, error, float(info.eps))
                if not right:
                    off.append(f"{label} at {x}: {slope}, must be {mp.nstr(exact, 9)}")
    assert not off, "\n".join(off)


def test_every_differentiable_function_of_elements_has_a_row() -> None:
    every = (*TABLE.values(), *SPECIAL)
    known = {primitive.name for primitive in every if primitive.derivative is not None}
    assert not known - {label.split(",")[0] for label in ROWS} - OTHERS
