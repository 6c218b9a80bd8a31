"""Functions beside mpmath: what they are, where they are defined, and how far off ours may be.

The bounds are in units in the last place of the exact value, of which normal numbers are asked; of
complex values, of the size of the number.  They are about 1.3 times the worst that was seen at a
thousand points, a quarter of them over the whole range, the others from 1e-4 to 1e3.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

mp: Any = importlib.import_module("mpmath").mp
Exact: TypeAlias = Callable[[Any], Any]
"""The exact value; None where it is not asked for."""


class Row(NamedTuple):
    """A function of x."""

    text: str
    exact: Exact
    bounds: tuple[float, float]
    """Of the single and of the double precision."""
    where: str = ""
    """Where the bounds hold, if not everywhere."""


def _inside(exact: Exact, inside: Callable[[Any], bool]) -> Exact:
    return lambda x: exact(x) if inside(x) else None


def _positive(exact: Exact) -> Exact:
    return _inside(exact, lambda x: x > 0)


def _below(most: float, exact: Exact) -> Exact:
    return _inside(exact, lambda x: abs(x) < most)


def _erfcx(x: Any) -> Any:
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * mp.sqrt(mp.pi))


def _log_ndtr(x: Any) -> Any:
    tail = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log(tail) if x < 0 else mp.log1p(-tail)


def _regularized(exact: Callable[..., Any], *before: float, **ends: Any) -> Exact:
    return lambda x: exact(*before, **{k: x if v is ... else v for k, v in ends.items()})


REAL: dict[str, Row] = {
    "reciprocal": Row("np.reciprocal(x)", lambda x: 1 / x, (1, 1)),
    "square": Row("np.square(x)", lambda x: x * x, (1, 1)),
    "sqrt": Row("np.sqrt(x)", _positive(mp.sqrt), (1, 1)),
    "cbrt": Row("np.cbrt(x)", lambda x: mp.sign(x) * mp.cbrt(abs(x)), (1, 1)),
    "hypot": Row("np.hypot(x, 1.0)", lambda x: mp.hypot(x, 1), (2.5, 2)),
    "exp": Row("np.exp(x)", mp.exp, (1, 2)),
    "exp2": Row("np.exp2(x)", lambda x: mp.power(2, x), (1, 1)),
    "expm1": Row("np.expm1(x)", mp.expm1, (5.5, 4)),
    "log": Row("np.log(x)", _positive(mp.log), (1.5, 1)),
    "log2": Row("np.log2(x)", _positive(lambda x: mp.log(x) / mp.log(2)), (2.5, 2)),
    "log10": Row("np.log10(x)", _positive(mp.log10), (2.5, 3)),
    "log1p": Row("np.log1p(x)", _inside(mp.log1p, lambda x: x > -1), (2.5, 2)),
    "logaddexp": Row(
        "np.logaddexp(x, 1.0)", _below(1e3, lambda x: mp.log(mp.exp(x) + mp.e)), (1.5, 1.5)
    ),
    "logaddexp2": Row(
        "np.logaddexp2(x, 1.0)",
        _below(1e3, lambda x: mp.log(mp.power(2, x) + 2) / mp.log(2)),
        (2.5, 2.5),
    ),
    "power": Row("x ** 1.5", _positive(lambda x: mp.power(x, 1.5)), (1.5, 1.5)),
    "power of 3": Row("x ** 3", lambda x: x**3, (1.5, 2)),
    "power of 7": Row("x ** 7", lambda x: x**7, (4, 4)),
    "power of -2.5": Row("x ** -2.5", _positive(lambda x: mp.power(x, -2.5)), (3, 3)),
    "sin": Row("np.sin(x)", mp.sin, (1, 1)),
    "cos": Row("np.cos(x)", mp.cos, (1, 1)),
    "tan": Row("np.tan(x)", mp.tan, (1, 1)),
    "arcsin": Row("np.arcsin(x)", _below(1, mp.asin), (2, 2)),
    "arccos": Row("np.arccos(x)", _below(1, mp.acos), (1.5, 1.5)),
    "arctan": Row("np.arctan(x)", mp.atan, (3, 3)),
    "arctan2": Row("np.arctan2(x, 2.0)", lambda x: mp.atan2(x, 2), (3, 3)),
    "sinh": Row("np.sinh(x)", mp.sinh, (5.5, 4)),
    "cosh": Row("np.cosh(x)", mp.cosh, (2.5, 3)),
    "tanh": Row("np.tanh(x)", mp.tanh, (4.5, 9)),
    "arcsinh": Row("np.arcsinh(x)", mp.asinh, (3.5, 2.5)),
    "arccosh": Row("np.arccosh(x)", _inside(mp.acosh, lambda x: x >= 1), (3, 2.5)),
    "arctanh": Row("np.arctanh(x)", _below(1, mp.atanh), (2.5, 1.5)),
    "special.expit": Row("psc.special.expit(x)", lambda x: 1 / (1 + mp.exp(-x)), (2.5, 2.5)),
    "special.logit": Row(
        "psc.special.logit(x)",
        _inside(lambda x: mp.log(x / (1 - x)), lambda x: 0 < x < 1),
        (2, 2),
    ),
    "special.xlog1py": Row(
        "psc.special.xlog1py(2.0, x)",
        _inside(lambda x: 2 * mp.log1p(x), lambda x: x > -1),
        (2.5, 2),
    ),
    "special.entr": Row("psc.special.entr(x)", _positive(lambda x: -x * mp.log(x)), (2.5, 2)),
    "special.erf": Row("psc.special.erf(x)", mp.erf, (4, 1)),
    "special.erfc": Row("psc.special.erfc(x)", _below(1e3, mp.erfc), (4.5, 4)),
    "special.erfcx": Row("psc.special.erfcx(x)", _inside(_erfcx, lambda x: x > -30), (4, 4)),
    "special.erfinv": Row("psc.special.erfinv(x)", _below(1, mp.erfinv), (4, 5)),
    "special.ndtr": Row(
        "psc.special.ndtr(x)", _below(1e3, lambda x: mp.erfc(-x / mp.sqrt(2)) / 2), (3.5, 4.5)
    ),
    "special.log_ndtr": Row("psc.special.log_ndtr(x)", _below(1e3, _log_ndtr), (4, 4)),
    "special.gamma": Row(
        "psc.special.gamma(x)",
        _inside(mp.gamma, lambda x: abs(x) < 170 and x != mp.floor(x)),
        (4, 5),
    ),
    "special.gammaln": Row("psc.special.gammaln(x)", _positive(mp.loggamma), (4, 4), "x > 0"),
    "special.digamma": Row("psc.special.digamma(x)", _positive(mp.digamma), (4, 4), "x > 0"),
    "special.polygamma": Row(
        "psc.special.polygamma(1, x)",
        _inside(lambda x: mp.polygamma(1, x), lambda x: 0 < x < 1e3),
        (3.5, 4),
        "x > 0",
    ),
    "special.zeta": Row(
        "psc.special.zeta(x, 1.0)", _inside(mp.zeta, lambda x: 1 < x < 100), (3, 3)
    ),
    "special.i0": Row("psc.special.i0(x)", _below(80, lambda x: mp.besseli(0, x)), (5, 5)),
    "special.i1": Row("psc.special.i1(x)", _below(80, lambda x: mp.besseli(1, x)), (5, 9)),
    "special.i0e": Row(
        "psc.special.i0e(x)",
        _below(80, lambda x: mp.besseli(0, x) * mp.exp(-abs(x))),
        (4, 6.5),
    ),
    "special.i1e": Row(
        "psc.special.i1e(x)",
        _below(80, lambda x: mp.besseli(1, x) * mp.exp(-abs(x))),
        (3, 7.5),
    ),
    "special.betaln": Row(
        "psc.special.betaln(x, 2.5)",
        _inside(lambda x: mp.log(mp.beta(x, 2.5)), lambda x: 1e-4 < x < 0.3 or 1 < x < 1e5),
        (5, 5),
        "away from its roots",
    ),
    "special.gammainc": Row(
        "psc.special.gammainc(2.5, x)",
        _inside(
            _regularized(mp.gammainc, 2.5, a=0, b=..., regularized=True), lambda x: 0.1 < x < 90
        ),
        (16, 16),
        "above 1e-3; its exponent's rounding beyond",
    ),
    "special.betainc": Row(
        "psc.special.betainc(2.5, 1.5, x)",
        _inside(
            _regularized(mp.betainc, 2.5, 1.5, x1=0, x2=..., regularized=True),
            lambda x: 0.05 < x < 1,
        ),
        (16, 16),
        "above 1e-3; its exponent's rounding beyond",
    ),
}
"""Functions of a real number."""

COMPLEX: dict[str, Row] = {
    "multiply": Row("x * (1.5 + 2j)", lambda z: z * mp.mpc(1.5, 2), (1.5, 1.5)),
    "divide": Row("(1.5 + 2j) / x", lambda z: mp.mpc(1.5, 2) / z, (2.5, 2.5)),
    "reciprocal": Row("np.reciprocal(x)", lambda z: 1 / z, (2, 2)),
    "square": Row("np.square(x)", lambda z: z * z, (1.5, 1.5)),
    "absolute": Row("np.abs(x)", abs, (2.5, 2)),
    "angle": Row("np.angle(x)", mp.arg, (1.5, 1.5)),
    "sqrt": Row("np.sqrt(x)", mp.sqrt, (3, 3)),
    "exp": Row("np.exp(x)", mp.exp, (2, 2)),
    "expm1": Row("np.expm1(x)", mp.expm1, (4, 4)),
    "log": Row("np.log(x)", mp.log, (2, 2)),
    "log2": Row("np.log2(x)", lambda z: mp.log(z) / mp.log(2), (3, 3)),
    "log10": Row("np.log10(x)", mp.log10, (3, 3)),
    "log1p": Row("np.log1p(x)", mp.log1p, (2.5, 2.5)),
    "power": Row("x ** 1.5", lambda z: mp.power(z, 1.5), (64, 256), "its exponent's rounding"),
    "sin": Row("np.sin(x)", mp.sin, (4.5, 4)),
    "cos": Row("np.cos(x)", mp.cos, (3, 4)),
    "tan": Row("np.tan(x)", mp.tan, (5.5, 5.5)),
    "arcsin": Row("np.arcsin(x)", mp.asin, (3, 3)),
    "arccos": Row("np.arccos(x)", mp.acos, (3, 3)),
    "arctan": Row("np.arctan(x)", mp.atan, (3, 3)),
    "sinh": Row("np.sinh(x)", mp.sinh, (4, 4)),
    "cosh": Row("np.cosh(x)", mp.cosh, (3.5, 4)),
    "tanh": Row("np.tanh(x)", mp.tanh, (4, 5.5)),
    "arcsinh": Row("np.arcsinh(x)", mp.asinh, (3, 3)),
    "arccosh": Row("np.arccosh(x)", mp.acosh, (3, 3)),
    "arctanh": Row("np.arctanh(x)", mp.atanh, (3, 3)),
}
"""Functions of a complex number."""
