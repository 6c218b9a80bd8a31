"""Derivatives through `np.linalg`: against formulas, against differences, and where it is hard.

That each primitive's derivative is right is in the laws; here it is whole functions, compiled.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pscdsl as psc
from pscdsl import c128, f64
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from tests.numpy.test_linalg import definite, hermitian
from tests.support.numpy_differential import normal

pytestmark = pytest.mark.quick_code

STEP = 1e-6


def slope(function: Any, x: Any, direction: Any) -> Any:
    """How fast a function changes along a direction, by central differences."""
    after, before = (np.asarray(function(x + sign * STEP * direction)) for sign in (1, -1))
    return (after - before) / (2 * STEP)


def agree(found: Any, wanted: Any, rtol: float = 1e-8) -> None:
    scale = np.max(np.abs(wanted), initial=1)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=rtol * scale)


def assert_gradient(
    kernel: Any, *arguments: Any, second: bool = True, symmetric: bool = False
) -> None:
    """The gradient is the limit of differences, and the Hessian that of those of the gradient.

    The differences are along one direction, which is Hermitian if `symmetric`.
    """
    gradient = psc.grad(kernel)
    x, *rest = arguments
    direction = normal(*x.shape, seed=7, dtype=x.dtype)
    if symmetric:
        direction = direction + direction.conj().swapaxes(-1, -2)
    found = np.asarray(gradient(x, *rest))
    wanted = slope(lambda moved: kernel(moved, *rest), x, direction)
    agree(np.real(np.sum(found * direction)), wanted, 1e-6)
    if second and x.dtype.kind == "f":
        change = slope(lambda moved: gradient(moved, *rest), x, direction)
        hessian = np.asarray(psc.hessian(kernel)(x, *rest))
        agree(np.tensordot(hessian, direction, x.ndim), change, 1e-5)


# Each is a scalar function of a matrix.


@psc.kernel
def of_solve(a: f64["*b n n"], y: f64["*b n k"]) -> f64:
    return np.sum(np.sin(np.linalg.solve(a, y)))


@psc.kernel
def of_inverse(a: f64["*b n n"]) -> f64:
    return np.sum(np.linalg.inv(a) ** 3)


@psc.kernel
def of_det(a: f64["*b n n"]) -> f64:
    return np.sum(np.linalg.det(a) ** 2)


@psc.kernel
def of_slogdet(a: f64["*b n n"]) -> f64:
    sign, size = np.linalg.slogdet(a)
    return np.sum(sign * size**2)


@psc.kernel
def of_qr(a: f64["*b m n"]) -> f64:
    q, r = np.linalg.qr(a)
    return np.sum(np.sin(q)) + np.sum(r * r * r)


@psc.kernel
def of_svd(a: f64["*b m n"]) -> f64:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum((u * np.sin(s)[..., None, :]) @ vh) + np.sum(s * s * s)


@psc.kernel
def of_singular_values(a: f64["*b m n"]) -> f64:
    return np.sum(np.sin(np.linalg.svdvals(a)))


@psc.kernel
def of_pinv(a: f64["*b m n"]) -> f64:
    return np.sum(np.linalg.pinv(a) ** 3)


@psc.kernel
def of_lstsq(a: f64["m n"]) -> f64:
    b = np.arange(a.shape[0]) + 1.0
    x, squares, _, _ = np.linalg.lstsq(a, b)
    return np.sum(np.sin(x)) + np.sum(squares)


@psc.kernel
def of_cholesky(a: f64["*b n n"]) -> f64:
    return np.sum(np.sin(np.linalg.cholesky(a)))


@psc.kernel
def of_eigh(a: f64["*b n n"]) -> f64:
    values, vectors = np.linalg.eigh(a)
    return np.sum(np.sin(values)) + np.sum(vectors**2 @ values[..., None] ** 3)


@psc.kernel
def of_triangular(a: f64["*b n n"]) -> f64:
    b = np.ones_like(a)
    once = psc.triangular_solve(a, b, lower=True)
    return np.sum(np.sin(psc.triangular_solve(a, once, transpose=True)))


@psc.kernel
def of_power(a: f64["n n"]) -> f64:
    return np.sum(np.linalg.matrix_power(a, -2)) + np.linalg.cond(a) + np.linalg.cond(a, 1)


@psc.kernel
def of_norms(a: f64["m n"]) -> f64:
    rows = np.linalg.norm(a, axis=1) ** 3
    matrix = np.linalg.norm(a, "nuc") + np.linalg.norm(a, 2) ** 2 + np.linalg.norm(a, -2)
    return np.sum(rows) + matrix + np.linalg.norm(a, np.inf) + np.linalg.norm(a[0], 2.5)


@psc.kernel
def of_exponential(a: f64["*b n n"]) -> f64:
    return np.sum(np.sin(scipy.linalg.expm(a / 9)))


@psc.kernel
def of_roots(p: f64["n"]) -> f64:
    assert len(p) > 1
    return np.sum(np.abs(np.roots(p)) ** 3)


def test_roots_of_polynomials() -> None:
    assert_gradient(of_roots, np.array([2.0, -3.0, 1.0, 5.0]))


SQUARE = (of_exponential, of_inverse, of_det, of_slogdet, of_triangular)
SYMMETRIC = (of_cholesky, of_eigh)
ANY = (of_qr, of_svd, of_singular_values, of_pinv)


@pytest.mark.parametrize("kernel", SQUARE, ids=lambda each: each.__name__)
def test_functions_of_square_matrices(kernel: Any) -> None:
    assert_gradient(kernel, definite(3, 3) + normal(3, 3))
    assert_gradient(kernel, definite(2, 2, 2), second=False)
    assert_gradient(kernel, np.array([[2.5]]), second=False)


@pytest.mark.parametrize("kernel", SYMMETRIC, ids=lambda each: each.__name__)
def test_functions_of_symmetric_matrices(kernel: Any) -> None:
    for a in (definite(3, 3), definite(2, 2, 2), np.array([[2.5]])):
        assert_gradient(kernel, a, second=a.shape == (3, 3), symmetric=True)
        gradient = np.asarray(psc.grad(kernel)(a))
        agree(gradient, gradient.swapaxes(-1, -2), 1e-12)


@psc.kernel
def of_triangles(a: f64["*b n n"]) -> f64:
    values = np.linalg.eigvalsh(np.triu(a), "U")
    return np.sum(np.sin(np.linalg.cholesky(np.tril(a)))) + np.sum(np.sin(values))


@psc.kernel
def of_filled_triangle(a: f64["n n"]) -> f64:
    k = np.zeros_like(a)
    for i in range(a.shape[0]):
        k[i, : i + 1] = np.sin(a[i, : i + 1])
    return np.sum(np.linalg.cholesky(k + 4 * np.eye(a.shape[0])) ** 3)


def test_functions_of_triangles_of_symmetric_matrices() -> None:
    assert_gradient(of_triangles, definite(3, 3) + 0.1 * normal(3, 3))
    assert_gradient(of_triangles, definite(2, 2, 2), second=False)
    assert_gradient(of_filled_triangle, definite(3, 3))


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", ANY, ids=lambda each: each.__name__)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 3)], ids=str)
def test_functions_of_any_matrices(kernel: Any, shape: tuple[int, ...]) -> None:
    assert_gradient(kernel, normal(*shape), second=shape in ((3, 3), (4, 2)))


def test_other_functions() -> None:
    assert_gradient(of_solve, definite(3, 3), normal(3, 2))
    assert_gradient(of_solve, definite(2, 3, 3), normal(2, 3, 1), second=False)
    assert_gradient(of_power, definite(3, 3) + normal(3, 3))
    for shape in ((4, 2), (2, 4), (3, 3)):
        assert_gradient(of_lstsq, normal(*shape), second=shape == (4, 2))
        assert_gradient(of_norms, normal(*shape), second=shape == (3, 3))


def test_the_logarithm_of_a_determinant() -> None:
    @psc.kernel
    def by_cholesky(a: f64["n n"]) -> f64:
        return 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(a))))

    @psc.kernel
    def by_lu(a: f64["n n"]) -> f64:
        return np.linalg.slogdet(a)[1]

    a = definite(4, 4)
    agree(psc.grad(by_cholesky)(a), np.linalg.inv(a))
    agree(psc.grad(by_lu)(a), np.linalg.inv(a))
    agree(psc.grad(by_lu)(a + normal(4, 4)), np.linalg.inv(a + normal(4, 4)).T)
    inverse = np.linalg.inv(a)
    agree(psc.hessian(by_lu)(a), -np.einsum("jk,li->ijkl", inverse, inverse))


@psc.kernel
def determinant(a: f64["n n"]) -> f64:
    return np.linalg.det(a)


def cofactors(a: Any) -> Any:
    """By determinants of the parts."""
    size = len(a)
    found = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            part = np.delete(np.delete(a, i, 0), j, 1)
            found[i, j] = (-1) ** (i + j) * np.linalg.det(part)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_determinants_of_singular_matrices(size: int) -> None:
    one = np.outer(np.arange(size) + 1.0, np.arange(size) - 3.0)
    last = np.diag(np.arange(size, dtype=float))
    two = one + np.outer(np.ones(size), np.arange(size) ** 2.0)
    for a in (np.zeros((size, size)), one, one.T, last, last[::-1], last.T[:, ::-1], two):
        found = np.asarray(psc.grad(determinant)(a))
        np.testing.assert_allclose(found, cofactors(a), atol=1e-13 * max(1, np.abs(a).max() ** 3))


def test_second_derivatives_of_determinants() -> None:
    found = psc.hessian(determinant)(np.eye(2))
    wanted = np.zeros((2, 2, 2, 2))
    wanted[0, 0, 1, 1] = wanted[1, 1, 0, 0] = 1
    wanted[0, 1, 1, 0] = wanted[1, 0, 0, 1] = -1
    agree(found, wanted)


@pytest.mark.parametrize("order", [None, 2, 3, 1.5, 1, np.inf, -np.inf, "nuc"])
def test_gradients_of_norms_at_zero(order: Any) -> None:
    @psc.kernel
    def norm(x: f64["m n"]) -> f64:
        return np.linalg.norm(x[0], order)

    @psc.kernel
    def matrix_norm(x: f64["m n"]) -> f64:
        return np.linalg.norm(x, order)

    zero = np.zeros((2, 3))
    if order != "nuc":
        assert np.isfinite(psc.grad(norm)(zero)).all()
    if order not in (3, 1.5):
        assert np.isfinite(psc.grad(matrix_norm)(zero)).all()
    if order in (None, 2, 3):
        assert not np.any(psc.grad(norm)(zero))


def test_norms_of_complex_vectors_at_zero() -> None:
    @psc.kernel
    def norm(x: c128["n"]) -> f64:
        return np.linalg.norm(x)

    assert not np.any(psc.grad(norm)(np.zeros(2, complex)))
    x = normal(3, dtype=complex)
    agree(psc.grad(norm)(x), np.conj(x) / np.linalg.norm(x))


# What does not depend on the phases of vectors has the derivative that differences give.


@psc.kernel
def with_projectors(a: c128["n n"], w: c128["n n"]) -> f64:
    values, vectors = np.linalg.eigh(a)
    whole = (vectors * np.sin(values).astype(c128)) @ np.conj(vectors.T)
    first = vectors[:, :1] @ np.conj(vectors[:, :1].T)
    return np.real(np.sum(w * whole)) + np.real(np.sum(w * first)) + np.sum(values**3)


@psc.kernel
def with_pairs(a: c128["m n"], w: c128["m n"]) -> f64:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    whole = (u * np.sin(s).astype(c128)) @ vh
    first = u[:, :1] @ vh[:1]
    return np.real(np.sum(w * whole)) + np.real(np.sum(w * first)) + np.sum(s**3)


@psc.kernel
def without_symmetry(a: f64["n n"], w: c128["n n"]) -> f64:
    values, vectors = np.linalg.eig(a)
    whole = (vectors * np.sin(values)) @ np.linalg.inv(vectors)
    lengths = np.sum(np.real(vectors * np.conj(vectors)) ** 2, axis=0)
    last = np.linalg.eigvals(a)[-1]
    return np.real(np.sum(w * whole)) + np.real(last * np.conj(last)) + np.sum(lengths)


def test_vectors_without_symmetry() -> None:
    for seed in range(3):
        a, w = normal(3, 3, seed=seed), normal(3, 3, seed=1, dtype=complex)
        assert_gradient(without_symmetry, a, w, second=seed == 0)


def test_complex_vectors() -> None:
    a, w = hermitian(3, 3, code="c16"), normal(3, 3, seed=1, dtype=complex)
    assert_gradient(with_projectors, a, w, symmetric=True)
    for shape in ((3, 3), (4, 2), (2, 4)):
        a, w = normal(*shape, dtype=complex), normal(*shape, seed=1, dtype=complex)
        assert_gradient(with_pairs, a, w)


def test_vectors_of_equal_values() -> None:
    @psc.kernel
    def of_values(a: f64["n n"]) -> f64:
        values, vectors = np.linalg.eigh(a)
        return np.sum(values) + vectors[0, 0] ** 2

    a = np.diag([1.0, 2.0, 2.0])
    agree(psc.grad(of_values)(a), np.eye(3))  # the first vector does not turn, to first order
    slopes = np.asarray(psc.grad(of_values)(np.eye(3)))
    assert np.isfinite(slopes).all()


def test_batches_of_right_hand_sides() -> None:
    @psc.kernel
    def one(a: f64["n n"], b: f64["n"]) -> f64["n"]:
        return np.linalg.solve(a, b)

    a, b = definite(3, 3), normal(5, 3)
    many = psc.vmap(one, in_axes=(None, 0))
    agree(many(a, b), np.linalg.solve(a, b.T).T)
    agree(psc.vmap(one)(np.stack([a] * 5), b), np.linalg.solve(a, b.T).T)
    agree(psc.vmap(one, in_axes=(0, None))(np.stack([a, 2 * a]), b[0])[1], many(2 * a, b)[0])
    agree(psc.jacrev(one, argnums=1)(a, b[0]), np.linalg.inv(a))
    agree(psc.jacfwd(one, argnums=1)(a, b[0]), np.linalg.inv(a))


def test_a_gradient_factors_once() -> None:
    @psc.kernel
    def loss(a: f64["n n"], b: f64["n"]) -> f64:
        return np.sum(np.linalg.solve(a, b) ** 2)

    text = compile_module(lower_module(psc.grad(loss).ir(), {"n": 5})).text()
    assert text.count("lapack_dgetrf_ffi") == 1


def test_gradients_through_a_loop() -> None:
    @psc.kernel
    def filtered(a: f64["n n"], ys: f64["t n"]) -> f64:
        def step(p: Any, y: Any) -> tuple[Any, Any]:
            p = a @ p @ a.T + np.eye(y.shape[0])
            root = np.linalg.cholesky(p)
            z = psc.triangular_solve(root, y, lower=True)
            found = np.sum(z * z) + 2 * np.sum(np.log(np.diagonal(root)))
            return p - np.linalg.solve(p + np.eye(y.shape[0]), p), found

        _, costs = psc.scan(step, np.eye(a.shape[0]), ys)
        return np.sum(costs)

    assert_gradient(filtered, 0.3 * normal(3, 3), normal(6, 3))
