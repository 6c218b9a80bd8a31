"""Functions of `scipy.linalg` and `scipy.fft` that mean what functions here mean.

Each has SciPy's signature.  Arguments that say how SciPy computes, or that it may destroy what it
is given, are taken with their defaults; others are refused.  Matrices are the last two axes, in one
of the dtypes that SciPy does not change.
"""

from __future__ import annotations

import math
from typing import Any, Final

from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Literal
from pscdsl._src.language.meanings import MEANINGS, Meaning, describe, function
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl._src.primitives.matrices import EPSILON
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl.numpy import linear_algebra
from pscdsl.numpy.calling import as_operand, of_numbers
from pscdsl.numpy.shorthand import filled, reshaped, where
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypeNotAccepted
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, C64, C128, F32, F64, DType
from pscdsl.typing.python_containers import is_sequence

PRECISIONS: Final[tuple[DType, ...]] = (F32, F64, C64, C128)
"""Dtypes that SciPy computes in, and returns."""
_OF_TWO: Final = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_OF_SEVERAL: Final = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")


def _require_defaults(name: str, given: dict[str, tuple[Any, Any]]) -> None:
    """A Failure for an argument, by its name, that is not its default."""
    for keyword, (value, default) in given.items():
        if value is not default:
            problem = f"takes no `{keyword}` but {describe(default)} here"
            written = keyword.removeprefix("overwrite_")
            instead = f"leave it out, or give `{written}.copy()`" if written != keyword else ""
            raise Failure(BadArguments(function=name, problem=problem, instead=instead))


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
    linear_algebra.require_axes(name, a)


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
    _require_precision(name, b)
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
    _require_precision(name, b)
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
    found: Value = _of_matrix("inv", a, overwrite_a, check_finite)
    return found


@of_numbers("scipy.linalg.det", together=("a",))
def det(a: Value, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """The determinant, of a matrix in f64 or c128."""
    if a.dtype not in (F64, C128):  # of others SciPy gives one in 64 bits
        accepts = "f64 and c128"
        raise Failure(DtypeNotAccepted(function="scipy.linalg.det", given=a.type, accepts=accepts))
    found: Value = _of_matrix("det", a, overwrite_a, check_finite)
    return found


@of_numbers("scipy.linalg.svdvals", together=("a",))
def svdvals(a: Value, overwrite_a: Any = False, check_finite: Any = True) -> Value:
    """The singular values, the largest first."""
    found: Value = _of_matrix("svdvals", a, overwrite_a, check_finite)
    return found


def _of_matrix(
    short: str, a: Value, overwrite_a: Any, check_finite: Any, *args: Any, **options: Any
) -> Any:
    """Return what NumPy's function of the same name gives for a matrix."""
    name = f"scipy.linalg.{short}"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_a": (overwrite_a, False)})
    _require_matrix(name, a)
    return _given(f"numpy.linalg.{short}", a.builder, a, *args, **options)


@of_numbers("scipy.linalg.cholesky", together=("a",))
def cholesky(
    a: Value, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True
) -> Value:
    """The upper factor U with `U.conj().T @ U = a`, of the upper triangle; or the lower one."""
    upper = not _truth("scipy.linalg.cholesky", "lower", lower)
    linear_algebra.require_square("scipy.linalg.cholesky", a)
    factor: Value = _of_matrix("cholesky", a, overwrite_a, check_finite, upper=upper)
    return factor


@of_numbers("scipy.linalg.cho_factor", together=("a",))
def cho_factor(
    a: Value, lower: Any = False, overwrite_a: Any = False, check_finite: Any = True
) -> tuple[Value, Value | bool]:
    """The factor of `cholesky`, with the other triangle of the matrix beside it, and `lower`.

    Of a stack there are as many `lower` as matrices.
    """
    factor = cholesky.apply(a.builder, (a, lower, overwrite_a, check_finite), {})
    inside = m.where_row(e.greater_equal if lower else e.less_equal, a)
    stack = a.shape[:-2]
    return where(inside, factor, a), a.builder.full(lower, stack, BOOL) if stack else lower


@function("scipy.linalg.cho_solve")
def cho_solve(
    here: Builder,
    c_and_lower: Any,
    b: Any,
    overwrite_b: Any = False,
    check_finite: Any = True,
) -> Value:
    """The x with `a @ x = b`, of what `cho_factor` gives for a."""
    name = "scipy.linalg.cho_solve"
    _require_check(name, check_finite)
    _require_defaults(name, {"overwrite_b": (overwrite_b, False)})
    if not is_sequence(c_and_lower) or len(c_and_lower) != 2:
        problem = f"takes the pair that `cho_factor` gives, not {describe(c_and_lower)}"
        raise Failure(BadArguments(function=name, problem=problem))
    lower = _truth(name, "lower", _same_for_all(c_and_lower[1]))
    between = solve_triangular.apply(here, (c_and_lower[0], b, 0 if lower else "C", lower), {})
    found: Value = solve_triangular.apply(
        here, (c_and_lower[0], between, "C" if lower else 0, lower), {}
    )
    return found


def _same_for_all(lower: Any) -> Any:
    """Return the `lower` of a stack as one, if it is known while checking."""
    if not isinstance(lower, Value) or lower.dtype is not BOOL:
        return lower
    for equation in lower.builder.equations:
        if lower.atom in equation.outputs and isinstance(equation.primitive, Broadcast):
            (given,) = equation.inputs
            return given.value if isinstance(given, Literal) else lower
    return lower


@of_numbers("scipy.linalg.eigvalsh", together=("a", "b"))
def eigvalsh(
    a: Value,
    b: Value | None = None,
    *,
    lower: Any = True,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    type: Any = 1,  # noqa: A002
    check_finite: Any = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Value:
    """The eigenvalues of a Hermitian matrix, of which one triangle is read, in ascending order."""
    rest = _unused(overwrite_a, overwrite_b, type, driver, subset_by_index, subset_by_value)
    found: Value = _hermitian("scipy.linalg.eigvalsh", a, b, lower, check_finite, rest, False)
    return found


@of_numbers("scipy.linalg.eigh", together=("a", "b"))
def eigh(
    a: Value,
    b: Value | None = None,
    *,
    lower: Any = True,
    eigvals_only: Any = False,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    type: Any = 1,  # noqa: A002
    check_finite: Any = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Value | tuple[Value, Value]:
    """The eigenvalues w and vectors v with `a @ v = b @ v * w`, of one triangle of both."""
    name = "scipy.linalg.eigh"
    rest = _unused(overwrite_a, overwrite_b, type, driver, subset_by_index, subset_by_value)
    vectors = not _truth(name, "eigvals_only", eigvals_only)
    found: Value | tuple[Value, Value] = _hermitian(name, a, b, lower, check_finite, rest, vectors)
    return found


def _unused(*given: Any) -> dict[str, tuple[Any, Any]]:
    """Options of `eigh` and `eigvalsh` that have their defaults, with these."""
    defaults = {"overwrite_a": False, "overwrite_b": False, "type": 1, "driver": None}
    defaults |= {"subset_by_index": None, "subset_by_value": None}
    return {
        name: (value, default)
        for value, (name, default) in zip(given, defaults.items(), strict=True)
    }


def _hermitian(
    name: str,
    a: Value,
    b: Value | None,
    lower: Any,
    check_finite: Any,
    rest: dict[str, tuple[Any, Any]],
    vectors: bool,
) -> Any:
    """Eigenvalues of a Hermitian matrix, beside another or alone, and the vectors if asked for."""
    _require_check(name, check_finite)
    _require_defaults(name, rest)
    _require_matrix(name, a)
    linear_algebra.require_square(name, a)
    is_lower = _truth(name, "lower", lower)
    here = a.builder
    if b is None:
        function = "numpy.linalg.eigh" if vectors else "numpy.linalg.eigvalsh"
        found = _given(function, here, a, "L" if is_lower else "U")
        return tuple(found) if vectors else found
    _require_matrix(name, b)
    linear_algebra.require_square(name, b)
    sides = ("the rows of " + str(a.type), a.shape[-1]), ("the rows of " + str(b.type), b.shape[-1])
    linear_algebra.require_same(name, *sides, a)
    # Of b = L @ L^H, the eigenvalues are those of L^-1 @ a @ L^-H, and L^H @ v their vectors.
    whole = linear_algebra.from_triangle(a, lower=is_lower)
    factor = _given("numpy.linalg.cholesky", here, b, upper=not is_lower)
    left = factor if is_lower else m.adjoint(factor)
    half = _triangular(left, whole)
    inner = m.adjoint(_triangular(left, m.adjoint(half)))
    if not vectors:
        return _given("numpy.linalg.eigvalsh", here, inner)
    values, columns = _given("numpy.linalg.eigh", here, inner)
    return values, _triangular(m.conjugated(left), columns, transpose=True)


def _triangular(a: Value, b: Value, *, transpose: bool = False) -> Value:
    """Solve with a lower triangular matrix, or with its transpose."""
    options = {"lower": True, "transpose": transpose}
    found: Value = linear_algebra.triangular_solve.apply(a.builder, (a, b), options)
    return found


@of_numbers("scipy.linalg.svd", together=("a",))
def svd(
    a: Value,
    full_matrices: Any = True,
    compute_uv: Any = True,
    overwrite_a: Any = False,
    check_finite: Any = True,
    lapack_driver: Any = "gesdd",
) -> Any:
    """`a = U @ diag(s) @ Vh` with s in descending order; without `compute_uv`, s alone."""
    name = "scipy.linalg.svd"
    _require_defaults(name, {"lapack_driver": (lapack_driver, "gesdd")})
    flags = (_truth(name, "full_matrices", full_matrices), _truth(name, "compute_uv", compute_uv))
    found = _of_matrix("svd", a, overwrite_a, check_finite, *flags)
    return found if isinstance(found, Value) else tuple(found)


@of_numbers("scipy.linalg.qr", together=("a",))
def qr(
    a: Value,
    overwrite_a: Any = False,
    lwork: Any = None,
    mode: Any = "full",
    pivoting: Any = False,
    check_finite: Any = True,
) -> tuple[Value, ...]:
    """Orthonormal columns Q and upper triangular R with `Q @ R = a`; modes full, economic, r."""
    name = "scipy.linalg.qr"
    _require_defaults(name, {"lwork": (lwork, None), "pivoting": (pivoting, False)})
    if mode not in ("full", "economic", "r"):
        problem = f"takes the mode 'full', 'economic' or 'r' here, not {describe(mode)}"
        raise Failure(BadArguments(function=name, problem=problem))
    numpys = "reduced" if mode == "economic" else "complete"
    found = tuple(_of_matrix("qr", a, overwrite_a, check_finite, numpys))
    return found[1:] if mode == "r" else found


@of_numbers("scipy.linalg.norm", together=("a",))
def norm(
    a: Value,
    ord: Any = None,  # noqa: A002
    axis: Any = None,
    keepdims: Any = False,
    check_finite: Any = True,
) -> Value:
    """The same as `np.linalg.norm`; of one vector also where squares overflow or vanish."""
    _require_check("scipy.linalg.norm", check_finite)
    _require_precision("scipy.linalg.norm", a)
    order = linear_algebra.known_order("scipy.linalg.norm", ord)
    if a.ndim == 1 and axis is None and keepdims is False and order in (None, 2):
        scale = _scale(a)
        scaled = [part / scale for part in _parts(a)]
        whole = e.make_complex(*scaled) if a.dtype.is_complex else scaled[0]
        result: Value = _given("numpy.linalg.norm", a.builder, whole) * scale
        return result
    found: Value = _given("numpy.linalg.norm", a.builder, a, ord, axis, keepdims)
    return found


_SQUARED: Final = {F32: (2.0**-32, 2.0**48), F64: (2.0**-480, 2.0**480)}
"""Sizes between which squares, and sums of many, neither vanish nor overflow."""


def _scale(a: Value) -> Value:
    """The size of the largest number if its square is too small or too large, else 1."""
    sizes = [Reduce("maximum", (0,))(e.absolute(part)) for part in _parts(a)]
    largest = StopGradient()(sizes[0] if len(sizes) == 1 else e.maximum(*sizes))
    low, high = _SQUARED[a.dtype.real]
    small = (largest > 0.0) & e.less(largest, low)
    large = e.greater(largest, high) & e.less(largest, math.inf)
    return where(small | large, largest, filled(largest, 1.0))


def _parts(a: Value) -> tuple[Value, ...]:
    return (e.real(a), e.imag(a)) if a.dtype.is_complex else (a,)


@of_numbers("scipy.linalg.lstsq", together=("a", "b"), numbers=("cond",))
def lstsq(
    a: Value,
    b: Value,
    cond: Any = None,
    overwrite_a: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = True,
    lapack_driver: Any = None,
) -> tuple[Any, ...]:
    """The shortest x with the smallest `|a @ x - b|`; residues, the rank, the singular values.

    The residues are those of a matrix of full rank: none if it has not more rows than columns.
    """
    name = "scipy.linalg.lstsq"
    _require_check(name, check_finite)
    rest = {"overwrite_a": (overwrite_a, False), "overwrite_b": (overwrite_b, False)}
    driver = None if lapack_driver == "gelsd" else lapack_driver
    _require_defaults(name, {**rest, "lapack_driver": (driver, None)})
    for each in (a, b):
        _require_precision(name, each)
    cutoff = EPSILON[a.dtype.real] if cond is None else cond
    x, squares, rank, singular = _given("numpy.linalg.lstsq", a.builder, a, b, cutoff)
    rows, columns = a.shape
    facts = a.builder.facts
    if facts.proves(Fact("<=", rows, columns)):
        residues: Any = a.builder.full(0, (0,), a.dtype.real)
    elif facts.proves(Fact("<=", columns + 1, rows)):
        residues = reshaped(squares, ()) if b.ndim == 1 else squares
    else:
        residues = _Residues()
    return x, residues, rank, singular


class _Residues:
    """Residues whose shape is not known for all sizes."""

    def description(self) -> str:
        """Return the text for messages."""
        return (
            "the residues of `scipy.linalg.lstsq`, of which there are none unless the matrix is "
            "known to have more rows than columns"
        )


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
