"""Functions of `scipy.linalg` and `scipy.fft` that mean what functions here mean.

Each has SciPy's signature.  Arguments that say how SciPy computes, or that it may destroy what it
is given, are taken with their defaults; others are refused.  Matrices come one at a time, in one
of the dtypes that SciPy does not change.
"""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.meanings import MEANINGS, Meaning, describe, function
from pscdsl._src.primitives import matrices as m
from pscdsl.numpy import linear_algebra
from pscdsl.numpy.calling import as_operand, of_numbers
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import C64, C128, F32, F64, DType

PRECISIONS: Final[tuple[DType, ...]] = (F32, F64, C64, C128)
"""Dtypes that SciPy computes in, and returns."""
_OF_TWO: Final = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_OF_SEVERAL: Final = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")


def _require_defaults(name: str, given: dict[str, tuple[Any, Any]]) -> None:
    """A Failure for an argument, by its name, that is not its default."""
    for keyword, (value, default) in given.items():
        if value is not default:
            problem = f"takes no `{keyword}` but {describe(default)} here"
            raise Failure(BadArguments(function=name, problem=problem))


def _require_check(name: str, value: Any) -> None:
    """`check_finite`, which is about what SciPy raises."""
    if not isinstance(value, bool):
        raise Failure(BadArguments(function=name, problem="takes a bool as `check_finite`"))


def _require_precision(name: str, *arrays: Value) -> None:
    for each in arrays:
        if each.dtype not in PRECISIONS:
            accepts = "f32, f64, c64 and c128"
            raise Failure(DtypeNotAccepted(function=name, given=each.type, accepts=accepts))


def _require_matrix(name: str, a: Value) -> None:
    _require_precision(name, a)
    if a.ndim != 2:
        raise Failure(WrongNumberOfAxes(function=name, given=a.type, wanted="a matrix"))


def _require_columns(name: str, b: Value) -> None:
    _require_precision(name, b)
    if b.ndim not in (1, 2):
        raise Failure(WrongNumberOfAxes(function=name, given=b.type, wanted="a vector or a matrix"))


def _truth(name: str, keyword: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Failure(BadArguments(function=name, problem=f"takes a bool as `{keyword}`"))
    return value


# Matrices.


@of_numbers("scipy.linalg.solve", together=("a", "b"))
def solve(
    a: Value,
    b: Value,
    lower: Any = False,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
    assume_a: Any = None,
    transposed: Any = False,
) -> Value:
    """The x with `a @ x = b`, of a matrix that has no structure or whose structure is found."""
    name = "scipy.linalg.solve"
    _require_check(name, check_finite)
    others = {"overwrite_a": (overwrite_a, False), "overwrite_b": (overwrite_b, False)}
    _require_defaults(name, {**others, "lower": (lower, False), "transposed": (transposed, False)})
    if assume_a not in (None, "gen", "general"):
        raise Failure(BadArguments(function=name, problem='takes no `assume_a` but "gen" here'))
    _require_matrix(name, a)
    _require_columns(name, b)
    # SciPy takes a vector for one column, whatever it takes a matrix for.
    found: Value = _given("numpy.linalg.solve", a.builder, a, b)
    return found


@of_numbers("scipy.linalg.solve_triangular", together=("a", "b"))
def solve_triangular(
    a: Value,
    b: Value,
    trans: Any = 0,
    lower: Any = False,
    unit_diagonal: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
) -> Value:
    """The x with `a @ x = b`, of which only a triangle is read; `trans` is 0, 1, 2, N, T or C."""
    name = "scipy.linalg.solve_triangular"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_b": (overwrite_b, False)})
    known = trans if isinstance(trans, int | str) and not isinstance(trans, bool) else ""
    if known not in _TRANSPOSED:
        problem = f"takes 0, 1, 2, N, T or C as `trans`, not {describe(trans)}"
        raise Failure(BadArguments(function=name, problem=problem))
    _require_matrix(name, a)
    _require_columns(name, b)
    transpose, conjugate = _TRANSPOSED[known]
    return linear_algebra.triangular_solve.apply(  # type: ignore[no-any-return]
        a.builder,
        (m.conjugated(a) if conjugate else a, b),
        {
            "lower": _truth(name, "lower", lower),
            "transpose": transpose,
            "unit_diagonal": _truth(name, "unit_diagonal", unit_diagonal),
        },
    )


_TRANSPOSED: Final[dict[int | str, tuple[bool, bool]]] = {
    0: (False, False),
    "N": (False, False),
    1: (True, False),
    "T": (True, False),
    2: (True, True),
    "C": (True, True),
}
"""Whether a matrix is transposed, and whether it is conjugated."""


@of_numbers("scipy.linalg.inv", together=("a",))
def inv(a: Value, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """The inverse."""
    name = "scipy.linalg.inv"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_a": (overwrite_a, False)})
    _require_matrix(name, a)
    found: Value = _given("numpy.linalg.inv", a.builder, a)
    return found


@of_numbers("scipy.linalg.det", together=("a",))
def det(a: Value, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """The determinant, of a matrix in f64 or c128."""
    name = "scipy.linalg.det"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_a": (overwrite_a, False)})
    _require_matrix(name, a)
    if a.dtype not in (F64, C128):  # of others SciPy gives one in 64 bits
        raise Failure(DtypeNotAccepted(function=name, given=a.type, accepts="f64 and c128"))
    found: Value = _given("numpy.linalg.det", a.builder, a)
    return found


@of_numbers("scipy.linalg.cholesky", together=("a",))
def cholesky(
    a: Value, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True
) -> Value:
    """The upper factor U with `U.conj().T @ U = a`, of the upper triangle; or the lower one."""
    name = "scipy.linalg.cholesky"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_a": (overwrite_a, False)})
    _require_matrix(name, a)
    linear_algebra.require_square(name, a)
    upper = not _truth(name, "lower", lower)
    factor: Value = _given("numpy.linalg.cholesky", a.builder, a, upper=upper)
    return factor


@of_numbers("scipy.linalg.eigvalsh", together=("a",))
def eigvalsh(
    a: Value,
    b: Any = None,
    *,
    lower: Any = True,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
) -> Value:
    """The eigenvalues of a Hermitian matrix, of which one triangle is read, in ascending order."""
    name = "scipy.linalg.eigvalsh"
    _require_check(name, check_finite)
    others = {"overwrite_a": (overwrite_a, False), "overwrite_b": (overwrite_b, False)}
    _require_defaults(name, {**others, "b": (b, None)})
    _require_matrix(name, a)
    triangle = "L" if _truth(name, "lower", lower) else "U"
    found: Value = _given("numpy.linalg.eigvalsh", a.builder, a, triangle)
    return found


@of_numbers("scipy.linalg.svdvals", together=("a",))
def svdvals(a: Value, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """The singular values, the largest first."""
    name = "scipy.linalg.svdvals"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_a": (overwrite_a, False)})
    _require_matrix(name, a)
    found: Value = _given("numpy.linalg.svdvals", a.builder, a)
    return found


def _given(name: str, here: Builder, *args: Any, **options: Any) -> Any:
    """Return the result of a function of NumPy's."""
    meaning = MEANINGS[name]
    assert isinstance(meaning, Meaning)
    return meaning.apply(here, args, options)


# Fourier transforms.


def _transform(short: str, *, several: bool) -> None:
    """Declare a transform of SciPy's, whose axes and lengths NumPy's takes, too."""
    name, same = f"scipy.fft.{short}", f"numpy.fft.{short}"
    default: Any = (-2, -1) if short.endswith("2") else None

    def applied(here: Builder, x: Any, options: tuple[Any, ...], rest: dict[str, Any]) -> Any:
        _require_defaults(name, {key: (rest[key], value) for key, value in _NEUTRAL.items()})
        array = as_operand(here, x)
        if not isinstance(array, Value) or not array.ndim:
            problem = f"takes an array of a known dtype, not {describe(x)}"
            raise Failure(BadArguments(function=name, problem=problem))
        _require_precision(name, array)
        return _given(same, here, array, *options)

    if several:

        def body(
            here: Builder,
            x: Any,
            s: Any = None,
            axes: Any = default,
            norm: Any = None,
            overwrite_x: Any = False,
            workers: Any = None,
            *,
            plan: Any = None,
        ) -> Any:
            rest = {"overwrite_x": overwrite_x, "workers": workers, "plan": plan}
            return applied(here, x, (s, axes, norm), rest)

        body.__doc__ = f"As `np.fft.{short}`."
        function(name)(body)
        return

    def along(
        here: Builder,
        x: Any,
        n: Any = None,
        axis: Any = -1,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        rest = {"overwrite_x": overwrite_x, "workers": workers, "plan": plan}
        return applied(here, x, (n, axis, norm), rest)

    along.__doc__ = f"As `np.fft.{short}`."
    function(name)(along)


_NEUTRAL: Final = {"overwrite_x": False, "workers": None, "plan": None}

for _short in _OF_TWO:
    _transform(_short, several=False)
for _short in _OF_SEVERAL:
    _transform(_short, several=True)


@of_numbers("scipy.fft.fftshift", together=("x",))
def fftshift(x: Value, axes: Any = None) -> Value:
    """The elements in the order that has the frequency 0 in the middle."""
    found: Value = _given("numpy.fft.fftshift", x.builder, x, axes)
    return found


@of_numbers("scipy.fft.ifftshift", together=("x",))
def ifftshift(x: Value, axes: Any = None) -> Value:
    """The inverse of `fftshift`."""
    found: Value = _given("numpy.fft.ifftshift", x.builder, x, axes)
    return found


@function("scipy.fft.fftfreq")
def fftfreq(here: Builder, n: Any, d: Any = 1.0) -> Any:
    """The frequencies of `fft`."""
    return _given("numpy.fft.fftfreq", here, n, d)


@function("scipy.fft.rfftfreq")
def rfftfreq(here: Builder, n: Any, d: Any = 1.0) -> Any:
    """The frequencies of `rfft`."""
    return _given("numpy.fft.rfftfreq", here, n, d)
