"""Functions of `scipy.linalg` and `scipy.fft` in kernels, beside SciPy itself."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.linalg as sl
from scipy import fft

import pscdsl as psc
from pscdsl import bool_, c128, f64
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.diagnostics import Failure
from tests.support.numpy_differential import agree, normal
from tests.support.numpy_harness import run, run_compiled

pytestmark = pytest.mark.quick_code(but=4)

Project()  # declares the meanings

NAMES = [
    name
    for name, each in MEANINGS.items()
    if name.startswith(("scipy.linalg.", "scipy.fft.")) and isinstance(each, Meaning)
]


def real(name: str) -> Any:
    found: Any = scipy
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def definite(size: int) -> Any:
    a = normal(size, size)
    return a @ a.T + np.eye(size)


A, B = definite(4), normal(4)
C = A + 1j * np.triu(normal(4, 4), 1)
OTHER = A + np.diag([1.0, 2.0, 3.0, 5.0])
STACK = np.stack([definite(4), A, 2 * A])
X = normal(3, 6)
Z = X + 1j * normal(3, 6)[::-1]
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("linalg.solve", (A, B), {}),
    ("linalg.solve", (normal(4, 4), normal(4, 2)), {"check_finite": False}),
    ("linalg.solve", (C, B + 0j), {}),
    ("linalg.solve", (np.triu(A), B), {"assume_a": "gen"}),
    ("linalg.solve", (definite(1), normal(1)), {}),
    ("linalg.inv", (A,), {}),
    ("linalg.inv", (C,), {"overwrite_a": False}),
    ("linalg.det", (A,), {}),
    ("linalg.det", (C,), {}),
    ("linalg.cholesky", (A + np.tril(normal(4, 4), -1),), {}),
    ("linalg.cholesky", (A + np.triu(normal(4, 4), 1),), {"lower": True}),
    ("linalg.cholesky", (A + 0.1j * np.triu(normal(4, 4), 1),), {}),
    ("linalg.cholesky", (A + 0.1j * np.tril(normal(4, 4), -1),), {"lower": True}),
    ("linalg.eigvalsh", (normal(4, 4),), {}),
    ("linalg.eigvalsh", (normal(4, 4),), {"lower": False}),
    ("linalg.eigvalsh", (C,), {"check_finite": False}),
    ("linalg.svdvals", (normal(4, 3),), {}),
    ("linalg.solve", (STACK, B), {}),
    ("linalg.solve", (STACK, normal(3, 4, 2)), {}),
    ("linalg.solve", (A, normal(3, 4, 2)), {}),
    *(
        (f"linalg.{name}", (STACK,), {})
        for name in ("inv", "det", "cholesky", "eigvalsh", "svdvals")
    ),
    ("linalg.solve_triangular", (STACK, normal(3, 4, 2)), {"lower": True}),
    ("linalg.solve_triangular", (STACK, B), {}),
    ("linalg.eigvalsh", (C, OTHER + 0j), {}),
    ("linalg.eigvalsh", (STACK, STACK), {"lower": False}),
    ("linalg.eigh", (C,), {"eigvals_only": True}),
    ("linalg.eigh", (normal(4, 4), OTHER), {"eigvals_only": True, "lower": False}),
    ("linalg.svd", (normal(4, 3),), {"compute_uv": False}),
    *(("linalg.qr", (x,), {"mode": mode}) for x in (normal(5, 3), C) for mode in ("economic", "r")),
    ("linalg.qr", (A,), {}),
    *(("linalg.norm", (x,), {}) for x in (A, B, STACK, C)),
    *(("linalg.norm", (A, order), {}) for order in (1, 2, -1, "fro", "nuc", np.inf)),
    ("linalg.norm", (STACK,), {"axis": (0, 1), "keepdims": True, "check_finite": False}),
    *(("linalg.cho_factor", (x,), {"lower": low}) for x in (A, C) for low in (False, True)),
    *(
        ("linalg.cho_solve", ((sl.cho_factor(x, lower=low)[0], low), x[..., :2]), {})
        for x in (A, C, STACK)
        for low in (False, True)
    ),
    ("linalg.cho_solve", ((sl.cho_factor(A)[0], False), B), {}),
    *(("linalg.expm", (x,), {}) for x in (A / 4, C / 8, STACK / 30, normal(4, 4), normal(1, 1))),
    *(("linalg.expm", (x,), {}) for x in (np.zeros((3, 3)), 40 * (normal(4, 4) - 8 * np.eye(4)))),
    *(("linalg.expm", (s * (C - C.T.conj() + 1j * A),), {}) for s in (1e-8, 0.1, 1.0, 50.0)),
    ("linalg.lstsq", (normal(5, 3), normal(5)), {}),
    ("linalg.lstsq", (normal(5, 3), normal(5, 2)), {"lapack_driver": "gelsd"}),
    ("linalg.lstsq", (normal(3, 5), normal(3)), {}),
    ("linalg.lstsq", (np.diag([1.0, 1e-3, 1e-9]), normal(3)), {"cond": 1e-6}),
    *(
        ("linalg.solve_triangular", (a, b), {"trans": trans, "lower": lower})
        for a, b in ((normal(4, 4) + 3 * np.eye(4), B), (C, normal(4, 2) + 0j))
        for trans in (0, 1, 2, "N", "T", "C")
        for lower in (False, True)
    ),
    ("linalg.solve_triangular", (A, B, 1, True, True), {}),
    *((f"fft.{name}", (x,), {}) for name in ("fft", "ifft") for x in (X, Z, X[0], X[:1])),
    ("fft.fft", (X, 4, 0, "ortho"), {}),
    ("fft.ifft", (Z,), {"n": 9, "norm": "forward"}),
    ("fft.rfft", (X,), {"norm": "backward"}),
    ("fft.irfft", (Z,), {}),
    ("fft.irfft", (Z, 7), {"axis": 0}),
    ("fft.hfft", (Z,), {}),
    ("fft.ihfft", (X,), {}),
    *((f"fft.{name}", (Z,), {}) for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")),
    *((f"fft.{name}", (X,), {}) for name in ("rfft2", "rfftn")),
    ("fft.fft2", (Z,), {"s": (4, 5), "axes": (1, 0), "norm": "ortho"}),
    ("fft.fftn", (normal(2, 3, 4),), {"axes": (0, 2)}),
    ("fft.fftshift", (X,), {}),
    ("fft.ifftshift", (X,), {"axes": 1}),
    ("fft.fftfreq", (7,), {}),
    ("fft.fftfreq", (6, 0.5), {}),
    ("fft.rfftfreq", (7,), {"d": 0.1}),
]


def narrow(x: Any) -> Any:
    """An array in half as many bits."""
    if isinstance(x, tuple):
        return tuple(map(narrow, x))
    if not isinstance(x, np.ndarray):
        return x
    return x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_as_scipy(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    wanted = real(f"scipy.{name}")(*args, **kwargs)
    wanted = np.float64(wanted) if isinstance(wanted, float) else wanted  # of SciPy's norm
    if isinstance(wanted, tuple):
        results = run(f"scipy.{name}", *args, **kwargs)
        if name == "linalg.cho_factor":  # the other triangle is whatever SciPy leaves there
            part = np.tril if kwargs["lower"] else np.triu
            (mine, *rest), (other, *more) = results, wanted
            results, wanted = (part(np.asarray(mine)), *rest), (part(other), *more)
        for found, each in zip(results, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found), each, rtol=1e-9, atol=1e-12)
        return
    is_open = name.endswith("freq")  # the dtype is that of what it meets, or f32
    agree(run(f"scipy.{name}", *args, **kwargs), wanted, 1e-6 if is_open else 1e-9)
    if not is_open and not name.endswith("det"):
        few = [narrow(each) for each in args]
        found, wanted = run(f"scipy.{name}", *few, **kwargs), real(f"scipy.{name}")(*few, **kwargs)
        assert isinstance(wanted, float) or np.asarray(found).dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3, atol=1e-4)


def test_every_function_is_called() -> None:
    assert {f"scipy.{name}" for name, _, _ in CALLS} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_scipy(name: str) -> None:
    """What is not taken here stands behind what is, and by its name."""
    function: Any = MEANINGS[name]
    ours = [each for each in function.signature.parameters.values() if each.name != "here"]
    theirs = inspect.signature(real(name)).parameters
    for place, each in enumerate(ours):
        other = theirs.get(each.name)
        if other is None:  # which an older SciPy has not
            assert each.name in ("assume_a", "transposed", "check_finite")
            continue
        assert each.kind is other.kind
        if other.kind is not other.KEYWORD_ONLY:
            assert list(theirs)[place] == each.name
        # Some versions of SciPy have a mark of their own for what is left out.
        assert each.default == other.default or each.name in ("assume_a", "axes", "lwork")


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("linalg.solve", (A, B), {"lower": True}),
        ("linalg.solve", (A, B), {"assume_a": "pos"}),
        ("linalg.solve", (A, B), {"overwrite_a": True}),
        ("linalg.solve", (A, B), {"transposed": True}),
        ("linalg.solve", (STACK, normal(3, 4)), {}),
        ("linalg.solve_triangular", (STACK, normal(3, 4)), {}),
        ("linalg.lstsq", (STACK, normal(3, 4, 1)), {}),
        ("linalg.lstsq", (A, B), {"lapack_driver": "gelsy"}),
        ("linalg.svd", (A,), {"lapack_driver": "gesvd"}),
        ("linalg.qr", (A,), {"pivoting": True}),
        ("linalg.qr", (A,), {"mode": "raw"}),
        ("linalg.qr", (A,), {"mode": "complete"}),
        ("linalg.norm", (STACK, "fro"), {}),
        ("linalg.norm", (A.astype(np.int32),), {}),
        ("linalg.cho_solve", (A, B), {}),
        ("linalg.cho_solve", ((A, B), B), {}),
        ("linalg.cho_factor", (normal(3, 4),), {}),
        ("linalg.expm", (normal(3, 4),), {}),
        ("linalg.expm", (A.astype(np.int32),), {}),
        ("linalg.eigh", (A, normal(3, 3)), {}),
        ("linalg.eigh", (A, A), {"type": 2}),
        ("linalg.eigh", (A,), {"subset_by_index": (0, 1)}),
        ("linalg.solve", (A.astype(np.int32), B.astype(np.int32)), {}),
        ("linalg.det", (narrow(A),), {}),
        ("linalg.inv", (A,), {"assume_a": "pos"}),
        ("linalg.solve_triangular", (A, B), {"trans": 3}),
        ("linalg.solve_triangular", (A, B), {"trans": True}),
        ("linalg.solve_triangular", (A, B), {"overwrite_b": True}),
        ("linalg.cholesky", (A,), {"lower": 1}),
        ("linalg.eigvalsh", (A,), {"subset_by_index": (0, 1)}),
        ("fft.fft", (X,), {"workers": 2}),
        ("fft.fft", (X,), {"overwrite_x": True}),
        ("fft.fft", (X.astype(np.int32),), {}),
        ("fft.fft", (X,), {"norm": "other"}),
        ("fft.fftfreq", (7,), {"xp": np}),
    ],
)
def test_what_is_refused(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(Failure):
        run(f"scipy.{name}", *args, **kwargs)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvalsh"])
@pytest.mark.parametrize("shape", [(1, 0), (2, 3)])
def test_matrices_that_are_not_square_are_refused(name: str, shape: tuple[int, int]) -> None:
    with pytest.raises(Failure, match="PSC332"):
        run(f"scipy.linalg.{name}", np.ones(shape))


def kernel_of_names(a: f64["n n"], b: f64["n"]) -> tuple[f64["n"], c128["n"], f64["n n"], f64]:
    x = sl.solve_triangular(a, b, lower=True)
    x[0] += 1
    y = scipy.fft.fft(x)
    y *= 2
    return x, y, sl.cholesky(a, lower=True), scipy.linalg.det(a) + fft.ifft(y).real[0]


def test_names_in_kernels() -> None:
    kernel: Any = psc.kernel(kernel_of_names)
    for found, wanted in zip(kernel(A, B), kernel_of_names(A, B), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9)


def test_vectors_of_several_results_are_those_of_scipy() -> None:
    """Up to their signs, which are free."""
    for args in ((C,), (STACK,), (A, OTHER), (C, OTHER + 0j)):
        values, vectors = run("scipy.linalg.eigh", *args)
        wanted, columns = sl.eigh(*args)
        agree(values, wanted, 1e-9)
        agree(np.abs(vectors), np.abs(columns), 1e-8)
    for x in (normal(4, 3), C):
        for full in (False, True):
            found, wanted = run("scipy.linalg.svd", x, full), sl.svd(x, full)
            for one, other in zip(found, wanted, strict=True):
                agree(np.abs(one), np.abs(other), 1e-8)


def of_stacks(
    a: f64["b c n n"], b: f64["n k"]
) -> tuple[bool_["b c"], bool_["b c"], f64["b c n k"], f64["b c n k"]]:
    upper, lower = sl.cho_factor(a), sl.cho_factor(a, lower=True)
    return upper[1], lower[1], sl.cho_solve(upper, b), sl.cho_solve(lower, b)


def test_factors_of_stacks_have_as_many_lower_as_matrices() -> None:
    kernel: Any = psc.kernel(of_stacks)
    stack, b = np.stack([STACK, 2 * STACK]), normal(4, 2)
    for found, wanted in zip(kernel(stack, b), of_stacks(stack, b), strict=True):
        agree(np.asarray(found), wanted, 1e-9)
    with pytest.raises(Failure):  # not known to be the same for all
        run("scipy.linalg.cho_solve", (STACK, np.array([True, False])), normal(4, 2))


@pytest.mark.parametrize("of", [np.float32, np.float64, np.complex64, np.complex128])
def test_norms_of_vectors_whose_squares_are_no_numbers(of: Any) -> None:
    limits = np.finfo(of)
    for size in (limits.max / 8, limits.max**0.6, 1.0, limits.tiny**0.6, limits.tiny * 8):
        x = (np.array([3, -4, 1]) * size).astype(of)
        x = x + 1j * x[::-1] if limits.dtype != np.dtype(of) else x
        wanted = sl.norm(x)
        for order in (None, 2):
            found = np.asarray(run("scipy.linalg.norm", x, order))
            assert found.dtype == limits.dtype
            np.testing.assert_allclose(found, wanted, rtol=8 * limits.eps)
    for special in (np.inf, np.nan, 0.0):
        x = np.array([special, 1e-30 * special], of)
        same = run("scipy.linalg.norm", x, check_finite=False)
        np.testing.assert_array_equal(same, sl.norm(x, check_finite=False))


def norm(x: f64["n"]) -> f64:
    return sl.norm(x)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_derivatives_of_norms_of_vectors(size: float) -> None:
    gradient: Any = psc.grad(psc.kernel(norm))
    np.testing.assert_allclose(gradient(np.array([3.0, 4.0]) * size), [0.6, 0.8], rtol=1e-14)


def overwriting(a: f64["n n"], b: f64["n"]) -> f64["n"]:
    x = sl.solve(a + np.eye(len(b)), b, overwrite_a=True)
    return sl.solve(a.copy(), 2 * x, overwrite_a=True, overwrite_b=True)


def test_what_nobody_else_sees_may_be_overwritten() -> None:
    kernel: Any = psc.kernel(overwriting)
    agree(kernel(A, B), overwriting(A, B), 1e-9)

    def kept(a: f64["n n"], b: f64["n"]) -> f64["n"]:
        c = a + 1
        return sl.solve(c, b, overwrite_a=True) + c[0]

    with pytest.raises(psc.CheckError, match="overwrite_a"):
        psc.kernel(kept)(A, B)


def of_expm(a: f64["n n"], e: f64["n n"]) -> tuple[f64["n n"], f64["n n"], f64["n n"]]:
    def weighted(x: f64["n n"]) -> f64:
        return np.sum(sl.expm(x) * e)

    value, tangent = psc.jvp(sl.expm, (a,), (e,))
    return value, tangent, psc.grad(weighted)(a)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 20.0])
def test_derivatives_of_the_exponential_of_a_matrix(scale: float) -> None:
    """Both modes beside SciPy's Fréchet derivative, of which the gradient is the adjoint."""
    kernel: Any = psc.kernel(of_expm)
    a, e = scale * normal(5, 5), normal(5, 5)
    value, tangent, gradient = map(np.asarray, kernel(a, e))
    wanted, along = sl.expm_frechet(a, e)
    back = sl.expm_frechet(a.T, e, compute_expm=False)
    for found, each in ((value, wanted), (tangent, along), (gradient, back)):
        np.testing.assert_allclose(found, each, atol=1e-12 * np.abs(each).max())


def test_exponentials_of_matrices_without_bounds() -> None:
    """They are squared as often as each of them needs it; what is not finite is NaN."""
    far = np.array([[-1e5, 1e4], [0.0, 0.5]])
    stack = np.stack([far, np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([np.inf, 0])])
    for runner in (run, run_compiled):
        found = runner("scipy.linalg.expm", stack)
        np.testing.assert_allclose(found[0], sl.expm(far), rtol=1e-9)
        np.testing.assert_allclose(found[1], np.eye(2), rtol=1e-15, atol=0)
        assert np.isnan(found[2:]).all()
    assert run("scipy.linalg.expm", np.zeros((0, 0))).shape == (0, 0)


def residues(a: f64["n m"], b: f64["n"]) -> f64["m"]:
    x, sizes, _, _ = sl.lstsq(a, b)  # pyright: ignore[reportGeneralTypeIssues]
    return x + sizes


def test_residues_that_may_not_be_there_are_refused() -> None:
    with pytest.raises(psc.CheckError, match="the residues of"):
        psc.kernel(residues)(normal(5, 3), normal(5))


def test_other_functions_are_refused() -> None:
    def transformed(x: f64["n"]) -> f64["n"]:
        return fft.dct(x)

    def factor(a: f64["n n"]) -> f64["n n"]:
        return sl.logm(a)

    with pytest.raises(psc.CheckError, match=r"scipy\.fft\.dct|dct"):
        psc.kernel(transformed)(B)
    with pytest.raises(psc.CheckError, match="logm"):
        psc.kernel(factor)(A)
