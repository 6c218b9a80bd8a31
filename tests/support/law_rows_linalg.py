"""Rows for linear algebra, on matrices far from where factorisations fail or change abruptly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise
from pscdsl._src.primitives.factorisations import (
    Cholesky,
    Cofactors,
    Determinant,
    LogDeterminant,
    Lu,
    LuSolve,
    Qr,
    TriangularSolve,
    factored,
)
from pscdsl._src.primitives.spectra import Eig, Eigh, LeastSquares, PseudoInverse, Svd
from pscdsl._src.primitives.spectral_sums import MatrixFunction, SingularFunction
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dtypes import C64, C128, F32, F64, DType
from tests.support.law_rows import Domain, NDArray, Row, array_types, between, finfo
from tests.support.law_rows_structure import facts

DTYPES = (F32, F64, C64, C128)
EMPTY = "n >= 0"


def normal(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Normally distributed numbers, in the precise dtype of their kind."""
    real = np.asarray(rng.normal(size=shape))
    return real + 1j * np.asarray(rng.normal(size=shape)) if kind.is_complex else real


def orthonormal(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Matrices with orthonormal columns."""
    return np.asarray(np.linalg.qr(normal(rng, kind, shape))[0])


def regular(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Matrices of any shape with different singular values between 1 and 2."""
    *batch, rows, columns = shape
    inner = min(rows, columns)
    left = orthonormal(rng, kind, (*batch, rows, inner))
    right = orthonormal(rng, kind, (*batch, columns, inner)).conj().swapaxes(-1, -2)
    return np.asarray((left * np.linspace(2, 1, inner)) @ right).astype(to_numpy(kind))


def hermitian(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Hermitian matrices with different eigenvalues between -1 and 2."""
    vectors = orthonormal(rng, kind, shape)
    whole = (vectors * np.linspace(-1, 2, shape[-1])) @ vectors.conj().swapaxes(-1, -2)
    return np.asarray(whole).astype(to_numpy(kind))


def general(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Matrices with different eigenvalues, for real ones in part real, in part complex pairs."""
    size = shape[-1]
    values = np.diag(np.linspace(1, 2, size)) if size else np.zeros((0, 0))
    if size > 2:
        values[0, 1], values[1, 0] = 1, -1
    vectors = dominant(rng, kind, shape)
    return np.asarray(vectors @ values @ np.linalg.inv(vectors)).astype(to_numpy(kind))


def definite(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Hermitian matrices with eigenvalues between 1 and 2."""
    vectors = orthonormal(rng, kind, shape)
    whole = (vectors * np.linspace(1, 2, shape[-1])) @ vectors.conj().swapaxes(-1, -2)
    return np.asarray(whole).astype(to_numpy(kind))


def dominant(rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
    """Square matrices with large numbers on the diagonal."""
    return np.asarray(between(-1, 1)(rng, kind, shape) + 3 * np.eye(shape[-1])).astype(
        to_numpy(kind)
    )


class Factors:
    """Matrices, and the factorisation of the one that was drawn last."""

    def __init__(
        self,
        domain: Domain = regular,
        factors: Callable[[NDArray], tuple[NDArray, ...]] = factored,
    ) -> None:
        self._domain, self._factors = domain, factors
        self._last: tuple[NDArray, ...]

    def matrix(self, rng: np.random.Generator, kind: DType, shape: tuple[int, ...]) -> NDArray:
        """A matrix."""
        found = self._domain(rng, kind, shape)
        self._last = self._factors(found)
        return found

    def part(self, index: int) -> Domain:
        """A part of the factorisation, as `Lu` gives it."""
        return lambda rng, kind, shape: self._last[index]


def row(
    primitive: Primitive,
    operands: str,
    domain: Domain | tuple[Domain, ...],
    *known: str,
    **sizes: int,
) -> Row:
    """A row that is compared to within rounding errors, in units of the numbers around 1.

    Eigenvectors and singular vectors have any sign, complex ones any phase.
    """
    types = array_types(operands)
    chosen: tuple[int, ...] = ()
    if isinstance(primitive, Eig | Eigh | Svd) and primitive.vectors:
        chosen = (0, 2) if isinstance(primitive, Svd) else (1,)
    return Row(
        primitive,
        types,
        sizes,
        domain,
        tolerance=100,
        absolute=100 * float(finfo(types[0].dtype).eps),
        signed_zeros=False,
        facts=facts(*known),
        smooth=domain,
        chosen=chosen,
    )


def _triangular(d: str) -> Iterator[Row]:
    numbers = (dominant, between(-1, 1))
    for lower in (False, True):
        for transposed in (False, True):
            solve = TriangularSolve(lower, transposed)
            yield row(solve, f"{d}[n n], {d}[n k]", numbers, n=4, k=3)
            yield row(solve, f"{d}[b n n], {d}[b n k]", numbers, b=2, n=3, k=2)
    solve = TriangularSolve(True, False, unit_diagonal=True)
    yield row(solve, f"{d}[n n], {d}[n k]", numbers, n=4, k=3)
    yield row(solve, f"{d}[a b n n], {d}[a b n 1]", numbers, a=2, b=3, n=1)
    for zero in ("n", "k"):
        sizes = {"n": 2, "k": 2, zero: 0}
        yield row(solve, f"{d}[n n], {d}[n k]", numbers, f"{zero} >= 0", **sizes)


def _square(d: str) -> Iterator[Row]:
    whole: tuple[tuple[Primitive, Domain], ...] = (
        (Cholesky(), definite),
        (Lu(), regular),
        (Eig(), general),
        (Eig(vectors=False), general),
        (Eigh(), hermitian),
        (Eigh(vectors=False), hermitian),
    )
    for primitive, domain in whole:
        yield row(primitive, f"{d}[n n]", domain, n=4)
        yield row(primitive, f"{d}[n n]", domain, n=1)
        yield row(primitive, f"{d}[b n n]", domain, b=2, n=3)
        yield row(primitive, f"{d}[a b n n]", domain, a=2, b=3, n=2)
        yield row(primitive, f"{d}[n n]", domain, EMPTY, n=0)
        yield row(primitive, f"{d}[n 2 2]", domain, EMPTY, n=0)
    yield row(Cholesky(), f"{d}[n m]", definite, "n == m", n=3, m=3)


def _factored(d: str) -> Iterator[Row]:
    factors = Factors()
    given = (factors.matrix, factors.part(0), factors.part(1), factors.part(2))
    solving = (factors.matrix, factors.part(0), factors.part(2), between(-1, 1))
    for shape, sizes in (("n n", {"n": 4}), ("b n n", {"b": 2, "n": 3}), ("n n", {"n": 1})):
        rows = shape.removesuffix(" n")
        types = f"{d}[{shape}], {d}[{shape}], i32[{rows}]"
        for primitive in (Determinant(), LogDeterminant(), Cofactors()):
            yield row(primitive, f"{types}, i32[{rows}]", given, **sizes)
        for transposed in (False, True):
            yield row(LuSolve(transposed), f"{types}, {d}[{rows} k]", solving, **sizes)
    types = f"{d}[n n], {d}[n n], i32[n], "
    for primitive in (Determinant(), LogDeterminant(), Cofactors()):
        yield row(primitive, types + "i32[n]", given, EMPTY, n=0)
    yield row(LuSolve(), f"{types}{d}[n k]", solving, EMPTY, n=0, k=3)


def _rectangular(d: str) -> Iterator[Row]:
    for rows, columns in ((4, 3), (3, 4), (3, 3), (1, 3), (3, 1)):
        sizes = {"m": rows, "n": columns}
        for primitive in (Qr(), Svd(), Svd(vectors=False)):
            yield row(primitive, f"{d}[m n]", regular, **sizes)
        yield row(Qr(), f"{d}[b {rows} {columns}]", regular, b=2)
        yield row(Svd(), f"{d}[b {rows} {columns}]", regular, b=2)
    yield row(Qr(), f"{d}[m n]", regular, "m >= n", m=4, n=2)
    yield row(Qr(complete=True), f"{d}[m n]", regular, "m <= n", m=2, n=4)
    yield row(Svd(complete=True), f"{d}[n n]", regular, n=3)
    for sizes in ({"m": 0, "n": 2}, {"m": 2, "n": 0}):
        for primitive in (Qr(), Svd(), Svd(vectors=False)):
            yield row(primitive, f"{d}[m n]", regular, "m >= 0", "n >= 0", **sizes)
    # The columns that complete Q, U or V may be any that are orthogonal to the others.
    for rows, columns in ((4, 3), (3, 4), (1, 3), (2, 0), (0, 2)):
        for complete in (Qr(complete=True), Svd(complete=True)):
            known = ("m >= 0", "n >= 0")
            each = row(complete, f"{d}[m n]", regular, *known, m=rows, n=columns)
            yield replace(each, refused=True)


def _function(r: str) -> Block:
    """A function of a value and a parameter."""

    def build(here: Builder, params: list[Value]) -> list[Value]:
        x, scale = params
        return [elementwise.sin(x * scale)]

    return closed(Assumptions(), array_types(f"{r}, {r}"), build)


def _spectral(d: str) -> Iterator[Row]:
    r = array_types(d)[0].dtype.real.name
    if r != "f64":
        return  # the function has one precision
    of_hermitian, of_any = Factors(hermitian, _eigenvalues), Factors(regular, _singular_values)
    scale = between(0.5, 1)
    for b, sizes in (("", {}), ("b ", {"b": 2})):
        types = f"{d}[{b}n n], {r}[{b}n], {d}[{b}n n], {r}"
        given = (of_hermitian.matrix, of_hermitian.part(0), of_hermitian.part(1), scale)
        yield row(MatrixFunction(_function(r)), types, given, n=3, **sizes)
        parts: tuple[Domain, ...] = (of_any.matrix, *map(of_any.part, range(3)), scale)
        for rows, columns in ((2, 3), (3, 3), (3, 2)):
            k = min(rows, columns)
            types = f"{d}[{b}{rows} {columns}], {d}[{b}{rows} {k}], {r}[{b}{k}]"
            types += f", {d}[{b}{k} {columns}], {r}"
            yield row(SingularFunction(_function(r)), types, parts, **sizes)


def _eigenvalues(a: NDArray) -> tuple[NDArray, ...]:
    return tuple(np.linalg.eigh(a))


def _singular_values(a: NDArray) -> tuple[NDArray, ...]:
    return tuple(np.linalg.svd(a, full_matrices=False))


def _least_squares(d: str) -> Iterator[Row]:
    r = array_types(d)[0].dtype.real.name
    small = between(1e-6, 1e-5)
    for rows, columns in ((4, 3), (3, 4), (3, 3)):
        sizes = {"m": rows, "n": columns}
        yield row(PseudoInverse(), f"{d}[m n], {r}", (regular, small), **sizes)
        yield row(PseudoInverse(), f"{d}[b m n], {r}[b]", (regular, small), b=2, **sizes)
        given = (regular, small, between(-1, 1))
        yield row(LeastSquares(), f"{d}[m n], {r}, {d}[m k]", given, **sizes)
        yield row(LeastSquares(), f"{d}[b m n], {r}[b], {d}[b m k]", given, b=2, **sizes)


def _rows() -> Iterator[Row]:
    for dtype in DTYPES:
        for family in (_triangular, _square, _factored, _rectangular, _spectral, _least_squares):
            every = 1 if dtype.real is F64 else 3  # what differs by precision are names of routines
            yield from list(family(dtype.name))[::every]


ROWS = list(_rows())
