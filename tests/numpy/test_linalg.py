"""`np.linalg` against NumPy's: interpreted, for symbolic sizes, and compiled."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl.numpy.linear_algebra import multi_dot
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast, WrongNumberOfAxes
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction, InnerSizesDiffer, LengthsDiffer
from pscdsl.typing.dims import name as size_name
from tests.support.numpy_differential import agree, at_least, check, normal, refused, theirs
from tests.support.numpy_harness import build, run, run_compiled

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code(but=4)]

REAL = ("f8", "c16")
DTYPES = ("f4", "f8", "c8", "c16")
TOLERANCE = {"f4": 2e-4, "c8": 2e-4, "f8": 1e-9, "c16": 1e-9}


def hermitian(*shape: int, code: str = "f8") -> Any:
    """Hermitian matrices."""
    x = normal(*shape, dtype=code)
    return (x + x.conj().swapaxes(-1, -2)) / 2


def definite(*shape: int, code: str = "f8") -> Any:
    """Hermitian positive definite matrices."""
    x = normal(*shape, dtype=code)
    return (x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(code)


@pytest.mark.parametrize("code", DTYPES)
def test_factorisations_of_square_matrices(code: str) -> None:
    rtol = TOLERANCE[code]
    for shape in ((1, 1), (4, 4), (2, 3, 3)):
        a = definite(*shape, code=code)
        for function in ("cholesky", "eigvalsh", "inv", "det", "slogdet"):
            check(f"numpy.linalg.{function}", a, rtol=rtol, compiled=True)
        check("numpy.linalg.cholesky", a, upper=True, rtol=rtol)
        check("numpy.linalg.inv", normal(*shape, dtype=code), rtol=10 * rtol, compiled=True)
        values, vectors = run_compiled("numpy.linalg.eigh", a)
        agree(values, np.linalg.eigvalsh(a), rtol)
        agree(a @ vectors, vectors * values[..., None, :], 10 * rtol)


@pytest.mark.parametrize("code", DTYPES)
def test_eigenvalues_without_symmetry(code: str) -> None:
    for shape in ((1, 1), (4, 4), (2, 3, 3)):
        a = normal(*shape, dtype=code)
        for runner in (run, run_compiled):
            values, vectors = runner("numpy.linalg.eig", a)
            assert values.dtype == vectors.dtype == np.result_type(a, np.complex64)
            agree(a @ vectors, vectors * values[..., None, :], 10 * TOLERANCE[code])
            agree(np.linalg.norm(vectors, axis=-2), np.ones(shape[:-1]), TOLERANCE[code])
            found = runner("numpy.linalg.eigvals", a)
            agree(np.sort(found), np.sort(np.linalg.eigvals(a).astype(found.dtype)), 1e-3)
    assert run("numpy.linalg.eigvals", np.eye(2)).dtype == np.complex128


def test_dtypes_of_results() -> None:
    a = normal(3, 3, dtype="c8")
    assert run("numpy.linalg.det", a).dtype == np.complex64
    sign, size = run("numpy.linalg.slogdet", a)
    assert (sign.dtype, size.dtype) == (np.complex64, np.float32)
    assert run("numpy.linalg.svdvals", a).dtype == np.float32
    assert run("numpy.linalg.inv", np.eye(2, dtype=np.int32)).dtype == np.float64
    assert run("numpy.linalg.inv", np.eye(2, dtype=np.int64)).dtype == np.float64
    assert run("numpy.linalg.norm", np.ones(2, np.float16)).dtype == np.float16
    assert run("numpy.linalg.matrix_rank", a).dtype == np.int64
    assert run("numpy.linalg.matrix_power", np.eye(2, dtype=np.int8), 3).dtype == np.int8


SHAPES = ((4, 3), (3, 4), (3, 3), (1, 3), (3, 1), (2, 4, 3), (2, 3, 4))


@pytest.mark.sampled
@pytest.mark.parametrize("code", REAL)
@pytest.mark.parametrize("shape", SHAPES)
def test_factorisations_of_any_matrices(shape: tuple[int, ...], code: str) -> None:
    a = normal(*shape, dtype=code)
    check("numpy.linalg.qr", a, compiled=True)
    check("numpy.linalg.qr", a, "complete", compiled=True)
    check("numpy.linalg.qr", a, mode="r")
    check("numpy.linalg.svd", a, compute_uv=False, compiled=True)
    check("numpy.linalg.svdvals", a)
    for full in (False, True):
        built = build("numpy.linalg.svd", (a, full), {}, symbolic=full)
        for u, s, vh in (built.evaluated(), built.compiled()):
            wanted = np.linalg.svd(a, full)
            assert (u.shape, s.shape, vh.shape) == tuple(each.shape for each in wanted)
            agree(s, wanted[1])
            inner = s.shape[-1]
            agree((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], a)
            ones = np.broadcast_to(np.eye(u.shape[-1]), (*u.shape[:-2], *u.shape[-1:] * 2))
            agree(u.conj().swapaxes(-1, -2) @ u, ones.astype(code))
    check("numpy.linalg.pinv", a, compiled=True)
    check("numpy.linalg.matrix_rank", a, compiled=True)


def test_results_have_names() -> None:
    found = run("numpy.linalg.eigh", np.eye(2))
    assert found.eigenvectors is found[1]
    assert run("numpy.linalg.qr", np.eye(2)).R.shape == (2, 2)
    assert run("numpy.linalg.svd", np.eye(2)).Vh.shape == (2, 2)
    assert run("numpy.linalg.slogdet", np.eye(2)).logabsdet == 0
    with pytest.raises(AttributeError):
        run("numpy.linalg.qr", np.eye(2)).Vh  # noqa: B018


@pytest.mark.parametrize("code", DTYPES)
def test_one_triangle_of_a_hermitian_matrix_is_read(code: str) -> None:
    for shape in ((3, 3), (2, 4, 4)):
        a = (normal(*shape, dtype=code) + 20 * np.eye(shape[-1])).astype(code)
        for part in (a, np.tril(a), np.triu(a)):
            ways: list[tuple[Any, ...]] = [(), ("L",), ("U",), ("l",), ("u",)]
            for uplo in ways:
                check("numpy.linalg.eigvalsh", part, *uplo, rtol=TOLERANCE[code], compiled=True)
                found = run_compiled("numpy.linalg.eigh", part, *uplo)
                for one, other in zip(found, np.linalg.eigh(part, *uplo), strict=True):
                    agree(np.abs(one), np.abs(other), 10 * TOLERANCE[code])
            for upper in (False, True):
                rtol = TOLERANCE[code]
                check("numpy.linalg.cholesky", part, upper=upper, rtol=rtol, compiled=True)
    a = normal(3, 3, dtype=code)
    check("numpy.linalg.pinv", a, hermitian=True, rtol=50 * TOLERANCE[code], compiled=True)
    check("numpy.linalg.svd", a, compute_uv=False, hermitian=True, rtol=TOLERANCE[code])
    for part in (np.tril(np.ones((3, 3), code)), np.triu(np.ones((3, 3), code))):
        check("numpy.linalg.matrix_rank", part, hermitian=True)
    refused(BadArguments, "numpy.linalg.eigh", a, "X")
    refused(BadArguments, "numpy.linalg.eigh", a, None)


SYSTEMS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((3, 3), (3, 1)),
    ((1, 1), (1,)),
    ((4, 3, 3), (3,)),
    ((4, 3, 3), (4, 3, 2)),
    ((4, 3, 3), (3, 2)),
    ((3, 3), (5, 4, 3, 2)),
    ((5, 1, 3, 3), (4, 3, 2)),
]


@pytest.mark.parametrize("code", REAL)
@pytest.mark.parametrize(("left", "right"), SYSTEMS)
def test_systems(left: tuple[int, ...], right: tuple[int, ...], code: str) -> None:
    a, b = definite(*left, code=code), normal(*right, dtype=code)
    check("numpy.linalg.solve", a, b, compiled=True)
    for lower in (False, True):
        part = np.tril(a) if lower else np.triu(a)
        for transpose in (False, True):
            turned = part.swapaxes(-1, -2) if transpose else part
            wanted: Any = np.linalg.solve(turned, b)
            check(
                "pscdsl.triangular_solve",
                a,
                b,
                lower=lower,
                transpose=transpose,
                wanted=wanted,
                compiled=True,
            )
    unit = np.tril(a, -1) + np.eye(a.shape[-1])
    wanted = np.linalg.solve(unit, b)
    check("pscdsl.triangular_solve", a, b, wanted=wanted, lower=True, unit_diagonal=True)


def test_one_matrix_is_factored_once() -> None:
    equations = build(
        "numpy.linalg.solve", (np.eye(3), normal(5, 3, 2)), {}
    ).function.body.equations
    (lu,) = (each for each in equations if each.primitive.name == "lu")
    assert lu.inputs[0].type.shape == (3, 3)
    (solved,) = (each for each in equations if each.primitive.name == "lu_solve")
    assert solved.outputs[0].type.shape == (3, 10)


def test_what_fails_is_nan_for_that_matrix_alone() -> None:
    good, singular = np.array([[2.0, 1], [1, 3]]), np.array([[1.0, 2], [2, 4]])
    many = np.stack([good, singular, -good])
    for runner in (run, run_compiled):
        found = runner("numpy.linalg.inv", many)
        agree(found[::2], np.linalg.inv(many[::2]))
        assert np.isnan(found[1]).all()
        assert np.isnan(runner("numpy.linalg.solve", singular, np.ones(2))).all()
        found = runner("numpy.linalg.cholesky", many)
        agree(found[0], np.linalg.cholesky(good))
        agree(found[2], np.tril(np.full((2, 2), np.nan)))
        agree(runner("numpy.linalg.slogdet", singular), (0.0, -np.inf))
        agree(runner("numpy.linalg.det", singular), 0.0)
        unknown = np.stack([good, np.full((2, 2), np.nan)])
        for function in ("eigvalsh", "svdvals", "inv", "pinv", "eigvals"):
            found = runner(f"numpy.linalg.{function}", unknown)
            agree(found[0], getattr(np.linalg, function)(good).astype(found.dtype))
            assert np.isnan(found[1]).all(), function


def test_matrices_that_are_not_square() -> None:
    functions = "inv det slogdet cholesky eigh eigvalsh eig eigvals"
    for function in functions.split():
        refused(LengthsDiffer, f"numpy.linalg.{function}", normal(2, 3))
        refused(WrongNumberOfAxes, f"numpy.linalg.{function}", normal(3))
        refused(DtypeNotAccepted, f"numpy.linalg.{function}", normal(3, 3, dtype="f2"))
    finding = refused(LengthsDiffer, "numpy.linalg.inv", normal(2, 3), symbolic=True)
    assert finding.message() == (
        "`numpy.linalg.inv`: the rows and the columns of f64[n2 n3] differ in length"
    )
    assert "the matrix is not square: n2 is not n3" in finding.label()
    equal = (Fact("==", size_name("n2"), size_name("n3")),)
    assert build("numpy.linalg.inv", (normal(2, 3),), {}, True, equal)


def test_operands_that_do_not_fit() -> None:
    a = np.eye(3)
    finding = refused(LengthsDiffer, "numpy.linalg.solve", a, normal(4), symbolic=True)
    assert "the rows of f64[n3 n3] and an axis of f64[n4]" in finding.message()
    refused(LengthsDiffer, "numpy.linalg.solve", a, normal(4, 3, 4, 2))
    refused(WrongNumberOfAxes, "numpy.linalg.solve", a, 1.0)
    refused(ShapesDoNotBroadcast, "numpy.linalg.solve", normal(2, 3, 3), normal(4, 3, 1))
    refused(DtypesDiffer, "numpy.linalg.solve", a, normal(3, dtype="f4"))
    refused(LengthsDiffer, "pscdsl.triangular_solve", a, normal(4))
    refused(LengthsDiffer, "numpy.linalg.lstsq", a, normal(4))
    refused(WrongNumberOfAxes, "numpy.linalg.lstsq", normal(2, 3, 3), normal(3))
    refused(WrongNumberOfAxes, "numpy.linalg.lstsq", a, normal(2, 3, 3))
    refused(BadArguments, "numpy.linalg.qr", a, "economic")
    refused(NotSupported, "numpy.linalg.qr", a, "raw")
    refused(BadArguments, "numpy.linalg.pinv", a, 0.1, rtol=0.1)
    refused(BadArguments, "numpy.linalg.pinv", a, 0.1j)
    refused(BadArguments, "numpy.linalg.matrix_rank", a, 0.1, rtol=0.1)


ORDERS = (None, 2, 1, 0, 3, 0.5, -1, -2, 2.5, np.inf, -np.inf)


@pytest.mark.parametrize("code", REAL)
@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_vectors(order: Any, code: str) -> None:
    x = normal(4, dtype=code)
    check("numpy.linalg.norm", x, order, compiled=order in (None, 3, np.inf))
    check("numpy.linalg.norm", x, order, keepdims=True)
    many = normal(2, 3, 4, dtype=code)
    check("numpy.linalg.norm", many, order, 1)
    check("numpy.linalg.norm", many, order, axis=-1, keepdims=True)
    if order is not None:
        for axis in (None, 0, (0, 2), ()):
            for keepdims in (False, True):
                check("numpy.linalg.vector_norm", many, axis=axis, keepdims=keepdims, ord=order)


@pytest.mark.parametrize("code", REAL)
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(order: Any, code: str) -> None:
    x = normal(3, 4, dtype=code)
    check("numpy.linalg.norm", x, order, compiled=True)
    many = normal(2, 3, 4, dtype=code)
    for axes in ((0, 1), (1, 0), (-1, 0)):
        for keepdims in (False, True):
            check("numpy.linalg.norm", many, order, axes, keepdims)
    if order is not None:
        check("numpy.linalg.matrix_norm", many, ord=order)
        check("numpy.linalg.matrix_norm", many, ord=order, keepdims=True)


def test_norms_of_everything() -> None:
    many = normal(2, 3, 4)
    check("numpy.linalg.norm", many)
    check("numpy.linalg.norm", many, keepdims=True)
    check("numpy.linalg.norm", np.float64(-3))
    check("numpy.linalg.norm", np.arange(4))
    check("numpy.linalg.norm", [3.0, 4.0], wanted=5.0)
    check("numpy.linalg.norm", np.zeros((0,)))
    check("numpy.linalg.norm", np.array([np.inf, 1.0]))
    check("numpy.linalg.norm", np.array([0.0, 1.0]), -2)
    big = np.full(3, 300, np.float16)
    agree(run("numpy.linalg.norm", big), np.float16(519.5), 1e-3)  # its square is no f16
    refused(BadArguments, "numpy.linalg.norm", many, 2)
    refused(BadArguments, "numpy.linalg.norm", many, "fro", 0)
    refused(BadArguments, "numpy.linalg.norm", many, 3, (0, 1))
    refused(BadArguments, "numpy.linalg.norm", many, True, 0)
    refused(EmptyReduction, "numpy.linalg.norm", np.zeros((0,)), np.inf)
    refused(EmptyReduction, "numpy.linalg.norm", np.zeros((0, 2)), np.inf)
    refused(EmptyReduction, "numpy.linalg.norm", np.zeros((0, 2)), 2)
    refused(DtypeNotAccepted, "numpy.linalg.norm", normal(2, 2, dtype="f2"), 2)


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
def test_condition_numbers(order: Any) -> None:
    check("numpy.linalg.cond", normal(3, 3), order, compiled=True)
    check("numpy.linalg.cond", normal(2, 3, 3), order, rtol=1e-8)
    check("numpy.linalg.cond", np.zeros((2, 2)), order, wanted=np.inf)
    check("numpy.linalg.cond", np.full((2, 2), np.nan), order, wanted=np.nan)
    if order in (None, 2, -2):
        check("numpy.linalg.cond", normal(3, 4), order)
    else:
        refused(LengthsDiffer, "numpy.linalg.cond", normal(3, 4), order)


def test_least_squares() -> None:
    for code in REAL:
        for shape in ((5, 3), (3, 3), (3, 5)):
            a = normal(*shape, dtype=code)
            for b in (normal(shape[0], dtype=code), normal(shape[0], 2, dtype=code)):
                x, squares, rank, singular = theirs("numpy.linalg.lstsq", a, b)
                if not squares.size:
                    squares = np.zeros(b.shape[1:] or (1,))
                wanted = x, squares, np.int32(rank), singular
                check("numpy.linalg.lstsq", a, b, wanted=wanted, rtol=1e-8, compiled=True)
    a = np.array([[1.0, 1], [1, 1], [0, 0]])
    x, squares, rank, _ = run("numpy.linalg.lstsq", a, np.array([1.0, 3, 5]))
    agree((x, squares, rank), (np.ones(2), np.array([27.0]), np.int32(1)))
    for cutoff in (-1, 0.9, np.float64(0.9)):
        small = np.diag([1.0, 0.5])
        wanted = np.linalg.lstsq(small, np.ones(2), float(cutoff))
        x, _, rank, _ = run("numpy.linalg.lstsq", small, np.ones(2), cutoff)
        agree((x, rank), (wanted[0], np.int32(wanted[2])))


def test_pseudo_inverses_and_ranks() -> None:
    a = normal(2, 3, 2) @ normal(2, 2, 4)
    check("numpy.linalg.pinv", a, rtol=1e-8)
    check("numpy.linalg.matrix_rank", a, compiled=True)
    check("numpy.linalg.pinv", a, np.array([0.1, 0.9]))
    check("numpy.linalg.pinv", a, rtol=0.9)
    for tol in (0.5, np.array([0.5, 100.0])):
        check("numpy.linalg.matrix_rank", a, tol)
    check("numpy.linalg.matrix_rank", a, rtol=0.5)
    check("numpy.linalg.matrix_rank", np.array([0.0, 2.0]))
    check("numpy.linalg.matrix_rank", np.float64(0))
    check("numpy.linalg.matrix_rank", np.zeros((2, 2)))
    part = hermitian(3, 3)
    check("numpy.linalg.pinv", part, hermitian=True)
    check("numpy.linalg.matrix_rank", part, hermitian=True)
    check("numpy.linalg.svd", part, compute_uv=False, hermitian=True)
    u, s, vh = run("numpy.linalg.svd", part, hermitian=True)
    agree((u * s) @ vh, part)
    integers = np.array([[1, 2], [2, 4]])
    agree(run("numpy.linalg.pinv", integers), np.linalg.pinv(integers))


def test_powers() -> None:
    a = normal(3, 3)
    for n in (-3, -1, 0, 1, 2, 3, 7):
        check("numpy.linalg.matrix_power", a, n, rtol=1e-7, compiled=n == 7)
        check("numpy.linalg.matrix_power", np.stack([a, a.T]), n, rtol=1e-7)
    check("numpy.linalg.matrix_power", np.array([[1, 1], [1, 0]]), 10)
    refused(BadArguments, "numpy.linalg.matrix_power", a, 0.5)
    refused(LengthsDiffer, "numpy.linalg.matrix_power", normal(2, 3), 2)


def test_chains() -> None:
    shapes = [(2, 30), (30, 4), (4, 20), (20, 3)]
    parts = [normal(*shape) for shape in shapes]
    check("numpy.linalg.multi_dot", parts)
    check("numpy.linalg.multi_dot", parts[:2])
    check("numpy.linalg.multi_dot", [parts[0][0], *parts[1:]], symbolic=False)
    check("numpy.linalg.multi_dot", [*parts[:3], parts[3][:, 0]], symbolic=False)
    check("numpy.linalg.multi_dot", [parts[0][0], *parts[1:3], parts[3][:, 0]], symbolic=False)
    tall = [np.ones((100, 2)), np.ones((2, 100)), np.ones((100, 1))]
    equations = build(multi_dot, (tall,), {}).function.body.equations
    assert [each.outputs[0].type.shape for each in equations] == [(2, 1), (100, 1)]
    refused(BadArguments, "numpy.linalg.multi_dot", parts[:1])
    refused(WrongNumberOfAxes, "numpy.linalg.multi_dot", [parts[0], normal(30), parts[0]])
    refused(InnerSizesDiffer, "numpy.linalg.multi_dot", [parts[0], parts[2]])


def test_tensors() -> None:
    a, (n2, n3, n4, n6) = normal(2, 3, 6), map(size_name, ("n2", "n3", "n4", "n6"))
    known = (Fact("==", n6, n2 * n3), Fact("==", n4, n2 * n2))
    check("numpy.linalg.tensorinv", a, compiled=True, facts=known)
    check("numpy.linalg.tensorinv", normal(4, 2, 2), ind=1, facts=known)
    check("numpy.linalg.tensorsolve", a, normal(2, 3), compiled=True, facts=known)
    check("numpy.linalg.tensorsolve", normal(2, 6, 3), normal(2, 3), axes=(1,), facts=known)
    refused(LengthsDiffer, "numpy.linalg.tensorinv", normal(2, 3, 5))
    refused(BadArguments, "numpy.linalg.tensorinv", a, 0)
    refused(LengthsDiffer, "numpy.linalg.tensorsolve", a, normal(2, 2))


def test_names_of_other_products() -> None:
    x, y = normal(4, 3), normal(3, 4)
    check("numpy.linalg.matmul", x, y)
    check("numpy.linalg.tensordot", x, y, axes=1)
    check("numpy.linalg.vecdot", x, x)
    check("numpy.linalg.outer", x[0], y[0])
    check("numpy.linalg.cross", x, x[::-1].copy(), facts=(Fact("==", size_name("n3"), 3),))
    check("numpy.linalg.matrix_transpose", normal(2, 3, 4))
    check("numpy.linalg.diagonal", normal(2, 3, 4), offset=1, facts=at_least(3, 4))
    check("numpy.linalg.trace", normal(2, 3, 4), facts=at_least(3, 4))
    refused(WrongNumberOfAxes, "numpy.linalg.outer", x, y)
    refused(WrongNumberOfAxes, "numpy.linalg.trace", normal(3))


def test_nothing() -> None:
    empty = np.zeros((0, 0))
    for function in ("inv", "det", "slogdet", "cholesky", "eigvalsh", "eigh"):
        check(f"numpy.linalg.{function}", empty, compiled=True)
        check(f"numpy.linalg.{function}", np.zeros((0, 2, 2)), compiled=True)
    check("numpy.linalg.solve", empty, np.zeros((0, 2)), compiled=True)
    check("numpy.linalg.solve", np.eye(2), np.zeros((2, 0)), compiled=True)
    for shape in ((3, 0), (0, 3)):
        for mode in ("reduced", "complete"):
            check("numpy.linalg.qr", np.zeros(shape), mode, compiled=True)
        for full in (False, True):
            check("numpy.linalg.svd", np.zeros(shape), full, compiled=True)
        check("numpy.linalg.pinv", np.zeros(shape), compiled=True)
    refused(EmptyReduction, "numpy.linalg.cond", empty)


@psc.kernel
def everything(a: f64["n n"], b: f64["n"]) -> tuple[f64["n"], f64["n n"], f64["n"], f64, f64]:
    values, _ = np.linalg.eigh(a)
    q = np.linalg.qr(a).Q
    root = psc.numpy.linalg.cholesky(a)
    x = psc.triangular_solve(root, b, lower=True)
    found = np.linalg.slogdet(a)
    return x, q, values, found.logabsdet, np.linalg.norm(a - q @ np.linalg.qr(a)[1])


def test_in_kernels() -> None:
    a, b = definite(4, 4), normal(4)
    x, q, values, size, error = (np.asarray(each) for each in everything(a, b))
    agree(np.linalg.cholesky(a) @ x, b)
    agree(q.T @ q, np.eye(4))
    agree(values, np.linalg.eigvalsh(a))
    agree(size, np.linalg.slogdet(a)[1])
    assert error < 1e-12
